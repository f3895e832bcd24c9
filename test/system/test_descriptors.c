/* SPDX-License-Identifier: MIT */
/*
 * test_descriptors.c - a producer that runs short of descriptors, and a socket
 * with many silent connections: readers go on, and a new consumer joins or is
 * told why not.
 */
#include "test/lib/reader.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <zmq.h>

#include "test/lib/sanitized.h"
#include "test/lib/usage.h"
#include "wire/address.h"
#include "wire/msg.h"

#define NAME "short"
#define CROWD 30
#define IDLE 600
#define SILENT 500
#define LIMIT 96
/*
 * ZeroMQ's own thread accepts connections, and the producer's thread stops it.
 * PACE connections fit between two looks of the latter.
 */
#define PACE 16
#define LIMIT_RUSH 512
#define REFUSED 3

static struct source src = {
	.name = NAME, .n = 600, .ring = 256, .max_batch = 32, .payload = 64
};
static const struct reader good = { .src = &src, .batch = 32 };
#define EPOCHS 100
static struct tsi_address address;

static pid_t start_short_producer(unsigned limit)
{
	struct rlimit usual, few;
	pid_t pid;

	getrlimit(RLIMIT_NOFILE, &usual);
	few = usual;
	few.rlim_cur = limit;
	need(!setrlimit(RLIMIT_NOFILE, &few));
	pid = stream_start_producer(&src);
	need(!setrlimit(RLIMIT_NOFILE, &usual));
	stream_stats(NAME);
	return pid;
}

/* The producer lives, and somebody new can read an epoch. */
static void one_can_join(pid_t producer)
{
	struct reader r = { .src = &src, .batch = 16, .epochs = 1 };
	pid_t pid = reader_start(&r);

	assert_int_equal(proc_ended(pid), 0);
	assert_int_equal(waitpid(producer, NULL, WNOHANG), 0);
}

/* ---- more consumers than descriptors ---- */

static void join_or_be_refused(int ready, int go)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock_batch *b;
	tsock *t;
	char c;
	int err;

	o.batch_size = 8;
	o.timeout_ms = 60000;
	if (tsock_open(NAME, &o, &t))
		die("open: %s", tsock_errmsg());
	err = tsock_begin_timed(t, 60000);
	if (err == TSOCK_EREFUSED) {
		if (!strstr(tsock_errmsg(), "descriptors") ||
		    !strstr(tsock_errmsg(), "of 96") ||
		    !strstr(tsock_errmsg(), "ulimit -n"))
			die("refused: %s", tsock_errmsg());
		tsock_close(t);
		need(write(ready, "r", 1) == 1);
		_exit(REFUSED);
	}
	if (err)
		die("begin: %s", tsock_errmsg());
	/* No member makes room before all have tried. */
	need(write(ready, "j", 1) == 1);
	need(read(go, &c, 1) == 0);
	if (tsock_next(t, 60000, &b))
		die("next: %s", tsock_errmsg());
	tsock_batch_release(b);
	tsock_close(t);
	_exit(0);
}

static void joins_beyond_the_descriptors_are_refused(void **state)
{
	unsigned joined = 0, refused = 0;
	int ready[2], go[2];
	pid_t producer, pid[CROWD];
	char c;

	(void)state;
	producer = start_short_producer(LIMIT);
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(go), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		pid[i] = proc_spawn();
		if (!pid[i]) {
			close(go[1]);
			join_or_be_refused(ready[1], go[0]);
		}
	}
	for (unsigned i = 0; i < CROWD; i++)
		assert_int_equal(read(ready[0], &c, 1), 1);
	close(go[1]);
	for (unsigned i = 0; i < CROWD; i++) {
		int code = proc_ended(pid[i]);

		assert_true(code == 0 || code == REFUSED);
		joined += code == 0;
		refused += code == REFUSED;
	}
	assert_true(joined && refused);
	one_can_join(producer);
	proc_kill_and_reap(producer);
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
}

/* ---- connections that do nothing ---- */

/*
 * One question and its answer: the producer has looked at its descriptors
 * since.  False: no answer, since it accepts no more (with ZeroMQ 4.3.4 the
 * connections that there are end then, too).
 */
static bool producer_looks(void *socket)
{
	struct tsi_msg m = { .type = TSI_HELLO, .serial = 1 };
	uint8_t bytes[TSI_MSG_MAX];

	return zmq_send(socket, bytes, tsi_msg_pack(&m, bytes), 0) > 0 &&
	       zmq_recv(socket, bytes, sizeof(bytes), 0) > 0;
}

static void connect_idly(void)
{
	bool looks = true;
	struct rlimit r;
	void *ctx = zmq_ctx_new(), *asks = NULL;
	char endpoint[TSI_SOCKET_PATH + 8];
	int ms = 10000;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", address.channel);
	for (unsigned i = 0; i < IDLE; i++) {
		void *socket = zmq_socket(ctx, ZMQ_DEALER);

		need(socket &&
		     !zmq_setsockopt(socket, ZMQ_RCVTIMEO, &ms, sizeof(ms)));
		need(!zmq_connect(socket, endpoint));
		asks = asks ? asks : socket;
		if (looks && i % PACE == 0)
			looks = producer_looks(asks);
	}
	for (;;)
		pause();
}

/* Reads, and tells after its first epoch. */
static void read_and_tell(int first)
{
	tsock *t = reader_connect(&good);

	for (unsigned i = 0; i < EPOCHS; i++) {
		need(!tsock_begin(t));
		reader_read_epoch(&good, t);
		need(i || write(first, "f", 1) == 1);
	}
	tsock_close(t);
	_exit(0);
}

static void idle_connections_dont_end_the_producer(void **state)
{
	pid_t producer = start_short_producer(LIMIT_RUSH), reader, idle;
	int first[2];
	char c;

	(void)state;
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	assert_int_equal(pipe(first), 0);
	reader = proc_spawn();
	if (!reader)
		read_and_tell(first[1]);
	close(first[1]);
	assert_int_equal(read(first[0], &c, 1), 1);
	close(first[0]);
	idle = proc_spawn();
	if (!idle)
		connect_idly();
	/* The reader reads to its end, with all connections open. */
	assert_int_equal(proc_ended(reader), 0);
	assert_int_equal(waitpid(producer, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(idle, NULL, WNOHANG), 0);
	proc_kill_and_reap(idle);
	one_can_join(producer);
	proc_kill_and_reap(producer);
}

/* ---- the descriptor socket ---- */

static int connect_silently(void)
{
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	strcpy(sa.sun_path, address.fdpass);
	if (s >= 0 && connect(s, (struct sockaddr *)&sa, sizeof(sa))) {
		close(s);
		s = -1;
	}
	return s;
}

/* Keep SILENT connections open, and replace closed ones at once. */
static void be_silent(bool again)
{
	static int sock[SILENT];
	char c;

	for (unsigned i = 0; i < SILENT; i++)
		sock[i] = -1;
	for (;;) {
		for (unsigned i = 0; i < SILENT; i++) {
			if (sock[i] >= 0 && again &&
			    recv(sock[i], &c, 1, MSG_DONTWAIT) == 0) {
				close(sock[i]);
				sock[i] = -1;
			}
			if (sock[i] < 0)
				sock[i] = connect_silently();
		}
		proc_pause_us(100);
	}
}

static void silent_connections_keep_nobody_waiting(void **state)
{
	pid_t producer = stream_start_producer(&src), flood;

	(void)state;
	stream_stats(NAME);
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	flood = proc_spawn();
	if (!flood)
		be_silent(true);
	proc_pause_us(300000);
	for (unsigned i = 0; i < 5; i++)
		one_can_join(producer);
	assert_int_equal(waitpid(flood, NULL, WNOHANG), 0);
	proc_kill_and_reap(flood);
	proc_kill_and_reap(producer);
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double cpu_seconds(pid_t pid)
{
	unsigned long user = 0, system = 0;
	char path[40], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	fclose(f);
	assert_int_equal(sscanf(strrchr(line, ')'),
				") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
				"%lu %lu",
				&user, &system),
			 2);
	return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* ZeroMQ may have taken all for a moment, but it is made to give some back. */
static void await_spare_descriptors(pid_t producer)
{
	for (int i = 0; i < 6000; i++) {
		if (usage_descriptors(producer) < LIMIT_RUSH)
			return;
		proc_pause_us(10000);
	}
	fail_msg("the producer has no descriptor left");
}

/* What a process takes of one CPU while a second, or more, goes by. */
static double share_of_a_cpu(pid_t pid)
{
	double t0 = now_s(), before = cpu_seconds(pid);

	proc_pause_us(1000000);
	return (cpu_seconds(pid) - before) / (now_s() - t0);
}

/*
 * There is no reader: all CPU time goes to the sockets, whose crowd comes
 * within some seconds, or later where the machine is busy.
 */
static void await_rest(pid_t producer)
{
	double share = 1;

	for (int i = 0; i < 60 && share >= 0.4; i++)
		share = share_of_a_cpu(producer);
	if (share >= 0.4)
		fail_msg("the producer takes %.0f %% of a CPU", 100 * share);
}

static void a_socket_without_descriptors_doesnt_spin(void **state)
{
	pid_t producer = start_short_producer(LIMIT_RUSH), crowd[2];

	(void)state;
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	/* Its last descriptors go to connections; then a consumer connects. */
	crowd[0] = proc_spawn();
	if (!crowd[0])
		connect_idly();
	proc_pause_us(2000000);
	crowd[1] = proc_spawn();
	if (!crowd[1])
		be_silent(false);
	proc_pause_us(1000000);
	await_rest(producer);
	assert_int_equal(waitpid(producer, NULL, WNOHANG), 0);
	await_spare_descriptors(producer);
	proc_kill_and_reap(crowd[0]);
	proc_kill_and_reap(crowd[1]);
	one_can_join(producer);
	proc_kill_and_reap(producer);
}

/* ---- what ZeroMQ is told ---- */

static void accepting_without_a_descriptor_ends_nothing(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct rlimit usual, none = { 0 };
	socklen_t len = sizeof(sa);
	int s[3], err;

	(void)state;
	if (SANITIZED) {
		print_message("a sanitizer's accept4() comes first\n");
		skip();
	}
	for (int i = 0; i < 2; i++)
		assert_true((s[i] = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0);
	/* Without a path the system chooses a name. */
	assert_int_equal(bind(s[0], (void *)&sa, sizeof(sa_family_t)), 0);
	assert_int_equal(listen(s[0], 1), 0);
	assert_int_equal(getsockname(s[0], (void *)&sa, &len), 0);
	assert_int_equal(connect(s[1], (void *)&sa, len), 0);
	getrlimit(RLIMIT_NOFILE, &usual);
	none.rlim_max = usual.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	s[2] = accept4(s[0], NULL, NULL, 0);
	err = errno;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(s[2], -1);
	/* ZeroMQ aborts on EMFILE. */
	assert_int_equal(err, ENFILE);
	s[2] = accept4(s[0], NULL, NULL, 0);
	assert_true(s[2] >= 0);
	for (int i = 0; i < 3; i++)
		close(s[i]);
}

#define TEST(f) cmocka_unit_test_teardown(f, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(accepting_without_a_descriptor_ends_nothing),
		TEST(joins_beyond_the_descriptors_are_refused),
		TEST(idle_connections_dont_end_the_producer),
		TEST(silent_connections_keep_nobody_waiting),
		TEST(a_socket_without_descriptors_doesnt_spin),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
