/* SPDX-License-Identifier: MIT */
/*
 * direct.c - the pixels of a rectangle of a JPEG file without libjpeg.
 *
 * Rows of MCUs whose entries are known are read some at a time, by several
 * lanes, from the entry left of the rectangle to its right edge.  Behind those,
 * rows are read one by one and whole, and their entries are recorded.
 */
#include "jpeg/direct.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/hash.h"
#include "pixel/image.h"
#include "jpeg/entropy.h"
#include "jpeg/index.h"
#include "jpeg/pixels.h"
#include "jpeg/scan.h"

/*
 * Rows of MCUs that are read before they become pixels: one for each of four
 * lanes, and more of narrow areas: a lane that ends early then has another
 * piece to read.
 */
#define ROWS_LEAST 4
#define ROWS_MAX 32
/* Bytes of blocks beyond which there are no more rows than necessary. */
#define BLOCKS_MAX ((size_t)1 << 18)
/* Pieces into which a row is cut at most. */
#define PIECES_MAX 16
/* Entries of columns in a row of the widest image. */
#define COLUMNS_MAX (65536 / 8 / TSI_JPEG_INDEX_STEP)

struct tsi_jpeg_direct {
	struct tsi_jpeg_entropy *entropy;
	struct tsi_jpeg_pixels *pixels;
	struct tsi_jpeg_scan scan;
	const uint8_t *data;
	size_t len;
	struct tsi_jpeg_known *known; /* NULL: the file has no index */
	bool claimed;                 /* this thread appends to it */
	struct tsi_rect rect;
	unsigned fast; /* as decoder.h has it */
	struct tsi_jpeg_area area;
	uint32_t must;              /* rows of MCUs that must be undamaged */
	uint32_t clean;             /* rows that are known to be */
	struct tsi_jpeg_entry next; /* of row `clean` */
	uint32_t pushed;            /* rows that became pixels, of the image */
	uint32_t given;             /* rows of pixels, of the rectangle */
	struct tsi_jpeg_blocks blocks;
	void *memory;
	size_t memory_len;
	struct tsi_jpeg_entry column[COLUMNS_MAX];
	struct tsi_jpeg_piece piece[ROWS_MAX * PIECES_MAX];
};

int tsi_jpeg_direct_create(enum tsi_simd simd, struct tsi_jpeg_direct **out)
{
	struct tsi_jpeg_direct *d = calloc(1, sizeof(*d));
	/* Its decoder needs more of AVX-512 than the others. */
	enum tsi_simd entropy = simd == TSI_SIMD_AVX512 ? TSI_SIMD_BEST : simd;
	int err;

	if (!d)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	err = tsi_jpeg_entropy_create(entropy, &d->entropy);
	if (!err)
		err = tsi_jpeg_pixels_create(simd, &d->pixels);
	if (err) {
		tsi_jpeg_direct_destroy(d);
		return err;
	}
	*out = d;
	return 0;
}

void tsi_jpeg_direct_destroy(struct tsi_jpeg_direct *d)
{
	if (!d)
		return;
	tsi_jpeg_direct_close(d);
	tsi_jpeg_entropy_destroy(d->entropy);
	tsi_jpeg_pixels_destroy(d->pixels);
	free(d->memory);
	free(d);
}

bool tsi_jpeg_direct_open(struct tsi_jpeg_direct *d, const uint8_t *data,
			  size_t len, const struct tsi_decoder_hint *hint,
			  uint32_t *width, uint32_t *height)
{
	tsi_jpeg_direct_close(d);
	if (!tsi_jpeg_scan_read(data, len, &d->scan) ||
	    !tsi_jpeg_pixels_can(&d->scan.frame))
		return false;
	d->data = data;
	d->len = len;
	d->given = 0;
	if (hint->opts && hint->opts->jpeg_index)
		d->known = tsi_jpeg_index_find(
			hint->opts->jpeg_index, hint->file,
			tsi_hash(data, len, len), &d->scan.frame, len);
	*width = d->scan.frame.width;
	*height = d->scan.frame.height;
	return true;
}

bool tsi_jpeg_direct_has_planes(const struct tsi_jpeg_direct *d)
{
	return tsi_jpeg_pixels_has_planes(d->pixels);
}

/* Bytes of the blocks of a row of MCUs, each with its last position. */
static size_t row_bytes(const struct tsi_jpeg_frame *f, uint32_t across)
{
	size_t blocks = 0;

	for (unsigned i = 0; i < f->comps; i++)
		blocks += (size_t)f->comp[i].h * f->comp[i].v * across;
	return blocks * (64 * sizeof(int16_t) + 1);
}

/* Rows of MCUs whose blocks are in memory together. */
static uint32_t rows_at_once(const struct tsi_jpeg_frame *f, uint32_t across)
{
	size_t bytes = row_bytes(f, across);
	size_t n = bytes ? BLOCKS_MAX / bytes : ROWS_MAX;

	if (n < ROWS_LEAST)
		return ROWS_LEAST;
	return n > ROWS_MAX ? ROWS_MAX : (uint32_t)n;
}

uint64_t tsi_jpeg_direct_need(const struct tsi_jpeg_direct *d)
{
	const struct tsi_jpeg_frame *f = &d->scan.frame;
	size_t row = row_bytes(f, f->mcus_across);
	size_t most = ROWS_LEAST * row;

	/* More rows of narrow areas, but then of less than so many bytes. */
	if (most < BLOCKS_MAX)
		most = ROWS_MAX * row < BLOCKS_MAX ? ROWS_MAX * row
						   : BLOCKS_MAX;
	return most + tsi_jpeg_pixels_need(f);
}

/* Memory for the blocks of n rows of the area's MCUs. */
static int make_blocks(struct tsi_jpeg_direct *d, uint32_t n)
{
	const struct tsi_jpeg_frame *f = &d->scan.frame;
	size_t bytes = (row_bytes(f, d->area.across) * n + 63) / 64 * 64;
	uint8_t *last;
	int16_t(*coef)[64];

	if (bytes > d->memory_len) {
		free(d->memory);
		d->memory_len = 0;
		d->memory = aligned_alloc(64, bytes);
		if (!d->memory)
			return tsi_err(TSOCK_ENOMEM,
				       "no memory for a JPEG's coefficients");
		d->memory_len = bytes;
	}
	coef = d->memory;
	for (unsigned i = 0; i < f->comps; i++) {
		d->blocks.coef[i] = coef;
		d->blocks.stride[i] = f->comp[i].h * d->area.across;
		coef += (size_t)d->blocks.stride[i] * f->comp[i].v * n;
	}
	last = (uint8_t *)coef;
	for (unsigned i = 0; i < f->comps; i++) {
		d->blocks.last[i] = last;
		last += (size_t)d->blocks.stride[i] * f->comp[i].v * n;
	}
	return 0;
}

/*
 * The rows of MCUs that libjpeg reads for the rectangle.  Where chroma is
 * interpolated downwards it makes two rows of pixels at a time, and reads on
 * for the last two of a row of MCUs; fast, it interpolates nothing.
 */
static uint32_t rows_read(const struct tsi_jpeg_direct *d)
{
	const struct tsi_jpeg_frame *f = &d->scan.frame;
	uint32_t last = d->rect.top + d->rect.height - 1;
	uint32_t edge = (d->fast ? 8u / d->fast : 8u) * f->v_max;
	uint32_t rows = last / edge + 1, together = d->scan.together;

	if (!d->fast && f->v_max > 1 && last % edge >= edge - f->v_max)
		rows++;
	if (rows < d->area.top + d->area.down)
		rows = d->area.top + d->area.down;
	rows = (rows + together - 1) / together * together;
	return rows < f->mcus_down ? rows : f->mcus_down;
}

/* Read the first row that isn't known; its blocks go to b, unless NULL. */
static bool record_row(struct tsi_jpeg_direct *d,
		       const struct tsi_jpeg_blocks *b)
{
	struct tsi_jpeg_entry next;
	uint32_t step = d->known ? tsi_jpeg_known_step(d->known) : 0;

	if (!tsi_jpeg_entropy_record(d->entropy, &d->next, b, step, d->column,
				     &next)) {
		if (d->claimed)
			tsi_jpeg_known_release(d->known, true);
		d->claimed = false;
		return false;
	}
	if (d->claimed)
		tsi_jpeg_known_append(d->known, d->column, &next);
	d->next = next;
	d->clean++;
	return true;
}

/*
 * All rows that must be can be read.  What stands behind them counts too: it may
 * be the rest of damage that was read as codes, and a marker in there is a
 * reason to refuse the file.
 */
static bool ends_well(const struct tsi_jpeg_direct *d)
{
	struct tsi_jpeg_piece behind = { .entry = d->next };

	if (d->clean > d->must)
		tsi_jpeg_known_start(d->known, d->must, 0, 1, &behind);
	return tsi_jpeg_entropy_ends_well(d->entropy, &behind.entry,
					  d->must == d->scan.frame.mcus_down);
}

/* What is read next that isn't known is the first row behind what is. */
static void go_behind_known(struct tsi_jpeg_direct *d)
{
	struct tsi_jpeg_piece start;

	d->clean = 0;
	d->next = (struct tsi_jpeg_entry){ 0 };
	if (!d->known)
		return;
	d->clean = tsi_jpeg_known_rows(d->known);
	tsi_jpeg_known_start(d->known, d->clean, 0, 1, &start);
	d->next = start.entry;
}

/* What is known of the file; begin to append to it if that isn't enough. */
static bool look_up(struct tsi_jpeg_direct *d)
{
	go_behind_known(d);
	if (!d->known || d->clean >= d->must)
		return true;
	d->claimed = tsi_jpeg_known_claim(d->known);
	go_behind_known(d);
	return d->clean >= d->must || !tsi_jpeg_known_ends(d->known);
}

/*
 * Where libjpeg gives other pixels of damaged files than this code, all pixels
 * of a rectangle have to come from one of them, and from the same one however
 * much of the file is known: its rows are looked at before pixels are given.
 */
static bool look_ahead(struct tsi_jpeg_direct *d)
{
	bool all = d->clean >= d->must;

	while (d->clean < d->must)
		if (!record_row(d, NULL))
			return false;
	if (!ends_well(d))
		return false;
	if (!all)
		go_behind_known(d);
	return true;
}

int tsi_jpeg_direct_begin(struct tsi_jpeg_direct *d,
			  const struct tsi_rect *rect, unsigned fast,
			  bool planes)
{
	const struct tsi_jpeg_frame *f = &d->scan.frame;
	int err;

	d->rect = *rect;
	d->fast = fast;
	d->given = 0;
	tsi_jpeg_pixels_area(f, rect, fast, &d->area);
	d->must = rows_read(d);
	if (!look_up(d))
		return TSOCK_ENOTSUP;
	err = make_blocks(d, rows_at_once(f, d->area.across));
	if (!err)
		err = tsi_jpeg_pixels_begin(d->pixels, f, rect, fast, planes);
	if (err)
		return err;
	d->pushed = d->area.top;
	d->blocks.area = d->area;
	d->blocks.area.down = 0;
	tsi_jpeg_entropy_open(d->entropy, &d->scan, d->data, d->len);
	if (!TSI_JPEG_PIXELS_ALWAYS_ALIKE && !look_ahead(d))
		return TSOCK_ENOTSUP;
	while (d->clean < d->area.top)
		if (!record_row(d, NULL))
			return TSOCK_ENOTSUP;
	return 0;
}

/*
 * Cut row i of the blocks' area at the entries of columns, into pieces of about
 * the same width; returns the piece behind the last.
 */
static struct tsi_jpeg_piece *cut_row(const struct tsi_jpeg_direct *d,
				      uint32_t i, uint32_t most,
				      struct tsi_jpeg_piece *piece)
{
	uint32_t step = tsi_jpeg_known_step(d->known);
	uint32_t x = d->area.left, end = x + d->area.across, to;

	if (!step)
		most = 1;
	else
		step *= (d->area.across + step * most - 1) / (step * most);
	for (; x < end; x = to, piece++) {
		to = most > 1 ? x - x % step + step : end;
		if (to > end)
			to = end;
		tsi_jpeg_known_start(d->known, d->pushed + i, x, to, piece);
		piece->row = i;
	}
	return piece;
}

/* Read rows whose entries are known. */
static bool read_known(struct tsi_jpeg_direct *d, uint32_t n)
{
	/* Four lanes have enough to do with the rows. */
	uint32_t most = tsi_jpeg_entropy_pieces(d->entropy) > ROWS_LEAST
				? PIECES_MAX - 1
				: 1;
	struct tsi_jpeg_piece *end = d->piece;

	for (uint32_t i = 0; i < n; i++)
		end = cut_row(d, i, most, end);
	return tsi_jpeg_entropy_read(d->entropy, d->piece,
				     (uint32_t)(end - d->piece), &d->blocks);
}

/* The next rows of MCUs, into the blocks. */
static bool read_mcu_rows(struct tsi_jpeg_direct *d)
{
	uint32_t end = d->area.top + d->area.down;
	uint32_t n = rows_at_once(&d->scan.frame, d->area.across);
	bool known = d->pushed < d->clean, ok;

	if (!known)
		n = 1;
	else if (n > d->clean - d->pushed)
		n = d->clean - d->pushed;
	if (n > end - d->pushed)
		n = end - d->pushed;
	d->blocks.area.top = d->pushed;
	d->blocks.area.down = n;
	ok = known ? read_known(d, n) : record_row(d, &d->blocks);
	/* Before the last pixels are given away. */
	while (ok && d->pushed + n == end && d->clean < d->must)
		ok = record_row(d, NULL);
	return ok && (d->pushed + n < end || ends_well(d));
}

int tsi_jpeg_direct_read(struct tsi_jpeg_direct *d, struct tsi_strip *strip)
{
	while (!tsi_jpeg_pixels_read(d->pixels, strip)) {
		uint32_t at = d->pushed - d->blocks.area.top;

		if (at == d->blocks.area.down) {
			if (!read_mcu_rows(d))
				return TSOCK_ENOTSUP;
			at = 0;
		}
		tsi_jpeg_pixels_push(d->pixels, &d->blocks, at);
		d->pushed++;
	}
	d->given += strip->rows;
	return 0;
}

uint32_t tsi_jpeg_direct_rows(const struct tsi_jpeg_direct *d)
{
	return d->given;
}

void tsi_jpeg_direct_close(struct tsi_jpeg_direct *d)
{
	if (d->claimed)
		tsi_jpeg_known_release(d->known, false);
	d->claimed = false;
	d->known = NULL;
	if (d->memory_len > TSI_SCRATCH_KEEP) {
		free(d->memory);
		d->memory = NULL;
		d->memory_len = 0;
	}
}
