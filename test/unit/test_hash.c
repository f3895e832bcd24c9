/* SPDX-License-Identifier: MIT */
/*
 * test_hash.c - hashes are XXH3 of the bytes, with vector instructions and
 * without, however long the bytes are and wherever they lie.
 *
 * What is kept on disk is checked by these hashes: they are the same on every
 * processor and in every build.
 */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_VECTOR XXH_SCALAR
#include "base/hash_impl.h"

#define MOST 300000
#define ODD 63 /* the last offset that is tried */

static uint8_t *bytes;

static int make_bytes(void **state)
{
	uint64_t x = 1;

	(void)state;
	bytes = malloc(MOST + ODD);
	for (size_t i = 0; bytes && i < MOST + ODD; i++) {
		x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
		bytes[i] = (uint8_t)(x >> 56);
	}
	return bytes ? 0 : -1;
}

static int free_bytes(void **state)
{
	(void)state;
	free(bytes);
	return 0;
}

/* Without vector instructions. */
static uint64_t plain(size_t at, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes + at, len, seed);
}

/* tsi_hash(), and what each level has for long ones, of these bytes. */
static void check(size_t at, size_t len, uint64_t seed)
{
	uint64_t want = plain(at, len, seed);

	assert_int_equal(tsi_hash(bytes + at, len, seed), want);
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++) {
		struct tsi_hash_kernel k;

		tsi_hash_kernel_init(&k, l);
		assert_int_equal(k.all(bytes + at, len, seed), want);
	}
}

static void test_every_length(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 4200; len++) {
		check(0, len, 0);
		check(len % (ODD + 1), len, len);
	}
}

static void test_long(void **state)
{
	(void)state;
	for (size_t at = 0; at <= ODD; at++)
		for (size_t len = MOST - 70; len <= MOST; len += 7)
			check(at, len, at % 2 ? len : 0);
}

static void test_last_bytes_count(void **state)
{
	(void)state;
	for (size_t len = 1; len <= 2000; len++) {
		uint64_t before = tsi_hash(bytes, len, 0);

		bytes[len - 1] ^= 1;
		assert_int_not_equal(tsi_hash(bytes, len, 0), before);
		bytes[len - 1] ^= 1;
	}
}

/* By libxxhash.so of the bytes 0 to 255 over and over. */
static void test_known(void **state)
{
	static uint8_t ramp[5000];

	(void)state;
	for (size_t i = 0; i < sizeof(ramp); i++)
		ramp[i] = (uint8_t)i;
	assert_int_equal(tsi_hash(ramp, 0, 0), 0x2d06800538d394c2);
	assert_int_equal(tsi_hash(ramp, 100, 0), 0x004e4f921a64bd1c);
	assert_int_equal(tsi_hash(ramp, sizeof(ramp), 0), 0x1b74bda2c82a8c7a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_last_bytes_count),
		cmocka_unit_test(test_known),
	};

	return cmocka_run_group_tests(tests, make_bytes, free_bytes);
}
