/* SPDX-License-Identifier: MIT */
/*
 * test_strangers.c - another user of the machine, who looks at whatever a
 * producer and its consumer have: no file of theirs opens, no socket connects,
 * and no memory can be mapped or read.
 */
#include "test/lib/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

#define STRANGER 65534
#define FDS 256

/* The sockets' folder lies where everybody may look. */
static char outer[] = "/tmp/tsock-strangers-XXXXXX";

/* A process may also be hidden as a whole (hidepid). */
static bool is_denied(const char *path)
{
	return errno == EACCES || errno == EPERM ||
	       (errno == ENOENT && !strncmp(path, "/proc/", 6));
}

static void is_closed(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		die("%s opens", path);
	if (!is_denied(path))
		die("%s: %s", path, strerror(errno));
}

static void cannot_connect(const char *path, int type)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	need(fd >= 0);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (!connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("%s lets a stranger in", path);
	if (errno != EACCES)
		die("%s: %s", path, strerror(errno));
	close(fd);
}

static void no_way_into_the_folder(void)
{
	const char *dir = getenv("TSOCK_DIR");
	char path[108];

	need(!opendir(dir) && errno == EACCES);
	for (unsigned i = 0; i < 4; i++) {
		static const char *const file[] = { "bus", "door", "lock",
						    "readers" };

		snprintf(path, sizeof(path), "%s/private.%s", dir, file[i]);
		is_closed(path);
	}
	snprintf(path, sizeof(path), "%s/private.door", dir);
	cannot_connect(path, SOCK_SEQPACKET);
	snprintf(path, sizeof(path), "%s/private.bus", dir);
	cannot_connect(path, SOCK_STREAM);
}

/* Rings have no names; a process's descriptors may lead to them. */
static void no_way_to_the_memory_of(pid_t pid, const void *here)
{
	char path[64], byte;
	struct iovec to = { &byte, 1 }, from = { (void *)(uintptr_t)here, 1 };
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0u);

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	is_closed(path);
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	need(!opendir(path) && is_denied(path));
	snprintf(path, sizeof(path), "/proc/%d/map_files", (int)pid);
	need(!opendir(path));
	for (int fd = 0; fd < FDS; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
		is_closed(path);
#ifdef SYS_pidfd_getfd
		if (pidfd >= 0)
			need(syscall(SYS_pidfd_getfd, pidfd, fd, 0u) < 0 &&
			     errno != EBADF);
#endif
	}
	need(process_vm_readv(pid, &to, 1, &from, 1, 0) < 0 && errno != EFAULT);
	if (pidfd >= 0)
		close(pidfd);
}

static void be_a_stranger(pid_t producer, pid_t consumer, const void *here)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;

	if (setgid(STRANGER) || setuid(STRANGER))
		_exit(77);
	no_way_into_the_folder();
	no_way_to_the_memory_of(producer, here);
	no_way_to_the_memory_of(consumer, here);
	o.batch_size = 16;
	need(tsock_open("private", &o, &t) < 0);
	_exit(0);
}

static void another_user_finds_no_way_in(void **state)
{
	struct source src = { .name = "private",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 5000,
			      .identity = "kind=test\n" };
	struct reader r = {
		.src = &src, .batch = 16, .epochs = 1000000, .hold_us = 1000
	};
	pid_t producer, consumer, pid;
	int code;

	(void)state;
	if (geteuid()) {
		print_message("not root: no other uid to be had\n");
		skip();
	}
	producer = stream_start_producer(&src);
	consumer = reader_start(&r);
	stream_wait_readers("private", 1);
	pid = proc_spawn();
	if (pid == 0)
		be_a_stranger(producer, consumer, state);
	code = proc_ended(pid);
	/* All that it looked for is there, and goes on. */
	stream_wait_readers("private", 1);
	proc_kill_and_reap(consumer);
	proc_kill_and_reap(producer);
	if (code == 77) {
		print_message("no other uid in this namespace\n");
		skip();
	}
	assert_int_equal(code, 0);
}

static int remove_folder(void **state)
{
	static const char *const left[] = { "bus", "door", "lock", "readers" };
	char path[108];

	proc_end_children(state);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/private.%s",
			 getenv("TSOCK_DIR"), left[i]);
		unlink(path);
	}
	rmdir(getenv("TSOCK_DIR"));
	rmdir(outer);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_user_finds_no_way_in),
	};
	char inner[sizeof(outer) + 4];

	if (!mkdtemp(outer) || chmod(outer, 0755))
		return 1;
	snprintf(inner, sizeof(inner), "%s/run", outer);
	setenv("TSOCK_DIR", inner, 1);
	tsock_set_logger(proc_log_line, NULL);
	return cmocka_run_group_tests_name("strangers", tests, NULL,
					   remove_folder);
}
