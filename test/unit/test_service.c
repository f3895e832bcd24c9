/* SPDX-License-Identifier: MIT */
/*
 * test_service.c - a program that fills in struct tsi_pipeline_opts itself
 * serves a data set, without a command line.
 */
#include "run/service.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/identity.h"
#include "test/lib/worker_fixture.h"
#include "test/lib/recipes.h"

/* Five images; the sockets are in their folder. */
static int make_stream(void **state)
{
	if (worker_make_root(state))
		return -1;
	worker_put_five();
	worker_options.name = "service";
	worker_options.threads = 2;
	worker_options.image_memory = 1 << 20;
	worker_options.ring = 64;
	worker_options.max_batch = 8;
	return setenv("TSOCK_DIR", worker_root, 1);
}

static struct tsi_service *open_service(void)
{
	struct tsi_service *s;

	if (tsi_service_open(&worker_options, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

static void the_geometry_needs_no_data_set(void **state)
{
	struct tsock_geometry g = { .size = sizeof(g) };

	(void)state;
	worker_options.folder = "/nowhere";
	assert_int_equal(
		tsi_service_geometry(&worker_options, TSI_EPOCH_LONG, &g), 0);
	assert_true(g.capacity >= 64);
	assert_int_equal(g.max_batch, 8);
	worker_options.part.first = 7;
	worker_options.part.world = 2;
	assert_int_equal(
		tsi_service_geometry(&worker_options, TSI_EPOCH_LONG, &g),
		TSOCK_EARG);
}

static void a_service_can_be_opened_and_not_started(void **state)
{
	struct tsi_service *s = open_service();

	(void)state;
	assert_int_equal(tsi_sampler_epoch_len(tsi_service_sampler(s)), 5);
	tsi_service_close(s);
	tsi_service_close(NULL);
	worker_options.folder = "/nowhere";
	assert_int_equal(tsi_service_open(&worker_options, &s), TSOCK_EARG);
}

static void the_ring_is_sized_by_the_data_set(void **state)
{
	struct tsock_geometry g = { .size = sizeof(g) };
	struct tsi_service *s;

	(void)state;
	worker_options.ring = 0;
	assert_int_equal(
		tsi_service_geometry(&worker_options, TSI_EPOCH_LONG, &g), 0);
	assert_int_equal(g.capacity, 2048);
	s = open_service();
	tsi_service_sizes(s, &g);
	assert_int_equal(g.capacity, 64);
	assert_int_equal(g.max_batch, 8);
	tsi_service_close(s);
}

/* The options are those of make_stream(). */
static void assert_identity(const char *text)
{
	char want[TSI_RECIPE_TEXT + 512], files[17] = "";
	const char *at = strstr(text, "\nfiles=");

	assert_non_null(at);
	assert_int_equal(sscanf(at, "\nfiles=%16[0-9a-f]", files), 1);
	snprintf(
		want, sizeof(want),
		"dataset=imagefolder\nroot=%s\nsamples=5\nfiles=%s\nclasses=3\n"
		"order=sequential\nseed=9\nsegments=1\non-error=substitute\n"
		"substitutes=2\ntransform=%s\npillow=13\n",
		worker_root, files, worker_options.recipe->text);
	assert_string_equal(text, want);
}

/* What decides the samples is in the identity, and nothing else is. */
static void the_identity_tells_streams_apart(void **state)
{
	struct tsi_service *s = open_service();
	char *first, *next;

	(void)state;
	assert_int_equal(tsi_identity_text(&worker_options,
					   tsi_service_sampler(s), &first),
			 0);
	worker_options.threads = 1;
	worker_options.ring = 128;
	assert_int_equal(tsi_identity_text(&worker_options,
					   tsi_service_sampler(s), &next),
			 0);
	assert_string_equal(first, next);
	free(next);
	worker_options.recipe = recipes_eval(40, SIZE);
	worker_options.part.first = 1;
	worker_options.part.world = 3;
	assert_int_equal(tsi_identity_text(&worker_options,
					   tsi_service_sampler(s), &next),
			 0);
	assert_non_null(strstr(next, "\nshard=1/3\n"));
	assert_non_null(strstr(next, "\ntransform=Resize(size=40, "));
	assert_null(strstr(first, "fast"));
	free(next);
	worker_options.fast = true;
	assert_int_equal(tsi_identity_text(&worker_options,
					   tsi_service_sampler(s), &next),
			 0);
	assert_non_null(strstr(next, "\nfast=1\n"));
	free(next);
	free(first);
	tsi_service_close(s);
}

static char *identity_now(void)
{
	struct tsi_service *s = open_service();
	char *text;

	assert_int_equal(tsi_identity_text(&worker_options,
					   tsi_service_sampler(s), &text),
			 0);
	tsi_service_close(s);
	return text;
}

/* Names and the number of samples are unchanged, but one file is another. */
static void another_file_is_another_identity(void **state)
{
	char *first = identity_now(), *again = identity_now(), *other;

	(void)state;
	assert_string_equal(first, again);
	worker_put("b/1.png", "longer than it was, and no image at all", 39);
	worker_options.rescan = true;
	other = identity_now();
	assert_string_not_equal(first, other);
	free(first);
	free(again);
	free(other);
}

/* Samples are those that a worker makes of the same options. */
static void a_consumer_reads_what_a_worker_makes(void **state)
{
	struct tsi_service *s = open_service();
	struct tsock_opts o = TSOCK_OPTS_INIT;
	static struct sample want[64];
	unsigned substituted;
	tsock_batch *b;
	tsock *t;

	(void)state;
	assert_int_equal(
		worker_make(tsi_service_sampler(s), 1, want, 5, &substituted),
		0);
	assert_int_equal(tsi_service_start(s), 0);
	o.batch_size = 5;
	assert_int_equal(tsock_open("service", &o, &t), 0);
	assert_int_equal(tsock_begin(t), 0);
	assert_int_equal(tsock_next(t, 20000, &b), 0);
	assert_int_equal(tsock_batch_count(b), 5);
	for (unsigned i = 0; i < 5; i++) {
		const uint8_t *image = tsock_batch_data(b, TSI_FIELD_IMAGE);
		const int64_t *label = tsock_batch_data(b, TSI_FIELD_LABEL);
		const int32_t *box = tsock_batch_data(b, TSI_FIELD_BOX);

		assert_memory_equal(image + i * sizeof(want->image),
				    want[i].image, sizeof(want->image));
		assert_int_equal(label[i], want[i].label);
		assert_memory_equal(box + 5 * i, want[i].box,
				    sizeof(want->box));
	}
	tsock_batch_release(b);
	assert_identity(tsock_identity(t));
	tsock_close(t);
	assert_null(tsi_pool_error(tsi_service_pool(s)));
	assert_string_equal(tsi_pool_reader(tsi_service_pool(s)), "pread");
	tsi_service_close(s);
}

/* With a weight before it, and without. */
static void keys_are_the_last_field(void **state)
{
	static const char *const keys[] = { "a/0.png", "a/1.png", "b/0.png",
					    "b/1.png", "c/0.png" };
	char list[96];

	(void)state;
	worker_options.keys = true;
	snprintf(list, sizeof(list), "%s/list", worker_root);
	worker_put("list",
		   "a/0.png 2\na/1.png 2\nb/0.png 2\nb/1.png 2\nc/0.png 2", 49);
	for (unsigned k = 0; k < 2; k++) {
		struct tsi_service *s;
		struct tsock_opts o = TSOCK_OPTS_INIT;
		struct tsock_field f;
		const char *key;
		tsock_batch *b;
		tsock *t;

		worker_options.select = k ? list : NULL;
		s = open_service();
		assert_int_equal(tsi_service_start(s), 0);
		o.batch_size = 5;
		assert_int_equal(tsock_open("service", &o, &t), 0);
		assert_non_null(strstr(tsock_identity(t), "\nkeys=1\n"));
		assert_int_equal(tsock_get_field(t, 4 + k, &f), 0);
		assert_string_equal(f.name, "key");
		assert_int_equal(f.dtype, TSOCK_U8);
		assert_int_equal(f.ndim, 1);
		assert_int_equal(f.shape[0], 8);
		assert_int_equal(tsock_begin(t), 0);
		assert_int_equal(tsock_next(t, 20000, &b), 0);
		assert_int_equal(tsock_batch_count(b), 5);
		key = tsock_batch_data(b, 4 + k);
		for (unsigned i = 0; i < 5; i++)
			assert_string_equal(key + 8 * (size_t)i, keys[i]);
		if (k)
			assert_true(*(const float *)tsock_batch_data(b, 4) ==
				    2);
		tsock_batch_release(b);
		tsock_close(t);
		tsi_service_close(s);
	}
}

/* A path of folders in folders, so that each name is one that a disk takes. */
static void a_key_that_is_too_long_is_refused(void **state)
{
	char name[1300] = "a";
	struct tsi_service *s;

	(void)state;
	worker_options.keys = true;
	for (unsigned i = 0; i < 5; i++) {
		char path[1400];
		size_t at = strlen(name);

		name[at] = '/';
		memset(name + at + 1, '0' + (int)i, 240);
		name[at + 241] = '\0';
		snprintf(path, sizeof(path), "%s/%s", worker_root, name);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	memcpy(name + strlen(name), "/0.png", 7);
	worker_put_image(name);
	assert_int_equal(tsi_service_open(&worker_options, &s), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "has 1212 bytes, and 1023"));
	worker_options.keys = false;
	s = open_service();
	tsi_service_close(s);
}

static void a_name_is_served_once(void **state)
{
	struct tsi_service *s = open_service(), *second = open_service();

	(void)state;
	assert_int_equal(tsi_service_start(s), 0);
	assert_int_equal(tsi_service_start(second), TSOCK_EEXIST);
	tsi_service_close(second);
	tsi_service_close(s);
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, make_stream, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(the_geometry_needs_no_data_set),
		in_a_tree(a_service_can_be_opened_and_not_started),
		in_a_tree(the_ring_is_sized_by_the_data_set),
		in_a_tree(the_identity_tells_streams_apart),
		in_a_tree(another_file_is_another_identity),
		in_a_tree(a_consumer_reads_what_a_worker_makes),
		in_a_tree(keys_are_the_last_field),
		in_a_tree(a_key_that_is_too_long_is_refused),
		in_a_tree(a_name_is_served_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
