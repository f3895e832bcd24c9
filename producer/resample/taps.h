/* SPDX-License-Identifier: MIT */
/*
 * taps.h - the weights of an axis: which source pixels make each output pixel.
 *
 * Formulas: Pillow's src/libImaging/Resample.c (precompute_coeffs,
 * normalize_coeffs_8bpc), restated.
 */
#ifndef TSI_RESAMPLE_TAPS_H
#define TSI_RESAMPLE_TAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/filter.h"
#include "pixel/scratch.h"

#define TSI_WEIGHT_BITS 22

/*
 * Resize an axis of `in` pixels to `out`, and keep count of them at first.  If
 * span isn't 0, `in` pixels are there, but what is resized is a part of them
 * that begins `from` pixels behind the first one's edge and is span pixels
 * long: it touches all of them.
 */
struct tsi_axis {
	uint32_t in;
	uint32_t out;
	double from;
	double span;
	uint32_t first;
	uint32_t count; /* at least 1, first + count <= out */
	bool mirror;    /* in reverse order; x only */
	enum tsi_filter filter;
};

/*
 * Output i is the sum of weight[i * pad + k] times source pixel first[i] + k,
 * for k < count[i]; behind count[i] weights are 0.  Unless mirrored, neither
 * first[i] nor first[i] + count[i] ever falls as i grows.  An output's weights
 * add up to 2^22, but for rounding; bicubic and lanczos have some below 0, and
 * those above add up to less than twice as much: a sum of bytes by weights is
 * above -2^30 and below 2^31.  packed is room for a
 * kernel's own form of the same: 16 bytes for each four weights, of a multiple
 * of 16 outputs.  origin[g] is the first source pixel of the 16 outputs from
 * 16 * g on.
 */
struct tsi_taps {
	uint32_t n;
	uint32_t pad; /* a multiple of 4 */
	bool lobed;   /* some weights may be below 0 */
	uint32_t *first;
	uint32_t *count;
	uint32_t *origin;
	int32_t *weight;
	uint8_t *packed; /* aligned to 64 */
	struct tsi_scratch memory;
};

/* Is it an axis that Pillow leaves as it is? */
bool tsi_axis_is_same(const struct tsi_axis *a);

/* Begins with a struct of zeros, or again.  Fails with TSOCK_ENOMEM. */
int tsi_taps_make(struct tsi_taps *t, const struct tsi_axis *a);
void tsi_taps_fini(struct tsi_taps *t);

/* Bytes of memory that tsi_taps_make() takes at most. */
uint64_t tsi_taps_need(const struct tsi_axis *a);

/*
 * Source pixels up to the last one that the pixels kept are made of.  Where
 * memory is short, all.
 */
uint32_t tsi_taps_end(const struct tsi_axis *a);

/* Count source pixels from the first one used; returns how many are. */
uint32_t tsi_taps_rebase(struct tsi_taps *t, uint32_t *origin);

/* The most source pixels that an output pixel is made of. */
uint32_t tsi_taps_most(const struct tsi_taps *t);

/* An upper bound of that before the taps are made, and some beside them. */
uint64_t tsi_taps_widest(const struct tsi_axis *a);

/* At most how far first[] is from origin[]. */
uint32_t tsi_taps_spread(const struct tsi_taps *t);

#endif
