/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg.c - a region's pixels are those of a full decode, whatever the
 * file; and a file takes no more memory than its header says.
 */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/sanitized.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void assert_region(struct tsi_decoder *j,
			  const struct image_gen_bytes *f,
			  const struct jpeg_picture *want,
			  const struct tsi_rect *r)
{
	uint8_t *got = malloc((size_t)r->width * r->height * 3);

	if (jpeg_region(j, f, r, got))
		fail_msg("%s", tsock_errmsg());
	for (uint32_t y = 0; y < r->height; y++)
		if (memcmp(got + (size_t)y * r->width * 3,
			   want->rgb + ((size_t)(r->top + y) * want->width +
					r->left) *
					       3,
			   (size_t)r->width * 3))
			fail_msg("fast %u, %u x %u: row %u of the region "
				 "%u x %u at %u, %u differs",
				 j->fast, want->width, want->height, y,
				 r->width, r->height, r->left, r->top);
	free(got);
}

static void check_file(struct tsi_decoder *j, const struct image_gen_jpeg *g,
		       int regions)
{
	struct image_gen_bytes f = image_gen_jpeg(g);
	uint64_t state = g->seed;

	/* Exact ones, then of one size fast ones. */
	for (unsigned i = 0; i < 2; i++) {
		struct jpeg_picture want;

		j->fast = i << (g->seed / 7 % 4);
		want = jpeg_region_reference_fast(&f, j->fast);
		for (int n = 0; n < regions >> i; n++) {
			struct tsi_rect r = jpeg_region_pick(&want, n, &state);

			assert_region(j, &f, &want, &r);
		}
		free(want.rgb);
	}
	free(f.data);
}

static const uint32_t sizes[][2] = {
	{ 1, 1 },   { 1, 40 },  { 40, 1 },   { 2, 3 },     { 8, 8 },
	{ 9, 17 },  { 16, 16 }, { 17, 33 },  { 31, 32 },   { 33, 31 },
	{ 64, 64 }, { 95, 70 }, { 130, 97 }, { 200, 150 },
};

static void a_region_equals_the_full_decode(void **state)
{
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (size_t i = 0; i < JPEG_SAMPLINGS * COUNT(sizes) * 4;
	     i += SANITIZED ? 5 : 1) {
		const struct jpeg_region_sampling *s =
			&jpeg_region_sampling[i % JPEG_SAMPLINGS];
		size_t size = i / JPEG_SAMPLINGS % COUNT(sizes);
		size_t how = i / JPEG_SAMPLINGS / COUNT(sizes);
		struct image_gen_jpeg g = {
			.width = sizes[size][0],
			.height = sizes[size][1],
			.components = s->components,
			.space = s->space,
			.progressive = how == 1,
			.restart_rows = how == 2,
			.arithmetic = how == 3,
			.quality = 60 + (int)(i % 40),
			.seed = i,
		};

		memcpy(g.factor, s->factor, sizeof(g.factor));
		check_file(j, &g, SANITIZED ? 8 : 24);
	}
	tsi_jpeg_ops.destroy(j);
}

static void the_widest_and_the_highest_files_decode(void **state)
{
	struct image_gen_jpeg g = { .components = 3, .factor = { { 2, 2 } } };
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (int i = 0; i < 4; i++) {
		g.width = i & 1 ? 65500 : 1 + (uint32_t)i * 4;
		g.height = i & 1 ? 1 + (uint32_t)i * 4 : 65500;
		g.progressive = i & 2;
		check_file(j, &g, 4);
	}
	tsi_jpeg_ops.destroy(j);
}

/* Low frequencies left out: libjpeg guesses them from the neighbours. */
static void an_unfinished_progressive_file_is_smoothed_as_a_whole(void **state)
{
	static const jpeg_scan_info scans[] = {
		{ 3, { 0, 1, 2 }, 0, 0, 0, 1 },
		{ 1, { 0 }, 1, 2, 0, 2 },
	};
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (uint32_t i = 0; i < 24; i++) {
		struct image_gen_jpeg g = {
			.width = 40 + i * 9,
			.height = 170 - i * 5,
			.components = 3,
			.factor = { { 1 + (int)i % 2, 1 + (int)i / 2 % 2 } },
			.progressive = true,
			.scans = scans,
			.scan_count = i % 3 ? 2 : 1,
			.seed = i,
		};

		check_file(j, &g, 12);
	}
	tsi_jpeg_ops.destroy(j);
}

/* Remove every segment of a kind from the header. */
static void strip(struct image_gen_bytes *f, uint8_t marker)
{
	size_t at = 2;

	while (f->data[at + 1] != 0xda) {
		size_t len =
			2 + (size_t)(f->data[at + 2] << 8) + f->data[at + 3];

		if (f->data[at + 1] != marker) {
			at += len;
			continue;
		}
		memmove(f->data + at, f->data + at + len, f->len - at - len);
		f->len -= len;
	}
}

/* With the tables of its own, then with those that it lacks in another's. */
static void the_tables_of_one_file_never_serve_another(void **state)
{
	struct image_gen_jpeg g = {
		.width = 40, .height = 30, .components = 3, .optimize = true
	};
	struct image_gen_bytes whole = image_gen_jpeg(&g), no_dht, no_dqt;
	struct tsi_rect all = { 0, 0, 40, 30 };
	uint8_t first[40 * 30 * 3], again[40 * 30 * 3];
	struct tsi_decoder *fresh, *used;
	int err;

	(void)state;
	no_dht = image_gen_copy(whole.data, whole.len);
	no_dqt = image_gen_copy(whole.data, whole.len);
	strip(&no_dht, 0xc4);
	strip(&no_dqt, 0xdb);
	memset(first, 0, sizeof(first));
	memset(again, 0, sizeof(again));
	assert_int_equal(tsi_jpeg_ops.create(&fresh), 0);
	assert_int_equal(tsi_jpeg_ops.create(&used), 0);
	err = jpeg_region(fresh, &no_dht, &all, first);
	assert_int_equal(jpeg_region(used, &whole, &all, again), 0);
	assert_int_equal(jpeg_region(used, &no_dht, &all, again), err);
	if (!err)
		assert_memory_equal(first, again, sizeof(first));
	assert_int_equal(jpeg_region(used, &whole, &all, again), 0);
	assert_int_equal(jpeg_region(used, &no_dqt, &all, again), TSOCK_EDATA);
	tsi_jpeg_ops.destroy(fresh);
	tsi_jpeg_ops.destroy(used);
	free(whole.data);
	free(no_dht.data);
	free(no_dqt.data);
}

/* What malloc has handed out; nothing under a sanitizer. */
static uint64_t taken(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();

	return (uint64_t)m.uordblks + m.hblkhd;
#else
	return 0;
#endif
}

static void no_file_takes_more_memory_than_its_header_says(void **state)
{
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (size_t i = 0; i < JPEG_SAMPLINGS * 2; i += SANITIZED ? 5 : 1) {
		const struct jpeg_region_sampling *s =
			&jpeg_region_sampling[i / 2];
		struct image_gen_jpeg g = {
			.width = 1501,
			.height = 997,
			.components = s->components,
			.space = s->space,
			.progressive = i % 2,
		};
		struct tsi_rect all = { 0, 0, 1501, 997 };
		struct image_gen_bytes f;
		uint64_t before, need;
		struct tsi_strip strip;
		uint32_t w, h;

		memcpy(g.factor, s->factor, sizeof(g.factor));
		f = image_gen_jpeg(&g);
		tsi_jpeg_ops.close(j);
		before = taken();
		assert_int_equal(tsi_jpeg_ops.open(j, f.data, f.len, &w, &h),
				 0);
		need = tsi_jpeg_ops.need(j);
		assert_int_equal(tsi_jpeg_ops.begin(j, &all), 0);
		assert_int_equal(tsi_jpeg_ops.read(j, &strip), 0);
		/* The arena takes blocks of a quarter of a mebibyte. */
		if (taken() > before + need + (1 << 19))
			fail_msg("file %zu takes %llu bytes, %llu were said", i,
				 (unsigned long long)(taken() - before),
				 (unsigned long long)need);
		if (g.progressive)
			assert_true(need >= 2 * 1501 * 997);
		else
			assert_true(need < 1 << 20);
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_equals_the_full_decode),
		cmocka_unit_test(the_widest_and_the_highest_files_decode),
		cmocka_unit_test(
			an_unfinished_progressive_file_is_smoothed_as_a_whole),
		cmocka_unit_test(the_tables_of_one_file_never_serve_another),
		cmocka_unit_test(
			no_file_takes_more_memory_than_its_header_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
