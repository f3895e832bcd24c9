/*
 * test_index.c - indexing ImageFolder trees, and the cache of the scan.
 * test/parity/test_order.py compares an index with torchvision's.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "data/format.h"
#include "data/hash.h"
#include "data/index.h"

static char top[64];   /* a scratch folder, gone after the test */
static char cache[80]; /* where scans are cached */
static _Atomic int probed;

/* Relative to the tree, whose folders are made as needed. */
static void put(const char *path, const char *text)
{
	char full[8192];
	int fd;

	snprintf(full, sizeof(full), "%s/tree/%s", top, path);
	for (char *p = full + strlen(top) + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	fd = open(full, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void drop(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/tree/%s", top, path);
	assert_int_equal(remove(full), 0);
}

static void point(const char *target, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/tree/%s", top, path);
	assert_int_equal(symlink(target, full), 0);
}

static void make_folder(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/tree", top);
	mkdir(full, 0700);
	snprintf(full, sizeof(full), "%s/tree/%s", top, path);
	assert_int_equal(mkdir(full, 0700), 0);
}

/* Good are files that begin with "ok" and have no more bytes than asked for. */
static int sniff(void *arg, const void *data, size_t len, bool whole)
{
	(void)arg;
	atomic_fetch_add(&probed, 1);
	if (len >= 4 && !memcmp(data, "more", 4))
		return TSOCK_EAGAIN;
	if (len >= 5 && !memcmp(data, "whole", 5))
		return whole ? 0 : TSOCK_EAGAIN;
	if (len < 2 || memcmp(data, "ok", 2))
		return tsi_err(TSOCK_EDATA, "isn't ok");
	return 0;
}

static struct tsi_index_opts options(void)
{
	static char root[80];
	struct tsi_index_opts o = { .format = &tsi_format_imagefolder,
				    .cache_dir = "",
				    .threads = 4,
				    .sniff = sniff };

	snprintf(root, sizeof(root), "%s/tree", top);
	o.root = root;
	return o;
}

static struct tsi_index *open_with(struct tsi_index_opts o)
{
	struct tsi_index *x = NULL;

	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

static void refuse(int code, const char *what)
{
	struct tsi_index_opts o = options();
	struct tsi_index *x = NULL;

	assert_int_equal(tsi_index_open(&o, &x), code);
	assert_null(x);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("\"%s\" doesn't say \"%s\"", tsock_errmsg(), what);
}

static uint64_t size_of(const struct tsi_index *x, uint64_t i)
{
	struct tsi_location at;

	tsi_index_locate(x, i, &at);
	assert_string_equal(at.path, tsi_index_path(x, i));
	assert_int_equal(at.offset + at.length, 0);
	return at.size;
}

static void assert_paths(const struct tsi_index *x, const char *const *path,
			 uint64_t n)
{
	assert_int_equal(tsi_index_count(x), n);
	for (uint64_t i = 0; i < n; i++) {
		assert_string_equal(tsi_index_path(x, i), path[i]);
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
			put(expected[i], "ok");
	put("a/readme.txt", "ok");
	put("a/jpg", "ok");
	put("a/x.jpg.bak", "ok");
	put("stray.jpg", "ok");
	put("../elsewhere/1.jpg", "ok");
	point("../elsewhere", "link");
	point("../../elsewhere", "a/link");
	x = open_with(options());
	assert_paths(x, expected, sizeof(expected) / sizeof(*expected));
	assert_int_equal(tsi_index_classes(x), 7);
	assert_string_equal(tsi_index_class(x, 0), "B");
	assert_string_equal(tsi_index_class(x, 2), "a b\nc");
	assert_string_equal(tsi_index_class(x, 6), "\xf0\x9f\x90\x88");
	assert_int_equal(tsi_index_label(x, 0), 0);
	assert_int_equal(tsi_index_label(x, 12), 1);
	assert_int_equal(tsi_index_label(x, 17), 6);
	assert_int_equal(size_of(x, 0), 2);
	assert_int_equal(tsi_index_bad_count(x), 0);
	tsi_index_close(x);
}

static void a_root_that_is_none_is_refused_by_name(void **state)
{
	struct tsi_index_opts o = options();
	struct tsi_index *x;

	(void)state;
	refuse(TSOCK_EARG, "/tree");
	put("../file", "");
	o.root = "/proc/self/cmdline";
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "not a folder"));
	o.root = "";
	assert_int_equal(tsi_index_open(&o, &x), TSOCK_EARG);
}

static void a_tree_without_samples_is_refused_by_name(void **state)
{
	(void)state;
	put("stray.jpg", "ok");
	refuse(TSOCK_EDATA, "no class folders");
	put("full/1.jpg", "ok");
	make_folder("empty");
	make_folder("em\npty");
	put("text/readme.txt", "ok");
	refuse(TSOCK_EDATA, "3 of 4 classes");
	refuse(TSOCK_EDATA, "em?pty, empty, text");
}

static void a_folder_that_cannot_be_read_is_an_error(void **state)
{
	char path[128];

	(void)state;
	put("a/1.jpg", "ok");
	put("b/1.jpg", "ok");
	put("b/sub/1.jpg", "ok");
	if (geteuid() == 0) {
		print_message("root may read every folder\n");
		skip();
	}
	snprintf(path, sizeof(path), "%s/tree/b/sub", top);
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
	put("a/1.jpg", "ok");
	put("a/b/2.jpg", "ok");
	put("c/1.jpg", "ok");
	point("..", "a/b/up");
	point(".", "a/self");
	point("../..", "a/b/root");
	point("../c", "a/to_c");
	point("../a", "c/to_a");
	drop("a/to_c");
	x = open_with(options());
	assert_paths(x, expected, 5);
	tsi_index_close(x);
}

static void links_in_a_circle_end(void **state)
{
	struct tsi_index *x;

	(void)state;
	put("a/1.jpg", "ok");
	put("b/1.jpg", "ok");
	point("../b", "a/b");
	point("../a", "b/a");
	x = open_with(options());
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
	put("a/0.jpg", "ok");
	put("a/1.jpg", "nonsense");
	point("nowhere", "a/2.jpg");
	point("3.jpg", "a/3.jpg");
	snprintf(path, sizeof(path), "%s/tree/a/4.jpg", top);
	assert_int_equal(mkfifo(path, 0600), 0);
	put("a/5.jpg", "");
	put("a/6.jpg", "more");
	put("a/7.jpg", "ok");
	put("a/8.jpg", "ok");
	point("/dev/zero", "a/9.jpg");
	snprintf(path, sizeof(path), "%s/tree/a/8.jpg", top);
	if (geteuid() != 0)
		chmod(path, 0);
	x = open_with(options());
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
	put("a/0.jpg", "ok");
	snprintf(path, sizeof(path), "%s/tree/a/1.jpg", top);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
	point("/dev/null", "a/2.jpg");
	point("/proc/self/maps", "a/3.jpg");
	point("/proc/self/maps", "a/4.jpg");
	put("a/5.jpg", "ok");
	x = open_with(options());
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
	/* It is seen when somebody does. */
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
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
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
	struct tsi_index_opts o = options();
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

static void an_unreadable_sector_makes_one_file_bad(void **state)
{
	char *text = malloc(8001);
	int status;
	pid_t pid;

	(void)state;
	memset(text, 'x', 8000);
	text[8000] = '\0';
	memcpy(text, "whole", 5);
	put("a/1.jpg", "ok");
	put("a/2.jpg", text);
	put("a/3.jpg", "ok");
	free(text);
	pid = fork();
	if (pid == 0)
		_exit(index_on_a_bad_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void the_probe_gets_more_bytes_until_the_file_ends(void **state)
{
	char *text = malloc(70001);
	struct tsi_index *x;

	(void)state;
	memset(text, 'x', 70000);
	text[70000] = '\0';
	memcpy(text, "whole", 5);
	put("a/1.jpg", text);
	text[4096] = '\0'; /* exactly the first piece */
	put("a/2.jpg", text);
	text[10] = '\0';
	put("a/3.jpg", text);
	x = open_with(options());
	assert_int_equal(tsi_index_bad_count(x), 0);
	assert_int_equal(size_of(x, 0), 70000);
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
	put("a/1.jpg", "ok");
	for (int i = 0; i < 18; i++) {
		strcat(path, "/");
		strcat(path, name);
	}
	strcat(path, "/1.jpg");
	put(path, "ok");
	x = open_with(options());
	assert_int_equal(tsi_index_count(x), 2);
	assert_string_equal(tsi_index_path(x, 1), path);
	assert_false(tsi_index_bad(x, 1));
	tsi_index_close(x);
	/* Two more, and no system call takes the path any longer. */
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	*strrchr(path, '/') = '\0';
	snprintf(name, sizeof(name), "%s/tree", top);
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
	struct tsi_index_opts o = options();
	struct tsi_index *x;
	int fd;
	int err;

	(void)state;
	put("a/1.jpg", "ok");
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

static void same_index(const struct tsi_index *x, const struct tsi_index *y)
{
	assert_int_equal(tsi_index_count(x), tsi_index_count(y));
	assert_int_equal(tsi_index_classes(x), tsi_index_classes(y));
	assert_int_equal(tsi_index_bad_count(x), tsi_index_bad_count(y));
	for (uint32_t k = 0; k < tsi_index_classes(x); k++)
		assert_string_equal(tsi_index_class(x, k),
				    tsi_index_class(y, k));
	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		assert_string_equal(tsi_index_path(x, i), tsi_index_path(y, i));
		assert_int_equal(tsi_index_label(x, i), tsi_index_label(y, i));
		assert_int_equal(size_of(x, i), size_of(y, i));
		assert_int_equal(tsi_index_bad(x, i), tsi_index_bad(y, i));
	}
}

static void make_tree(void)
{
	char path[64];

	for (int i = 0; i < 60; i++) {
		snprintf(path, sizeof(path), "c%d/%s%d.jpg", i % 5,
			 i % 3 ? "" : "sub/", i);
		put(path, i % 7 ? "ok, this one" : "bad");
	}
}

static struct tsi_index_opts cached_options(void)
{
	struct tsi_index_opts o = options();

	o.cache_dir = cache;
	return o;
}

static void threads_make_no_difference(void **state)
{
	struct tsi_index_opts o = options();
	struct tsi_index *one;
	struct tsi_index *many;

	(void)state;
	make_tree();
	o.threads = 1;
	one = open_with(o);
	o.threads = 200;
	many = open_with(o);
	assert_int_equal(tsi_index_bad_count(one), 9);
	same_index(one, many);
	tsi_index_close(one);
	tsi_index_close(many);
}

static void a_second_open_looks_at_no_good_file(void **state)
{
	struct tsi_index *x;
	struct tsi_index *y;
	struct tsi_index_opts o = cached_options();
	struct stat st;
	char command[300];

	(void)state;
	make_tree();
	x = open_with(o);
	assert_false(tsi_index_cached(x));
	probed = 0;
	y = open_with(o);
	assert_true(tsi_index_cached(y));
	assert_int_equal(probed, 9); /* the bad ones: mended perhaps */
	same_index(x, y);
	tsi_index_close(y);
	o.rescan = true;
	y = open_with(o);
	assert_false(tsi_index_cached(y));
	same_index(x, y);
	tsi_index_close(y);
	tsi_index_close(x);
	snprintf(command, sizeof(command),
		 "test $(find %s -name '*.idx' -perm 600 | wc -l) = 1 && "
		 "test $(ls -A %s | wc -l) = 1",
		 cache, cache);
	assert_int_equal(system(command), 0);
	assert_int_equal(stat(cache, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

/* Is the tree as it is now taken from the cache? */
static bool hit(void)
{
	struct tsi_index_opts o = cached_options();
	struct tsi_index *x = open_with(o);
	struct tsi_index *fresh;
	bool cached = tsi_index_cached(x);

	o.cache_dir = "";
	fresh = open_with(o);
	same_index(x, fresh);
	tsi_index_close(x);
	tsi_index_close(fresh);
	return cached;
}

static void the_cache_sees_what_changed_in_the_tree(void **state)
{
	char from[128];
	char to[128];

	(void)state;
	make_tree();
	assert_false(hit());
	assert_true(hit());
	put("c3/new.jpg", "ok");
	assert_false(hit());
	assert_true(hit());
	drop("c0/sub/0.jpg");
	assert_false(hit());
	put("c1/sub/deep/er/1.jpg", "ok");
	assert_false(hit());
	assert_true(hit());
	put("c1/sub/deep/er/2.jpg", "ok");
	assert_false(hit());
	snprintf(from, sizeof(from), "%s/tree/c2/2.jpg", top);
	snprintf(to, sizeof(to), "%s/tree/c2/02.jpg", top);
	assert_int_equal(rename(from, to), 0);
	assert_false(hit());
	put("c9/1.jpg", "ok");
	assert_false(hit());
	assert_true(hit());
}

static void a_change_right_after_the_scan_is_seen(void **state)
{
	char path[32];

	(void)state;
	put("a/0.jpg", "ok");
	for (int i = 1; i < 20; i++) {
		struct tsi_index *x = open_with(cached_options());

		assert_int_equal(tsi_index_count(x), i);
		tsi_index_close(x);
		snprintf(path, sizeof(path), "a/%d.jpg", i);
		put(path, "ok");
	}
}

static void a_mended_file_is_good_although_cached(void **state)
{
	struct tsi_index *x;

	(void)state;
	put("a/1.jpg", "ok");
	put("a/2.jpg", "bad");
	put("a/3.jpg", "bad");
	tsi_index_close(open_with(cached_options()));
	put("a/2.jpg", "ok, mended");
	x = open_with(cached_options());
	assert_true(tsi_index_cached(x));
	assert_false(tsi_index_bad(x, 1));
	assert_true(tsi_index_bad(x, 2));
	assert_int_equal(size_of(x, 1), 10);
	tsi_index_close(x);
	probed = 0;
	tsi_index_close(open_with(cached_options()));
	assert_int_equal(probed, 1);
	assert_true(hit());
}

static void a_scan_without_a_probe_does_not_stand_in_for_one(void **state)
{
	struct tsi_index_opts o = cached_options();
	struct tsi_index *x;

	(void)state;
	put("a/1.jpg", "bad");
	o.sniff = NULL;
	x = open_with(o);
	assert_false(tsi_index_bad(x, 0));
	tsi_index_close(x);
	x = open_with(cached_options());
	assert_true(tsi_index_bad(x, 0));
	tsi_index_close(x);
}

static void a_cache_that_cannot_be_written_is_no_error(void **state)
{
	struct tsi_index_opts o = options();

	(void)state;
	make_tree();
	o.cache_dir = "/proc/nowhere/tsock";
	tsi_index_close(open_with(o));
	o.cache_dir = "/dev/null";
	tsi_index_close(open_with(o));
}

static size_t read_cache(char *path, size_t path_len, uint8_t **data)
{
	char command[200];
	size_t len;
	FILE *f;

	snprintf(command, sizeof(command), "ls %s/*.idx", cache);
	f = popen(command, "r");
	assert_non_null(fgets(path, (int)path_len, f));
	pclose(f);
	path[strcspn(path, "\n")] = '\0';
	f = fopen(path, "rb");
	*data = malloc(1 << 20);
	len = fread(*data, 1, 1 << 20, f);
	fclose(f);
	return len;
}

static void write_cache(const char *path, const uint8_t *data, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

/* Open whatever is there; every answer must be one, right or wrong. */
static bool walk(void)
{
	struct tsi_index *x = open_with(cached_options());
	bool cached = tsi_index_cached(x);
	size_t n = 0;

	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		n += strlen(tsi_index_path(x, i)) + size_of(x, i);
		assert_true((uint64_t)tsi_index_label(x, i) <
			    tsi_index_classes(x));
		n += strlen(
			tsi_index_class(x, (uint32_t)tsi_index_label(x, i)));
		n += tsi_index_bad(x, i);
	}
	assert_true(n > 0);
	tsi_index_close(x);
	return cached;
}

static void a_damaged_cache_is_as_none(void **state)
{
	char path[200];
	uint8_t *data;
	size_t len;

	(void)state;
	put("a/1.jpg", "ok");
	put("a/2.jpg", "bad");
	put("b/sub/1.jpg", "ok");
	tsi_index_close(open_with(cached_options()));
	len = read_cache(path, sizeof(path), &data);
	for (size_t i = 0; i < len; i++) {
		data[i] ^= 0x41;
		write_cache(path, data, len);
		assert_false(walk());
		data[i] ^= 0x41;
	}
	for (size_t i = 0; i < len; i += 3) {
		write_cache(path, data, i);
		assert_false(walk());
	}
	data[len] = 0;
	write_cache(path, data, len + 1);
	assert_false(walk());
	write_cache(path, data, len);
	assert_true(walk());
	free(data);
}

/* As cache.c lays the file out: 72 bytes of header, checksum at 16. */
static void seal(uint8_t *data, size_t len)
{
	uint64_t nbad;
	uint64_t sum = 0;

	memcpy(&nbad, data + 48, 8);
	memcpy(data + 16, &sum, 8);
	if (nbad > (len - 72) / 8)
		return;
	sum = tsi_hash(data, 72, 0);
	sum = tsi_hash(data + 72, len - 72 - nbad * 8, sum);
	sum = tsi_hash(data + len - nbad * 8, nbad * 8, sum);
	memcpy(data + 16, &sum, 8);
}

static void a_forged_cache_does_no_harm(void **state)
{
	static const uint8_t value[] = { 0x00, 0x01, 0x7f, 0xff };
	char path[200];
	uint8_t *data;
	unsigned taken = 0;
	size_t len;

	(void)state;
	put("a/1.jpg", "ok");
	put("a/2.jpg", "bad");
	put("b/sub/1.jpg", "ok");
	tsi_index_close(open_with(cached_options()));
	len = read_cache(path, sizeof(path), &data);
	seal(data, len);
	write_cache(path, data, len);
	assert_true(walk()); /* else this test forges nothing */
	for (size_t i = 0; i < len * 4; i++) {
		uint8_t *copy = malloc(len);

		memcpy(copy, data, len);
		copy[i / 4] = value[i % 4];
		seal(copy, len);
		write_cache(path, copy, len);
		taken += walk();
		free(copy);
	}
	assert_true(taken > 0);
	free(data);
}

/* Where a text stands in a cache file, for another of the same length. */
static void forge(const char *path, const uint8_t *data, size_t len,
		  const char *from, const char *to)
{
	uint8_t *copy = malloc(len);
	uint8_t *at;

	memcpy(copy, data, len);
	at = memmem(copy, len, from, strlen(from));
	assert_non_null(at);
	memcpy(at, to, strlen(to));
	seal(copy, len);
	write_cache(path, copy, len);
	free(copy);
}

static void a_cache_leads_nowhere_but_into_the_tree(void **state)
{
	static const char *const out[] = { "/etc/x.jpg", "../abcd/ef",
					   "abc/../def", "abcdefg/..",
					   "a/b/../../" };
	static const char *const in[] = { "..a/..jpg.", "a../b....." };
	char path[200];
	uint8_t *data;
	size_t len;

	(void)state;
	put("abc/de.jpg", "ok");
	put("abd/ef.jpg", "ok");
	tsi_index_close(open_with(cached_options()));
	len = read_cache(path, sizeof(path), &data);
	for (unsigned i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		forge(path, data, len, "abc/de.jpg", out[i]);
		assert_false(walk());
	}
	for (unsigned i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		forge(path, data, len, "abc/de.jpg", in[i]);
		assert_true(walk());
	}
	free(data);
}

static int scratch(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(top, sizeof(top), "%.32s/tsock-index-XXXXXX",
		 tmp ? tmp : "/tmp");
	if (!mkdtemp(top))
		return -1;
	snprintf(cache, sizeof(cache), "%s/cache/of/scans", top);
	probed = 0;
	return 0;
}

static int clean(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, scratch, clean)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(files_come_in_torchvisions_order),
		TEST(a_root_that_is_none_is_refused_by_name),
		TEST(a_tree_without_samples_is_refused_by_name),
		TEST(a_folder_that_cannot_be_read_is_an_error),
		TEST(links_to_folders_above_are_left_out),
		TEST(links_in_a_circle_end),
		TEST(bad_files_keep_their_place),
		TEST(only_regular_files_are_opened),
		TEST(an_unreadable_sector_makes_one_file_bad),
		TEST(the_probe_gets_more_bytes_until_the_file_ends),
		TEST(very_long_paths_are_at_worst_bad),
		TEST(too_few_descriptors_is_no_fault_of_the_files),
		TEST(threads_make_no_difference),
		TEST(a_second_open_looks_at_no_good_file),
		TEST(the_cache_sees_what_changed_in_the_tree),
		TEST(a_change_right_after_the_scan_is_seen),
		TEST(a_mended_file_is_good_although_cached),
		TEST(a_scan_without_a_probe_does_not_stand_in_for_one),
		TEST(a_cache_that_cannot_be_written_is_no_error),
		TEST(a_damaged_cache_is_as_none),
		TEST(a_forged_cache_does_no_harm),
		TEST(a_cache_leads_nowhere_but_into_the_tree),
	};

	return cmocka_run_group_tests_name("index", tests, NULL, NULL) != 0;
}
