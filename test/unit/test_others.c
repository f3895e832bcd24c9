/* SPDX-License-Identifier: MIT */
/*
 * test_others.c - samples of several images: all made by the same draws, of
 * sizes for which these can be the same, or of another row.
 *
 * A table of four rows has the images a/0.png to a/3.png, and in its column
 * right b/0.png to b/3.png.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include <cmocka.h>

#include "data/columnar/layout.h"
#include "pixel/budget.h"
#include "run/sampler.h"
#include "run/worker.h"
#include "test/lib/image_gen.h"
#include "test/lib/recipes.h"
#include "test/lib/worker_fixture.h"
#include "tsock/tsock.h"

#define MB ((size_t)1000 * 1000)
#define ROWS 4u
#define FILES (2 * ROWS)

struct pair {
	uint8_t left[SIZE * SIZE * 3], right[SIZE * SIZE * 3];
	int64_t label, index;
	int32_t box[5];
};

static char table_path[128];

/* ---- the table and its files ---- */

static void put_noise(const char *name, uint32_t width, uint32_t height,
		      uint64_t seed)
{
	const struct image_gen_png g = { .width = width,
					 .height = height,
					 .depth = 8,
					 .type = PNG_COLOR_TYPE_RGB,
					 .seed = seed };
	struct image_gen_bytes b = image_gen_png(&g);

	worker_put(name, b.data, b.len);
	free(b.data);
}

static void put_entry(struct tsi_columnar_entry *e, const char *name,
		      uint32_t kind, uint64_t count, uint64_t at, uint64_t len)
{
	strcpy(e->name, name);
	e->kind = kind;
	e->count = count;
	e->offset = at;
	e->bytes = len;
}

static void put_table(void)
{
	struct {
		struct tsi_columnar_head head;
		struct tsi_columnar_entry entry[3];
		struct tsi_columnar_range left[ROWS], right[ROWS];
		uint64_t at[FILES + 1];
		char path[FILES][8];
		uint8_t behind[56];
	} t;
	const size_t base = (size_t)((uint8_t *)t.left - (uint8_t *)&t);

	assert_int_equal(base % 64, 0);
	assert_int_equal(sizeof(t) % 64, 0);
	memset(&t, 0, sizeof(t));
	for (uint32_t i = 0; i < ROWS; i++) {
		t.left[i].file = i;
		t.right[i].file = ROWS + i;
	}
	for (uint32_t k = 0; k < FILES; k++) {
		t.at[k + 1] = (k + 1) * sizeof(t.path[0]);
		memcpy(t.path[k], k < ROWS ? "a/0.png" : "b/0.png", 8);
		t.path[k][2] = (char)('0' + k % ROWS);
	}
	put_entry(&t.entry[0], "image", TSI_COLUMNAR_RANGES, ROWS, base,
		  sizeof(t.left));
	put_entry(&t.entry[1], "right", TSI_COLUMNAR_RANGES, ROWS,
		  base + sizeof(t.left), sizeof(t.right));
	put_entry(&t.entry[2], "files", TSI_COLUMNAR_TEXT, FILES,
		  base + 2 * sizeof(t.left), sizeof(t.at) + sizeof(t.path));
	memcpy(t.head.magic, TSI_COLUMNAR_MAGIC, sizeof(t.head.magic));
	t.head.version = TSI_COLUMNAR_VERSION;
	t.head.endian = TSI_COLUMNAR_ENDIAN;
	t.head.rows = ROWS;
	t.head.bytes = sizeof(t);
	t.head.columns = 3;
	t.head.crc = (uint32_t)crc32(0, (const Bytef *)&t, (uInt)base);
	worker_put("t.table", &t, sizeof(t));
	snprintf(table_path, sizeof(table_path), "%s/t.table", worker_root);
	worker_options.format = &tsi_format_table;
	worker_options.folder = table_path;
}

/* Both images of a row have one size, unless said otherwise. */
static void put_rows(void)
{
	char name[] = "a/0.png";

	for (uint32_t i = 0; i < ROWS; i++) {
		name[0] = 'a';
		name[2] = (char)('0' + i);
		put_noise(name, 40 + i, 30, i);
		name[0] = 'b';
		put_noise(name, 40 + i, 30, 100 + i);
	}
	put_table();
}

/* A PNG with so many bytes behind it. */
static void put_long(const char *name, size_t size)
{
	uint8_t *data = calloc(1, size);

	assert_non_null(data);
	memcpy(data, worker_png, sizeof(worker_png));
	worker_put(name, data, size);
	free(data);
}

/* ---- samples ---- */

static void into(void *arg, uint64_t seq, struct tsi_slots *out)
{
	struct pair *p = (struct pair *)arg + seq;

	out->image = p->left;
	out->more[0] = p->right;
	out->label = &p->label;
	out->index = &p->index;
	out->box = p->box;
}

static int make(struct tsi_sampler *s, struct tsi_budget *budget,
		struct pair *to, uint64_t n, unsigned *substituted)
{
	struct tsi_worker *w;
	struct tsi_made made;
	int err = 0;

	*substituted = 0;
	assert_int_equal(tsi_worker_create(s, TSI_READER_PREAD, 1, budget, &w),
			 0);
	for (uint64_t k = 0; k < n && !err; k++) {
		err = tsi_worker_begin(w, k);
		if (!err)
			err = tsi_worker_finish(w, into, to, &made);
		if (!err)
			*substituted += made.substituted;
	}
	tsi_worker_destroy(w);
	return err;
}

static char reasons[1024];

static void note(void *arg, const char *path, const char *reason)
{
	size_t n = strlen(reasons);

	(void)arg;
	snprintf(reasons + n, sizeof(reasons) - n, "%s: %s\n", path, reason);
}

static void was_said(struct tsi_sampler *s, const char *text)
{
	*reasons = 0;
	tsi_badlist_each(tsi_sampler_badlist(s), note, NULL);
	if (!strstr(reasons, text))
		fail_msg("'%s' lacks '%s'", reasons, text);
}

/* ---- tests ---- */

static void images_of_a_sample_share_its_draws(void **state)
{
	struct pair got[2 * ROWS];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	put_rows();
	put_noise("b/2.png", 42, 30, 2); /* a/2.png */
	s = worker_open_sampler();
	assert_int_equal(make(s, NULL, got, 2 * ROWS, &n), 0);
	assert_int_equal(n, 0);
	for (unsigned k = 0; k < 2 * ROWS; k++) {
		assert_int_equal(got[k].index, k % ROWS);
		if (k % ROWS == 2)
			assert_memory_equal(got[k].left, got[k].right,
					    sizeof(got[k].left));
		else
			assert_memory_not_equal(got[k].left, got[k].right,
						sizeof(got[k].left));
	}
	tsi_sampler_close(s);
}

static void sizes_that_draws_cant_share_are_a_bad_file(void **state)
{
	struct pair got[ROWS];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	put_rows();
	put_noise("b/1.png", 30, 40, 7);
	s = worker_open_sampler();
	assert_int_equal(make(s, NULL, got, ROWS, &n), 0);
	assert_int_equal(n, 1);
	assert_int_not_equal(got[1].index, 1);
	was_said(s, "a/1.png: its image right (b/1.png): RandomResizedCrop");
	was_said(s, "41 x 30 and 30 x 40 pixels");
	tsi_sampler_close(s);
	/* They have one size by then. */
	worker_options.recipe = recipes_of("Resize((20, 20)) RandomCrop(16)");
	s = worker_open_sampler();
	assert_int_equal(make(s, NULL, got, ROWS, &n), 0);
	assert_int_equal(n, 0);
	tsi_sampler_close(s);
}

static void is_refused(int err, const char *text)
{
	struct tsi_sampler *s;

	assert_int_equal(tsi_sampler_open(&worker_options, &s), err);
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

static void what_can_be_done_to_no_sample_is_refused_at_the_start(void **state)
{
	struct tsi_sampler *s;

	(void)state;
	put_rows();
	put_noise("b/0.png", 11, 30, 7);
	put_noise("b/1.png", 11, 30, 7);
	put_noise("b/2.png", 11, 30, 7);
	s = worker_open_sampler();
	tsi_sampler_close(s);
	put_noise("b/3.png", 11, 30, 7);
	is_refused(TSOCK_EDATA, "a/0.png: its image right: RandomResizedCrop");
	/* Of what can't be read nothing is known. */
	worker_put("b/3.png", "no image", 8);
	s = worker_open_sampler();
	tsi_sampler_close(s);
	worker_options.recipe = recipes_of("Views(2 * [Resize((8, 8))])");
	is_refused(TSOCK_EARG, "2 images a sample");
}

static void an_image_that_is_bad_is_named(void **state)
{
	struct pair got[2 * ROWS];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	put_rows();
	worker_put("b/1.png", "no image", 8);
	worker_put("b/2.png", worker_png, 45);
	s = worker_open_sampler();
	assert_int_equal(make(s, NULL, got, 2 * ROWS, &n), 0);
	assert_int_equal(n, 4);
	for (unsigned k = 0; k < 2 * ROWS; k++)
		assert_true(got[k].index == 0 || got[k].index == 3);
	was_said(s, "a/1.png: its image right (b/1.png): ");
	was_said(s, "a/2.png: its image right (b/2.png): ");
	tsi_sampler_close(s);
	worker_options.on_error = TSI_RAISE;
	s = worker_open_sampler();
	assert_int_equal(make(s, NULL, got, ROWS, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "its image right (b/1.png)"));
	tsi_sampler_close(s);
}

static void a_large_image_claims_its_memory(void **state)
{
	struct tsi_budget *tight, *roomy;
	struct pair got[ROWS];
	struct tsi_sampler *s;
	unsigned n;

	(void)state;
	put_rows();
	put_long("a/1.png", sizeof(worker_png));
	put_long("b/1.png", TSI_READER_AHEAD + 1);
	assert_int_equal(tsi_budget_create(TSI_READER_AHEAD, &tight), 0);
	assert_int_equal(tsi_budget_create(30 * MB, &roomy), 0);
	s = worker_open_sampler();
	assert_int_equal(make(s, roomy, got, ROWS, &n), 0);
	assert_int_equal(n, 0);
	assert_memory_equal(got[1].left, got[1].right, sizeof(got[1].left));
	assert_int_equal(make(s, tight, got, ROWS, &n), 0);
	assert_int_equal(n, 1);
	was_said(s, "its image right (b/1.png): it takes");
	tsi_sampler_close(s);
	tsi_budget_destroy(tight);
	tsi_budget_destroy(roomy);
}

struct maker {
	struct tsi_sampler *sampler;
	struct tsi_budget *budget;
	struct pair got[1];
	unsigned substituted;
	int err;
};

static void *make_one(void *arg)
{
	struct maker *m = arg;

	m->err = make(m->sampler, m->budget, m->got, 1, &m->substituted);
	return NULL;
}

static void two_large_images_wait_for_the_memory_of_both(void **state)
{
	struct timespec ms = { 0, 1000000 };
	struct tsi_budget_claim mine = { .budget = NULL };
	struct maker m = { .err = -1 };
	pthread_t thread;

	(void)state;
	put_rows();
	put_long("a/0.png", 5 * MB);
	put_long("b/0.png", 6 * MB);
	assert_int_equal(tsi_budget_create(20 * MB, &m.budget), 0);
	m.sampler = worker_open_sampler();
	mine.budget = m.budget;
	/* For the first image alone there is enough. */
	assert_int_equal(tsi_budget_claim_grow(&mine, 12 * MB), 0);
	assert_int_equal(pthread_create(&thread, NULL, make_one, &m), 0);
	while (tsi_budget_claim_grow(&mine, mine.held + 1) == 0)
		nanosleep(&ms, NULL);
	tsi_budget_claim_end(&mine);
	pthread_join(thread, NULL);
	assert_int_equal(m.err, 0);
	assert_int_equal(m.substituted, 0);
	assert_int_equal(m.got[0].index, 0);
	assert_int_equal(tsi_budget_claim_all(&mine), 0);
	tsi_budget_claim_end(&mine);
	tsi_sampler_close(m.sampler);
	tsi_budget_destroy(m.budget);
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, worker_make_root, \
					worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(images_of_a_sample_share_its_draws),
		in_a_tree(sizes_that_draws_cant_share_are_a_bad_file),
		in_a_tree(
			what_can_be_done_to_no_sample_is_refused_at_the_start),
		in_a_tree(an_image_that_is_bad_is_named),
		in_a_tree(a_large_image_claims_its_memory),
		in_a_tree(two_large_images_wait_for_the_memory_of_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
