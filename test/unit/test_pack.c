/* SPDX-License-Identifier: MIT */
/*
 * test_pack.c - a pack gives the samples of the data set that it was made of,
 * however often its making was broken off, and names what is damaged.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "pack/pack.h"
#include "test/lib/image_gen.h"
#include "test/lib/shard_fixture.h"
#include "test/lib/recipes.h"

#define FILES 14

static char dest[100], other[100];
static struct tsi_pack_progress progress;
static unsigned stop_after; /* calls of progress; 0: never */
static bool halts;          /* the process stops in the first call */

static bool on_progress(void *arg, const struct tsi_pack_progress *p)
{
	(void)arg;
	progress = *p;
	if (halts) {
		halts = false;
		raise(SIGSTOP);
	}
	return !stop_after || --stop_after;
}

static int pack_to(const char *to, unsigned threads, unsigned batch)
{
	struct tsi_pack_opts o = {
		.format = worker_options.format,
		.source = worker_options.folder,
		.dest = to,
		.shard_size = 30000,
		.threads = threads,
		.batch = batch,
		.cache_dir = "",
		.progress = on_progress,
	};

	return tsi_pack_run(&o);
}

static void pack_all(const char *to)
{
	if (pack_to(to, 2, 0))
		fail_msg("%s", tsock_errmsg());
}

/* A folder of every kind of file, in the classes a, b and c. */
static void put_files(void)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_jpeg j = { .width = 60 + 7 * i,
					    .height = 90 - i,
					    .components = i == 3   ? 4
							  : i == 8 ? 1
								   : 3,
					    .progressive = i % 4 == 1,
					    .seed = i };
		struct image_gen_bytes b;
		char name[40];

		if (i % 2 && i != 3)
			j.factor[0][0] = j.factor[0][1] = 2;
		b = image_gen_jpeg(&j);
		/* One is cut where many crops don't reach. */
		if (i == 6)
			b.len = b.len * 3 / 4;
		snprintf(name, sizeof(name), "%c/%02u.jpg", "abc"[i % 3], i);
		if (i == 10)
			worker_put(name, "no image at all", 15);
		else
			worker_put(name, b.data, b.len);
		free(b.data);
	}
	worker_put_image("b/x.png");
	worker_put("c/empty.jpg", "", 0);
}

static int setup_pack(void **state)
{
	int err = worker_make_root(state);

	snprintf(dest, sizeof(dest), "%s-pack", worker_root);
	snprintf(other, sizeof(other), "%s-other", worker_root);
	stop_after = 0;
	return err;
}

static int teardown_pack(void **state)
{
	char command[500];

	snprintf(command, sizeof(command),
		 "rm -rf '%s' '%s' '%s.part' '%s.part'", dest, other, dest,
		 other);
	return system(command) || worker_remove_root(state);
}

static const struct tsi_recipe *recipe_at(unsigned k)
{
	return k ? recipes_eval(SIZE, SIZE) : recipes_train(SIZE);
}

struct made_all {
	struct sample sample[64];
	unsigned substituted;
	uint64_t bad;
	char list[1000];
};

static void list_bad(void *arg, const char *name, const char *reason)
{
	struct made_all *m = arg;
	size_t n = strlen(m->list);
	const char *colon = strstr(name, ": ");

	snprintf(m->list + n, sizeof(m->list) - n, "%s=%s\n",
		 colon ? colon + 2 : name, reason);
}

static void make_all(const char *folder, const struct tsi_format *f,
		     const struct tsi_recipe *recipe, struct made_all *m)
{
	struct tsi_sampler *s;

	worker_options.folder = folder;
	worker_options.format = f;
	worker_options.recipe = recipe;
	s = worker_open_sampler();
	memset(m, 0, sizeof(*m));
	assert_int_equal(worker_make(s, DEPTH, m->sample, 48, &m->substituted),
			 0);
	m->bad = tsi_badlist_count(tsi_sampler_badlist(s));
	tsi_badlist_each(tsi_sampler_badlist(s), list_bad, m);
	tsi_sampler_close(s);
}

static void a_pack_gives_the_samples_of_its_source(void **state)
{
	static const struct tsi_format *const as[] = { &tsi_format_packed,
						       &tsi_format_imagefolder,
						       &tsi_format_imagenet };
	static struct made_all want, got;

	(void)state;
	put_files();
	worker_options.order = TSOCK_ORDER_PHILOX;
	pack_all(dest);
	assert_int_equal(progress.samples, FILES + 2);
	assert_int_equal(progress.done, FILES + 2);
	/* Kept: CMYK, the PNG.  Bad: the cut one, text, no bytes. */
	assert_int_equal(progress.packed, FILES - 3);
	assert_int_equal(progress.kept, 2);
	assert_int_equal(progress.bad, 3);
	assert_true(progress.shards > 1);
	for (unsigned preset = 0; preset < 2; preset++) {
		make_all(worker_root, &tsi_format_imagefolder,
			 recipe_at(preset), &want);
		assert_true(want.substituted >= 6);
		for (unsigned k = 0; k < 3; k++) {
			make_all(dest, as[k], recipe_at(preset), &got);
			for (unsigned i = 0; i < 48; i++)
				assert_memory_equal(&got.sample[i],
						    &want.sample[i],
						    sizeof(got.sample[i]));
			assert_int_equal(got.substituted, want.substituted);
			assert_int_equal(got.bad, want.bad);
			assert_string_equal(got.list, want.list);
		}
	}
}

static const char *path_of(const struct tsi_index *x, uint64_t i)
{
	static char text[TSI_PATH];

	return tsi_index_path(x, i, text);
}

static void a_pack_has_the_sources_names_and_classes(void **state)
{
	struct tsi_index_opts o = { .format = &tsi_format_imagefolder,
				    .cache_dir = "" };
	struct tsi_index *a, *b;
	struct tsi_location at;

	(void)state;
	put_files();
	pack_all(dest);
	o.root = worker_root;
	assert_int_equal(tsi_index_open(&o, &a), 0);
	o.root = dest;
	assert_int_equal(tsi_index_open(&o, &b), 0);
	assert_ptr_equal(tsi_index_format(b), &tsi_format_packed);
	assert_int_equal(tsi_index_count(a), tsi_index_count(b));
	assert_int_equal(tsi_index_classes(a), tsi_index_classes(b));
	for (uint32_t i = 0; i < tsi_index_classes(a); i++)
		assert_string_equal(tsi_index_class(a, i),
				    tsi_index_class(b, i));
	for (uint64_t i = 0; i < tsi_index_count(a); i++) {
		tsi_index_locate(b, i, &at);
		assert_string_equal(at.member, path_of(a, i));
		assert_int_equal(at.offset % 64, 0);
		assert_int_equal(at.length, at.size);
		assert_int_equal(tsi_index_label(a, i), tsi_index_label(b, i));
	}
	tsi_index_close(a);
	tsi_index_close(b);
}

static void shards_of_tar_files_are_packed(void **state)
{
	static struct made_all want, got;
	struct tar_gen t = { 0 };

	(void)state;
	shard_three(&t);
	tar_gen_end(&t);
	shard_write_tar(&t, "s.tar");
	worker_options.format = &tsi_format_webdataset;
	pack_all(dest);
	make_all(worker_root, &tsi_format_webdataset, recipe_at(0), &want);
	make_all(dest, &tsi_format_webdataset, recipe_at(0), &got);
	assert_memory_equal(want.sample, got.sample, sizeof(want.sample));
	/* And a pack of the pack is the same. */
	worker_options.folder = dest;
	pack_all(other);
	make_all(other, &tsi_format_packed, recipe_at(0), &got);
	assert_memory_equal(want.sample, got.sample, sizeof(want.sample));
}

/* Both packs have the same files with the same bytes. */
static void check_same(void)
{
	char command[300];

	snprintf(command, sizeof(command), "diff -r '%s' '%s'", dest, other);
	assert_int_equal(system(command), 0);
}

static void a_pack_is_a_function_of_its_source(void **state)
{
	(void)state;
	put_files();
	pack_all(dest);
	assert_int_equal(pack_to(other, 1, 5), 0);
	check_same();
}

static void a_pack_that_was_stopped_goes_on(void **state)
{
	unsigned runs = 0;
	int err;

	(void)state;
	put_files();
	pack_all(dest);
	do {
		stop_after = 1;
		err = pack_to(other, 2, 3);
		runs++;
	} while (err == TSOCK_EENDED);
	assert_int_equal(err, 0);
	assert_true(runs >= (FILES + 2) / 3);
	assert_true(progress.before >= FILES - 2);
	check_same();
}

/*
 * Each process packs a sample at least, and is killed then: the first three
 * between two samples, later ones wherever they are when SIGKILL comes.
 */
static void a_pack_that_was_killed_goes_on(void **state)
{
	unsigned kills = 0;
	char journal[200];
	int status;

	(void)state;
	put_files();
	pack_all(dest);
	for (;;) {
		pid_t pid = fork();

		if (pid == 0) {
			halts = true;
			_exit(pack_to(other, 1, 1) != 0);
		}
		assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
		if (!WIFSTOPPED(status))
			break;
		if (kills > 2)
			kill(pid, SIGCONT);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		/* The kill may come after the pack's last step. */
		if (WIFEXITED(status) || access(other, F_OK) == 0)
			break;
		kills++;
	}
	assert_true(!WIFEXITED(status) || WEXITSTATUS(status) == 0);
	assert_int_equal(access(other, F_OK), 0);
	assert_true(kills > 2);
	/* The journal, which is no part of the pack, is removed last. */
	snprintf(journal, sizeof(journal), "%s/journal", other);
	if (!WIFEXITED(status))
		unlink(journal);
	check_same();
}

/* Bytes of a file of the unfinished pack; 0: there is none. */
static off_t part_size(const char *name)
{
	struct stat st;
	char path[200];

	snprintf(path, sizeof(path), "%s.part/%s", other, name);
	return stat(path, &st) ? 0 : st.st_size;
}

static void cut_part(const char *name, off_t size)
{
	char path[200];

	snprintf(path, sizeof(path), "%s.part/%s", other, name);
	assert_int_equal(truncate(path, size), 0);
}

/* As after a power cut: bytes are gone, or are there that no entry names. */
static void what_was_lost_is_packed_again(void **state)
{
	char last[32];

	(void)state;
	put_files();
	pack_all(dest);
	stop_after = 4;
	assert_int_equal(pack_to(other, 1, 2), TSOCK_EENDED);
	assert_int_equal(part_size("journal"), 24 + 8 * 32);
	cut_part("00000.pack", part_size("00000.pack") / 2);
	stop_after = 3;
	assert_int_equal(pack_to(other, 1, 2), TSOCK_EENDED);
	assert_true(progress.before < 8);
	cut_part("journal", part_size("journal") - 5);
	stop_after = 2;
	assert_int_equal(pack_to(other, 1, 2), TSOCK_EENDED);
	/* The last shard has bytes of a record that no entry names. */
	snprintf(last, sizeof(last), "%05u.pack", progress.shards - 1);
	cut_part(last, part_size(last) + 100000);
	assert_int_equal(pack_to(other, 1, 2), 0);
	check_same();
}

static void refuse(int code, const char *what)
{
	assert_int_equal(pack_to(other, 1, 1), code);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

static void what_is_there_is_never_overwritten(void **state)
{
	char path[200];
	int fd;

	(void)state;
	worker_put_five();
	pack_all(other);
	refuse(TSOCK_EEXIST, "a pack already");
	snprintf(path, sizeof(path), "%s/pack.index", other);
	assert_int_equal(unlink(path), 0);
	refuse(TSOCK_EEXIST, "no empty folder");
	snprintf(path, sizeof(path), "rm -r '%s'", other);
	assert_int_equal(system(path), 0);
	/* An empty folder is as good as none. */
	assert_int_equal(mkdir(other, 0700), 0);
	stop_after = 1;
	refuse(TSOCK_EENDED, "goes on from there");
	snprintf(path, sizeof(path), "%s.part/journal", other);
	fd = open(path, O_RDWR);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	refuse(TSOCK_EEXIST, "another process");
	close(fd);
	worker_put_image("a/2.png");
	refuse(TSOCK_EARG, "another data set");
}

/* The file of a pack, read, and written again with a byte changed. */
static void change(const char *name, uint64_t at)
{
	char path[200];
	uint8_t b;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dest, name);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &b, 1, (off_t)at), 1);
	b ^= 0x10;
	assert_int_equal(pwrite(fd, &b, 1, (off_t)at), 1);
	close(fd);
}

static void a_damaged_record_is_named_and_replaced(void **state)
{
	static const char *const reason[] = { "packed image", "the record of" };
	static struct made_all got;
	struct tsi_index_opts o = { .format = &tsi_format_packed,
				    .cache_dir = "" };
	struct tsi_location at[2];
	struct tsi_index *x;

	(void)state;
	put_files();
	pack_all(dest);
	make_all(dest, &tsi_format_packed, recipe_at(1), &got);
	assert_int_equal(got.bad, 3);
	o.root = dest;
	assert_int_equal(tsi_index_open(&o, &x), 0);
	tsi_index_locate(x, 0, &at[0]);
	/* b/x.png */
	tsi_index_locate(x, 10, &at[1]);
	assert_string_equal(at[0].member, "a/00.jpg");
	assert_string_equal(at[1].member, "b/x.png");
	for (unsigned k = 0; k < 2; k++) {
		char want[100];
		const char *line;

		change(at[k].file, at[k].offset + at[k].length / 2);
		make_all(dest, &tsi_format_packed, recipe_at(1), &got);
		change(at[k].file, at[k].offset + at[k].length / 2);
		assert_int_equal(got.bad, 4);
		snprintf(want, sizeof(want), "%s=%s", at[k].member, reason[k]);
		line = strstr(got.list, want);
		if (!line)
			fail_msg("%s", got.list);
	}
	tsi_index_close(x);
}

static void a_damaged_index_is_refused(void **state)
{
	struct tsi_index_opts o = { .format = &tsi_format_packed,
				    .cache_dir = "" };
	struct tsi_index *x;
	char path[200];
	struct stat st;

	(void)state;
	worker_put_five();
	pack_all(dest);
	o.root = dest;
	snprintf(path, sizeof(path), "%s/pack.index", dest);
	assert_int_equal(stat(path, &st), 0);
	for (off_t i = 0; i < st.st_size; i++) {
		change("pack.index", (uint64_t)i);
		assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
		assert_non_null(
			strstr(tsock_errmsg(), "pack.index is damaged"));
		change("pack.index", (uint64_t)i);
	}
	assert_int_equal(tsi_index_open(&o, &x), 0);
	tsi_index_close(x);
	assert_int_equal(truncate(path, st.st_size - 1), 0);
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EDATA);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "is no pack"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_pack, teardown_pack)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_pack_gives_the_samples_of_its_source),
		TEST(a_pack_has_the_sources_names_and_classes),
		TEST(shards_of_tar_files_are_packed),
		TEST(a_pack_is_a_function_of_its_source),
		TEST(a_pack_that_was_stopped_goes_on),
		TEST(a_pack_that_was_killed_goes_on),
		TEST(what_was_lost_is_packed_again),
		TEST(what_is_there_is_never_overwritten),
		TEST(a_damaged_record_is_named_and_replaced),
		TEST(a_damaged_index_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
