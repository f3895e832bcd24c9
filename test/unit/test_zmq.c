/* SPDX-License-Identifier: MIT */
/*
 * test_zmq.c - messages between two ends, and what raw ZeroMQ peers may do.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <zmq.h>

#include "base/clock.h"
#include "wire/zmq.h"

#define LONG_MS 20000

static char folder[64], path[80];
static struct tsi_channel *router, *dealer;

static int open_both(void **s)
{
	(void)s;
	strcpy(folder, "/tmp/tsock-zmq-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/s.bus", folder);
	return tsi_zmq_bind(path, &router) || tsi_zmq_connect(path, &dealer);
}

static int close_both(void **s)
{
	(void)s;
	tsi_zmq_close(dealer);
	tsi_zmq_close(router);
	unlink(path);
	return rmdir(folder);
}

static struct tsi_msg hello(uint32_t serial)
{
	struct tsi_msg m = { .type = TSI_HELLO, .serial = serial };

	m.u.hello.pid = 4711;
	return m;
}

/* The next message or error, waiting for it. */
static int receive(struct tsi_channel *ch, struct tsi_routing_id *peer,
		   struct tsi_msg *m)
{
	int64_t end = tsi_now_ms() + LONG_MS;
	bool ready;
	int err;

	do {
		assert_int_equal(tsi_zmq_poll(ch, NULL, 0, 100, &ready), 0);
		err = tsi_zmq_recv(ch, peer, m);
	} while (err == TSOCK_EAGAIN && tsi_now_ms() < end);
	return err;
}

/* Send until it arrives: what is sent before the connection is up is lost. */
static int exchange(struct tsi_channel *from, uint32_t serial,
		    struct tsi_routing_id *peer)
{
	struct tsi_msg m = hello(serial), got;
	int64_t end = tsi_now_ms() + LONG_MS;
	bool ready;

	do {
		assert_int_equal(tsi_zmq_send(from, NULL, &m), 0);
		assert_int_equal(tsi_zmq_poll(router, NULL, 0, 50, &ready), 0);
		while (!tsi_zmq_recv(router, peer, &got)) {
			if (got.serial == serial)
				return 0;
		}
	} while (tsi_now_ms() < end);
	return -1;
}

/* A peer that isn't ours. */
struct raw {
	void *ctx, *socket;
};

static struct raw raw_open(const void *id, size_t len)
{
	char endpoint[120];
	struct raw r = { zmq_ctx_new(), NULL };
	int zero = 0;

	r.socket = zmq_socket(r.ctx, ZMQ_DEALER);
	zmq_setsockopt(r.socket, ZMQ_LINGER, &zero, sizeof(zero));
	if (len)
		zmq_setsockopt(r.socket, ZMQ_ROUTING_ID, id, len);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", path);
	assert_int_equal(zmq_connect(r.socket, endpoint), 0);
	return r;
}

static void raw_close(struct raw *r)
{
	zmq_close(r->socket);
	zmq_ctx_term(r->ctx);
}

static void a_question_gets_its_answer(void **s)
{
	struct tsi_msg m = hello(7), got;
	struct tsi_routing_id peer;

	(void)s;
	assert_int_equal(exchange(dealer, 6, &peer), 0);
	assert_int_equal(tsi_zmq_send(dealer, NULL, &m), 0);
	do
		assert_int_equal(receive(router, &peer, &got), 0);
	while (got.serial == 6);
	assert_int_equal(got.type, TSI_HELLO);
	assert_int_equal(got.serial, 7);
	assert_int_equal(got.u.hello.pid, 4711);
	assert_true(peer.len > 0);
	m = (struct tsi_msg){ .type = TSI_META_DATA, .serial = 7 };
	m.u.meta_data.len = TSI_CHUNK;
	memset(m.u.meta_data.bytes, 'm', TSI_CHUNK);
	assert_int_equal(tsi_zmq_send(router, &peer, &m), 0);
	assert_int_equal(receive(dealer, NULL, &got), 0);
	assert_int_equal(got.type, TSI_META_DATA);
	assert_memory_equal(got.u.meta_data.bytes, m.u.meta_data.bytes,
			    TSI_CHUNK);
}

static void answers_go_to_who_asked(void **s)
{
	struct tsi_channel *other;
	struct tsi_routing_id a, b;
	struct tsi_msg got, m = { .type = TSI_WAIT, .serial = 3 };
	bool ready;

	(void)s;
	assert_int_equal(tsi_zmq_connect(path, &other), 0);
	assert_int_equal(exchange(dealer, 1, &a), 0);
	assert_int_equal(exchange(other, 2, &b), 0);
	assert_true(a.len != b.len || memcmp(a.bytes, b.bytes, a.len));
	assert_int_equal(tsi_zmq_send(router, &b, &m), 0);
	assert_int_equal(receive(other, NULL, &got), 0);
	assert_int_equal(got.serial, 3);
	assert_int_equal(tsi_zmq_poll(dealer, NULL, 0, 0, &ready), 0);
	assert_false(ready);
	assert_int_equal(tsi_zmq_recv(dealer, NULL, &got), TSOCK_EAGAIN);
	tsi_zmq_close(other);
}

static void garbage_is_dropped_whole(void **s)
{
	uint8_t good[TSI_MSG_MAX];
	struct tsi_msg m = hello(55), got;
	size_t len = tsi_msg_pack(&m, good);
	struct raw r = raw_open(NULL, 0);
	struct tsi_routing_id peer;

	(void)s;
	zmq_send(r.socket, "rubbish", 7, 0);
	zmq_send(r.socket, "", 0, 0);
	/* A request with a delimiter, as REQ sends it. */
	zmq_send(r.socket, "", 0, ZMQ_SNDMORE);
	zmq_send(r.socket, good, len, 0);
	/* Good, with something behind. */
	zmq_send(r.socket, good, len, ZMQ_SNDMORE);
	for (int i = 0; i < 20; i++)
		zmq_send(r.socket, good, len, ZMQ_SNDMORE);
	zmq_send(r.socket, "", 0, 0);
	zmq_send(r.socket, good, len, 0);

	for (int i = 0; i < 4; i++) {
		assert_int_equal(receive(router, &peer, &got), TSOCK_EPROTO);
		assert_true(strlen(tsock_errmsg()) > 0);
		assert_true(peer.len > 0);
	}
	assert_int_equal(receive(router, &peer, &got), 0);
	assert_int_equal(got.serial, 55);
	assert_int_equal(tsi_zmq_recv(router, &peer, &got), TSOCK_EAGAIN);
	raw_close(&r);
	assert_int_equal(exchange(dealer, 56, &peer), 0);
}

static void an_oversize_message_is_never_received(void **s)
{
	static uint8_t huge[1 << 20];
	struct raw r = raw_open(NULL, 0);
	struct tsi_routing_id peer;
	struct tsi_msg got;
	bool ready;

	(void)s;
	zmq_send(r.socket, huge, sizeof(huge), 0);
	zmq_send(r.socket, huge, TSI_MSG_MAX + 1, 0);
	/* Both were sent before this; ours comes through, theirs never. */
	assert_int_equal(exchange(dealer, 9, &peer), 0);
	assert_int_equal(tsi_zmq_poll(router, NULL, 0, 100, &ready), 0);
	assert_false(ready);
	assert_int_equal(tsi_zmq_recv(router, &peer, &got), TSOCK_EAGAIN);
	raw_close(&r);
}

/* It could send garbage, or questions, if somebody opened the folder. */
static void a_strangers_uid_is_not_heard(void **s)
{
	struct tsi_msg got;
	struct tsi_routing_id peer;
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m = hello(77);
	size_t len = tsi_msg_pack(&m, bytes);
	bool ready, alive, heard = false;
	pid_t pid;

	(void)s;
	if (geteuid()) {
		print_message("not root: no other uid to be had\n");
		skip();
	}
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(path, 0777), 0);
	pid = fork();
	if (!pid) {
		struct raw r;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		r = raw_open(NULL, 0);
		zmq_send(r.socket, bytes, len, 0);
		/* Until we are killed: it tries again and again. */
		for (;;)
			pause();
	}
	/* Long enough for the message, which takes a few ms to come. */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(tsi_zmq_poll(router, NULL, 0, 50, &ready), 0);
		while (!tsi_zmq_recv(router, &peer, &got))
			heard |= got.serial == 77;
	}
	alive = waitpid(pid, NULL, WNOHANG) == 0;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(alive);
	assert_false(heard);
	/* Who is the same user is heard. */
	assert_int_equal(exchange(dealer, 78, &peer), 0);
}

static void an_address_too_long_is_refused(void **s)
{
	uint8_t good[TSI_MSG_MAX];
	struct tsi_msg m = hello(1), got;
	size_t len = tsi_msg_pack(&m, good);
	char id[200];
	struct raw r;
	struct tsi_routing_id peer;

	(void)s;
	memset(id, 'i', sizeof(id));
	r = raw_open(id, sizeof(id));
	zmq_send(r.socket, good, len, 0);
	assert_int_equal(receive(router, &peer, &got), TSOCK_EPROTO);
	assert_int_equal(peer.len, 0);
	raw_close(&r);
	r = raw_open(id, TSI_ROUTING_ID_MAX);
	zmq_send(r.socket, good, len, 0);
	assert_int_equal(receive(router, &peer, &got), 0);
	assert_int_equal(peer.len, TSI_ROUTING_ID_MAX);
	raw_close(&r);
}

static void a_vanished_peer_is_no_error(void **s)
{
	struct tsi_msg m = hello(1);
	struct tsi_routing_id peer, nobody = { 5, { 1, 2, 3, 4, 5 } };

	(void)s;
	assert_int_equal(exchange(dealer, 1, &peer), 0);
	tsi_zmq_close(dealer);
	dealer = NULL;
	for (int i = 0; i < 2000; i++)
		assert_int_equal(tsi_zmq_send(router, &peer, &m), 0);
	assert_int_equal(tsi_zmq_send(router, &nobody, &m), 0);
}

static void a_peer_that_doesnt_read_blocks_nobody(void **s)
{
	struct tsi_msg m = hello(1);
	struct tsi_channel *other;
	struct tsi_routing_id slow, quick;
	struct tsi_msg got;
	int64_t start;

	(void)s;
	assert_int_equal(tsi_zmq_connect(path, &other), 0);
	assert_int_equal(exchange(dealer, 1, &slow), 0);
	assert_int_equal(exchange(other, 2, &quick), 0);
	start = tsi_now_ms();
	for (int i = 0; i < 20000; i++)
		assert_int_equal(tsi_zmq_send(router, &slow, &m), 0);
	m.serial = 77;
	assert_int_equal(tsi_zmq_send(router, &quick, &m), 0);
	assert_int_equal(receive(other, NULL, &got), 0);
	assert_int_equal(got.serial, 77);
	assert_true(tsi_now_ms() - start < LONG_MS);
	tsi_zmq_close(other);
}

/*
 * Bursts below the length of the queue, each read before the next is sent.
 * Quickly, so that several fit between two looks of ZeroMQ's own.
 */
static void nothing_is_lost(struct tsi_channel *from,
			    const struct tsi_routing_id *peer,
			    struct tsi_channel *to)
{
	int64_t end = tsi_now_ms() + LONG_MS;
	uint32_t sent = 1000, read = sent;

	while (sent < 61000) {
		struct tsi_msg m, got;

		for (unsigned i = 0; i < 100; i++) {
			m = hello(sent++);
			assert_int_equal(tsi_zmq_send(from, peer, &m), 0);
		}
		while (read < sent) {
			int err = tsi_zmq_recv(to, NULL, &got);

			if (err == TSOCK_EAGAIN) {
				assert_true(tsi_now_ms() < end);
				continue;
			}
			assert_int_equal(err, 0);
			assert_int_equal(got.serial, read++);
			end = tsi_now_ms() + LONG_MS;
		}
	}
}

static void a_peer_that_reads_everything_gets_everything(void **s)
{
	struct tsi_routing_id peer;

	(void)s;
	assert_int_equal(exchange(dealer, 1, &peer), 0);
	nothing_is_lost(router, &peer, dealer);
	nothing_is_lost(dealer, NULL, router);
}

static void a_consumer_waits_for_a_producer_to_come_back(void **s)
{
	struct tsi_routing_id peer;

	(void)s;
	assert_int_equal(exchange(dealer, 1, &peer), 0);
	tsi_zmq_close(router);
	assert_int_equal(tsi_zmq_bind(path, &router), 0);
	assert_int_equal(exchange(dealer, 2, &peer), 0);
}

static void poll_ends_at_its_deadline(void **s)
{
	int64_t start = tsi_now_ms();
	bool ready = true;

	(void)s;
	assert_int_equal(tsi_zmq_poll(router, NULL, 0, 30, &ready), 0);
	assert_false(ready);
	assert_true(tsi_now_ms() - start >= 29);
}

static void poll_reports_the_callers_descriptors(void **s)
{
	struct pollfd fds[2];
	struct tsi_msg m = hello(3), got;
	bool ready;
	struct tsi_routing_id peer;
	int p[2];

	(void)s;
	assert_int_equal(exchange(dealer, 1, &peer), 0);
	while (!tsi_zmq_recv(router, &peer, &got))
		;
	assert_int_equal(pipe(p), 0);
	fds[0] = (struct pollfd){ .fd = p[0], .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = p[1], .events = 0, .revents = 7 };
	assert_int_equal(tsi_zmq_poll(router, fds, 2, 0, &ready), 0);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(tsi_zmq_poll(router, fds, 2, -1, &ready), 0);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_false(ready);
	/* Both at once: the message is seen although a descriptor is ready. */
	assert_int_equal(tsi_zmq_send(dealer, NULL, &m), 0);
	while (!ready)
		assert_int_equal(tsi_zmq_poll(router, fds, 2, -1, &ready), 0);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(tsi_zmq_recv(router, NULL, &got), 0);
	close(p[0]);
	/* A hang-up is reported as one. */
	fds[1].events = POLLOUT;
	assert_int_equal(tsi_zmq_poll(router, fds + 1, 1, -1, &ready), 0);
	assert_true(fds[1].revents & POLLERR);
	close(p[1]);
}

static void many_messages_wake_poll_once_each(void **s)
{
	struct tsi_msg m, got;
	struct tsi_routing_id peer;
	bool ready;

	(void)s;
	assert_int_equal(exchange(dealer, 5000, &peer), 0);
	/* The socket's descriptor is edge-triggered: none may get stuck. */
	for (uint32_t i = 0; i < 3000; i++) {
		m = hello(i);
		assert_int_equal(tsi_zmq_send(dealer, NULL, &m), 0);
		if (i % 3)
			continue;
		assert_int_equal(tsi_zmq_poll(router, NULL, 0, LONG_MS, &ready),
				 0);
		assert_true(ready);
		do
			assert_int_equal(receive(router, &peer, &got), 0);
		while (got.serial != i);
	}
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void a_signal_ends_poll(void **s)
{
	struct sigaction sa = { .sa_handler = on_alarm }, old;
	struct itimerval it = { { 0, 5000 }, { 0, 5000 } }, off = { 0 };
	bool ready = true;

	(void)s;
	sigaction(SIGALRM, &sa, &old);
	setitimer(ITIMER_REAL, &it, NULL);
	assert_int_equal(tsi_zmq_poll(router, NULL, 0, -1, &ready), 0);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_false(ready);
}

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
		if (sscanf(line, "SigBlk: %llx", &mask) == 1)
			break;
	}
	fclose(f);
	return mask;
}

/* Threads beside this one that have all signals blocked. */
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
	int before = deaf_threads();
	struct tsi_channel *ch;
	sigset_t mask;

	(void)s;
	assert_int_equal(tsi_zmq_connect(path, &ch), 0);
	/* A reaper and an I/O thread. */
	assert_int_equal(deaf_threads(), before + 2);
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
	struct tsi_msg m = hello(1);
	struct tsi_routing_id peer = { 0 };
	bool ready;

	if (tsi_zmq_send(dealer, NULL, &m) != TSOCK_EFORK)
		return 1;
	if (tsi_zmq_recv(router, &peer, &m) != TSOCK_EFORK)
		return 2;
	if (tsi_zmq_poll(router, NULL, 0, 0, &ready) != TSOCK_EFORK)
		return 3;
	tsi_zmq_close(dealer);
	tsi_zmq_close(router);
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
	assert_int_equal(exchange(dealer, 8, &peer), 0);
	assert_int_equal(access(path, F_OK), 0);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Every limit from none left to plenty: an error or success, no abort. */
static int with_few_descriptors(void)
{
	int used = count_fds(), opened = 0;

	for (int spare = 0; spare < 24; spare++) {
		struct rlimit limit = { (rlim_t)(used + spare),
					(rlim_t)(used + 100) };
		struct tsi_channel *ch;
		int err;

		if (setrlimit(RLIMIT_NOFILE, &limit))
			return 1;
		err = tsi_zmq_bind(path, &ch);
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
		if (tsi_zmq_connect(path, &ch) != TSOCK_ESYS ||
		    !strstr(tsock_errmsg(), "ulimit -u") ||
		    !strstr(tsock_errmsg(), path))
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
		err = tsi_zmq_connect(path, &ch);
		if (!err) {
			opened++;
			tsi_zmq_close(ch);
		} else if ((err == TSOCK_ESYS || err == TSOCK_ENOMEM) &&
			   strstr(tsock_errmsg(), path)) {
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
		execl("/proc/self/exe", "test_zmq", path, what, NULL);
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
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	print_message("a sanitizer needs its address space\n");
	skip();
#endif
	run_again_as("space");
}

static void nothing_is_left_behind(void **s)
{
	int before = count_fds();
	struct tsi_msg m = hello(1);
	struct tsi_channel *ch, *lonely;

	(void)s;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(tsi_zmq_connect(path, &ch), 0);
		tsi_zmq_send(ch, NULL, &m);
		tsi_zmq_close(ch);
	}
	/* Nobody is there: neither sending nor closing waits. */
	assert_int_equal(tsi_zmq_connect("/tmp/tsock-none/s.bus", &lonely), 0);
	assert_int_equal(tsi_zmq_send(lonely, NULL, &m), 0);
	tsi_zmq_close(lonely);
	/* The producer's ends go when its I/O thread sees the hang-ups. */
	for (int64_t end = tsi_now_ms() + LONG_MS;
	     count_fds() > before && tsi_now_ms() < end;)
		poll(NULL, 0, 5);
	assert_true(count_fds() <= before);
	tsi_zmq_close(NULL);
}

static void a_bad_path_is_named(void **s)
{
	struct tsi_channel *ch;
	char far[400];

	(void)s;
	assert_int_equal(tsi_zmq_bind("/nonexistent/s.bus", &ch), TSOCK_ESYS);
	assert_non_null(strstr(tsock_errmsg(), "/nonexistent/s.bus"));
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = 0;
	far[0] = '/';
	assert_int_equal(tsi_zmq_bind(far, &ch), TSOCK_ESYS);
	far[150] = 0;
	assert_int_equal(tsi_zmq_connect(far, &ch), TSOCK_ESYS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_both, close_both)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(a_question_gets_its_answer),
		TEST(answers_go_to_who_asked),
		TEST(garbage_is_dropped_whole),
		TEST(an_oversize_message_is_never_received),
		TEST(a_strangers_uid_is_not_heard),
		TEST(an_address_too_long_is_refused),
		TEST(a_vanished_peer_is_no_error),
		TEST(a_peer_that_doesnt_read_blocks_nobody),
		TEST(a_peer_that_reads_everything_gets_everything),
		TEST(a_consumer_waits_for_a_producer_to_come_back),
		TEST(poll_ends_at_its_deadline),
		TEST(poll_reports_the_callers_descriptors),
		TEST(many_messages_wake_poll_once_each),
		TEST(a_signal_ends_poll),
		TEST(io_threads_take_no_signals),
		TEST(a_forked_child_touches_nothing),
		TEST(too_few_descriptors_are_named),
		TEST(too_few_threads_are_named),
		TEST(too_little_address_space_is_named),
		TEST(nothing_is_left_behind),
		TEST(a_bad_path_is_named),
	};

	if (argc == 3) {
		snprintf(path, sizeof(path), "%s", argv[1]);
		return argv[2][0] == 'd'   ? with_few_descriptors()
		       : argv[2][0] == 't' ? with_few_threads()
					   : with_little_address_space();
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
