/* SPDX-License-Identifier: MIT */
/*
 * test_mapped.c - copies of mapped files: a file that is cut short meanwhile is
 * a result, in any thread, and another SIGBUS goes where it went before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "data/mapped.h"
#include "tsock/tsock.h"

#define PAGES 64
#define THREADS 4
#define ROUNDS 200

/* cmocka has its own SIGBUS during a test, so that all is done in children. */
#define check(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond); \
			_exit(1); \
		} \
	} while (0)
#define check_equal(a, b) check((a) == (b))

static char folder[] = "/tmp/tsock-mapped-XXXXXX";
static size_t page;
static struct tsi_root root;

static void path_of(const char *name, char to[64])
{
	snprintf(to, 64, "%s/%s", folder, name);
}

/* A file of so many pages, whose bytes are their page's number. */
static void put(const char *name, unsigned pages)
{
	char path[64];
	FILE *f;

	path_of(name, path);
	f = fopen(path, "w");
	check(f);
	for (unsigned k = 0; k < pages; k++)
		for (size_t i = 0; i < page; i++)
			fputc((int)k, f);
	check_equal(fclose(f), 0);
}

static void cut(const char *name, unsigned pages)
{
	char path[64];

	path_of(name, path);
	check_equal(truncate(path, (off_t)(pages * page)), 0);
}

static void in_child(void (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void open_mapped(const char *name, struct tsi_mapped *m)
{
	struct tsi_stamp stamp;

	check_equal(tsi_mapped_open(&root, name, m, &stamp), 0);
}

static int set_up(void **state)
{
	(void)state;
	page = (size_t)sysconf(_SC_PAGESIZE);
	tsi_root_init(&root);
	return !mkdtemp(folder) || tsi_root_open(&root, folder);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "whole", "cut", "once", "empty" };
	char path[64];

	(void)state;
	tsi_root_close(&root);
	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		path_of(names[k], path);
		unlink(path);
	}
	return rmdir(folder);
}

static void map_what_is_none(void)
{
	struct tsi_mapped m;
	struct tsi_stamp stamp;

	put("empty", 0);
	check_equal(tsi_mapped_open(&root, "empty", &m, &stamp), TSOCK_EDATA);
	check(!strcmp(tsock_errmsg(), "empty is empty"));
	check_equal(tsi_mapped_open(&root, "", &m, &stamp), TSOCK_EDATA);
	check(strstr(tsock_errmsg(), "not a regular file"));
	check_equal(tsi_mapped_open(&root, "none", &m, &stamp), TSOCK_EDATA);
	check(strstr(tsock_errmsg(), "can't open none"));
	check(!m.mem);
	tsi_mapped_close(&m);
}

static void what_can_not_be_mapped_is_named(void **state)
{
	(void)state;
	in_child(map_what_is_none);
}

/* ---- several threads ---- */

struct reader {
	const struct tsi_mapped *whole, *cut;
	unsigned wrong;
};

/* Pages of the one are all there, and of the other the first alone. */
static void *read_both(void *arg)
{
	struct reader *r = arg;
	uint8_t *to = malloc(2 * page);

	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned k = i % PAGES;

		r->wrong +=
			!tsi_mapped_copy(to, r->whole->mem + k * page, page) ||
			to[0] != k || to[page - 1] != k;
		r->wrong += !tsi_mapped_copy(to, r->cut->mem, page) ||
			    to[page - 1] != 0;
		/* Of two pages the second is gone. */
		r->wrong += tsi_mapped_copy(to, r->cut->mem, 2 * page);
		r->wrong +=
			tsi_mapped_copy(to, r->cut->mem + (k | 1) * page, 8);
	}
	free(to);
	return NULL;
}

static void read_in_threads(void)
{
	struct tsi_mapped whole, shorter;
	struct reader r[THREADS];
	pthread_t thread[THREADS];

	put("whole", PAGES);
	put("cut", PAGES);
	open_mapped("whole", &whole);
	open_mapped("cut", &shorter);
	cut("cut", 1);
	for (unsigned k = 0; k < THREADS; k++) {
		r[k] = (struct reader){ &whole, &shorter, 0 };
		check_equal(pthread_create(&thread[k], NULL, read_both, &r[k]),
			    0);
	}
	for (unsigned k = 0; k < THREADS; k++) {
		check_equal(pthread_join(thread[k], NULL), 0);
		check_equal(r[k].wrong, 0);
	}
	tsi_mapped_close(&whole);
	tsi_mapped_close(&shorter);
}

static void a_file_that_was_cut_short_fails_in_every_thread(void **state)
{
	(void)state;
	in_child(read_in_threads);
}

static void gather(void)
{
	struct tsi_mapped whole, shorter;
	const uint8_t *from[20];
	uint8_t to[20 * 16], more[20 * 3];
	const struct tsi_mapped_piece piece[] = { { more, page / 2, 3 },
						  { to, 0, 16 } };
	unsigned bad = 99;

	put("whole", PAGES);
	put("cut", PAGES);
	open_mapped("whole", &whole);
	open_mapped("cut", &shorter);
	cut("cut", 1);
	for (unsigned k = 0; k < 20; k++)
		from[k] = whole.mem + k * page;
	check(tsi_mapped_gather(from, 20, piece, 2, &bad));
	check_equal(bad, 99);
	for (unsigned k = 0; k < sizeof(to); k++)
		check_equal(to[k], k / 16);
	for (unsigned k = 0; k < sizeof(more); k++)
		check_equal(more[k], k / 3);
	from[3] = shorter.mem;
	from[13] = shorter.mem + 5 * page;
	check(!tsi_mapped_gather(from, 20, piece, 2, &bad));
	check_equal(bad, 13);
	tsi_mapped_close(&whole);
	tsi_mapped_close(&shorter);
}

static void of_several_pieces_the_one_that_is_gone_is_named(void **state)
{
	(void)state;
	in_child(gather);
}

/* ---- whose SIGBUS it is ---- */

static sigjmp_buf back;
static volatile sig_atomic_t came;

static void on_signal(int sig)
{
	came = sig;
	siglongjmp(back, 1);
}

static void on_signal_with_info(int sig, siginfo_t *info, void *context)
{
	(void)context;
	came = info->si_signo == sig && info->si_addr ? sig : -1;
	siglongjmp(back, 1);
}

/* Read a page that isn't there by another way than tsi_mapped_copy(). */
static void stumble(const struct tsi_mapped *m)
{
	const volatile uint8_t *gone = m->mem + 3 * page;
	uint8_t byte;

	if (sigsetjmp(back, 1) == 0) {
		byte = *gone;
		(void)byte;
	}
}

/* In a process that had this handler before it mapped its first file. */
static int child_with(const struct sigaction *a, bool sent)
{
	struct tsi_mapped m;
	struct tsi_stamp stamp;
	char path[64];
	uint8_t byte;
	int status;
	pid_t pid;

	put("once", 4);
	path_of("once", path);
	pid = fork();
	assert_true(pid >= 0);
	if (pid) {
		assert_int_equal(waitpid(pid, &status, 0), pid);
		return status;
	}
	sigaction(SIGBUS, a, NULL);
	if (tsi_mapped_open(&root, "once", &m, &stamp) ||
	    truncate(path, (off_t)page))
		_exit(2);
	/* Ours is never seen by the other handler. */
	if (tsi_mapped_copy(&byte, m.mem + 2 * page, 1) || came)
		_exit(3);
	if (!sent)
		stumble(&m);
	else if (sigsetjmp(back, 1) == 0)
		raise(SIGBUS);
	_exit(came == SIGBUS ? 0 : 4);
}

static void another_sigbus_reaches_the_handler_before_ours(void **state)
{
	struct sigaction plain = { .sa_handler = on_signal };
	struct sigaction full = { .sa_sigaction = on_signal_with_info,
				  .sa_flags = SA_SIGINFO };
	struct sigaction none = { .sa_handler = SIG_DFL };
	int status;

	(void)state;
	for (int sent = 0; sent < 2; sent++) {
		status = child_with(&plain, sent);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		/* A process that had none ends by it. */
		status = child_with(&none, sent);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGBUS);
	}
	status = child_with(&full, false);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			another_sigbus_reaches_the_handler_before_ours),
		cmocka_unit_test(what_can_not_be_mapped_is_named),
		cmocka_unit_test(
			a_file_that_was_cut_short_fails_in_every_thread),
		cmocka_unit_test(
			of_several_pieces_the_one_that_is_gone_is_named),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
