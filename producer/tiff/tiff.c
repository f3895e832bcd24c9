/* SPDX-License-Identifier: MIT */
/*
 * tiff.c - the one file of the producer that includes libtiff's header.
 *
 * A band is a strip, or a row of tiles, and its parts are decoded whole: codes
 * may run on from one row to the next.  Bands that are compressed are decoded
 * from the first one on, so that damage counts for all samples that reach below
 * it, and not for some of them; others are read where they lie in the file, as
 * Pillow reads them, whatever length they are said to have.
 */
#include "tiff/tiff.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "base/err.h"
#include "pixel/image.h"
#include "tiff/memory.h"

/* Memory of libtiff's: its handle, and a codec's tables. */
#define CODEC ((uint64_t)1 << 18)

struct tsi_tiff {
	struct tsi_decoder base;
	TIFF *tif;
	struct tsi_tiff_memory file;
	uint32_t width, height;
	unsigned samples;
	bool indexed; /* by table; else samples are colours */
	bool packed;  /* compressed */
	uint8_t table[256][3];
	bool tiled;
	uint32_t part_width, rows; /* of a strip or tile */
	uint32_t across;           /* parts in a band */
	struct tsi_rect rect;
	uint32_t next; /* row of the image to give */
	uint32_t band; /* the next one to decode */
	uint8_t *raw;  /* the band before it, part after part */
	size_t raw_len;
	uint8_t *strip;
	size_t strip_len;
};

static int bad(const char *why)
{
	return tsi_err(TSOCK_EDATA, "bad TIFF: %s", why);
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void drop(struct tsi_tiff *p)
{
	if (p->tif)
		TIFFClose(p->tif);
	p->tif = NULL;
	if (p->raw_len + p->strip_len <= TSI_SCRATCH_KEEP)
		return;
	free(p->raw);
	free(p->strip);
	p->raw = NULL;
	p->strip = NULL;
	p->raw_len = 0;
	p->strip_len = 0;
}

static void be_quiet(void)
{
	TIFFSetErrorHandler(NULL);
	TIFFSetWarningHandler(NULL);
}

/* ------------------------------------------------------------------------
 * What is supported
 */

static unsigned field(const struct tsi_tiff *p, uint32_t tag)
{
	uint16_t value = 0;

	TIFFGetFieldDefaulted(p->tif, tag, &value);
	return value;
}

static bool is_known_compression(unsigned c)
{
	return c == COMPRESSION_NONE || c == COMPRESSION_LZW ||
	       c == COMPRESSION_ADOBE_DEFLATE || c == COMPRESSION_DEFLATE ||
	       c == COMPRESSION_PACKBITS;
}

/* An alpha channel that colours weren't multiplied by, or no extra one. */
static bool is_plain_extra(const struct tsi_tiff *p, unsigned colours)
{
	uint16_t n = 0, *kind = NULL;

	TIFFGetFieldDefaulted(p->tif, TIFFTAG_EXTRASAMPLES, &n, &kind);
	if (p->samples == colours)
		return !n;
	return p->samples == colours + 1 &&
	       (n == 0 ? colours == 3
		       : n == 1 && kind[0] != EXTRASAMPLE_ASSOCALPHA);
}

static int check_samples(const struct tsi_tiff *p, unsigned kind)
{
	unsigned colours = kind == PHOTOMETRIC_RGB ? 3 : 1;

	if (kind > PHOTOMETRIC_PALETTE)
		return tsi_err(TSOCK_EDATA,
			       "TIFF of another colour space (%u) than grey, "
			       "RGB or a palette is not supported",
			       kind);
	if (field(p, TIFFTAG_BITSPERSAMPLE) != 8 ||
	    field(p, TIFFTAG_SAMPLEFORMAT) != SAMPLEFORMAT_UINT)
		return tsi_err(TSOCK_EDATA,
			       "TIFF of %u bits per channel, or of signed "
			       "numbers, is not supported",
			       field(p, TIFFTAG_BITSPERSAMPLE));
	if (!is_plain_extra(p, colours) ||
	    (p->samples == 2 && kind != PHOTOMETRIC_MINISBLACK))
		return tsi_err(TSOCK_EDATA,
			       "TIFF of %u channels, or with colours that are "
			       "multiplied by alpha, is not supported",
			       p->samples);
	return 0;
}

static int check_kind(const struct tsi_tiff *p)
{
	uint16_t kind = 0;

	if (!TIFFGetField(p->tif, TIFFTAG_PHOTOMETRIC, &kind))
		return bad("it doesn't say what its colours are");
	if (!is_known_compression(field(p, TIFFTAG_COMPRESSION)))
		return tsi_err(TSOCK_EDATA,
			       "TIFF with this compression (%u) is not "
			       "supported",
			       field(p, TIFFTAG_COMPRESSION));
	if (field(p, TIFFTAG_PLANARCONFIG) != PLANARCONFIG_CONTIG ||
	    field(p, TIFFTAG_FILLORDER) != FILLORDER_MSB2LSB)
		return tsi_err(TSOCK_EDATA,
			       "TIFF with a plane for each channel, or with "
			       "bits in reverse, is not supported");
	if (field(p, TIFFTAG_ORIENTATION) != ORIENTATION_TOPLEFT)
		return tsi_err(TSOCK_EDATA,
			       "TIFF that is to be turned (orientation %u) is "
			       "not supported",
			       field(p, TIFFTAG_ORIENTATION));
	return check_samples(p, kind);
}

/* ------------------------------------------------------------------------
 * Opening
 */

static int set_table(struct tsi_tiff *p)
{
	unsigned kind = field(p, TIFFTAG_PHOTOMETRIC);
	uint16_t *c[3];

	p->indexed = kind != PHOTOMETRIC_RGB;
	if (kind == PHOTOMETRIC_PALETTE &&
	    !TIFFGetField(p->tif, TIFFTAG_COLORMAP, &c[0], &c[1], &c[2]))
		return bad("it has no palette");
	for (unsigned i = 0; p->indexed && i < 256; i++)
		for (unsigned k = 0; k < 3; k++)
			p->table[i][k] =
				(uint8_t)(kind == PHOTOMETRIC_PALETTE
						  ? c[k][i] >> 8
					  : kind == PHOTOMETRIC_MINISWHITE
						  ? 255 - i
						  : i);
	return 0;
}

/* Bytes of a part's row, and of a part. */
static uint64_t row_bytes(const struct tsi_tiff *p)
{
	return (uint64_t)p->part_width * p->samples;
}

static uint64_t part_bytes(const struct tsi_tiff *p)
{
	return row_bytes(p) * p->rows;
}

static int set_parts(struct tsi_tiff *p)
{
	uint32_t rows = 0;

	p->tiled = TIFFIsTiled(p->tif);
	p->part_width = p->width;
	if (p->tiled) {
		p->part_width = 0;
		TIFFGetField(p->tif, TIFFTAG_TILEWIDTH, &p->part_width);
		TIFFGetField(p->tif, TIFFTAG_TILELENGTH, &rows);
	} else {
		TIFFGetFieldDefaulted(p->tif, TIFFTAG_ROWSPERSTRIP, &rows);
		rows = least(rows, p->height);
	}
	p->rows = rows;
	if (!p->part_width || !rows ||
	    (uint64_t)p->part_width * rows > TSI_IMAGE_PIXELS_MAX)
		return bad("its strips or tiles are empty or too large");
	p->across = (p->width - 1) / p->part_width + 1;
	if (part_bytes(p) != (p->tiled ? TIFFTileSize64(p->tif)
				       : TIFFVStripSize64(p->tif, rows)))
		return bad("its rows have another length than its width");
	return 0;
}

/* Bytes of the file's that a part takes. */
static uint64_t bytes_in_file(const struct tsi_tiff *p, uint32_t part)
{
	uint32_t top = part / p->across * p->rows;

	if (p->packed)
		return TIFFGetStrileByteCount(p->tif, part);
	return (uint64_t)least(p->rows, p->height - top) * row_bytes(p);
}

/* Are all parts in the file? */
static int check_parts(struct tsi_tiff *p)
{
	uint64_t n = (uint64_t)((p->height - 1) / p->rows + 1) * p->across;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t at = TIFFGetStrileOffset(p->tif, i);
		uint64_t bytes = bytes_in_file(p, i);

		if (!at || !bytes || at > p->file.len ||
		    bytes > p->file.len - at)
			return bad("truncated: a part of its image is behind "
				   "its end");
	}
	return 0;
}

static int open_image(struct tsi_tiff *p)
{
	int err;

	if (!TIFFGetField(p->tif, TIFFTAG_IMAGEWIDTH, &p->width) ||
	    !TIFFGetField(p->tif, TIFFTAG_IMAGELENGTH, &p->height) ||
	    !p->width || !p->height)
		return bad("it has no size");
	if ((uint64_t)p->width * p->height > TSI_IMAGE_PIXELS_MAX)
		return bad("it is too large");
	p->samples = field(p, TIFFTAG_SAMPLESPERPIXEL);
	p->packed = field(p, TIFFTAG_COMPRESSION) != COMPRESSION_NONE;
	err = check_kind(p);
	if (!err)
		err = set_table(p);
	if (!err)
		err = set_parts(p);
	return err ? err : check_parts(p);
}

/* ------------------------------------------------------------------------
 * Pixels
 */

static void put_pixels(const struct tsi_tiff *p, const uint8_t *from,
		       uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x++, from += p->samples, to += 4)
		memcpy(to, p->indexed ? p->table[from[0]] : from, 3);
}

/* Decode part i of the band. */
static int read_part(struct tsi_tiff *p, uint32_t i)
{
	uint32_t part = p->band * p->across + i;
	tmsize_t bytes = (tmsize_t)part_bytes(p), n;
	uint8_t *to = p->raw + i * part_bytes(p);

	memset(to, 0, (size_t)bytes);
	n = p->tiled ? TIFFReadEncodedTile(p->tif, part, to, bytes)
		     : TIFFReadEncodedStrip(p->tif, part, to, bytes);
	return n < 0 ? bad("its image is damaged") : 0;
}

/* Decode the bands down to that of the next row. */
static int read_bands(struct tsi_tiff *p)
{
	int err = 0;

	while (p->packed && p->band <= p->next / p->rows && !err) {
		for (uint32_t i = 0; i < p->across && !err; i++)
			err = read_part(p, i);
		if (!err)
			p->band++;
	}
	return err;
}

/* Row y of part i of the band that it lies in. */
static const uint8_t *row_at(const struct tsi_tiff *p, uint32_t y, uint32_t i)
{
	uint32_t number = y / p->rows * p->across + i;
	const uint8_t *part =
		p->packed ? p->raw + i * part_bytes(p)
			  : p->file.data + TIFFGetStrileOffset(p->tif, number);

	return part + y % p->rows * row_bytes(p);
}

/* Row y of the rectangle. */
static void put_row(const struct tsi_tiff *p, uint32_t y, uint8_t *to)
{
	uint32_t x = p->rect.left, end = x + p->rect.width;

	while (x < end) {
		uint32_t i = x / p->part_width, in = x % p->part_width;
		uint32_t n = least(end - x, p->part_width - in);

		put_pixels(p, row_at(p, y, i) + (size_t)in * p->samples, n, to);
		to += (size_t)n * 4;
		x += n;
	}
}

static uint64_t raw_bytes(const struct tsi_tiff *p)
{
	return p->packed ? part_bytes(p) * p->across : 0;
}

static uint64_t strip_bytes(uint32_t width)
{
	return (uint64_t)TSI_STRIP_ROWS * width * 4 + TSI_ROW_SLACK;
}

static int reserve(uint8_t **p, size_t *have, uint64_t len)
{
	if (len <= *have)
		return 0;
	free(*p);
	*have = 0;
	*p = malloc(len);
	if (!*p)
		return tsi_err(TSOCK_ENOMEM, "no memory to decode a TIFF");
	*have = len;
	return 0;
}

/* ------------------------------------------------------------------------
 * The operations of decoder.h
 */

static struct tsi_tiff *tiff_of(struct tsi_decoder *d)
{
	return (struct tsi_tiff *)d;
}

static int decoder_create(struct tsi_decoder **out)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tsi_tiff *p = calloc(1, sizeof(*p));

	if (!p)
		return tsi_err(TSOCK_ENOMEM, "no memory for a TIFF decoder");
	pthread_once(&once, be_quiet);
	p->base.ops = &tsi_tiff_ops;
	*out = &p->base;
	return 0;
}

static void decoder_destroy(struct tsi_decoder *d)
{
	struct tsi_tiff *p = tiff_of(d);

	if (!p)
		return;
	drop(p);
	free(p->raw);
	free(p->strip);
	free(p);
}

static int decoder_open(struct tsi_decoder *d, const void *data, size_t len,
			uint32_t *width, uint32_t *height)
{
	struct tsi_tiff *p = tiff_of(d);
	int err;

	drop(p);
	p->file = (struct tsi_tiff_memory){ data, len, 0 };
	/* Not mapped: libtiff may swap bytes there.  Strips as they are. */
	p->tif = TIFFClientOpen("", "rmc", &p->file, tsi_tiff_memory_read,
				tsi_tiff_memory_write, tsi_tiff_memory_seek,
				tsi_tiff_memory_close, tsi_tiff_memory_size,
				NULL, NULL);
	if (!p->tif)
		return bad("its first directory is damaged or cut short");
	err = open_image(p);
	if (err)
		return err;
	*width = p->width;
	*height = p->height;
	return 0;
}

/* What is reserved, libtiff's own, and a part of the file as it is there. */
static uint64_t decoder_need(struct tsi_decoder *d)
{
	const struct tsi_tiff *p = tiff_of(d);

	return raw_bytes(p) + strip_bytes(p->width) + CODEC +
	       (p->packed ? p->file.len : 0);
}

static int decoder_begin(struct tsi_decoder *d, const struct tsi_rect *rect)
{
	struct tsi_tiff *p = tiff_of(d);
	int err = reserve(&p->raw, &p->raw_len, raw_bytes(p));

	if (!err)
		err = reserve(&p->strip, &p->strip_len,
			      strip_bytes(rect->width));
	p->rect = *rect;
	p->next = rect->top;
	p->band = 0;
	return err;
}

static int decoder_read(struct tsi_decoder *d, struct tsi_strip *strip)
{
	struct tsi_tiff *p = tiff_of(d);
	uint32_t left = p->rect.top + p->rect.height - p->next;
	size_t stride = (size_t)p->rect.width * 4;
	uint32_t n =
		least(least(left, TSI_STRIP_ROWS), p->rows - p->next % p->rows);
	int err = read_bands(p);

	if (err)
		return err;
	for (uint32_t i = 0; i < n; i++)
		put_row(p, p->next + i, p->strip + i * stride);
	p->next += n;
	*strip = (struct tsi_strip){
		.pixels = p->strip,
		.stride = stride,
		.rows = n,
	};
	return 0;
}

static uint32_t decoder_rows(const struct tsi_decoder *d)
{
	return ((const struct tsi_tiff *)d)->next;
}

static void decoder_close(struct tsi_decoder *d)
{
	drop(tiff_of(d));
}

const struct tsi_decoder_ops tsi_tiff_ops = {
	.name = "TIFF",
	.extensions = TSI_TIFF_EXTENSIONS,
	.claims = tsi_tiff_claims,
	.head = tsi_tiff_head,
	.create = decoder_create,
	.destroy = decoder_destroy,
	.open = decoder_open,
	.need = decoder_need,
	.begin = decoder_begin,
	.read = decoder_read,
	.rows = decoder_rows,
	.close = decoder_close,
};

/* "LIBTIFF, Version 4.5.0", and more lines. */
const char *tsi_tiff_version(void)
{
	static _Thread_local char text[16];
	const char *number = strpbrk(TIFFGetVersion(), "0123456789");
	size_t n = number ? strspn(number, "0123456789.") : 0;

	if (n >= sizeof(text))
		n = sizeof(text) - 1;
	memcpy(text, number ? number : "", n);
	text[n] = '\0';
	return text;
}
