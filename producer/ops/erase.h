/* SPDX-License-Identifier: MIT */
/*
 * erase.h - a box of a picture written over, as by torchvision's F.erase() on
 * bytes.
 *
 * Values are truncated, and their lowest eight bits are taken: -1 is 255 and 300
 * is 44, as torch's conversion has them on x86.
 *
 * Noise is of bytes with a normal distribution, rounded and limited to 0 to 255:
 * the bytes that are nearest to the normalised noise that torchvision and timm
 * write.  A byte is a function of the noise's numbers and of its place in the
 * box.
 */
#ifndef TSI_OPS_ERASE_H
#define TSI_OPS_ERASE_H

#include "ops/canvas.h"
#include "pixel/decoder.h"

/* Fill a box inside the picture with one value per channel, each below 2^31. */
void tsi_erase(struct tsi_canvas *c, const struct tsi_rect *box,
	       const double *value);

struct tsi_erase_noise {
	uint32_t seed;
	bool color;     /* one of them for all pixels */
	double mean[3]; /* of bytes, for each channel */
	double std[3];  /* above 0 */
};

/*
 * Fill it with noise.  Byte i of the box, row by row with the channels of a pixel
 * side by side, is made of the 16 bits u number i % 8 of the Philox block i / 8
 * with the key seed, the lower half of a word first: as many bytes b as have
 * floor(65536 * P(noise < b + 0.5) + 0.5) <= u.
 */
void tsi_erase_with_noise(struct tsi_canvas *c, const struct tsi_rect *box,
			  const struct tsi_erase_noise *noise);

#endif
