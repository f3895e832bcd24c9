/* SPDX-License-Identifier: MIT */
/*
 * entropy.c - Huffman-coded data of a JPEG file to coefficients.
 *
 * Each piece of a row is read by a lane (lane.h), several in turns.
 * Lanes read from windows into which the file's bytes are copied without the
 * stuffed zeros.
 */
#include "jpeg/entropy.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "jpeg/entropy_kernel.h"
#include "jpeg/lane.h"
#include "jpeg/lookup.h"
#include "jpeg/wide.h"
#include "jpeg/window.h"

#define UNITS TSI_LANE_UNITS
#define LANES TSI_LANES

_Static_assert(TSI_LANE_MCU_MAX <= TSI_WINDOW_SLACK,
	       "a window's slack holds an MCU");

struct tsi_jpeg_entropy {
	struct tsi_lanes shared;
	_Alignas(64) int16_t spare[LANES][64]; /* blocks that nobody wants */
	uint8_t spare_last;
	struct tsi_lane lane[LANES];
	bool recording; /* lane 0 stands at this entry */
	struct tsi_jpeg_entry recorded;
	struct tsi_jpeg_scan scan;
	const uint8_t *data;
	size_t len;
	bool ready;            /* the lanes' tables are this file's */
	struct tsi_wide *wide; /* NULL: this processor can't */
	bool wide_ready;
	uint32_t wide_from; /* pieces */
	struct tsi_jpeg_unit unit[UNITS];
	struct tsi_entropy_kernel kernel;
};

/* ------------------------------------------------------------------------
 * Tables
 */

/* The lanes' tables, of the file that is open. */
static void make_ready(struct tsi_jpeg_entropy *e)
{
	const struct tsi_jpeg_scan *scan = &e->scan;

	if (e->ready)
		return;
	e->ready = true;
	e->shared.units = tsi_jpeg_units(&e->scan.frame, e->unit);
	for (uint8_t c = 0; c < e->scan.frame.comps; c++) {
		uint8_t ac = tsi_jpeg_same_codes(scan->ac, c);
		uint8_t dc = tsi_jpeg_same_codes(scan->dc, c);

		e->shared.ac_of[c] = ac;
		e->shared.dc_of[c] = dc;
		if (ac == c)
			tsi_lookup_ac(&scan->ac[c], &e->shared.ac[c]);
		if (dc == c)
			tsi_lookup_dc(&scan->dc[c], &e->shared.dc[c]);
	}
	for (unsigned u = 0; u < e->shared.units; u++)
		e->shared.comp[u] = e->unit[u].comp;
}

/* ------------------------------------------------------------------------
 * Windows
 */

/* The first bit of lane l's window. */
static uint64_t first_bit(const struct tsi_jpeg_entropy *e,
			  const struct tsi_lane *l)
{
	return (uint64_t)(l - e->lane) * sizeof(e->shared.window[0]) * 8;
}

/* What the lane may read before it is looked at again. */
static void set_stop(const struct tsi_jpeg_entropy *e, struct tsi_lane *l)
{
	l->stop = first_bit(e, l) +
		  tsi_jpeg_window_stop(&e->shared.window[l - e->lane]);
}

/* The bytes behind `end` aren't needed, or it is 0. */
static void enter(struct tsi_jpeg_entropy *e, struct tsi_lane *l,
		  const struct tsi_jpeg_entry *from, uint32_t end)
{
	tsi_jpeg_window_open(&e->shared.window[l - e->lane], e->kernel.unstuff,
			     e->data, e->len, from->bit / 8, end);
	l->at = first_bit(e, l) + from->bit % 8;
	l->unit = 0;
	for (unsigned i = 0; i < TSI_JPEG_COMPS; i++)
		l->pred[i] = from->dc[i];
	set_stop(e, l);
}

/* Where lane l stands. */
static void leave(struct tsi_jpeg_entropy *e, struct tsi_lane *l,
		  struct tsi_jpeg_entry *out)
{
	uint64_t bit = l->at - first_bit(e, l);
	size_t byte = tsi_jpeg_window_offset(&e->shared.window[l - e->lane],
					     (size_t)bit / 8);

	out->bit = (uint32_t)(byte * 8 + bit % 8);
	for (unsigned i = 0; i < TSI_JPEG_COMPS; i++)
		out->dc[i] = (int16_t)l->pred[i];
}

/* The next blocks are not wanted. */
static void to_spare(struct tsi_jpeg_entropy *e, struct tsi_lane *l)
{
	tsi_jpeg_cursor_set_spare(&l->blocks, e->spare[l - e->lane],
				  &e->spare_last, e->shared.units);
}

/* The next blocks are those of row y of the area, from column x of it on. */
static void to_blocks(struct tsi_jpeg_entropy *e, struct tsi_lane *l,
		      const struct tsi_jpeg_blocks *b, uint32_t x, uint32_t y)
{
	tsi_jpeg_cursor_set(&l->blocks, b, &e->scan.frame, e->unit,
			    e->shared.units, x, y);
}

/*
 * A lane is to be looked at: fill its window if need be.  False: it has read
 * beyond the data's end.
 */
static bool look_after(struct tsi_jpeg_entropy *e, struct tsi_lane *l)
{
	struct tsi_jpeg_window *w = &e->shared.window[l - e->lane];
	size_t used = (size_t)(l->at - first_bit(e, l)) / 8;

	if (l->at < l->stop)
		return true;
	if (tsi_jpeg_window_ended(w))
		return false;
	tsi_jpeg_window_fill(w, e->kernel.unstuff, used);
	l->at -= (uint64_t)used * 8;
	set_stop(e, l);
	return l->at < l->stop;
}

/* ------------------------------------------------------------------------
 * Pieces
 */

static int run_lanes(const struct tsi_jpeg_entropy *e, struct tsi_lane **lane,
		     int n)
{
	return e->kernel.run(&e->shared, lane, n);
}

static bool begin_block(const struct tsi_jpeg_entropy *e, struct tsi_lane *l)
{
	return tsi_lane_begin_block(&e->shared, l);
}

/* The blocks that lane l is to read of its piece. */
static void to_piece(struct tsi_jpeg_entropy *e, struct tsi_lane *l,
		     const struct tsi_jpeg_blocks *b)
{
	const struct tsi_jpeg_piece *p = l->piece;

	l->skipping = false;
	l->mcus = p->right - p->left;
	to_blocks(e, l, b, p->left - b->area.left, p->row);
}

static bool begin_piece(struct tsi_jpeg_entropy *e, struct tsi_lane *l,
			const struct tsi_jpeg_piece *p,
			const struct tsi_jpeg_blocks *b)
{
	enter(e, l, &p->entry, p->end);
	l->piece = p;
	l->mcus = p->left - p->column;
	l->skipping = l->mcus > 0;
	if (l->skipping)
		to_spare(e, l);
	else
		to_piece(e, l, b);
	return look_after(e, l) && begin_block(e, l);
}

/*
 * Lane l has read what it was to, or its window.  *next is the piece that no
 * lane has begun yet; sets *done if there is none left for this one.
 */
static bool move_lane(struct tsi_jpeg_entropy *e, struct tsi_lane *l,
		      const struct tsi_jpeg_piece **next,
		      const struct tsi_jpeg_piece *end,
		      const struct tsi_jpeg_blocks *b, bool *done)
{
	if (!look_after(e, l))
		return false;
	if (!l->mcus && l->skipping) {
		to_piece(e, l, b);
	} else if (!l->mcus) {
		*done = *next == end;
		return *done || begin_piece(e, l, (*next)++, b);
	}
	return begin_block(e, l);
}

static bool read_wide(struct tsi_jpeg_entropy *e,
		      const struct tsi_jpeg_piece *piece, uint32_t n,
		      const struct tsi_jpeg_blocks *b)
{
	if (!e->wide_ready)
		tsi_wide_open(e->wide, &e->scan, e->data, e->len);
	e->wide_ready = true;
	return tsi_wide_read(e->wide, piece, n, b);
}

bool tsi_jpeg_entropy_read(struct tsi_jpeg_entropy *e,
			   const struct tsi_jpeg_piece *piece, uint32_t n,
			   const struct tsi_jpeg_blocks *b)
{
	const struct tsi_jpeg_piece *end = piece + n;
	struct tsi_lane *lane[LANES];
	int lanes = 0;

	e->recording = false;
	if (e->wide && n >= e->wide_from)
		return read_wide(e, piece, n, b);
	make_ready(e);
	for (; lanes < LANES && piece < end; lanes++) {
		lane[lanes] = &e->lane[lanes];
		if (!begin_piece(e, lane[lanes], piece++, b))
			return false;
	}
	while (lanes) {
		int r = run_lanes(e, lane, lanes);
		bool done = false;

		if (r < 0 || !move_lane(e, lane[r], &piece, end, b, &done))
			return false;
		if (done)
			lane[r] = lane[--lanes];
	}
	return true;
}

/* The first column right of x where something is to be done. */
static uint32_t next_stop(const struct tsi_jpeg_entropy *e,
			  const struct tsi_jpeg_blocks *b, uint32_t step,
			  uint32_t x)
{
	uint32_t to = e->scan.frame.mcus_across;
	uint32_t at[3] = { to, to, to };

	if (step)
		at[0] = x - x % step + step;
	if (b) {
		at[1] = b->area.left;
		at[2] = b->area.left + b->area.across;
	}
	for (int i = 0; i < 3; i++)
		if (at[i] > x && at[i] < to)
			to = at[i];
	return to;
}

/* Read lane 0 from column x on to the next place to stop. */
static bool record_piece(struct tsi_jpeg_entropy *e,
			 const struct tsi_jpeg_blocks *b, uint32_t x,
			 uint32_t to)
{
	struct tsi_lane *l = &e->lane[0];

	l->mcus = to - x;
	if (b && x >= b->area.left && x < b->area.left + b->area.across) {
		if (x == b->area.left)
			to_blocks(e, l, b, 0, 0);
	} else {
		to_spare(e, l);
	}
	do {
		if (!begin_block(e, l) || run_lanes(e, &l, 1) < 0 ||
		    !look_after(e, l))
			return false;
	} while (l->mcus);
	return true;
}

bool tsi_jpeg_entropy_record(struct tsi_jpeg_entropy *e,
			     const struct tsi_jpeg_entry *row,
			     const struct tsi_jpeg_blocks *b, uint32_t step,
			     struct tsi_jpeg_entry *column,
			     struct tsi_jpeg_entry *next)
{
	struct tsi_lane *l = &e->lane[0];
	uint32_t x = 0, to;

	make_ready(e);
	/* Where the last row ended nothing has to be read again. */
	if (!e->recording || memcmp(row, &e->recorded, sizeof(*row)))
		enter(e, l, row, 0);
	e->recording = false;
	if (!look_after(e, l))
		return false;
	for (; x < e->scan.frame.mcus_across; x = to) {
		if (x && step && x % step == 0)
			leave(e, l, column++);
		to = next_stop(e, b, step, x);
		if (!record_piece(e, b, x, to))
			return false;
	}
	leave(e, l, next);
	e->recorded = *next;
	e->recording = true;
	return true;
}

/* ------------------------------------------------------------------------
 * Files
 */

void tsi_jpeg_entropy_open(struct tsi_jpeg_entropy *e,
			   const struct tsi_jpeg_scan *scan,
			   const uint8_t *data, size_t len)
{
	e->scan = *scan;
	e->data = data + scan->data;
	e->len = len - scan->data;
	e->recording = false;
	e->ready = false;
	e->wide_ready = false;
}

bool tsi_jpeg_entropy_ends_well(const struct tsi_jpeg_entropy *e,
				const struct tsi_jpeg_entry *behind, bool whole)
{
	size_t at = behind->bit / 8, n = at < e->len ? e->len - at : 0;
	/* libjpeg, which then decides, has read some bytes more. */
	size_t near = TSI_JPEG_SCAN_NEAR + 2 * sizeof(uint64_t);

	if (!whole && n > near)
		n = near;
	return tsi_jpeg_scan_stray(e->data + at, n) == n;
}

uint32_t tsi_jpeg_entropy_pieces(const struct tsi_jpeg_entropy *e)
{
	return e->wide ? TSI_WIDE_LANES : LANES;
}

/* Where they are asked for by name, sixteen at once are always taken. */
static int make_wide(struct tsi_jpeg_entropy *e, enum tsi_simd simd)
{
	e->wide_from = simd == TSI_SIMD_BEST ? e->kernel.wide_from : 1;
	if (!e->kernel.wide_run || !e->wide_from)
		return 0;
	e->wide = tsi_wide_create(&e->kernel);
	return e->wide ? 0
		       : tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
}

int tsi_jpeg_entropy_create(enum tsi_simd simd, struct tsi_jpeg_entropy **out)
{
	struct tsi_jpeg_entropy *e;
	enum tsi_simd level;
	int err = tsi_simd_choose(simd, &level);

	if (err)
		return err;
	e = aligned_alloc(64, (sizeof(*e) + 63) / 64 * 64);
	if (!e)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	memset(e, 0, sizeof(*e));
	tsi_entropy_kernel_init(&e->kernel, level);
	if (make_wide(e, simd)) {
		free(e);
		return TSOCK_ENOMEM;
	}
	*out = e;
	return 0;
}

void tsi_jpeg_entropy_destroy(struct tsi_jpeg_entropy *e)
{
	if (!e)
		return;
	tsi_wide_destroy(e->wide);
	free(e);
}
