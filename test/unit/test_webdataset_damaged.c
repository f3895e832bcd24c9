/* SPDX-License-Identifier: MIT */
/*
 * test_webdataset_damaged.c - tar shards that were cut, damaged or made to do
 * harm.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/lib/shard_fixture.h"

/* The index, or NULL and an error that names the shard. */
static struct tsi_index *try(void)
{
	struct tsi_index_opts o = { .format = worker_options.format,
				    .root = worker_options.folder,
				    .cache_dir = "",
				    .threads = 1 };
	struct tsi_index *x;
	int err = tsi_index_open(&o, &x);

	if (!err)
		return x;
	assert_int_equal(err, TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), "s.tar") &&
	    !strstr(tsock_errmsg(), "no sample"))
		fail_msg("%s", tsock_errmsg());
	return NULL;
}

/* A shard that was written an hour ago: nobody waits for the clock's tick. */
static void put_old(const void *data, size_t len)
{
	struct timespec t[2];
	char path[100];

	worker_put("s.tar", data, len);
	snprintf(path, sizeof(path), "%s/s.tar", worker_root);
	clock_gettime(CLOCK_REALTIME, &t[0]);
	t[0].tv_sec -= 3600;
	t[1] = t[0];
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
	snprintf(path, sizeof(path), "%s", worker_root);
	assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
}

/* Each sample takes 2048 bytes: a header and a block of each file. */
static void a_shard_that_was_cut_keeps_what_is_before(void **state)
{
	struct tar_gen t = { 0 };

	(void)state;
	shard_three(&t);
	tar_gen_end(&t);
	for (size_t n = t.len; n-- > 0;) {
		struct tsi_index *x;
		/* Samples whose image's header is there, and whose bytes are. */
		size_t begun = n < 1536 ? 0 : (n - 1536) / 2048 + 1;
		size_t whole =
			n < 1536 + sizeof(worker_png)
				? 0
				: (n - 1536 - sizeof(worker_png)) / 2048 + 1;

		if (n % 7 && n % 512 > 1 && n % 512 != sizeof(worker_png))
			continue;
		put_old(t.data, n);
		x = try();
		begun = begun < 3 ? begun : 3;
		whole = whole < 3 ? whole : 3;
		assert_int_equal(x != NULL, begun > 0);
		if (!x)
			continue;
		assert_int_equal(tsi_index_count(x), begun);
		assert_int_equal(tsi_index_bad_count(x), begun - whole);
		if (begun > whole)
			assert_string_equal(tsi_index_bad_reason(x, whole),
					    "ends before the sample does");
		tsi_index_close(x);
	}
	free(t.data);
}

static void a_sample_whose_label_was_cut_off_is_left_out(void **state)
{
	struct tar_gen t = { 0 };
	struct tsi_index *x;

	(void)state;
	shard_three(&t);
	shard_add(&t, "3.png");
	tar_gen_text(&t, "3.cls", "3");
	/* Within the label's header, before its bytes, and behind it. */
	for (size_t n = t.len - 600; n <= t.len; n += 100) {
		put_old(t.data, n);
		x = try();
		assert_non_null(x);
		assert_int_equal(tsi_index_count(x), n > t.len - 512 ? 4 : 3);
		tsi_index_close(x);
	}
	free(t.data);
}

static void a_damaged_header_ends_the_shard(void **state)
{
	struct tar_gen t = { 0 };

	(void)state;
	shard_three(&t);
	tar_gen_end(&t);
	for (unsigned i = 0; i < 512; i++) {
		uint8_t *at = t.data + 2048 + i;
		struct tsi_index *x;

		/* This one means nothing: the sum has ended before. */
		if (i == 155)
			continue;
		*at ^= 0x15;
		put_old(t.data, t.len);
		*at ^= 0x15;
		x = try();
		assert_non_null(x);
		assert_int_equal(tsi_index_count(x), 1);
		shard_expect(x, 0, "0.png", 0);
		tsi_index_close(x);
	}
	free(t.data);
}

static char warning[2000]; /* all of them, a line each */

static void note_warning(void *arg, int level, const char *line)
{
	size_t at = strlen(warning);

	(void)arg;
	if (level == TSOCK_LOG_WARN)
		snprintf(warning + at, sizeof(warning) - at, "%s\n", line);
}

/* What is warned of while the data set of s.tar and others is opened. */
static void assert_warns(uint64_t samples, const char *text)
{
	struct tsi_index *x;

	*warning = '\0';
	tsock_set_logger(note_warning, NULL);
	x = try();
	tsock_set_logger(NULL, NULL);
	assert_non_null(x);
	assert_int_equal(tsi_index_count(x), samples);
	tsi_index_close(x);
	if (text ? !strstr(warning, text) : *warning)
		fail_msg("%s", warning);
}

static void what_is_left_out_is_warned_of(void **state)
{
	struct tar_gen t = { 0 };
	size_t len;

	(void)state;
	/* GNU tar ends its files with zeros up to 10,240 bytes. */
	shard_three(&t);
	tar_gen_end(&t);
	len = t.len;
	t.data = realloc(t.data, 10240);
	memset(t.data + len, 0, 10240 - len);
	t.len = 10240;
	shard_write_tar(&t, "s.tar");
	assert_warns(3, NULL);
	/* Two that cat has joined. */
	shard_three(&t);
	tar_gen_end(&t);
	shard_three(&t);
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	assert_warns(3, "tar --concatenate");
	shard_three(&t);
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	worker_put("t.tar.gz", "", 0);
	worker_put("u.tar.gz", "", 0);
	assert_warns(3, "2 compressed tar files (t.tar.gz ...) are left out");
	/* An image whose name has a dot too many has no key of its own. */
	shard_three(&t);
	shard_add(&t, "v.1.png");
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	assert_warns(3, "v.1.png has another one than meant");
}

static void note_hint(void *arg, int level, const char *line)
{
	(void)arg;
	if (level == TSOCK_LOG_INFO && strstr(line, "nothing reads"))
		snprintf(warning, sizeof(warning), "%s", line);
}

/* What is said of files that nothing reads in the data set of s.tar. */
static void assert_hints(const char *fields)
{
	struct tsi_index *x;

	*warning = '\0';
	tsock_set_logger(note_hint, NULL);
	x = try();
	tsock_set_logger(NULL, NULL);
	assert_non_null(x);
	tsi_index_close(x);
	if (fields ? !strstr(warning, fields) : *warning)
		fail_msg("%s", warning);
}

static void files_that_nothing_reads_could_be_fields(void **state)
{
	struct tar_gen t = { 0 };

	(void)state;
	shard_three(&t);
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	assert_hints(NULL);
	shard_three(&t);
	shard_add(&t, "v.png");
	tar_gen_text(&t, "v.cls", "1");
	tar_gen_text(&t, "v.txt", "a caption");
	tar_gen_text(&t, "v.emb.npy", "");
	tar_gen_text(&t, "v.npy", "");
	tar_gen_text(&t, "v.a+b.npy", "");
	tar_gen_text(&t, "v.seg.png", "");
	tar_gen_text(&t, "v.copy.txt", "");
	shard_add(&t, "w.png");
	tar_gen_text(&t, "w.cls", "1");
	tar_gen_text(&t, "w.txt", "another");
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	assert_hints(":label=.cls,fields=.txt+.emb.npy+.npy (");
	shard_add(&t, "v.png");
	tar_gen_text(&t, "v.json", "{\"label\": 1}");
	tar_gen_text(&t, "v.txt", "a caption");
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	assert_hints(":label=.json.label,fields=.txt (");
}

/* The last one has no image. */
static void a_warning_counts_the_samples_that_are_kept(void **state)
{
	struct tar_gen t = { 0 };

	(void)state;
	shard_three(&t);
	tar_gen_text(&t, "3.cls", "3");
	tar_gen_text(&t, "3.png", "damaged");
	t.data[t.len - 1024] ^= 1;
	*warning = '\0';
	tsock_set_logger(note_warning, NULL);
	put_old(t.data, t.len);
	tsi_index_close(try());
	tsock_set_logger(NULL, NULL);
	free(t.data);
	if (!strstr(warning, "left out (3 before it are kept)"))
		fail_msg("%s", warning);
}

/* Headers whose sums are right, and what they say isn't. */
static void hostile_headers_do_no_harm(void **state)
{
	static const char *const pax[] = {
		"",
		"9 path=x\n7 s\n",
		"99 path=x\n",
		"0 path=x\n",
		"18446744073709551617 path=x\n",
		"9 path=xx",
		"13 size=1e3\n\n",
		"31 size=18446744073709551616\n\n",
		"30 size=9223372036854775807\n\n",
		"12 size=-1\n\n",
		" 9 path=x\n",
		"9path=xx\n",
	};
	struct tsi_index *x;

	(void)state;
	for (unsigned i = 0; i < sizeof(pax) / sizeof(pax[0]); i++) {
		struct tar_gen t = { 0 };

		shard_three(&t);
		tar_gen_header(&t, NULL, "pax", 'x', strlen(pax[i]));
		tar_gen_bytes(&t, pax[i], strlen(pax[i]));
		shard_add(&t, "3.png");
		tar_gen_text(&t, "3.cls", "3");
		x = shard_open_one(&t);
		assert_in_range(tsi_index_count(x), 3, 4);
		tsi_index_close(x);
	}
	for (unsigned i = 0; i < 8; i++) {
		static const char types[] = "0LKxg5SZ";
		static const uint64_t sizes[] = { 1 << 21, UINT64_MAX / 2,
						  UINT64_MAX };

		for (unsigned k = 0; k < 3; k++) {
			struct tar_gen t = { 0 };

			shard_three(&t);
			tar_gen_header(&t, NULL, "3.txt", types[i], sizes[k]);
			x = shard_open_one(&t);
			assert_int_equal(tsi_index_count(x), 3);
			tsi_index_close(x);
		}
	}
}

#define TEST(f) \
	cmocka_unit_test_setup_teardown(f, shard_setup, worker_remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_shard_that_was_cut_keeps_what_is_before),
		TEST(a_sample_whose_label_was_cut_off_is_left_out),
		TEST(a_damaged_header_ends_the_shard),
		TEST(what_is_left_out_is_warned_of),
		TEST(a_warning_counts_the_samples_that_are_kept),
		TEST(files_that_nothing_reads_could_be_fields),
		TEST(hostile_headers_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
