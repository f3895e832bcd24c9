/* SPDX-License-Identifier: MIT */
/*
 * file.h - which PNG files are whole, as Pillow sees it.
 *
 * Pillow doesn't read PNG by libpng and differs from it in what it lets pass.
 * Before the pixels every chunk's check sum counts, but unknown chunks pass,
 * critical ones too, and palettes of any length.  Of the pixels' data no
 * chunk's check sum counts, but zlib's own does where it is seen together with
 * the last row; data that ends in good order before the last row leaves the
 * rest of the image zero.  So the chunks before the pixels are walked here, and
 * what libpng thinks of the pixels' data is asked here for a second opinion.
 */
#ifndef TSI_PNG_FILE_H
#define TSI_PNG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_png_file {
	const uint8_t *data;
	size_t len;
	size_t pixels; /* where the first chunk of pixels begins */
	uint32_t width;
	uint32_t height;
	unsigned type;
	unsigned depth;
	bool interlaced;
	/* Black where the file has none. */
	uint8_t palette[256 * 3];
};

/* NULL, or why Pillow doesn't open it; it begins with PNG's eight bytes. */
const char *tsi_png_file_open(const void *data, size_t len,
			      struct tsi_png_file *out);

/* Bytes of a rewritten head, at most. */
#define TSI_PNG_HEAD_MAX (8 + 25 + 12 + 3 * 256)

/*
 * Signature, header and palette as libpng likes them, to `to`; how many bytes
 * they have.  Check sums are not looked at any more: they are left zero.
 */
size_t tsi_png_file_rewrite(const struct tsi_png_file *f, uint8_t *to);

/*
 * Read the pixels' data as Pillow does: NULL, or why it refuses them.  *rows
 * are there before the end or the damage (of all passes, if it is interlaced).
 * Inflates everything: not for every file.  *no_memory is set if there is none.
 */
const char *tsi_png_file_check(const struct tsi_png_file *f, uint64_t *rows,
			       bool *no_memory);

/* The version of zlib that is loaded, as "1.2.13". */
const char *tsi_png_file_zlib(void);

#endif
