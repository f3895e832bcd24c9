/* SPDX-License-Identifier: MIT */
/*
 * lzw.h - the codes of a GIF's image to its pixels' numbers.
 */
#ifndef TSI_GIF_LZW_H
#define TSI_GIF_LZW_H

#include <stddef.h>
#include <stdint.h>

#define TSI_LZW_CODES 4096u

/* A code's numbers are those before: where they begin, and how many. */
struct tsi_lzw {
	uint32_t from[TSI_LZW_CODES];
	uint32_t count[TSI_LZW_CODES];
};

/*
 * Decode n numbers of so many bits, at most 8, from the blocks in
 * data[0..len).  EDATA, with a message: the blocks end before, a code says
 * so, or it is none that can be.
 */
int tsi_lzw_decode(struct tsi_lzw *z, const uint8_t *data, size_t len,
		   unsigned bits, uint8_t *to, size_t n);

#endif
