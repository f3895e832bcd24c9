/* SPDX-License-Identifier: MIT */
/*
 * test_audit.c - the audit at the end of each test program (test/lib/audit.h)
 * finds what it is there for.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "test/lib/audit.h"
#include "test/lib/proc.h"

static void *stay(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

/* What a program with this argument leaves. */
static int leave_something(const char *what)
{
	int fd = memfd_create("tsock-left", MFD_CLOEXEC);
	pthread_t t;

	if (strcmp(what, "mapping") == 0 && !ftruncate(fd, 4096))
		mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (strcmp(what, "descriptor") == 0)
		return 0;
	close(fd);
	if (strcmp(what, "thread") == 0) {
		audit_threads_within(100);
		pthread_create(&t, NULL, stay, NULL);
	}
	if (strcmp(what, "child") == 0 && fork() == 0)
		_exit(0);
	return 0;
}

static int run_with(const char *what)
{
	char self[256];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t pid = proc_spawn();

	if (pid == 0) {
		need(n > 0);
		self[n] = '\0';
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		execl(self, self, what, (char *)NULL);
		_exit(1);
	}
	return proc_ended(pid);
}

static void whatever_is_left_is_found(void **state)
{
	(void)state;
	assert_int_equal(run_with("nothing"), 0);
	assert_int_equal(run_with("descriptor"), 99);
	assert_int_equal(run_with("mapping"), 99);
	assert_int_equal(run_with("thread"), 99);
	assert_int_equal(run_with("child"), 99);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_is_left_is_found),
	};

	if (argc > 1)
		return leave_something(argv[1]);
	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
