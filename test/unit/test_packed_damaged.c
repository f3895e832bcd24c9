/* SPDX-License-Identifier: MIT */
/*
 * test_packed_damaged.c - packed images that were cut, damaged or made to do
 * harm: bad data, or the pixels that they should have, never another byte read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "image/sniff.h"
#include "base/hash.h"
#include "packed/layout.h"
#include "packed/decoder.h"
#include "test/lib/pack_image.h"
#include "test/lib/recipes.h"

#define SIZE 24
#define BYTES (SIZE * SIZE * 3)

static struct tsi_image *img;
static struct image_gen_bytes record;
static uint8_t want[BYTES];

static int setup(void **state)
{
	struct tsi_image_opts o = { .recipe = recipes_train(SIZE), .seed = 1 };
	struct image_gen_jpeg g = {
		.width = 70, .height = 93, .components = 3, .seed = 4
	};
	struct image_gen_bytes f;
	struct tsi_box box;

	(void)state;
	g.factor[0][0] = g.factor[0][1] = 2;
	f = image_gen_jpeg(&g);
	record = pack_image(&f);
	assert_int_equal(tsi_image_create(&o, &img), 0);
	assert_int_equal(tsi_image_load(img, f.data, f.len, 0, 0, want, &box),
			 0);
	free(f.data);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tsi_image_destroy(img);
	free(record.data);
	return 0;
}

/* Sample `index` of these bytes, in a block of exactly so many. */
static int load(const uint8_t *data, size_t len, uint64_t index, uint8_t *to)
{
	struct image_gen_bytes f = image_gen_copy(data, len);
	struct tsi_box box;
	int err = tsi_image_load(img, f.data, f.len, 0, index, to, &box);

	free(f.data);
	return err;
}

static void a_cut_record_is_bad(void **state)
{
	uint8_t got[BYTES];

	(void)state;
	for (size_t n = 0; n < record.len; n++)
		assert_int_equal(load(record.data, n, 0, got), TSOCK_EDATA);
}

static void a_changed_byte_is_noticed_or_doesnt_matter(void **state)
{
	uint8_t got[BYTES];
	unsigned noticed = 0;

	(void)state;
	for (size_t i = 0; i < record.len; i++) {
		int err;

		record.data[i] ^= 0x21;
		err = load(record.data, record.len, 0, got);
		record.data[i] ^= 0x21;
		noticed += err == TSOCK_EDATA;
		if (err)
			assert_int_equal(err, TSOCK_EDATA);
		else
			assert_memory_equal(got, want, BYTES);
	}
	assert_true(noticed > record.len / 2);
}

/* That goes for what this process wrote, and for that alone. */
static void a_trusted_records_sums_are_not_looked_at(void **state)
{
	uint8_t *sum = record.data + TSI_PACKED_SUM;
	uint8_t got[BYTES];

	(void)state;
	*sum ^= 0x21;
	assert_int_equal(load(record.data, record.len, 0, got), TSOCK_EDATA);
	tsi_image_trust(img, true);
	assert_int_equal(load(record.data, record.len, 0, got), 0);
	assert_memory_equal(got, want, BYTES);
	tsi_image_trust(img, false);
	assert_int_equal(load(record.data, record.len, 0, got), TSOCK_EDATA);
	*sum ^= 0x21;
}

/* The sums as they should be of what there is now. */
static void mend(struct image_gen_bytes *f)
{
	struct tsi_jpeg_packed p;
	uint64_t sum;
	uint32_t end;

	if (tsi_jpeg_packed_open(&p, f->data, f->len, true))
		return;
	for (uint32_t y = 0; y < p.frame.mcus_down; y++) {
		uint8_t *at = f->data + p.index + 8 * (size_t)y;
		uint32_t from = (uint32_t)p.first, low;

		memcpy(&end, at, 4);
		if (y)
			memcpy(&from, at - 8, 4);
		if (from > end || end > f->len)
			continue;
		low = (uint32_t)tsi_hash(f->data + from, end - from, 0);
		memcpy(at + 4, &low, 4);
	}
	sum = tsi_packed_head_sum(f->data, p.first);
	memcpy(f->data + TSI_PACKED_SUM, &sum, 8);
}

/* A file is bad for a sample just when the sample needs a damaged row. */
static void damage_is_bad_for_those_that_reach_it(void **state)
{
	struct tsi_image_extent e;
	struct tsi_jpeg_packed p;
	uint8_t got[BYTES];

	(void)state;
	assert_int_equal(
		tsi_jpeg_packed_open(&p, record.data, record.len, false), 0);
	for (uint32_t y = 0; y < p.frame.mcus_down; y++) {
		uint32_t end;
		int err;

		memcpy(&end, record.data + p.index + 8 * (size_t)y, 4);
		record.data[end - 9] ^= 1;
		err = tsi_image_measure(img, record.data, record.len, &e);
		assert_int_equal(err, y ? 0 : TSOCK_EDATA);
		if (!err)
			assert_int_equal(e.rows, y * 16 - 1);
		for (uint64_t i = 0; i < 60; i++) {
			uint32_t bottom = tsi_image_bottom(img, 70, 93, 0, i);

			err = load(record.data, record.len, i, got);
			assert_int_equal(err, y == 0 || bottom > e.rows
						      ? TSOCK_EDATA
						      : 0);
		}
		record.data[end - 9] ^= 1;
	}
}

static void hostile_records_read_nothing_else(void **state)
{
	uint8_t got[BYTES];
	uint64_t seed = 11;
	unsigned good = 0;

	(void)state;
	for (unsigned i = 0; i < 6000; i++) {
		struct image_gen_bytes f =
			image_gen_copy(record.data, record.len);
		unsigned n = 1 + image_gen_random(&seed) % 3;

		while (n--) {
			/* Often where the counts and the masks are. */
			uint32_t most = image_gen_random(&seed) % 2
						? 2200
						: (uint32_t)f.len;
			uint32_t at = image_gen_random(&seed) % most;

			f.data[at] = (uint8_t)image_gen_random(&seed);
		}
		mend(&f);
		good += !load(f.data, f.len, i, got);
		free(f.data);
	}
	/* Coefficients may be anything. */
	assert_in_range(good, 1000, 5900);
}

/* Load it with its sums put right. */
static int load_mended(struct image_gen_bytes *f)
{
	uint8_t got[BYTES];

	mend(f);
	return load(f->data, f->len, 0, got);
}

/* Have the last values of the first row be an exception instead. */
static void make_exception(struct image_gen_bytes *f, size_t row, uint32_t n,
			   uint32_t block, uint16_t at)
{
	uint32_t counts[2];
	size_t mask = row + 8;

	memcpy(counts, f->data + row, sizeof(counts));
	for (unsigned cleared = 0; cleared < 8; mask++) {
		uint8_t *m = f->data + mask;

		for (; *m && cleared < 8; cleared++)
			*m &= (uint8_t)(*m - 1);
	}
	counts[0] -= 8;
	counts[1] += 1;
	memcpy(f->data + row, counts, sizeof(counts));
	row += 8 + 10 * (size_t)n + counts[0];
	memcpy(f->data + row, &block, sizeof(block));
	memcpy(f->data + row + 4, &at, sizeof(at));
}

static void counts_that_dont_fit_are_bad(void **state)
{
	static const struct {
		int block; /* of the row; -1: the first behind it */
		uint16_t at;
		int err;
	} tries[] = { { 0, 1, 0 },
		      { 3, 63, 0 },
		      { 0, 0, TSOCK_EDATA },
		      { 0, 64, TSOCK_EDATA },
		      { -1, 1, TSOCK_EDATA } };
	struct image_gen_bytes f = image_gen_copy(record.data, record.len);
	struct tsi_jpeg_packed p;

	(void)state;
	assert_int_equal(tsi_jpeg_packed_open(&p, f.data, f.len, false), 0);
	/* A mask that takes more values than there are. */
	memset(f.data + p.first + 8, 0xfe, 8);
	assert_int_equal(load_mended(&f), TSOCK_EDATA);
	free(f.data);
	for (unsigned i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		f = image_gen_copy(record.data, record.len);
		make_exception(&f, p.first, p.in_row,
			       tries[i].block < 0 ? p.in_row
						  : (uint32_t)tries[i].block,
			       tries[i].at);
		assert_int_equal(load_mended(&f), tries[i].err);
		free(f.data);
	}
}

static void a_record_may_say_why_a_file_is_bad(void **state)
{
	static const char text[] = TSI_PACKED_BAD_MAGIC "can't be opened: why";
	struct tsi_image_head head;

	(void)state;
	assert_int_equal(tsi_image_sniff(text, sizeof(text) - 1, true, &head),
			 TSOCK_EDATA);
	assert_string_equal(tsock_errmsg(), "can't be opened: why");
}

static void an_internal_form_isnt_offered(void **state)
{
	struct tsi_image_head head;

	(void)state;
	assert_int_equal(tsi_image_sniff("some text or other", 18, true, &head),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "neither JPEG nor PNG"));
	assert_non_null(strstr(tsock_errmsg(), " but text"));
	assert_null(strstr(tsock_errmsg(), tsi_packed_ops.name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cut_record_is_bad),
		cmocka_unit_test(a_changed_byte_is_noticed_or_doesnt_matter),
		cmocka_unit_test(a_trusted_records_sums_are_not_looked_at),
		cmocka_unit_test(damage_is_bad_for_those_that_reach_it),
		cmocka_unit_test(hostile_records_read_nothing_else),
		cmocka_unit_test(counts_that_dont_fit_are_bad),
		cmocka_unit_test(a_record_may_say_why_a_file_is_bad),
		cmocka_unit_test(an_internal_form_isnt_offered),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
