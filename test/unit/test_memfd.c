/* SPDX-License-Identifier: MIT */
/*
 * test_memfd.c - what the seals promise, tried as a hostile peer would.
 */
#include "base/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tsock/tsock.h"

#define LEN ((size_t)3 * 4096)

static struct tsi_memfd m;

static int make(void **state)
{
	(void)state;
	return tsi_memfd_create("test", LEN, 0, &m);
}

static int make_peer(void **state)
{
	(void)state;
	return tsi_memfd_create("test", LEN, TSI_MEM_PEER_WRITES, &m);
}

static int destroy(void **state)
{
	(void)state;
	tsi_memfd_close(&m);
	return 0;
}

#define refused(call) \
	do { \
		errno = 0; \
		assert_int_equal((intptr_t)(call), -1); \
		assert_int_equal(errno, EPERM); \
	} while (0)

static void owner_writes_and_a_reader_sees_it(void **state)
{
	unsigned char *seen;

	(void)state;
	assert_int_equal(m.len, LEN);
	seen = mmap(NULL, LEN, PROT_READ, MAP_SHARED, m.fd, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	assert_int_equal(seen[LEN - 1], 0);
	memset(m.base, 7, LEN);
	assert_int_equal(seen[LEN - 1], 7);
	munmap(seen, LEN);
}

static void every_page_is_reserved(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_int_equal(st.st_size, LEN);
	assert_true((size_t)st.st_blocks * 512 >= LEN);
}

static void descriptor_is_not_inherited_by_exec(void **state)
{
	(void)state;
	assert_true(fcntl(m.fd, F_GETFD) & FD_CLOEXEC);
}

static void peer_cannot_write_or_resize(void **state)
{
	char path[64];
	void *p;
	int fd;

	(void)state;
	refused(mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0));
	refused(write(m.fd, "x", 1));
	refused(pwrite(m.fd, "x", 1, 0));
	refused(ftruncate(m.fd, 0));
	refused(ftruncate(m.fd, 2 * LEN));
	refused(fallocate(m.fd, 0, 0, 2 * LEN));
	refused(fallocate(m.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			  4096));
	refused(fcntl(m.fd, F_ADD_SEALS, F_SEAL_WRITE));

	/* A read-only mapping can't be turned into a writable one. */
	p = mmap(NULL, LEN, PROT_READ, MAP_SHARED, m.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p, LEN, PROT_READ | PROT_WRITE), -1);
	assert_int_equal(errno, EACCES);
	munmap(p, LEN);

	/* Nor does opening it anew get round the seals. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", m.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	refused(mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	refused(ftruncate(fd, 0));
	close(fd);
}

static void private_writes_are_allowed_and_stay_private(void **state)
{
	unsigned char *own;

	(void)state;
	own = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, m.fd, 0);
	assert_ptr_not_equal(own, MAP_FAILED);
	memset(m.base, 1, LEN);
	assert_int_equal(own[0], 1);
	own[0] = 9;
	assert_int_equal(*(unsigned char *)m.base, 1);
	/* Other pages still show what the owner writes. */
	memset(m.base, 2, LEN);
	assert_int_equal(own[0], 9);
	assert_int_equal(own[4096], 2);
	munmap(own, LEN);
}

static void peer_page_is_written_by_the_peer_and_read_here(void **state)
{
	unsigned char *own;

	(void)state;
	own = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
	assert_ptr_not_equal(own, MAP_FAILED);
	own[5] = 42;
	assert_int_equal(((unsigned char *)m.base)[5], 42);
	munmap(own, LEN);
	refused(ftruncate(m.fd, 0));
	refused(ftruncate(m.fd, 2 * LEN));
	refused(fcntl(m.fd, F_ADD_SEALS, F_SEAL_WRITE));
}

/* Run in a child, which must die of signal, or with 0 exit cleanly. */
static void child_ends_with(int signal, void (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct rlimit none = { 0, 0 };

		/* A sanitizer would turn the signal into an exit code. */
		setrlimit(RLIMIT_CORE, &none);
		sigaction(SIGSEGV, &(struct sigaction){ .sa_handler = SIG_DFL },
			  NULL);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (signal) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signal);
	} else {
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

static void touch(void)
{
	*(volatile char *)m.base = 1;
}

static void peek(void)
{
	(void)*(volatile char *)m.base;
}

static void do_nothing(void)
{
}

static void forked_child_does_not_have_the_mapping(void **state)
{
	(void)state;
	child_ends_with(0, do_nothing);
	child_ends_with(SIGSEGV, touch);
	child_ends_with(SIGSEGV, peek);
	assert_int_equal(*(char *)m.base, 0);
}

static void maker_of_a_peer_page_cannot_write_it(void **state)
{
	(void)state;
	child_ends_with(SIGSEGV, touch);
}

static void check_accepts_what_create_made(void **state)
{
	(void)state;
	assert_int_equal(tsi_memfd_check(m.fd, LEN, 0, "ring"), 0);
	assert_int_equal(tsi_memfd_check(m.fd, LEN, TSI_MEM_PEER_WRITES, "x"),
			 0);
}

static void check_refuses_another_size(void **state)
{
	(void)state;
	assert_int_equal(tsi_memfd_check(m.fd, LEN + 1, 0, "the ring"),
			 TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), "the ring"));
	assert_non_null(strstr(tsock_errmsg(), "12288"));
	assert_int_equal(tsi_memfd_check(m.fd, 0, 0, "x"), TSOCK_EPROTO);
	assert_int_equal(tsi_memfd_check(m.fd, SIZE_MAX, 0, "x"), TSOCK_EPROTO);
}

/* A touch of a page that isn't there can be a signal. */
static void check_refuses_what_is_not_all_there(void **state)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL |
			  0x10 /* F_SEAL_FUTURE_WRITE */;
	int fd = memfd_create("hollow", MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(ftruncate(fd, LEN), 0);
	assert_int_equal(pwrite(fd, "x", 1, LEN - 1), 1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	assert_int_equal(tsi_memfd_check(fd, LEN, 0, "x"), TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), "all there"));
	close(fd);
}

static void check_refuses_a_peer_page_as_a_ring(void **state)
{
	(void)state;
	assert_int_equal(tsi_memfd_check(m.fd, LEN, TSI_MEM_PEER_WRITES, "x"),
			 0);
	assert_int_equal(tsi_memfd_check(m.fd, LEN, 0, "x"), TSOCK_EPROTO);
}

static void check_refuses_what_could_be_cut_short(void **state)
{
	static const int few[] = { 0, F_SEAL_SHRINK, F_SEAL_GROW,
				   F_SEAL_GROW | F_SEAL_SEAL,
				   F_SEAL_SHRINK | F_SEAL_GROW };
	FILE *file = tmpfile();
	int pipes[2];

	(void)state;
	for (unsigned i = 0; i < sizeof(few) / sizeof(few[0]); i++) {
		int fd = memfd_create("hostile", MFD_ALLOW_SEALING);

		assert_int_equal(ftruncate(fd, LEN), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, few[i]), 0);
		assert_int_equal(
			tsi_memfd_check(fd, LEN, TSI_MEM_PEER_WRITES, "x"),
			TSOCK_EPROTO);
		close(fd);
	}
	assert_int_equal(ftruncate(fileno(file), LEN), 0);
	assert_int_equal(tsi_memfd_check(fileno(file), LEN, 0, "x"),
			 TSOCK_EPROTO);
	fclose(file);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(tsi_memfd_check(pipes[0], LEN, 0, "x"), TSOCK_EPROTO);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(tsi_memfd_check(-1, LEN, 0, "x"), TSOCK_EPROTO);
}

static void too_much_memory_is_a_sentence(void **state)
{
	struct tsi_memfd none = { .len = 5 };

	(void)state;
	assert_int_equal(
		tsi_memfd_create("the image ring", (size_t)1 << 50, 0, &none),
		TSOCK_ENOMEM);
	assert_int_equal(none.len, 5);
	assert_non_null(strstr(tsock_errmsg(), "the image ring needs"));
	assert_non_null(strstr(tsock_errmsg(), "available"));
	assert_non_null(strstr(tsock_errmsg(), "--ring"));
}

static void absurd_lengths_are_refused(void **state)
{
	struct tsi_memfd none;

	(void)state;
	assert_int_equal(tsi_memfd_create("x", 0, 0, &none), TSOCK_EARG);
	assert_int_equal(tsi_memfd_create("x", SIZE_MAX, 0, &none), TSOCK_EARG);
}

static void file_size_limit_is_a_sentence_not_a_signal(void **state)
{
	struct rlimit old, small;
	struct tsi_memfd none;
	int err;

	(void)state;
	getrlimit(RLIMIT_FSIZE, &old);
	small = old;
	small.rlim_cur = 4096;
	setrlimit(RLIMIT_FSIZE, &small);
	err = tsi_memfd_create("x", LEN, 0, &none);
	setrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(err, TSOCK_ENOMEM);
	assert_non_null(strstr(tsock_errmsg(), "ulimit -f"));
}

static void descriptor_limit_is_a_sentence(void **state)
{
	struct rlimit old, small;
	struct tsi_memfd none;
	int err;

	(void)state;
	getrlimit(RLIMIT_NOFILE, &old);
	small = old;
	small.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &small);
	err = tsi_memfd_create("x", LEN, 0, &none);
	setrlimit(RLIMIT_NOFILE, &old);
	assert_int_equal(err, TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "ulimit -n"));
}

static void count_it(int signal)
{
	(void)signal;
}

static void fast_timer_does_not_starve_a_reservation(void **state)
{
	struct itimerval fast = { { 0, 200 }, { 0, 200 } }, off = { 0 };
	struct sigaction old, act = { .sa_handler = count_it };
	struct tsi_memfd big;
	int err;

	(void)state;
	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &fast, NULL);
	err = tsi_memfd_create("big", (size_t)96 << 20, 0, &big);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_int_equal(err, 0);
	tsi_memfd_close(&big);
}

/* A new group with this limit, as root alone can make it; NULL without. */
static const char *limited_group(const char *limit)
{
	static const char *const at[][2] = {
		{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
		{ "/sys/fs/cgroup", "memory.max" },
	};
	static char dir[64];

	for (unsigned i = 0; i < 2; i++) {
		char path[128];
		FILE *f;

		snprintf(dir, sizeof(dir), "%s/tsock-test-%d", at[i][0],
			 (int)getpid());
		if (mkdir(dir, 0755))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, at[i][1]);
		f = fopen(path, "r+");
		if (f && fputs(limit, f) >= 0 && !fclose(f))
			return dir;
		rmdir(dir);
	}
	return NULL;
}

static const char *group;

static void make_too_much_in_the_group(void)
{
	struct tsi_memfd r;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", group);
	f = fopen(path, "w");
	if (!f || fputs("0", f) < 0 || fclose(f))
		_exit(1);
	if (tsi_memfd_create("r", (size_t)400 << 20, 0, &r) != TSOCK_ENOMEM)
		_exit(2);
	if (!strstr(tsock_errmsg(), group))
		_exit(3);
	if (tsi_memfd_create("r", (size_t)8 << 20, 0, &r))
		_exit(4);
	memset(r.base, 1, r.len);
}

static void cgroup_limit_is_a_sentence_not_a_kill(void **state)
{
	(void)state;
	group = limited_group("268435456");
	if (!group) {
		print_message("no right to make a memory cgroup\n");
		skip();
	}
	child_ends_with(0, make_too_much_in_the_group);
	assert_int_equal(rmdir(group), 0);
}

static void close_may_be_repeated(void **state)
{
	struct tsi_memfd zero = { 0 };

	(void)state;
	tsi_memfd_close(NULL);
	tsi_memfd_close(&zero);
	assert_int_not_equal(fcntl(0, F_GETFD), -1);
	assert_int_equal(tsi_memfd_create("x", LEN, 0, &zero), 0);
	tsi_memfd_close(&zero);
	tsi_memfd_close(&zero);
	assert_null(zero.base);
}

#define ring(name) cmocka_unit_test_setup_teardown(name, make, destroy)
#define page(name) cmocka_unit_test_setup_teardown(name, make_peer, destroy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ring(owner_writes_and_a_reader_sees_it),
		ring(every_page_is_reserved),
		ring(descriptor_is_not_inherited_by_exec),
		ring(peer_cannot_write_or_resize),
		ring(private_writes_are_allowed_and_stay_private),
		page(peer_page_is_written_by_the_peer_and_read_here),
		ring(forked_child_does_not_have_the_mapping),
		page(maker_of_a_peer_page_cannot_write_it),
		ring(check_accepts_what_create_made),
		ring(check_refuses_another_size),
		cmocka_unit_test(check_refuses_what_is_not_all_there),
		page(check_refuses_a_peer_page_as_a_ring),
		cmocka_unit_test(check_refuses_what_could_be_cut_short),
		cmocka_unit_test(too_much_memory_is_a_sentence),
		cmocka_unit_test(absurd_lengths_are_refused),
		cmocka_unit_test(file_size_limit_is_a_sentence_not_a_signal),
		cmocka_unit_test(descriptor_limit_is_a_sentence),
		cmocka_unit_test(fast_timer_does_not_starve_a_reservation),
		cmocka_unit_test(cgroup_limit_is_a_sentence_not_a_kill),
		cmocka_unit_test(close_may_be_repeated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
