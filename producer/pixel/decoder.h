/* SPDX-License-Identifier: MIT */
/*
 * decoder.h - what a decoder is: a file's bytes to the pixels of a rectangle,
 * in strips of rows.
 *
 * An image format is a struct tsi_decoder_ops.  To add one, write its file with
 * these operations (png/png.c is an example; test/unit/decoder_ppm.c is a
 * small one) and put a line into the table in image/formats.c: sniffing, loading and
 * measuring go through the table and know no format by name.
 */
#ifndef TSI_PIXEL_DECODER_H
#define TSI_PIXEL_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Readable bytes behind a row's last pixel, for wide loads. */
#define TSI_ROW_SLACK 64

/* Readable bytes behind the last byte of a plane's row. */
#define TSI_PLANE_SLACK 128

/*
 * Most rows in a strip: enough to amortise a call, few enough for the cache.
 */
#define TSI_STRIP_ROWS 16

/* Memory that a decoder may keep from one image to the next. */
#define TSI_SCRATCH_KEEP ((size_t)16 << 20)

struct tsi_rect {
	uint32_t left;
	uint32_t top;
	uint32_t width;
	uint32_t height;
};

/*
 * Consecutive rows, four bytes a pixel: red, green, blue, anything.  Or, if
 * plane isn't 0, one byte a pixel: a row's red at pixels, its green and blue
 * plane and 2 * plane bytes behind.  Valid until the decoder's next call.
 */
struct tsi_strip {
	const uint8_t *pixels;
	size_t stride; /* bytes */
	uint32_t rows;
	size_t plane; /* bytes */
};

/*
 * A decoder of one format, used by one thread for one image after the other.
 * It is the first member of the format's own struct.
 */
struct tsi_decoder {
	const struct tsi_decoder_ops *ops;
	/* Set by open: this image's strips can be in planes. */
	bool has_planes;
	/* Set by the caller, before begin, and only then: they must be. */
	bool planes;
	/*
	 * Set by the caller, before begin.  0: the pixels of the format's own
	 * library.  1, 2, 4 or 8, if the format shrinks: fast ones, of the image
	 * at 1/1, 1/2, 1/4 or 1/8 of its size, rounded up.
	 */
	unsigned fast;
	/*
	 * Set by the caller, before open, and false for other formats than PNG:
	 * the strips have one byte a pixel, which is the number that the file
	 * stores, an index of its palette or a level of grey.
	 */
	bool numbers;
};

struct tsi_image_opts;

/* What a caller may know of a file. */
struct tsi_decoder_hint {
	bool trusted; /* this process wrote it: checksums can't be wrong */
	/*
	 * How samples are made, with what is meant for one format alone, until
	 * close; NULL: as if nothing of that was given.
	 */
	const struct tsi_image_opts *opts;
	uint64_t file; /* its number in the data set */
};

struct tsi_decoder_ops {
	const char *name; /* as messages call the format: "JPEG" */
	bool internal;    /* nobody's own files: messages don't offer it */
	bool shrinks;     /* can it decode to fewer pixels at less cost? */
	/*
	 * The library that this build is without, as "libwebp", or NULL.  If
	 * there is one, only claims and head are called.
	 */
	const char *lacks;
	/*
	 * Where a build may lack it: what names of its files end with, in lower
	 * case, with a blank on either side of each.
	 */
	const char *extensions;

	/* ----------------------------------------------------------------
	 * The head of a file: pure functions, called by any thread.
	 */

	/*
	 * Does a file with these first bytes claim to be of this format?
	 * False too if there are too few to tell; 16 are enough.
	 */
	bool (*claims)(const uint8_t *data, size_t len);

	/*
	 * The size of the image in a file that claims to be of this format.
	 * TSOCK_EAGAIN: its head ends behind data[0..len).  TSOCK_EDATA: the
	 * file is bad or of a kind that is not supported, and the message says
	 * why.  Takes time linear in len.  Empty and huge images are refused by
	 * the caller.
	 */
	int (*head)(const uint8_t *data, size_t len, uint32_t *width,
		    uint32_t *height);

	/* ----------------------------------------------------------------
	 * Decoding: open, begin and read fail with TSOCK_EDATA (the file is
	 * bad, or ends above the rectangle's last row) or TSOCK_ENOMEM; after a
	 * failure the next call is rows or close.
	 */

	/* Fails with TSOCK_ENOMEM. */
	int (*create)(struct tsi_decoder **out);

	/* NULL is allowed. */
	void (*destroy)(struct tsi_decoder *d);

	/* What is known of the next image alone.  NULL: no use for it. */
	void (*hint)(struct tsi_decoder *d,
		     const struct tsi_decoder_hint *hint);

	/*
	 * Begin with an image, whatever became of the last one: read its
	 * header.  The data must stay until close.
	 */
	int (*open)(struct tsi_decoder *d, const void *data, size_t len,
		    uint32_t *width, uint32_t *height);

	/* After open: bytes of memory that decoding takes at most. */
	uint64_t (*need)(struct tsi_decoder *d);

	/*
	 * Choose the rectangle, inside the image (shrunk, if it is to be) and
	 * not empty, and decode up to its first row.
	 */
	int (*begin)(struct tsi_decoder *d, const struct tsi_rect *rect);

	/* The rectangle's next rows, at least one while any are left. */
	int (*read)(struct tsi_decoder *d, struct tsi_strip *strip);

	/*
	 * Good rows so far, also after read has failed.  Asked only after begin
	 * has succeeded with a rectangle from the image's first row on.
	 */
	uint32_t (*rows)(const struct tsi_decoder *d);

	/*
	 * End with this image, at any point: give back all of its memory but
	 * TSI_SCRATCH_KEEP.
	 */
	void (*close)(struct tsi_decoder *d);
};

#endif
