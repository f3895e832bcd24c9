/* SPDX-License-Identifier: MIT */
/*
 * kernels_entropy.c - stuffed bytes, and the codes of a file: at each level all
 * coefficients are those that libjpeg reads (jpeg_subject.h), plain C's too.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jpeg/entropy.h"
#include "jpeg/entropy_kernel.h"
#include "test/lib/image_gen.h"
#include "test/lib/jpeg_subject.h"
#include "test/lib/kernels.h"

#define FILES 300
#define ROUNDS 20000
#define LENGTH 300
#define UNTOUCHED 0x5a

/* Bytes of which one in so many is 0xff, and one in so many of these ends. */
static void make_stuffed(uint8_t *src, size_t len, uint64_t *seed)
{
	uint64_t often = 1 + image_gen_random(seed) % 100;
	uint64_t ends = image_gen_random(seed) % 50;

	for (size_t i = 0; i < len; i++) {
		uint64_t r = image_gen_random(seed);

		src[i] = (uint8_t)r;
		if (r >> 8 & 1 && (r >> 16) % often == 0)
			src[i] = 0xff;
		if (i && src[i - 1] == 0xff)
			src[i] = ends && (r >> 32) % ends == 1 ? 0xd9 : 0;
	}
}

static void compare_unstuff(const struct kernels_at *k)
{
	const struct tsi_entropy_kernel *plain = k->plain, *version = k->kernel;
	static uint8_t want[LENGTH + TSI_UNSTUFF_SLACK + 1], got[sizeof(want)];
	uint64_t seed = 5;

	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t len = image_gen_random(&seed) % LENGTH;
		size_t cap = image_gen_random(&seed) % (LENGTH + 1);
		/* Exactly the bytes, so that a sanitizer sees overreading. */
		uint8_t *src = malloc(len + 1);
		struct tsi_unstuffed a, b;

		make_stuffed(src + 1, len, &seed);
		memset(got, UNTOUCHED, sizeof(got));
		a = plain->unstuff(src + 1, len, want, cap);
		b = version->unstuff(src + 1, len, got, cap);
		assert_int_equal(b.read, a.read);
		assert_int_equal(b.written, a.written);
		assert_int_equal(b.ended, a.ended);
		assert_memory_equal(got, want, a.written);
		for (size_t at = cap + TSI_UNSTUFF_SLACK; at < sizeof(got);
		     at++)
			assert_int_equal(got[at], UNTOUCHED);
		free(src);
	}
}

static void compare_codes(const struct kernels_at *k)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_create(k->level);

	assert_non_null(e);
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_bytes f = jpeg_subject_noisy(i);
		struct tsi_jpeg_area a = { 0 };
		struct jpeg_subject s;

		assert_true(jpeg_subject_open(&s, f.data, f.len));
		a.across = s.scan.frame.mcus_across;
		a.down = s.scan.frame.mcus_down;
		s.step = 1 + i % 3;
		assert_true(jpeg_subject_record(e, &s, 0, a.across));
		for (uint32_t pieces = 1; pieces <= 3; pieces++)
			assert_true(jpeg_subject_read(e, &s, &a, pieces));
		jpeg_subject_close(&s);
		free(f.data);
	}
	tsi_jpeg_entropy_destroy(e);
}

KERNELS_INIT(entropy)

#define SLOT(name, compare) \
	{ \
#name, offsetof(struct tsi_entropy_kernel, name), compare \
	}

const struct kernels_group kernels_entropy = {
	.name = "codes_are_read_as_by_plain_c",
	.size = offsetof(struct tsi_entropy_kernel, wide_from),
	.init = init_entropy,
	.slot = {
		SLOT(unstuff, compare_unstuff),
		SLOT(run, compare_codes),
		SLOT(wide_run, compare_codes),
		SLOT(wide_settle, compare_codes),
	},
};
