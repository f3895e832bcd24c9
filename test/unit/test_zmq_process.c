/* SPDX-License-Identifier: MIT */
/*
 * test_zmq_process.c - what a channel takes of its process: threads that hear
 * no signals, and descriptors; what happens where these are short, and in a
 * forked child.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test/lib/channel_fixture.h"
#include "test/lib/sanitized.h"
#include "test/lib/usage.h"

/* SigBlk of a thread, as a number. */
static uint64_t blocked(const char *tid)
{
	char file[128], line[128];
	unsigned long long mask = 0;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/self/task/%.20s/status", tid);
	f = fopen(file, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		/* Others are a sanitizer's. */
		if (!strncmp(line, "Name:", 5) && !strstr(line, "ZMQbg"))
			break;
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	}
	fclose(f);
	return mask;
}

/* Threads of ZeroMQ's that have all signals blocked. */
static int deaf_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d))) {
		if (e->d_name[0] != '.' && atoi(e->d_name) != getpid())
			n += (blocked(e->d_name) >> (SIGINT - 1)) & 1;
	}
	closedir(d);
	return n;
}

static void io_threads_take_no_signals(void **s)
{
	struct tsi_channel *ch;
	sigset_t mask;

	(void)s;
	/* A reaper and an I/O thread, of the producer and of all consumers.
	 * Each takes its name once it runs. */
	while (deaf_threads() < 4)
		usleep(1000);
	assert_int_equal(deaf_threads(), 4);
	assert_int_equal(tsi_zmq_connect(channel_path, &ch), 0);
	assert_int_equal(deaf_threads(), 4);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGINT));
	tsi_zmq_close(ch);
}

static int exit_status(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status)
				 : 1000 + WTERMSIG(status);
}

static int in_child(void)
{
	struct tsi_msg m = channel_hello(1);
	struct tsi_routing_id peer = { 0 };
	bool ready;

	if (tsi_zmq_send(channel_dealer, NULL, &m) != TSOCK_EFORK)
		return 1;
	if (tsi_zmq_recv(channel_router, &peer, &m) != TSOCK_EFORK)
		return 2;
	if (tsi_zmq_poll(channel_router, NULL, 0, 0, &ready) != TSOCK_EFORK)
		return 3;
	tsi_zmq_close(channel_dealer);
	tsi_zmq_close(channel_router);
	return 0;
}

static void a_forked_child_touches_nothing(void **s)
{
	struct tsi_routing_id peer;
	pid_t pid;

	(void)s;
	pid = fork();
	if (!pid)
		_exit(in_child());
	assert_int_equal(exit_status(pid), 0);
	assert_int_equal(channel_exchange(channel_dealer, 8, &peer), 0);
	assert_int_equal(access(channel_path, F_OK), 0);
}

/* Every limit from none left to plenty: an error or success, no abort. */
static int with_few_descriptors(void)
{
	unsigned used = usage_descriptors(getpid()) - 1, opened = 0;

	for (unsigned spare = 0; spare < 24; spare++) {
		struct rlimit limit = { (rlim_t)(used + spare),
					(rlim_t)(used + 100) };
		struct tsi_channel *ch;
		int err;

		if (setrlimit(RLIMIT_NOFILE, &limit))
			return 1;
		err = tsi_zmq_bind(channel_path, &ch);
		if (!err) {
			opened++;
			tsi_zmq_close(ch);
		} else if (err != TSOCK_ESYS ||
			   !strstr(tsock_errmsg(), "ulimit -n")) {
			return 2;
		}
	}
	return opened > 0 && opened < 24 ? 0 : 3;
}

/*
 * Every limit from none left to plenty, as above: of threads, as a user that
 * isn't root, and of address space.
 */
static int with_few_threads(void)
{
	struct tsi_channel *ch;

	if (!geteuid() && (setgid(65534) || setuid(65534)))
		return 1;
	for (rlim_t n = 1; n <= 2; n++) {
		struct rlimit limit = { n, 3 };

		if (setrlimit(RLIMIT_NPROC, &limit))
			return 2;
		if (tsi_zmq_connect(channel_path, &ch) != TSOCK_ESYS ||
		    !strstr(tsock_errmsg(), "ulimit -u") ||
		    !strstr(tsock_errmsg(), channel_path))
			return 3;
	}
	return 0;
}

static rlim_t address_space(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%llu", &pages) != 1)
		return 0;
	fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static int with_little_address_space(void)
{
	int opened = 0, refused = 0;

	for (unsigned mib = 0; mib < 64; mib++) {
		/* What was freed before isn't given back at once. */
		struct rlimit limit = { address_space() + ((rlim_t)mib << 20),
					RLIM_INFINITY };
		struct tsi_channel *ch;
		int err;

		if (setrlimit(RLIMIT_AS, &limit))
			return 1;
		err = tsi_zmq_connect(channel_path, &ch);
		if (!err) {
			opened++;
			tsi_zmq_close(ch);
		} else if ((err == TSOCK_ESYS || err == TSOCK_ENOMEM) &&
			   strstr(tsock_errmsg(), channel_path)) {
			refused++;
		} else {
			return 2;
		}
	}
	return opened && refused ? 0 : 3;
}

/* In a fresh program: sanitizers want no threads after fork. */
static void run_again_as(const char *what)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/proc/self/exe", "test_zmq_process", channel_path, what,
		      NULL);
		_exit(127);
	}
	assert_int_equal(exit_status(pid), 0);
}

static void too_few_descriptors_are_named(void **s)
{
	(void)s;
	run_again_as("descriptors");
}

static void too_few_threads_are_named(void **s)
{
	(void)s;
	run_again_as("threads");
}

static void too_little_address_space_is_named(void **s)
{
	(void)s;
	if (SANITIZED) {
		print_message("a sanitizer needs its address space\n");
		skip();
	}
	run_again_as("space");
}

static void consumers_of_a_process_share_what_they_can(void **s)
{
	struct tsi_channel *ch[8];
	struct tsi_routing_id peer;
	unsigned before;

	(void)s;
	assert_int_equal(channel_exchange(channel_dealer, 2, &peer), 0);
	before = usage_descriptors(getpid());
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(tsi_zmq_connect(channel_path, &ch[i]), 0);
		assert_int_equal(channel_exchange(ch[i], i, &peer), 0);
	}
	/* An eventfd and a socket each; the producer's end is one, too. */
	assert_true(usage_descriptors(getpid()) <= before + 8 * 3);
	for (unsigned i = 0; i < 8; i++)
		tsi_zmq_close(ch[i]);
	assert_int_equal(channel_exchange(channel_dealer, 2, &peer), 0);
}

static void nothing_is_left_behind(void **s)
{
	struct tsi_msg m = channel_hello(1);
	struct tsi_channel *ch, *lonely;
	struct tsi_routing_id peer;
	unsigned before;

	(void)s;
	/* What the fixture has begun to connect is connected. */
	assert_int_equal(channel_exchange(channel_dealer, 2, &peer), 0);
	before = usage_descriptors(getpid());
	for (int i = 0; i < 20; i++) {
		assert_int_equal(tsi_zmq_connect(channel_path, &ch), 0);
		tsi_zmq_send(ch, NULL, &m);
		tsi_zmq_close(ch);
	}
	/* Nobody is there: neither sending nor closing waits. */
	assert_int_equal(tsi_zmq_connect("/tmp/tsock-none/s.bus", &lonely), 0);
	assert_int_equal(tsi_zmq_send(lonely, NULL, &m), 0);
	tsi_zmq_close(lonely);
	/* The producer's ends go when its I/O thread sees the hang-ups. */
	for (int64_t end = tsi_now_ms() + LONG_MS;
	     usage_descriptors(getpid()) > before && tsi_now_ms() < end;)
		poll(NULL, 0, 5);
	assert_true(usage_descriptors(getpid()) <= before);
	tsi_zmq_close(NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(io_threads_take_no_signals),
		TEST(a_forked_child_touches_nothing),
		TEST(too_few_descriptors_are_named),
		TEST(too_few_threads_are_named),
		TEST(too_little_address_space_is_named),
		TEST(consumers_of_a_process_share_what_they_can),
		TEST(nothing_is_left_behind),
	};

	if (argc == 3) {
		snprintf(channel_path, sizeof(channel_path), "%s", argv[1]);
		/* A look for leaks would need a thread. */
		if (argv[2][0] == 't')
			_exit(with_few_threads());
		return argv[2][0] == 'd' ? with_few_descriptors()
					 : with_little_address_space();
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
