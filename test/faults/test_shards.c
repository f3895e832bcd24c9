/* SPDX-License-Identifier: MIT */
/*
 * test_shards.c - a data set of tar files is scanned, each system call and each
 * allocation on the way fails in turn: the index has every sample, under its
 * own name and at its own place, or there is none, and an error says why.
 */
#include "data/index.h"

#include "data/format.h"
#include "test/faults/inject.h"
#include "test/faults/walk.h"
#include "test/lib/proc.h"
#include "test/lib/tar_gen.h"

#define SHARDS 3
#define SAMPLES 4 /* in each */
#define BLOCK 512

static char root[64], pattern[96];

/* A record of its own says the last sample's name. */
static void put_name(struct tar_gen *t, const char *path)
{
	char text[64];
	size_t len = strlen(path) + strlen("?? path=\n");

	snprintf(text, sizeof(text), "%zu path=%s\n", len, path);
	tar_gen_header(t, NULL, "pax", 'x', len);
	tar_gen_bytes(t, text, len);
}

static void put_shard(unsigned shard)
{
	struct tar_gen t = { 0 };
	char path[96], name[32];
	FILE *f;

	for (unsigned i = 0; i < SAMPLES; i++) {
		snprintf(name, sizeof(name), "%u/sample-%u.png", shard, i);
		if (i == SAMPLES - 1)
			put_name(&t, name);
		tar_gen_text(&t, i == SAMPLES - 1 ? "short" : name, "no image");
		snprintf(name, sizeof(name), "%u/sample-%u.cls", shard, i);
		tar_gen_text(&t, name, "7");
	}
	tar_gen_end(&t);
	snprintf(path, sizeof(path), "%s/s-%u.tar", root, shard);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(t.data, 1, t.len, f), t.len);
	fclose(f);
	free(t.data);
}

static int make_shards(void **state)
{
	(void)state;
	inject_pause();
	snprintf(root, sizeof(root), "/tmp/tsock-faults-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (unsigned i = 0; i < SHARDS; i++)
		put_shard(i);
	snprintf(pattern, sizeof(pattern), "%s/s-{0..%u}.tar", root,
		 SHARDS - 1);
	inject_resume();
	return 0;
}

static int remove_shards(void **state)
{
	char command[96];

	proc_end_children(state);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* Behind its header, and two files of two blocks for each one before it. */
static uint64_t place_of(unsigned i)
{
	return (4 * i + 1 + (i == SAMPLES - 1 ? 2 : 0)) * BLOCK;
}

static void check_index(const struct tsi_index *x)
{
	char name[32], path[16];
	struct tsi_location at;

	need(tsi_index_count(x) == SHARDS * SAMPLES);
	need(tsi_index_bad_count(x) == 0);
	for (unsigned i = 0; i < SHARDS * SAMPLES; i++) {
		tsi_index_locate(x, i, &at);
		snprintf(path, sizeof(path), "s-%u.tar", i / SAMPLES);
		snprintf(name, sizeof(name), "%u/sample-%u.png", i / SAMPLES,
			 i % SAMPLES);
		need(!strcmp(at.file, path));
		need(!strcmp(at.member, name));
		need(at.offset == place_of(i % SAMPLES));
		need(tsi_index_label(x, i) == 7);
	}
}

/* Nothing is waited for here. */
static int scan(int patience_ms)
{
	struct tsi_index_opts o = { .format = &tsi_format_webdataset,
				    .root = pattern,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x;
	int err = tsi_index_open(&o, &x);

	(void)patience_ms;
	if (err)
		return err;
	inject_pause();
	check_index(x);
	inject_resume();
	tsi_index_close(x);
	return 0;
}

static const struct walk scanning = {
	.name = "shards",
	.work = scan,
	.kinds = "malloc calloc realloc strdup strndup asprintf realpath open "
		 "openat pread close fstat stat pthread_create ",
};

static void shards_are_scanned_or_an_error_says_why_not(void **state)
{
	(void)state;
	walk_one_by_one(&scanning);
}

static void likewise_while_a_fault_lasts(void **state)
{
	(void)state;
	walk_from_each_on(&scanning);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			shards_are_scanned_or_an_error_says_why_not,
			proc_end_children),
		cmocka_unit_test_teardown(likewise_while_a_fault_lasts,
					  proc_end_children),
	};

	return cmocka_run_group_tests_name("shards", tests, make_shards,
					   remove_shards);
}
