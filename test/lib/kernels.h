/* SPDX-License-Identifier: MIT */
/*
 * kernels.h - the groups of functions that have versions for vector
 * instructions (base/simd.h), and how a version is compared with plain C.
 *
 * A comparison fails the test where a byte differs from that of plain C, or one
 * is written that may not be.
 */
#ifndef TEST_LIB_KERNELS_H
#define TEST_LIB_KERNELS_H

#include <stddef.h>

#include "base/simd.h"

/* The group's struct at a level, and what plain C has in it. */
struct kernels_at {
	enum tsi_simd level;
	const void *kernel;
	const void *plain;
};

struct kernels_slot {
	const char *name;
	size_t at; /* in the struct */
	void (*compare)(const struct kernels_at *k);
};

#define KERNELS_MOST 16 /* slots of a group */

struct kernels_group {
	const char *name; /* of its test */
	size_t size;      /* of the struct, as far as it has slots */
	void (*init)(void *kernel, enum tsi_simd level);
	struct kernels_slot slot[KERNELS_MOST]; /* a name of NULL ends them */
};

/* Defines init_NAME(), the group's init, by that of struct tsi_NAME_kernel. */
#define KERNELS_INIT(name) \
	static void init_##name(void *kernel, enum tsi_simd level) \
	{ \
		struct tsi_##name##_kernel *k = kernel; \
\
		tsi_##name##_kernel_init(k, level); \
	}

extern const struct kernels_group kernels_colour;
extern const struct kernels_group kernels_convert;
extern const struct kernels_group kernels_entropy;
extern const struct kernels_group kernels_expand;
extern const struct kernels_group kernels_gather;
extern const struct kernels_group kernels_jpeg;
extern const struct kernels_group kernels_resample;
extern const struct kernels_group kernels_warp;

#endif
