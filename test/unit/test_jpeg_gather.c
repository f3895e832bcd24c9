/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_gather.c - blocks are packed alike by each kind of vector code, and
 * expanded again they are what they were.
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

static void pack(const struct tsi_jpeg_gather *g, uint32_t n,
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

static void check_expanded(const struct packed *p)
{
	const struct tsi_jpeg_expand *e =
		tsi_jpeg_expand_choose(TSI_SIMD_SCALAR);
	static int16_t got[BLOCKS][64];
	uint8_t last[BLOCKS];

	e->blocks(p->mask, p->dc, p->value, p->blocks, got, last);
	assert_memory_equal(got, coef, p->blocks * sizeof(got[0]));
}

static void check_kind(enum tsi_simd simd)
{
	const struct tsi_jpeg_gather *g = tsi_jpeg_gather_choose(simd);
	static struct packed p;
	uint64_t seed = 7;

	if (!g) {
		print_message("not on this processor\n");
		skip();
	}
	for (unsigned k = 0; k < ROUNDS; k++) {
		uint32_t n = (uint32_t)(image_gen_random(&seed) % (BLOCKS + 1));

		make_blocks(&seed, k % 3 ? 0 : 1 + k % 400);
		pack(g, n, &p);
		assert_int_equal(p.blocks, first_wide(n));
		check_expanded(&p);
		for (size_t i = 2 * (size_t)n; i < sizeof(p.dc); i++)
			assert_int_equal(p.dc[i], UNTOUCHED);
		for (size_t i = 8 * (size_t)n; i < sizeof(p.mask); i++)
			assert_int_equal(p.mask[i], UNTOUCHED);
		for (size_t i = p.values + TSI_JPEG_GATHER_SLACK;
		     p.blocks == n && i < sizeof(p.value); i++)
			assert_int_equal(p.value[i], UNTOUCHED);
	}
}

static void scalar_code_packs_what_expands_again(void **state)
{
	(void)state;
	check_kind(TSI_SIMD_SCALAR);
}

static void avx2_packs_what_expands_again(void **state)
{
	(void)state;
	check_kind(TSI_SIMD_AVX2);
}

static void avx512_packs_what_expands_again(void **state)
{
	(void)state;
	check_kind(TSI_SIMD_AVX512);
}

static void neon_packs_what_expands_again(void **state)
{
	(void)state;
	check_kind(TSI_SIMD_NEON);
}

static void the_best_is_one_of_them(void **state)
{
	const struct tsi_jpeg_gather *g = tsi_jpeg_gather_choose(TSI_SIMD_BEST);

	(void)state;
	assert_true(g == tsi_jpeg_gather_choose(TSI_SIMD_SCALAR) ||
		    g == tsi_jpeg_gather_choose(TSI_SIMD_AVX2) ||
		    g == tsi_jpeg_gather_choose(TSI_SIMD_AVX512) ||
		    g == tsi_jpeg_gather_choose(TSI_SIMD_NEON));
	check_kind(TSI_SIMD_BEST);
}

/* The least and greatest values that a byte has, and those beyond them. */
static void the_edges_of_a_byte_are_seen(void **state)
{
	static const int16_t value[] = { 127, -128, 128, -129, 256, 32767 };
	static struct packed p;

	(void)state;
	for (unsigned s = 0; s <= TSI_SIMD_NEON; s++) {
		const struct tsi_jpeg_gather *g =
			tsi_jpeg_gather_choose((enum tsi_simd)s);

		for (unsigned k = 0; g && k < 6 * 63; k++) {
			memset(coef, 0, sizeof(coef));
			coef[1][1 + k / 6] = value[k % 6];
			pack(g, 3, &p);
			assert_int_equal(p.blocks, k % 6 < 2 ? 3 : 1);
			check_expanded(&p);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalar_code_packs_what_expands_again),
		cmocka_unit_test(avx2_packs_what_expands_again),
		cmocka_unit_test(avx512_packs_what_expands_again),
		cmocka_unit_test(neon_packs_what_expands_again),
		cmocka_unit_test(the_best_is_one_of_them),
		cmocka_unit_test(the_edges_of_a_byte_are_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
