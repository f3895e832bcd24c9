/* SPDX-License-Identifier: MIT */
/*
 * test_badfiles.c - what is known of bad files, in a generated data set of 2^48
 * samples that has no file at all.
 */
#include "run/badfiles.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "data/format.h"
#include "run/target.h"
#include "test/lib/worker_fixture.h"

#define SAMPLES (UINT64_C(1) << 48)
#define MIB (UINT64_C(1) << 20)

static int open_root(const char *root, struct tsi_root *r)
{
	return tsi_root_open(r, root) ? TSOCK_ESYS : 0;
}

/* One class; sample i would be byte i of a file that is not there. */
static int generate(const struct tsi_root *r, const struct tsi_format_opts *o,
		    struct tsi_table *t)
{
	struct tsi_table_lengths n = { .count = SAMPLES,
				       .classes = 1,
				       .bare = true };
	struct tsi_table_writer w;
	int err;

	(void)o;
	n.names_len = strlen(tsi_root_name(r)) + 1 + sizeof("all");
	err = tsi_table_begin(&w, t, &n, tsi_root_name(r));
	if (!err)
		tsi_table_put_class(&w, "all");
	return err;
}

static void locate(const struct tsi_table *t, uint64_t i,
		   struct tsi_location *out)
{
	(void)t;
	*out = (struct tsi_location){
		.file = "none", .offset = i, .length = 1, .size = 1
	};
}

static int64_t label(const struct tsi_table *t, uint64_t i)
{
	(void)t;
	(void)i;
	return 0;
}

static const struct tsock_field field[] = { TSI_FORMAT_IMAGE_FIELDS };

static const struct tsi_format generated = {
	.name = "generated",
	.layout = "-generated",
	.nameless = true,
	.keeps_index = true,
	.open = open_root,
	.scan = generate,
	.locate = locate,
	.label = label,
	.fields = field,
	.nfields = 2,
};

static int make_root(void **state)
{
	int err = worker_make_root(state);

	worker_options.format = &generated;
	worker_options.order = TSOCK_ORDER_PHILOX;
	return err;
}

/* Pages that this process has: as address space, and in memory. */
static void measure(uint64_t *size, uint64_t *resident)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long all, used;
	FILE *f = fopen("/proc/self/statm", "r");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu %lu", &all, &used), 2);
	fclose(f);
	*size = all * page;
	*resident = used * page;
}

static void memory_does_not_grow_with_the_samples(void **state)
{
	uint64_t size, resident, size_now, resident_now;
	struct tsi_sampler *s;

	(void)state;
	measure(&size, &resident);
	s = worker_open_sampler();
	assert_true(tsi_index_count(tsi_sampler_index(s)) == SAMPLES);
	for (uint64_t i = 0; i < 100; i++)
		tsi_badfiles_remember(tsi_sampler_badfiles(s),
				      i * (SAMPLES / 100), NULL,
				      tsi_badfiles_now());
	measure(&size_now, &resident_now);
	assert_true(size_now < size + 256 * MIB);
	assert_true(resident_now < resident + 16 * MIB);
	tsi_sampler_close(s);
}

/* Of so many rows at most if samples need more; -1: nothing is known. */
static int64_t rows_of(const struct tsi_badfiles *b, uint64_t i)
{
	struct tsi_image_extent e = { .rows = 0 };

	switch (tsi_badfiles_look(b, i, &e)) {
	case TSI_BAD_NOT:
		return -1;
	case TSI_BAD_WHOLE:
		return 0;
	case TSI_BAD_BELOW:
		break;
	}
	assert_int_equal(e.width, 40);
	assert_int_equal(e.height, 30);
	return e.rows;
}

static void what_is_known_of_a_file_is_about_no_other(void **state)
{
	/* Neighbours, and others far away in the same places of their blocks. */
	static const uint64_t file[] = { 0, 65, 66, SAMPLES / 2, SAMPLES - 63 };
	static const int64_t rows[] = { 0, 7, 8, 0, 9 };
	struct tsi_sampler *s = worker_open_sampler();
	struct tsi_badfiles *b = tsi_sampler_badfiles(s);

	(void)state;
	for (unsigned k = 0; k < 5; k++) {
		struct tsi_image_extent e = { .width = 40, .height = 30 };

		e.rows = (uint32_t)rows[k];
		tsi_badfiles_remember(b, file[k], rows[k] ? &e : NULL,
				      tsi_badfiles_now());
		/* Its state on disk, that there is none, is as it was. */
		assert_false(tsi_badfiles_changed(b, file[k]));
		for (unsigned i = 0; i < 5; i++)
			assert_int_equal(rows_of(b, file[i]),
					 i <= k ? rows[i] : -1);
		assert_int_equal(rows_of(b, file[k] ^ 4), -1);
	}
	tsi_badfiles_forget(b, 0);
	assert_int_equal(rows_of(b, 0), -1);
	assert_int_equal(rows_of(b, SAMPLES / 2), 0);
	/* Takes as long as there are bad files. */
	tsi_badfiles_forget_all(b);
	for (unsigned k = 0; k < 5; k++) {
		assert_int_equal(rows_of(b, file[k]), -1);
		assert_false(tsi_badfiles_changed(b, file[k]));
	}
	tsi_sampler_close(s);
}

/* From the same bad file to the same substitute, whatever else is known. */
static void a_bad_sample_is_replaced(void **state)
{
	struct tsi_outcome gone = { .came = TSI_CAME_UNREAD, .err = ENOENT };
	uint64_t stands_in = 0;

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct tsi_sampler *s = worker_open_sampler();
		struct tsi_maker *m;
		struct tsi_target t;

		assert_int_equal(tsi_maker_create(s, NULL, &m), 0);
		/* The last place of epoch 2. */
		assert_int_equal(tsi_target_first(&t, s, m, 3 * SAMPLES - 1),
				 0);
		assert_true(t.id.index < SAMPLES && t.file == t.id.index);
		if (k)
			tsi_badfiles_remember(tsi_sampler_badfiles(s), t.file,
					      NULL, tsi_badfiles_now());
		t.read_ns = tsi_badfiles_now();
		assert_int_equal(tsi_target_next(&t, s, m, &gone), 0);
		assert_true(t.file != t.id.index && t.file < SAMPLES);
		assert_true(!k || t.file == stands_in);
		stands_in = t.file;
		assert_int_equal(rows_of(tsi_sampler_badfiles(s), t.id.index),
				 0);
		assert_int_equal(tsi_badlist_count(tsi_sampler_badlist(s)), 1);
		tsi_maker_destroy(m);
		tsi_sampler_close(s);
	}
}

#define CASE(name) \
	cmocka_unit_test_setup_teardown(name, make_root, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(memory_does_not_grow_with_the_samples),
		CASE(what_is_known_of_a_file_is_about_no_other),
		CASE(a_bad_sample_is_replaced),
	};

	return cmocka_run_group_tests_name("badfiles", tests, NULL, NULL);
}
