/* SPDX-License-Identifier: MIT */
/*
 * gif.h - GIF bytes to the pixels of one rectangle.
 *
 * As Pillow's convert("RGB"), of a file's first image: on the screen, which is
 * of the transparent colour or the first one where the image doesn't cover it.
 * A file without all of its first image's pixels is bad, as it is to Pillow,
 * whatever the crop; what follows them doesn't matter.
 */
#ifndef TSI_GIF_GIF_H
#define TSI_GIF_GIF_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_gif_ops;

/* What a file says before the codes of its first image. */
struct tsi_gif_layout {
	uint32_t width, height; /* of the screen, and at least the image's */
	struct tsi_rect image;
	bool interlaced;
	unsigned bits; /* of a pixel's number, as codes have it */
	size_t codes;  /* where their blocks begin */
	int clear;     /* the number that is transparent; -1: none */
	/* Where its palette is, of so many colours; 0: it has greys. */
	size_t palette;
	unsigned colours;
};

/*
 * Read the beginning of a file, data[0..len).  EAGAIN: it ends behind that.
 * EDATA, with a message: it is bad.
 */
int tsi_gif_parse(const uint8_t *data, size_t len, struct tsi_gif_layout *out);

#endif
