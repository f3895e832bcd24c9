/* SPDX-License-Identifier: MIT */
/*
 * test_index.c - indexing ImageFolder trees.
 * test/parity/test_order.py compares an index with torchvision's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/format.h"
#include "test/lib/index_tree.h"
#include "test/lib/seccomp.h"

static void refuse(int code, const char *what)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x = NULL;

	assert_int_equal(tsi_index_open(&o, &x), code);
	assert_null(x);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

static void assert_paths(const struct tsi_index *x, const char *const *path,
			 uint64_t n)
{
	assert_int_equal(tsi_index_count(x), n);
	for (uint64_t i = 0; i < n; i++) {
		assert_string_equal(tree_path(x, i), path[i]);
		if (i > 0)
			assert_true(tsi_index_label(x, i - 1) <=
				    tsi_index_label(x, i));
	}
}

static void files_come_in_torchvisions_order(void **state)
{
	/* As ImageFolder lists this very tree. */
	static const char *const expected[] = {
		"B/2.jpg",      "a/.hidden.png",
		"a/.jpg",       "a/10.JPEG",
		"a/9.jpg",      "a/Z.TiFF",
		"a/b.webp",     "a/b/1.ppm",
		"a/b-c/1.bmp",  "a/b/c/1.pgm",
		"a/link/1.jpg", "a/\xe3\x81\x82/1.jpg",
		"a/\xe9/1.jpg", "a b\nc/1.tif",
		"link/1.jpg",   "\xe3\x81\x82/1.jpg",
		"\xe9/1.jpg",   "\xf0\x9f\x90\x88/1.jpg",
	};
	struct tsi_index *x;

	(void)state;
	for (unsigned i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		if (!strstr(expected[i], "link"))
			tree_put(expected[i], "ok");
	tree_put("a/readme.txt", "ok");
	tree_put("a/jpg", "ok");
	tree_put("a/x.jpg.bak", "ok");
	tree_put("stray.jpg", "ok");
	tree_put("../elsewhere/1.jpg", "ok");
	tree_link("../elsewhere", "link");
	tree_link("../../elsewhere", "a/link");
	x = tree_open(tree_options());
	assert_paths(x, expected, sizeof(expected) / sizeof(*expected));
	assert_int_equal(tsi_index_classes(x), 7);
	assert_string_equal(tsi_index_class(x, 0), "B");
	assert_string_equal(tsi_index_class(x, 2), "a b\nc");
	assert_string_equal(tsi_index_class(x, 6), "\xf0\x9f\x90\x88");
	assert_int_equal(tsi_index_label(x, 0), 0);
	assert_int_equal(tsi_index_label(x, 12), 1);
	assert_int_equal(tsi_index_label(x, 17), 6);
	assert_int_equal(tree_size_of(x, 0), 2);
	assert_int_equal(tsi_index_bad_count(x), 0);
	tsi_index_close(x);
}

/* 14 million files of such names take 0.5 GB, and one folder 80 bytes. */
static void a_folder_is_stored_once(void **state)
{
	enum { FILES = 200 };
	struct tsi_format_opts o = { .threads = 1 };
	struct tsi_table t = { .block = NULL };
	struct tsi_location at;
	struct tsi_root r;
	char path[100];

	(void)state;
	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "n01440764/n01440764_%u.JPEG",
			 10026 + i);
		tree_put(path, "");
	}
	snprintf(path, sizeof(path), "%s/tree", tree_top);
	tsi_root_init(&r);
	assert_int_equal(tsi_root_open(&r, path), 0);
	assert_int_equal(tsi_format_scan(&tsi_format_imagefolder, &r, &o, &t),
			 0);
	assert_true(tsi_table_block_len(&t.n) <= 40 * FILES);
	tsi_table_locate(&t, FILES - 1, &at);
	assert_string_equal(at.folder, "n01440764");
	assert_string_equal(at.file, "n01440764_10225.JPEG");
	tsi_table_clear(&t);
	tsi_root_close(&r);
}

#define CLASSES 150

/* One in 50 has names of more than 64 KiB. */
static unsigned files_of(unsigned class_)
{
	return class_ % 50 == 7 ? 300 : 1 + class_ % 6;
}

/* Threads take classes piece by piece; those of a piece share memory. */
static void classes_of_all_sizes_stand_side_by_side(void **state)
{
	/* Neither in this order nor backwards are they sorted. */
	static const char *const sub[] = { "", "b/", "c/", "a/" };
	static const unsigned sorted[] = { 0, 3, 1, 2 };
	unsigned files, i = 0;
	struct tsi_index *x;
	char path[300];

	(void)state;
	for (unsigned c = 0; c < CLASSES; c++) {
		files = files_of(c);
		for (unsigned k = 0; k < files; k++) {
			snprintf(path, sizeof(path), "%03u/%s%0240u.jpg", c,
				 sub[k % 4], k);
			tree_put(path, "ok");
		}
	}
	x = tree_open(tree_options());
	assert_int_equal(tsi_index_classes(x), CLASSES);
	for (unsigned j = 0; j < 4 * CLASSES; j++) {
		files = files_of(j / 4);
		for (unsigned k = sorted[j % 4]; k < files; k += 4, i++) {
			snprintf(path, sizeof(path), "%03u/%s%0240u.jpg", j / 4,
				 sub[k % 4], k);
			assert_string_equal(tree_path(x, i), path);
			assert_int_equal(tsi_index_label(x, i), j / 4);
		}
	}
	assert_int_equal(tsi_index_count(x), i);
	tsi_index_close(x);
}

static void a_root_that_is_none_is_refused_by_name(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;

	(void)state;
	refuse(TSOCK_EARG, "/tree");
	tree_put("../file", "");
	o.root = "/proc/self/cmdline";
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "not a folder"));
	o.root = "";
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EARG);
}

static void a_tree_without_samples_is_refused_by_name(void **state)
{
	(void)state;
	tree_put("stray.jpg", "ok");
	refuse(TSOCK_EDATA, "no class folders");
	tree_put("full/1.jpg", "ok");
	tree_folder("empty");
	tree_folder("em\npty");
	tree_put("text/readme.txt", "ok");
	refuse(TSOCK_EDATA, "3 of 4 classes");
	refuse(TSOCK_EDATA, "em\\npty holds no files, empty holds no files, "
			    "text holds 1 text file (readme.txt)");
}

static void a_folder_that_cannot_be_read_is_an_error(void **state)
{
	char path[128];

	(void)state;
	tree_put("a/1.jpg", "ok");
	tree_put("b/1.jpg", "ok");
	tree_put("b/sub/1.jpg", "ok");
	if (geteuid() == 0) {
		print_message("root may read every folder\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/tree/b/sub", tree_top);
	chmod(path, 0);
	refuse(TSOCK_ESYS, "b/sub: Permission denied");
	chmod(path, 0700);
}

static void links_to_folders_above_are_left_out(void **state)
{
	static const char *const expected[] = { "a/1.jpg", "a/b/2.jpg",
						"c/1.jpg", "c/to_a/1.jpg",
						"c/to_a/b/2.jpg" };
	struct tsi_index *x;

	(void)state;
	tree_put("a/1.jpg", "ok");
	tree_put("a/b/2.jpg", "ok");
	tree_put("c/1.jpg", "ok");
	tree_link("..", "a/b/up");
	tree_link(".", "a/self");
	tree_link("../..", "a/b/root");
	tree_link("../c", "a/to_c");
	tree_link("../a", "c/to_a");
	tree_drop("a/to_c");
	x = tree_open(tree_options());
	assert_paths(x, expected, 5);
	tsi_index_close(x);
}

static void links_in_a_circle_end(void **state)
{
	struct tsi_index *x;

	(void)state;
	tree_put("a/1.jpg", "ok");
	tree_put("b/1.jpg", "ok");
	tree_link("../b", "a/b");
	tree_link("../a", "b/a");
	x = tree_open(tree_options());
	/* a/1 a/b/1 b/1 b/a/1: and a/b/a, b/a/b lead back. */
	assert_int_equal(tsi_index_count(x), 4);
	tsi_index_close(x);
}

static void assert_bad(const struct tsi_index *x, uint64_t i, const char *why)
{
	assert_true(tsi_index_bad(x, i));
	if (!strstr(tsi_index_bad_reason(x, i), why))
		fail_msg("\"%s\" doesn't say \"%s\"",
			 tsi_index_bad_reason(x, i), why);
}

static void bad_files_keep_their_place(void **state)
{
	char path[128];
	struct tsi_index *x;

	(void)state;
	tree_put("a/0.jpg", "ok");
	tree_put("a/1.jpg", "nonsense");
	tree_link("nowhere", "a/2.jpg");
	tree_link("3.jpg", "a/3.jpg");
	snprintf(path, sizeof(path), "%s/tree/a/4.jpg", tree_top);
	assert_int_equal(mkfifo(path, 0600), 0);
	tree_put("a/5.jpg", "");
	tree_put("a/6.jpg", "more");
	tree_put("a/7.jpg", "ok");
	tree_put("a/8.jpg", "ok");
	tree_link("/dev/zero", "a/9.jpg");
	snprintf(path, sizeof(path), "%s/tree/a/8.jpg", tree_top);
	if (geteuid() != 0)
		chmod(path, 0);
	x = tree_open(tree_options());
	assert_int_equal(tsi_index_count(x), 10);
	assert_bad(x, 1, "isn't ok");
	assert_bad(x, 2, "No such file");
	assert_bad(x, 3, "symbolic links");
	assert_bad(x, 4, "not a regular file");
	assert_bad(x, 5, "isn't ok");
	assert_bad(x, 6, "ends too early");
	assert_bad(x, 9, "not a regular file");
	if (geteuid() != 0)
		assert_bad(x, 8, "Permission denied");
	assert_false(tsi_index_bad(x, 0));
	assert_false(tsi_index_bad(x, 7));
	assert_null(tsi_index_bad_reason(x, 7));
	assert_int_equal(tsi_index_bad_count(x), geteuid() ? 8 : 7);
	assert_int_equal(tsi_index_bad_at(x, 0), 1);
	tsi_index_close(x);
}

/* The kernel tells whoever watches a file that it was opened. */
static bool was_opened(int watch)
{
	char event[sizeof(struct inotify_event) + NAME_MAX + 1];

	return read(watch, event, sizeof(event)) > 0;
}

static void only_regular_files_are_opened(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct tsi_index *x;
	char path[128];

	(void)state;
	assert_true(watch >= 0);
	tree_put("a/0.jpg", "ok");
	snprintf(path, sizeof(path), "%s/tree/a/1.jpg", tree_top);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	tree_link("/dev/null", "a/2.jpg");
	tree_link("/proc/self/maps", "a/3.jpg");
	tree_link("/proc/self/maps", "a/4.jpg");
	tree_put("a/5.jpg", "ok");
	x = tree_open(tree_options());
	assert_bad(x, 1, "not a regular file but a FIFO");
	assert_bad(x, 2, "not a regular file but a device");
	if (!access("/proc/self/maps", R_OK)) {
		assert_bad(x, 3, "made up by the kernel");
		assert_bad(x, 4, "made up by the kernel");
	}
	assert_false(tsi_index_bad(x, 0));
	assert_false(tsi_index_bad(x, 5));
	assert_false(was_opened(watch));
	tsi_index_close(x);
	/* The watch notices an open. */
	close(open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
	assert_true(was_opened(watch));
	close(watch);
}

/* In this process, reading behind a file's first piece gives EIO. */
static void make_reads_fail(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 4096, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EIO),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	if (!seccomp_install(code, sizeof(code) / sizeof(code[0])))
		_exit(77);
}

static char logged[512];

static void keep_log(void *arg, int level, const char *line)
{
	(void)arg;
	if (level == TSOCK_LOG_WARN)
		snprintf(logged, sizeof(logged), "%s", line);
}

/* Which of what was expected isn't so; 0: none. */
static int index_on_a_bad_disk(void)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x = NULL;

	make_reads_fail();
	tsock_set_logger(keep_log, NULL);
	if (tsi_index_open(&o, &x) != TSOCK_ESYS)
		return 1;
	if (!strstr(tsock_errmsg(), "a/2.jpg: Input/output error"))
		return 2;
	o.survive_eio = true;
	if (tsi_index_open(&o, &x))
		return 3;
	if (tsi_index_bad_count(x) != 1 || !tsi_index_bad(x, 1) ||
	    !strstr(tsi_index_bad_reason(x, 1), "Input/output error"))
		return 4;
	if (!strstr(logged, "a/2.jpg"))
		return 5;
	tsi_index_close(x);
	return 0;
}

/* Of a process of its own, whose system calls are filtered. */
static void check_apart(int (*index)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(index());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("system calls can't be filtered here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void an_unreadable_sector_makes_one_file_bad(void **state)
{
	char *text = malloc(8001);

	(void)state;
	memset(text, 'x', 8000);
	text[8000] = '\0';
	memcpy(text, "whole", 5);
	tree_put("a/1.jpg", "ok");
	tree_put("a/2.jpg", text);
	tree_put("a/3.jpg", "ok");
	free(text);
	check_apart(index_on_a_bad_disk);
}

static int index_unlisted(void)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x = NULL;
	char what[120];

	if (!seccomp_forbid(SYS_getdents64, EIO))
		return 77;
	snprintf(what, sizeof(what),
		 "read the folder %s/tree: Input/output error", tree_top);
	if (tsi_index_open(&o, &x) != TSOCK_ESYS)
		return 1;
	return strcmp(tsock_errmsg(), what) ? 2 : 0;
}

/* In the middle of a listing: test/faults/test_producer.c. */
static void a_folder_that_cannot_be_listed_is_an_error(void **state)
{
	(void)state;
	tree_put("a/1.jpg", "ok");
	check_apart(index_unlisted);
}

static void the_probe_gets_more_bytes_until_the_file_ends(void **state)
{
	char *text = malloc(70001);
	struct tsi_index *x;

	(void)state;
	memset(text, 'x', 70000);
	text[70000] = '\0';
	memcpy(text, "whole", 5);
	tree_put("a/1.jpg", text);
	text[4096] = '\0'; /* exactly the first piece */
	tree_put("a/2.jpg", text);
	text[10] = '\0';
	tree_put("a/3.jpg", text);
	x = tree_open(tree_options());
	assert_int_equal(tsi_index_bad_count(x), 0);
	assert_int_equal(tree_size_of(x, 0), 70000);
	tsi_index_close(x);
	free(text);
}

static void very_long_paths_are_at_worst_bad(void **state)
{
	char name[256];
	char path[6000] = "a";
	char cwd[4096];
	struct tsi_index *x;

	(void)state;
	memset(name, 'n', 200);
	name[200] = '\0';
	tree_put("a/1.jpg", "ok");
	for (int i = 0; i < 18; i++) {
		strcat(path, "/");
		strcat(path, name);
	}
	strcat(path, "/1.jpg");
	tree_put(path, "ok");
	x = tree_open(tree_options());
	assert_int_equal(tsi_index_count(x), 2);
	assert_string_equal(tree_path(x, 1), path);
	assert_false(tsi_index_bad(x, 1));
	tsi_index_close(x);
	/* Two more, and no system call takes the path any longer. */
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	*strrchr(path, '/') = '\0';
	snprintf(name, sizeof(name), "%s/tree", tree_top);
	assert_int_equal(chdir(name), 0);
	assert_int_equal(chdir(path), 0);
	memset(name, 'n', 200);
	name[200] = '\0';
	for (int i = 0; i < 3; i++) {
		assert_int_equal(mkdir(name, 0700), 0);
		assert_int_equal(chdir(name), 0);
	}
	assert_int_equal(chdir(cwd), 0);
	refuse(TSOCK_ESYS, "too long");
}

static void too_few_descriptors_is_no_fault_of_the_files(void **state)
{
	struct rlimit old;
	struct rlimit low;
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;
	int fd;
	int err;

	(void)state;
	tree_put("a/1.jpg", "ok");
	getrlimit(RLIMIT_NOFILE, &old);
	fd = dup(0);
	close(fd);
	low = old;
	low.rlim_cur = (rlim_t)fd + 1; /* for the root alone */
	setrlimit(RLIMIT_NOFILE, &low);
	err = tsi_index_open(&o, &x);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(err, TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "Too many open files"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(files_come_in_torchvisions_order),
		TEST(a_folder_is_stored_once),
		TEST(classes_of_all_sizes_stand_side_by_side),
		TEST(a_root_that_is_none_is_refused_by_name),
		TEST(a_tree_without_samples_is_refused_by_name),
		TEST(a_folder_that_cannot_be_read_is_an_error),
		TEST(links_to_folders_above_are_left_out),
		TEST(links_in_a_circle_end),
		TEST(bad_files_keep_their_place),
		TEST(only_regular_files_are_opened),
		TEST(an_unreadable_sector_makes_one_file_bad),
		TEST(a_folder_that_cannot_be_listed_is_an_error),
		TEST(the_probe_gets_more_bytes_until_the_file_ends),
		TEST(very_long_paths_are_at_worst_bad),
		TEST(too_few_descriptors_is_no_fault_of_the_files),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL) != 0;
}
