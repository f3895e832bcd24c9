/* SPDX-License-Identifier: MIT */
/*
 * kernels_packed.c - blocks that are packed, and those that are expanded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "packed/expand.h"
#include "packed/gather.h"
#include "test/lib/image_gen.h"
#include "test/lib/kernels.h"

#define BLOCKS 40
#define ROUNDS 300
#define UNTOUCHED 0x5a

struct packed {
	uint8_t mask[8 * BLOCKS];
	uint8_t dc[2 * BLOCKS];
	uint8_t value[64 * BLOCKS + TSI_JPEG_GATHER_SLACK + 1];
	uint32_t blocks;
	size_t values;
};

static int16_t coef[BLOCKS][64];

/* One in so many (wide) of the coefficients that aren't 0 needs two bytes. */
static void make_blocks(uint64_t *seed, unsigned wide)
{
	unsigned dense = (unsigned)(image_gen_random(seed) % 70);

	for (unsigned i = 0; i < BLOCKS * 64; i++) {
		uint64_t r = image_gen_random(seed);
		int v = (int)(r >> 8 & 255) - 128;

		if (i % 64 == 0 || (wide && (r >> 20) % wide == 0))
			v = (int)(r >> 8 & 4095) - 2048;
		if (i % 64 && (r & 63) >= dense)
			v = 0;
		coef[i / 64][i % 64] = (int16_t)v;
	}
}

static void pack(const struct tsi_gather_kernel *g, uint32_t n,
		 struct packed *out)
{
	uint8_t *values = out->value;

	memset(out, UNTOUCHED, sizeof(*out));
	out->blocks = g->blocks((const int16_t(*)[64])coef, n, out->mask,
				out->dc, &values);
	out->values = (size_t)(values - out->value);
}

/* The first block with a coefficient that no byte has room for. */
static uint32_t first_wide(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		for (int k = 1; k < 64; k++)
			if (coef[i][k] != (int8_t)coef[i][k])
				return i;
	return n;
}

/* They are what is expanded of what was packed. */
static void check_expanded(const struct packed *p)
{
	static int16_t got[BLOCKS][64];
	struct tsi_expand_kernel plain;
	uint8_t last[BLOCKS];

	tsi_expand_kernel_init(&plain, TSI_SIMD_SCALAR);
	plain.blocks(p->mask, p->dc, p->value, p->blocks, got, last);
	assert_memory_equal(got, coef, p->blocks * sizeof(got[0]));
}

/* The first n blocks give what plain C makes, and no byte too many. */
static void check_packed(const struct kernels_at *k, uint32_t n)
{
	static struct packed p, want;

	pack(k->plain, n, &want);
	pack(k->kernel, n, &p);
	assert_int_equal(p.blocks, first_wide(n));
	assert_int_equal(p.blocks, want.blocks);
	assert_int_equal(p.values, want.values);
	assert_memory_equal(p.mask, want.mask, 8 * (size_t)p.blocks);
	assert_memory_equal(p.dc, want.dc, 2 * (size_t)p.blocks);
	assert_memory_equal(p.value, want.value, p.values);
	check_expanded(&p);
	for (size_t i = 2 * (size_t)n; i < sizeof(p.dc); i++)
		assert_int_equal(p.dc[i], UNTOUCHED);
	for (size_t i = 8 * (size_t)n; i < sizeof(p.mask); i++)
		assert_int_equal(p.mask[i], UNTOUCHED);
	for (size_t i = p.values + TSI_JPEG_GATHER_SLACK;
	     p.blocks == n && i < sizeof(p.value); i++)
		assert_int_equal(p.value[i], UNTOUCHED);
}

static void compare_blocks(const struct kernels_at *k)
{
	/* The least and greatest values of a byte, and those beyond them. */
	static const int16_t edge[] = { 127, -128, 128, -129, 256, 32767 };
	uint64_t seed = 7;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t n = (uint32_t)(image_gen_random(&seed) % (BLOCKS + 1));

		make_blocks(&seed, i % 3 ? 0 : 1 + i % 400);
		check_packed(k, n);
	}
	for (unsigned i = 0; i < 6 * 63; i++) {
		memset(coef, 0, sizeof(coef));
		coef[1][1 + i / 6] = edge[i % 6];
		assert_int_equal(first_wide(3), i % 6 < 2 ? 3 : 1);
		check_packed(k, 3);
	}
}

static void compare_mask(const struct kernels_at *k)
{
	const struct tsi_gather_kernel *plain = k->plain, *version = k->kernel;
	uint64_t seed = 8;

	for (unsigned i = 0; i < ROUNDS; i++) {
		make_blocks(&seed, i % 3 ? 0 : 1 + i % 400);
		for (unsigned b = 0; b < BLOCKS; b++)
			assert_int_equal(version->mask(coef[b]),
					 plain->mask(coef[b]));
	}
}

static void compare_expanded(const struct kernels_at *k)
{
	static int16_t want[BLOCKS][64], got[BLOCKS + 1][64];
	const struct tsi_expand_kernel *plain = k->plain, *version = k->kernel;
	struct tsi_gather_kernel gather;
	uint64_t seed = 9;

	tsi_gather_kernel_init(&gather, TSI_SIMD_SCALAR);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t n = (uint32_t)(image_gen_random(&seed) % (BLOCKS + 1));
		uint8_t want_last[BLOCKS], last[BLOCKS + 1];
		static struct packed p;

		make_blocks(&seed, 0);
		pack(&gather, n, &p);
		assert_int_equal(p.blocks, n);
		memset(got, UNTOUCHED, sizeof(got));
		memset(last, UNTOUCHED, sizeof(last));
		plain->blocks(p.mask, p.dc, p.value, n, want, want_last);
		version->blocks(p.mask, p.dc, p.value, n, got, last);
		assert_memory_equal(got, want, n * sizeof(got[0]));
		assert_memory_equal(last, want_last, n);
		assert_int_equal(last[n], UNTOUCHED);
		for (unsigned at = 0; at < 64; at++)
			assert_int_equal(got[n][at],
					 UNTOUCHED << 8 | UNTOUCHED);
	}
}

KERNELS_INIT(gather)
KERNELS_INIT(expand)

const struct kernels_group kernels_gather = {
	.name = "blocks_are_packed_as_by_plain_c",
	.size = sizeof(struct tsi_gather_kernel),
	.init = init_gather,
	.slot = {
		{ "mask", offsetof(struct tsi_gather_kernel, mask),
		  compare_mask },
		{ "blocks", offsetof(struct tsi_gather_kernel, blocks),
		  compare_blocks },
	},
};

const struct kernels_group kernels_expand = {
	.name = "packed_blocks_are_expanded_as_by_plain_c",
	.size = sizeof(struct tsi_expand_kernel),
	.init = init_expand,
	.slot = {
		{ "blocks", offsetof(struct tsi_expand_kernel, blocks),
		  compare_expanded },
	},
};
