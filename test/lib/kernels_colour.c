/* SPDX-License-Identifier: MIT */
/*
 * kernels_colour.c - operations on colours of each level, beside plain C.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/colour_kernel.h"
#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"

#define ROUNDS 300
#define MOST 700 /* bytes */
#define EDGE 64  /* before and behind, which stay as they are */

/* Bytes of a picture, and of the same one after a version has worked on it. */
struct two {
	uint8_t plain[MOST + 2 * EDGE];
	uint8_t own[MOST + 2 * EDGE];
};

static uint64_t state;

static void noise(uint8_t *p, size_t n)
{
	/* Of all kinds: dark, bright, grey ones. */
	unsigned top = 1 + (unsigned)(image_gen_random(&state) % 256);

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(image_gen_random(&state) % top);
}

static void begin(struct two *t)
{
	noise(t->plain, sizeof(t->plain));
	memcpy(t->own, t->plain, sizeof(t->own));
}

static float factor(void)
{
	static const float odd[] = { 0, 1, 0.5f, 1.9f, 10, 0.999999f };
	unsigned k = (unsigned)(image_gen_random(&state) % 12);

	return k < 6 ? odd[k]
		     : (float)(image_gen_random(&state) % 100000) / 40000.0f;
}

/* Do both to t; n: bytes. */
#define BOTH(slot, ...) \
	do { \
		uint8_t *p = t.plain + EDGE; \
		plain->slot(__VA_ARGS__); \
		p = t.own + EDGE; \
		version->slot(__VA_ARGS__); \
		assert_memory_equal(t.plain, t.own, sizeof(t.own)); \
	} while (0)

#define COMPARE(slot, ...) \
	static void compare_##slot(const struct kernels_at *k) \
	{ \
		const struct tsi_colour_kernel *plain = k->plain; \
		const struct tsi_colour_kernel *version = k->kernel; \
		struct two t; \
		uint8_t other[MOST + 2 * EDGE]; \
\
		state = 21; \
		for (int i = 0; i < ROUNDS; i++) { \
			size_t n = image_gen_random(&state) % (MOST + 1); \
			size_t pixels = n / 3; \
			float by = factor(); \
			int d = (int)(image_gen_random(&state) % 256); \
\
			(void)pixels, (void)by, (void)d; \
			noise(other, sizeof(other)); \
			begin(&t); \
			BOTH(slot, __VA_ARGS__); \
		} \
	}

COMPARE(gray, other, pixels, p)
COMPARE(spread, other, pixels, p)
COMPARE(constant, p, n, d, by)
COMPARE(blend, p, other, n, by)
COMPARE(smooth, other + EDGE, other + EDGE - 3, other + EDGE + 2, 1 + d % 3, n,
	p)
COMPARE(solarize, p, n, (unsigned)d + (n & 1))
COMPARE(mask, p, n, (uint8_t)d)
COMPARE(add, p, n, d - 100)
COMPARE(hue, p, pixels, (uint8_t)d)

KERNELS_INIT(colour)

#define SLOT(name) \
	{ \
#name, offsetof(struct tsi_colour_kernel, name), \
			compare_##name \
	}

const struct kernels_group kernels_colour = {
	.name = "changed_colours_are_those_of_plain_c",
	.size = sizeof(struct tsi_colour_kernel),
	.init = init_colour,
	.slot = {
		SLOT(gray),
		SLOT(spread),
		SLOT(constant),
		SLOT(blend),
		SLOT(smooth),
		SLOT(solarize),
		SLOT(mask),
		SLOT(add),
		SLOT(hue),
	},
};
