/* SPDX-License-Identifier: MIT */
/*
 * unstuff.h - the bytes of a JPEG scan without the zeros that follow each
 * 0xff in a file.
 */
#ifndef TSI_JPEG_UNSTUFF_H
#define TSI_JPEG_UNSTUFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writable bytes behind dst[cap]. */
#define TSI_UNSTUFF_SLACK 64

struct tsi_unstuffed {
	size_t read;
	size_t written; /* at most cap */
	bool ended;     /* at a marker, or a 0xff with nothing behind */
};

typedef struct tsi_unstuffed tsi_unstuff_fn(const uint8_t *src, size_t len,
					    uint8_t *dst, size_t cap);

/*
 * Copy from src[0..len) to dst until either is used up or a marker is met.  A
 * 0xff and its zero are never read apart.
 */
tsi_unstuff_fn tsi_unstuff_scalar;

/* For the files that unstuff: go on behind what *r says. */
void tsi_unstuff_on(const uint8_t *src, size_t len, uint8_t *dst, size_t cap,
		    struct tsi_unstuffed *r);

/* A 0xff at src[r->read]; false: it is the end. */
static inline bool tsi_unstuff_ff(const uint8_t *src, size_t len, uint8_t *dst,
				  struct tsi_unstuffed *r)
{
	if (len - r->read < 2 || src[r->read + 1]) {
		r->ended = true;
		return false;
	}
	dst[r->written++] = 0xff;
	r->read += 2;
	return true;
}

#endif
