/* SPDX-License-Identifier: MIT */
/*
 * test_image_cache.c - packed images in memory: which are kept, that none is
 * freed while it is read, and that samples are the same as without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "jpeg/index.h"
#include "run/image_cache.h"
#include "test/lib/image_gen.h"
#include "test/lib/pack_image.h"
#include "test/lib/worker_fixture.h"
#include "test/lib/recipes.h"
#include "test/lib/sanitized.h"

#define MS UINT64_C(1000000)
#define LEN 10000

static struct tsi_image_cache *make_cache(uint64_t files, uint64_t bytes,
					  unsigned readers)
{
	struct tsi_image_cache *c;

	assert_int_equal(tsi_image_cache_create(files, bytes, readers, &c), 0);
	return c;
}

static void put_file(struct tsi_image_cache *c, uint64_t file)
{
	static uint8_t record[LEN];

	memset(record, (int)file, sizeof(record));
	tsi_image_cache_put(c, file, record, sizeof(record));
}

/* A sample of this file took so long, twice; its record is put in if wanted. */
static bool offer(struct tsi_image_cache *c, uint64_t file, uint64_t ms)
{
	bool wanted = tsi_image_cache_wants(c, file, ms * MS, LEN);

	if (!wanted)
		wanted = tsi_image_cache_wants(c, file, ms * MS, LEN);
	if (wanted)
		put_file(c, file);
	return tsi_image_cache_has(c, file);
}

static void all_are_kept_while_there_is_room(void **state)
{
	struct tsi_image_cache *c = make_cache(30, 110000, 2);
	struct tsi_image_cache_stats st;
	const uint8_t *data;
	unsigned n = 0;
	size_t len;

	(void)state;
	assert_null(tsi_image_cache_take(c, 0, 3, &len));
	tsi_image_cache_give(c, 0);
	for (uint64_t i = 0; i < 30; i++)
		if (tsi_image_cache_wants(c, i, MS, LEN)) {
			put_file(c, i);
			assert_true(tsi_image_cache_has(c, i));
			assert_int_equal(i, n++);
		}
	assert_int_equal(n, 10);
	tsi_image_cache_stats(c, &st);
	assert_int_equal(st.images, 10);
	assert_int_equal(st.budget, 110000);
	assert_in_range(st.used, 10 * LEN, 110000);
	assert_int_equal(st.hits, 0);
	/* What is there isn't wanted again. */
	assert_false(tsi_image_cache_wants(c, 4, 50 * MS, LEN));
	assert_false(tsi_image_cache_has_room(c, 4, 1));
	/* There may be room for a small one, until one found none. */
	assert_true(tsi_image_cache_has_room(c, 20, 100));
	put_file(c, 20);
	assert_false(tsi_image_cache_has(c, 20));
	assert_false(tsi_image_cache_has_room(c, 20, 100));
	data = tsi_image_cache_take(c, 1, 4, &len);
	assert_int_equal(len, LEN);
	assert_int_equal(data[0], 4);
	assert_int_equal(data[LEN - 1], 4);
	tsi_image_cache_give(c, 1);
	tsi_image_cache_stats(c, &st);
	assert_int_equal(st.hits, 1);
	tsi_image_cache_destroy(c);
}

static void then_those_that_save_more_take_their_places(void **state)
{
	struct tsi_image_cache *c = make_cache(100, 110000, 1);
	struct tsi_image_cache_stats st;

	(void)state;
	for (uint64_t i = 0; i < 10; i++)
		assert_true(offer(c, i, i == 6 ? 2 : 4));
	/* Not much better than the worst, or seen but once. */
	assert_false(offer(c, 20, 2));
	assert_false(tsi_image_cache_wants(c, 21, 100 * MS, LEN));
	assert_true(tsi_image_cache_has(c, 6));
	/* The least of its times counts. */
	assert_false(tsi_image_cache_wants(c, 20, 100 * MS, LEN));
	assert_true(offer(c, 22, 3));
	assert_false(tsi_image_cache_has(c, 6));
	assert_true(offer(c, 23, 9));
	assert_false(tsi_image_cache_has(c, 22));
	for (uint64_t i = 30; i < 39; i++)
		assert_true(offer(c, i, 20));
	for (uint64_t i = 0; i < 10; i++)
		assert_false(tsi_image_cache_has(c, i));
	assert_true(tsi_image_cache_has(c, 23));
	/* Also where two threads ask at a time, the worse one stays out. */
	assert_false(tsi_image_cache_wants(c, 60, 1 * MS, LEN));
	put_file(c, 60);
	assert_false(tsi_image_cache_has(c, 60));
	for (uint64_t i = 30; i < 39; i++)
		assert_true(tsi_image_cache_has(c, i));
	/* A large record would take the places of many. */
	assert_false(tsi_image_cache_wants(c, 50, 20 * MS, 5 * LEN));
	assert_false(tsi_image_cache_wants(c, 50, 20 * MS, 5 * LEN));
	tsi_image_cache_stats(c, &st);
	assert_int_equal(st.images, 10);
	assert_in_range(st.used, 10 * LEN, 110000);
	tsi_image_cache_destroy(c);
}

static void what_has_no_packed_form_is_asked_for_once(void **state)
{
	struct tsi_image_cache *c = make_cache(3, 1 << 20, 1);

	(void)state;
	assert_true(tsi_image_cache_wants(c, 1, MS, LEN));
	tsi_image_cache_refuse(c, 1);
	assert_false(tsi_image_cache_wants(c, 1, MS, LEN));
	put_file(c, 1);
	assert_false(tsi_image_cache_has(c, 1));
	assert_false(tsi_image_cache_wants(c, 0, MS, (size_t)64 << 20));
	tsi_image_cache_destroy(c);
}

/* What is looked at stays, though another has its place. */
static void an_image_outlives_its_place_while_it_is_read(void **state)
{
	struct tsi_image_cache *c = make_cache(4, 12000, 2);
	const uint8_t *data;
	size_t len;

	(void)state;
	assert_true(offer(c, 0, 1));
	data = tsi_image_cache_take(c, 1, 0, &len);
	assert_non_null(data);
	/* There is no room as long as its bytes are taken. */
	offer(c, 2, 50);
	assert_false(tsi_image_cache_has(c, 0));
	for (size_t i = 0; i < len; i++)
		assert_int_equal(data[i], 0);
	tsi_image_cache_give(c, 1);
	assert_true(offer(c, 3, 50));
	tsi_image_cache_destroy(c);
}

struct crowd {
	struct tsi_image_cache *cache;
	unsigned number;
	_Atomic unsigned *bad;
};

#define CROWD 4
#define ROUNDS 20000

static void *read_and_put(void *arg)
{
	struct crowd *w = arg;
	uint64_t seed = w->number + 1;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t file = image_gen_random(&seed) % 40;
		uint8_t record[64];
		const uint8_t *data;
		size_t len;

		data = tsi_image_cache_take(w->cache, w->number, file, &len);
		if (data && (len != sizeof(record) || data[0] != file ||
			     data[len - 1] != file))
			atomic_fetch_add(w->bad, 1);
		tsi_image_cache_give(w->cache, w->number);
		memset(record, (int)file, sizeof(record));
		if (!data &&
		    tsi_image_cache_wants(w->cache, file,
					  image_gen_random(&seed) % 100 * MS,
					  sizeof(record)))
			tsi_image_cache_put(w->cache, file, record,
					    sizeof(record));
	}
	return NULL;
}

static void threads_see_whole_records_alone(void **state)
{
	/* Room for a third of them. */
	struct tsi_image_cache *c = make_cache(40, 3000, CROWD);
	struct tsi_image_cache_stats st;
	struct crowd crowd[CROWD];
	pthread_t thread[CROWD];
	_Atomic unsigned bad = 0;

	(void)state;
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] = (struct crowd){ c, i, &bad };
		assert_int_equal(pthread_create(&thread[i], NULL, read_and_put,
						&crowd[i]),
				 0);
	}
	for (unsigned i = 0; i < CROWD; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(bad, 0);
	tsi_image_cache_stats(c, &st);
	assert_true(st.hits > 0);
	assert_true(st.images > 3 && st.images < 30);
	assert_true(st.used <= 3000);
	tsi_image_cache_destroy(c);
}

/* ------------------------------------------------------------------------
 * With a worker
 */

#define FILES 9
#define EPOCHS 6
#define SAMPLES (FILES * EPOCHS)

static void put_jpegs(void)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_jpeg g = { .width = 100 + 9 * i,
					    .height = 150 - i,
					    .components = i == 4 ? 4 : 3,
					    .progressive = i == 2,
					    .seed = i };
		struct image_gen_bytes b = image_gen_jpeg(&g);
		char name[40];

		if (i == 7)
			b.len = b.len * 2 / 3;
		snprintf(name, sizeof(name), "%c/%02u.jpg", "abc"[i % 3], i);
		worker_put(name, b.data, b.len);
		free(b.data);
	}
}

/*
 * All samples of some epochs; for how many of each a file was read.  How many
 * files depends on when the cut one is found out, which pread's threads decide.
 */
static void make_epochs(struct tsi_image_cache *c, struct sample *to,
			unsigned reads[EPOCHS])
{
	struct tsi_sampler *s = worker_open_sampler();
	struct tsi_worker *w;
	uint64_t begun = 0;

	memset(to, 0, 64 * sizeof(*to));
	memset(reads, 0, EPOCHS * sizeof(*reads));
	assert_int_equal(
		tsi_worker_create(s, worker_options.io, DEPTH, NULL, &w), 0);
	if (c)
		assert_int_equal(tsi_worker_use_cache(w, c, 0), 0);
	while (begun < SAMPLES || tsi_worker_busy(w)) {
		struct tsi_made made;

		while (begun < SAMPLES && tsi_worker_busy(w) < DEPTH)
			assert_int_equal(tsi_worker_begin(w, begun++), 0);
		assert_int_equal(tsi_worker_finish(w, worker_into, to, &made),
				 0);
		reads[made.seq / FILES] += made.reads > 0;
	}
	tsi_worker_destroy(w);
	tsi_sampler_close(s);
}

static void samples_are_the_same_as_without_a_cache(void **state)
{
	/* Room for all, for a few, for none. */
	static const uint64_t bytes[] = { 10 << 20, 150000, 1000 };
	static struct sample want[64], got[64];
	unsigned reads[EPOCHS], with[EPOCHS];

	(void)state;
	put_jpegs();
	worker_options.order = TSOCK_ORDER_PHILOX;
	/* All combinations, or each size, reader and recipe in one. */
	for (unsigned k = 0; k < 12; k += SANITIZED ? 5 : 1) {
		struct tsi_image_cache_stats st;
		struct tsi_image_cache *c = make_cache(FILES, bytes[k / 4], 1);

		worker_options.recipe =
			k & 1 ? recipes_eval(SIZE, SIZE) : recipes_train(SIZE);
		worker_options.io = k & 2 ? TSI_READER_AUTO : TSI_READER_PREAD;
		make_epochs(NULL, want, reads);
		make_epochs(c, got, with);
		for (unsigned i = 0; i < SAMPLES; i++)
			assert_memory_equal(&got[i], &want[i], sizeof(got[i]));
		tsi_image_cache_stats(c, &st);
		/* CMYK and the cut one have no packed form. */
		if (k / 4 == 0) {
			assert_int_equal(st.images, FILES - 2);
			assert_true(with[EPOCHS - 1] <=
				    reads[EPOCHS - 1] - (FILES - 2));
			assert_true(st.hits >= (FILES - 2) * (EPOCHS - 2));
		} else if (k / 4 == 1) {
			assert_in_range(st.images, 1, FILES - 3);
			assert_true(st.hits > 0);
		} else {
			assert_int_equal(st.images, 0);
			assert_memory_equal(reads, with, sizeof(reads));
		}
		assert_true(st.used <= st.budget ||
			    (st.images == 0 && st.budget < 1001));
		tsi_image_cache_destroy(c);
	}
}

/*
 * A record among the files is kept as it is only if every byte is right: what
 * is in the cache isn't checked again.
 */
static void damaged_records_are_not_kept(void **state)
{
	static struct sample want[64], got[64];
	unsigned reads[EPOCHS], with[EPOCHS];
	struct tsi_image_cache_stats st;
	struct tsi_image_cache *c;

	(void)state;
	put_jpegs();
	for (unsigned i = 0; i < 4; i++) {
		struct image_gen_jpeg g = { .width = 200,
					    .height = 300,
					    .components = 3,
					    .seed = 100 + i };
		struct image_gen_bytes b = image_gen_jpeg(&g);
		struct image_gen_bytes r = pack_image(&b);
		char name[40];

		/* In its last row, behind the slack and the zeros there. */
		if (i > 0)
			r.data[r.len - 80 - 9 * i] ^= 0x55;
		snprintf(name, sizeof(name), "%c/%02u.jpg", "abc"[i % 3], i);
		worker_put(name, r.data, r.len);
		free(b.data);
		free(r.data);
	}
	c = make_cache(FILES, 10 << 20, 1);
	make_epochs(NULL, want, reads);
	make_epochs(c, got, with);
	for (unsigned i = 0; i < SAMPLES; i++)
		assert_memory_equal(&got[i], &want[i], sizeof(got[i]));
	tsi_image_cache_stats(c, &st);
	/* Nor are CMYK and the cut one. */
	assert_int_equal(st.images, FILES - 3 - 2);
	tsi_image_cache_destroy(c);
}

/* While there is room a file is decoded once; its sample is the record's. */
static void the_first_epoch_decodes_each_file_once(void **state)
{
	struct tsi_image_cache *c = make_cache(FILES, 10 << 20, 1);
	static struct sample got[64];
	struct tsi_jpeg_index *x;
	unsigned entered = 0;
	struct tsi_sampler *s;
	struct tsi_made made;
	struct tsi_worker *w;

	(void)state;
	put_jpegs();
	worker_options.index_memory = 1 << 20;
	s = worker_open_sampler();
	x = tsi_sampler_image_opts(s).jpeg_index;
	assert_non_null(x);
	assert_int_equal(
		tsi_worker_create(s, worker_options.io, DEPTH, NULL, &w), 0);
	assert_int_equal(tsi_worker_use_cache(w, c, 0), 0);
	for (unsigned i = 0; i < FILES; i++) {
		assert_int_equal(tsi_worker_begin(w, i), 0);
		assert_int_equal(tsi_worker_finish(w, worker_into, got, &made),
				 0);
	}
	/* The decoder of files notes the rows of each that it decodes. */
	for (unsigned i = 0; i < FILES; i++) {
		struct tsi_jpeg_kept kept;

		if (!tsi_jpeg_index_get(x, i, &kept))
			continue;
		entered++;
		assert_false(tsi_image_cache_has(c, i));
	}
	/* The cut one; CMYK and several scans are for libjpeg. */
	assert_int_equal(entered, 1);
	tsi_worker_destroy(w);
	tsi_sampler_close(s);
	tsi_image_cache_destroy(c);
}

/* Another took its place between the begin and the finish: it is read. */
static void a_sample_whose_image_went_is_read(void **state)
{
	struct tsi_image_cache *c = make_cache(FILES, 200000, 2);
	static uint8_t large[190000];
	static struct sample want[64], got[64];
	unsigned reads[EPOCHS];
	struct tsi_sampler *s;
	struct tsi_worker *w;
	struct tsi_made made;

	(void)state;
	put_jpegs();
	make_epochs(NULL, want, reads);
	s = worker_open_sampler();
	assert_int_equal(
		tsi_worker_create(s, worker_options.io, DEPTH, NULL, &w), 0);
	assert_int_equal(tsi_worker_use_cache(w, c, 0), 0);
	memset(got, 0, sizeof(got));
	assert_int_equal(tsi_worker_begin(w, 0), 0);
	assert_int_equal(tsi_worker_finish(w, worker_into, got, &made), 0);
	assert_int_equal(made.reads, 1);
	assert_true(tsi_image_cache_has(c, 0));
	assert_int_equal(tsi_worker_begin(w, FILES), 0);
	/* This one saves more than anything. */
	tsi_image_cache_wants(c, 8, UINT64_C(1) << 50, 100);
	tsi_image_cache_wants(c, 8, UINT64_C(1) << 50, 100);
	tsi_image_cache_put(c, 8, large, sizeof(large));
	assert_false(tsi_image_cache_has(c, 0));
	assert_int_equal(tsi_worker_finish(w, worker_into, got, &made), 0);
	assert_int_equal(made.seq, FILES);
	assert_int_equal(made.reads, 1);
	assert_memory_equal(&got[0], &want[0], sizeof(got[0]));
	assert_memory_equal(&got[FILES], &want[FILES], sizeof(got[0]));
	tsi_worker_destroy(w);
	tsi_sampler_close(s);
	tsi_image_cache_destroy(c);
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, worker_make_root, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_kept_while_there_is_room),
		cmocka_unit_test(then_those_that_save_more_take_their_places),
		cmocka_unit_test(what_has_no_packed_form_is_asked_for_once),
		cmocka_unit_test(an_image_outlives_its_place_while_it_is_read),
		cmocka_unit_test(threads_see_whole_records_alone),
		TEST(samples_are_the_same_as_without_a_cache),
		TEST(damaged_records_are_not_kept),
		TEST(the_first_epoch_decodes_each_file_once),
		TEST(a_sample_whose_image_went_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
