/* SPDX-License-Identifier: MIT */
/*
 * test_hostile.c - whatever comes in on the channel, on the descriptor socket
 * and through a tail page: a well-behaved consumer reads on, every sample
 * right, and the server loses neither descriptors, nor memory, nor time.
 *
 * One server and one good consumer live through all of it.
 */
#include "test/lib/reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <zmq.h>

#include "ring/ring.h"
#include "wire/zmq.h"
#include "wire/fdpass.h"
#include "wire/address.h"

#define NAME "hostile"
#define BATCH 48

/* Sanitizers keep what is freed for a while. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GROWTH_KIB (768L * 1024)
#else
#define GROWTH_KIB (48L * 1024)
#endif

static struct source src = { .name = NAME,
			     .n = 3000,
			     .ring = 512,
			     .max_batch = 64,
			     .payload = 3000,
			     .image = 8 };
/* All wait for this one, so that the stream is lively and not all that runs:
 * attacks, and not samples, are to keep the machine busy. */
static struct reader good = { .src = &src,
			      .batch = BATCH,
			      .epochs = 1000000,
			      .flags = TSOCK_WRITABLE,
			      .hold_us = 2000 };
static struct tsi_address address;
static pid_t server, survivor;
static unsigned fds;
static long rss_kib;
static uint8_t old_token[TSI_TOKEN];
static double old_since;

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- the server ---- */

static void *work(void *arg)
{
	produce(arg, &src);
	return NULL;
}

/* Until SIGTERM; then in good order. */
static pid_t start_server(void)
{
	pid_t pid = spawn();
	pthread_t t[2];
	tsock_server *s;
	sigset_t set;
	int sig;

	if (pid)
		return pid;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	s = serve(&src);
	for (unsigned i = 0; i < 2; i++)
		need(!pthread_create(&t[i], NULL, work, s));
	sigwait(&set, &sig);
	tsock_serve_stop(s);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	tsock_serve_close(s);
	_exit(0);
}

static unsigned open_files(pid_t pid)
{
	char path[64];
	unsigned n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static long memory_of(pid_t pid)
{
	char path[64], line[256];
	long kib = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (kib < 0 && fgets(line, sizeof(line), f))
		sscanf(line, "RssAnon: %ld", &kib);
	fclose(f);
	return kib;
}

/* It answers, however busy the machine, and samples go on being made. */
static void answers_and_goes_on(void)
{
	struct tsock_stats st = { .size = sizeof(st) };
	uint64_t head = 0;
	double t0 = now_s();

	do {
		double asked = now_s();

		assert_int_equal(tsock_query(NAME, 10000, &st), 0);
		assert_true(now_s() - asked < 10.0);
		if (!head)
			head = st.head;
		assert_int_equal(waitpid(survivor, NULL, WNOHANG), 0);
		assert_true(now_s() - t0 < 60.0);
	} while (st.head < head + 200);
}

static void one_can_still_join(void)
{
	struct reader me = { .src = &src, .batch = 7 };
	tsock *t = connect_reader(&me);
	tsock_batch *b;

	assert_int_equal(tsock_begin_timed(t, 10000), 0);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(tsock_next(t, 5000, &b), 0);
		check_batch(&me, b, 0);
		tsock_batch_release(b);
	}
	tsock_close(t);
}

/* As it was before the attack. */
static void is_as_before(void)
{
	double t0 = now_s();

	answers_and_goes_on();
	one_can_still_join();
	wait_readers(NAME, 1);
	while (open_files(server) > fds) {
		assert_true(now_s() - t0 < 15.0);
		pause_us(20000);
	}
	if (getenv("TEST_VERBOSE"))
		print_message("memory %ld KiB, was %ld\n", memory_of(server),
			      rss_kib);
	assert_true(memory_of(server) < rss_kib + GROWTH_KIB);
}

/* An attack by another process, watched all the time. */
static void attacked_by(void (*attack)(void))
{
	pid_t pid = spawn();
	int status = 0;

	if (pid == 0) {
		attack();
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		answers_and_goes_on();
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	is_as_before();
}

/* ---- the message channel ---- */

static uint64_t dice = 1;

static uint64_t roll(void)
{
	return mix(dice++);
}

static void roll_bytes(void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)roll();
}

struct raw {
	void *ctx, *socket;
};

static struct raw raw_open(void)
{
	char endpoint[200];
	struct raw r = { zmq_ctx_new(), NULL };
	int zero = 0, ms = 1000;

	snprintf(endpoint, sizeof(endpoint), "ipc://%s", address.channel);
	r.socket = zmq_socket(r.ctx, ZMQ_DEALER);
	zmq_setsockopt(r.socket, ZMQ_LINGER, &zero, sizeof(zero));
	zmq_setsockopt(r.socket, ZMQ_SNDTIMEO, &ms, sizeof(ms));
	need(!zmq_connect(r.socket, endpoint));
	return r;
}

static void raw_close(struct raw *r)
{
	zmq_close(r->socket);
	zmq_ctx_term(r->ctx);
}

static struct tsi_msg join_message(void)
{
	struct tsi_msg m = { .type = TSI_JOIN, .serial = 1 };

	m.u.join.pid = (uint32_t)getpid();
	m.u.join.batch_size = 16;
	roll_bytes(m.u.join.nonce, TSI_NONCE);
	return m;
}

static size_t valid_message(uint8_t *bytes)
{
	static const uint16_t type[] = { TSI_HELLO,  TSI_META,     TSI_JOIN,
					 TSI_READY,  TSI_LEAVE,    TSI_STATS,
					 TSI_STREAM, TSI_OFFER,    TSI_ERROR,
					 TSI_LEFT,   TSI_CONFIGURE };
	struct tsi_msg m = join_message();

	m.type = type[roll() % (sizeof(type) / sizeof(type[0]))];
	if (m.type == TSI_STREAM)
		memset(&m.u, 0, sizeof(m.u));
	if (m.type == TSI_ERROR)
		m.u.error.code = -1;
	if (m.type == TSI_JOIN && roll() % 2)
		roll_bytes(&m.u.join.batch_size,
			   sizeof(m.u.join) -
				   offsetof(struct tsi_msg_join, batch_size));
	return tsi_msg_pack(&m, bytes);
}

static void send_nonsense(struct raw *r)
{
	static uint8_t bytes[1 << 20];
	size_t len = valid_message(bytes);

	switch (roll() % 6) {
	case 0: /* noise */
		len = roll() % 5000;
		roll_bytes(bytes, len);
		break;
	case 1: /* cut short, or too long */
		len = roll() % (2 * len);
		break;
	case 2: /* bits turned over */
		for (unsigned i = 0; i < 1 + roll() % 4; i++)
			bytes[roll() % len] ^= (uint8_t)(1 << roll() % 8);
		break;
	case 3: /* in pieces */
		for (uint64_t i = 0; i < roll() % 20; i++)
			zmq_send(r->socket, bytes, roll() % len, ZMQ_SNDMORE);
		break;
	case 4: /* twice */
		zmq_send(r->socket, bytes, len, 0);
		break;
	default:
		break;
	}
	zmq_send(r->socket, bytes, len, 0);
}

static void nonsense_on_the_channel(void)
{
	static uint8_t huge[1 << 20];

	for (unsigned k = 0; k < 20; k++) {
		struct raw r = raw_open();

		for (unsigned i = 0; i < 1000; i++)
			send_nonsense(&r);
		/* Such a peer is cut off. */
		zmq_send(r.socket, huge, sizeof(huge), 0);
		raw_close(&r);
	}
}

static void bytes_that_are_not_zeromq(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	uint8_t bytes[512];

	memcpy(sa.sun_path, address.channel, sizeof(sa.sun_path));
	for (unsigned k = 0; k < 300; k++) {
		int s = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

		need(s >= 0);
		if (!connect(s, (struct sockaddr *)&sa, sizeof(sa))) {
			roll_bytes(bytes, sizeof(bytes));
			if (k % 2) /* the greeting's first bytes */
				memcpy(bytes, "\xff\0\0\0\0\0\0\0\1\x7f\3", 11);
			send(s, bytes, roll() % sizeof(bytes), MSG_NOSIGNAL);
		}
		close(s);
	}
}

static void join_flood(void)
{
	struct raw r = raw_open();
	uint8_t bytes[TSI_MSG_MAX];

	for (unsigned i = 0; i < 10000; i++) {
		struct tsi_msg m = join_message();

		if (i % 3 == 0) {
			m.u.join.view.dtype = TSOCK_F32;
			m.u.join.view.normalize = TSOCK_MEAN_STD;
			for (unsigned c = 0; c < 3; c++)
				m.u.join.view.std[c] = 1.0f + (float)i;
		}
		zmq_send(r.socket, bytes, tsi_msg_pack(&m, bytes), 0);
	}
	raw_close(&r);
}

static void hello_flood(void)
{
	struct tsi_msg m = { .type = TSI_HELLO, .serial = 1 };
	uint8_t bytes[TSI_MSG_MAX];
	size_t len = tsi_msg_pack(&m, bytes);
	struct raw r[4];
	double t0 = now_s();

	for (unsigned k = 0; k < 4; k++)
		r[k] = raw_open();
	/* No answer is ever read. */
	while (now_s() - t0 < 3)
		for (unsigned i = 0; i < 1000; i++)
			zmq_send(r[i % 4].socket, bytes, len, ZMQ_DONTWAIT);
	for (unsigned k = 0; k < 4; k++)
		raw_close(&r[k]);
}

static void garbage_on_the_channel_is_dropped(void **state)
{
	(void)state;
	attacked_by(nonsense_on_the_channel);
	attacked_by(bytes_that_are_not_zeromq);
}

static void a_flood_of_joins_leaves_room_for_one_more(void **state)
{
	(void)state;
	attacked_by(join_flood);
}

static void a_flood_of_hellos_stops_nobody(void **state)
{
	(void)state;
	attacked_by(hello_flood);
}

/* ---- the descriptor socket ---- */

static int fdpass_open(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
		       0);

	need(s >= 0);
	memcpy(sa.sun_path, address.fdpass, sizeof(sa.sun_path));
	for (unsigned i = 0; connect(s, (struct sockaddr *)&sa, sizeof(sa));
	     i++) {
		/* Its queue is full. */
		if (errno != EAGAIN || i > 2000) {
			close(s);
			return -1;
		}
		pause_us(1000);
	}
	return s;
}

static void send_with(int s, const void *bytes, size_t len, unsigned nfds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(253 * sizeof(int))];
	} control = { .bytes = { 0 } };
	struct iovec iov = { (void *)(uintptr_t)bytes, len };
	struct msghdr h = { .msg_iov = &iov, .msg_iovlen = 1 };
	int some = open("/dev/null", O_RDONLY | O_CLOEXEC);

	need(some >= 0);
	if (nfds) {
		struct cmsghdr *c;

		h.msg_control = control.bytes;
		h.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&h);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (unsigned i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &some,
			       sizeof(some));
	}
	sendmsg(s, &h, MSG_NOSIGNAL);
	close(some);
}

static void packets_on_fdpass(void)
{
	static const unsigned count[] = { 0, 0, 1, 19, 20, 200, 253 };
	static const uint8_t head[8] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };
	uint8_t bytes[700];

	for (unsigned k = 0; k < 400; k++) {
		int s = fdpass_open();

		if (s < 0)
			continue;
		roll_bytes(bytes, sizeof(bytes));
		/* A token that nobody was given. */
		if (k % 2)
			memcpy(bytes, head, sizeof(head));
		send_with(s, bytes, k % 2 ? 24 : 1 + roll() % 600,
			  count[k % 7]);
		if (k % 3)
			send_with(s, bytes, 24, count[k % 7]);
		close(s);
	}
}

static void silence_on_fdpass(void)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	struct reader me = { .src = &src, .batch = 5 };
	int s[200];
	tsock *t;

	memcpy(sa.sun_path, address.fdpass, sizeof(sa.sun_path));
	for (unsigned i = 0; i < 200; i++) {
		s[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		need(s[i] >= 0);
		for (unsigned k = 0; k < 100; k++) {
			if (!connect(s[i], (struct sockaddr *)&sa, sizeof(sa)))
				break;
			pause_us(1000);
		}
		if (i % 2)
			send(s[i], "DOOR", i % 5, MSG_NOSIGNAL);
	}
	/* All are held open while somebody wants to come in. */
	t = connect_reader(&me);
	if (tsock_begin_timed(t, 10000))
		die("no way in: %s", tsock_errmsg());
	tsock_close(t);
}

static void garbage_on_the_descriptor_socket_is_refused(void **state)
{
	(void)state;
	attacked_by(packets_on_fdpass);
}

static void silent_connections_keep_nobody_out(void **state)
{
	(void)state;
	attacked_by(silence_on_fdpass);
}

/* ---- tokens ---- */

static void get_token(uint8_t *token)
{
	struct tsi_msg m = join_message(), r;
	struct tsi_channel *channel;
	bool ready;

	assert_int_equal(tsi_zmq_connect(address.channel, &channel), 0);
	for (unsigned i = 0;; i++) {
		assert_true(i < 50);
		assert_int_equal(tsi_zmq_send(channel, NULL, &m), 0);
		assert_int_equal(tsi_zmq_poll(channel, NULL, 0, 200, &ready),
				 0);
		if (ready && !tsi_zmq_recv(channel, NULL, &r) &&
		    r.type == TSI_OFFER)
			break;
	}
	memcpy(token, r.u.offer.token, TSI_TOKEN);
	tsi_zmq_close(channel);
}

/* The descriptors of a reply; they stay open until let_go(). */
struct inside {
	struct tsi_passed passed;
	struct tsi_ring_shared *ring;
	struct tsi_tail_page *tail;
};

static int go_in(const uint8_t *token, struct inside *in)
{
	int err = tsi_fdpass_connect(address.fdpass, token, 2000, &in->passed);

	if (err)
		return err;
	if (in->passed.producer >= 0)
		close(in->passed.producer);
	assert_int_equal(in->passed.sock, -1);
	in->ring = mmap(NULL, sizeof(*in->ring), PROT_READ, MAP_SHARED,
			in->passed.fd[0], 0);
	in->tail = mmap(NULL, sizeof(*in->tail), PROT_READ | PROT_WRITE,
			MAP_SHARED, in->passed.fd[1], 0);
	assert_true(in->ring != MAP_FAILED && in->tail != MAP_FAILED);
	return 0;
}

static void let_go(struct inside *in)
{
	munmap(in->ring, sizeof(*in->ring));
	munmap(in->tail, sizeof(*in->tail));
	for (unsigned i = 0; i < in->passed.nfds; i++)
		close(in->passed.fd[i]);
}

/* The server gives it up, and says so in its row. */
static void is_given_up(struct inside *in)
{
	double t0 = now_s();

	while (atomic_load(&in->ring->row[in->passed.reply.row].reader)) {
		assert_true(now_s() - t0 < 60.0);
		pause_us(1000);
	}
	let_go(in);
	is_as_before();
}

static void a_token_serves_once(void **state)
{
	uint8_t token[TSI_TOKEN], none[TSI_TOKEN] = { 0 };
	struct inside in, again;

	(void)state;
	get_token(token);
	assert_int_equal(go_in(token, &in), 0);
	assert_int_not_equal(go_in(token, &again), 0);
	assert_int_not_equal(go_in(none, &again), 0);
	atomic_store(&in.tail->tail, UINT64_MAX);
	is_given_up(&in);
}

static void an_old_token_opens_nothing(void **state)
{
	struct inside in;

	(void)state;
	while (now_s() - old_since < 10.5)
		pause_us(50000);
	assert_int_not_equal(go_in(old_token, &in), 0);
	is_as_before();
}

/* ---- tails ---- */

static void enter(struct inside *in)
{
	uint8_t token[TSI_TOKEN];

	get_token(token);
	assert_int_equal(go_in(token, in), 0);
}

static void a_tail_beyond_all_bounds_is_given_up(void **state)
{
	static const uint64_t nonsense[] = { UINT64_MAX, UINT64_MAX - 1,
					     (UINT64_C(1) << 62) + 1,
					     UINT64_C(1) << 62,
					     UINT64_C(1) << 50 };
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct inside in;

		enter(&in);
		atomic_store(&in.tail->tail, nonsense[i]);
		is_given_up(&in);
	}
}

static void a_tail_that_goes_back_is_given_up(void **state)
{
	struct inside in;
	double t0 = now_s();

	(void)state;
	enter(&in);
	atomic_store(&in.tail->tail, in.passed.reply.start + 5);
	for (bool seen = false; !seen;) {
		struct tsock_stats st = stats_of(NAME);

		assert_true(now_s() - t0 < 60.0);
		for (unsigned i = 0; i < st.nrows; i++)
			seen |= st.row[i].batch_size == 16 &&
				st.row[i].tail == in.passed.reply.start + 5;
	}
	atomic_store(&in.tail->tail, in.passed.reply.start + 1);
	is_given_up(&in);
}

static void wants_and_counters_of_any_kind_harm_nobody(void **state)
{
	struct inside in;
	double t0 = now_s();

	(void)state;
	enter(&in);
	/* As if it skipped: it holds nobody up. */
	atomic_store(&in.tail->tail, in.passed.reply.start + 3000);
	while (now_s() - t0 < 1.0) {
		for (unsigned i = 0; i < 1000; i++) {
			atomic_store(&in.tail->want, roll() >> roll() % 64);
			atomic_store(&in.tail->samples, roll());
			atomic_store(&in.tail->wait_ns, roll());
		}
		answers_and_goes_on();
		atomic_fetch_add(&in.tail->tail, 3000);
	}
	atomic_store(&in.tail->tail, 0);
	is_given_up(&in);
}

/* The eventfd is everybody's: its flags and its counter are fair game. */
static void an_eventfd_that_blocks_stops_nobody(void **state)
{
	struct inside in;
	double t0 = now_s();
	uint64_t full = UINT64_MAX - 1;

	(void)state;
	enter(&in);
	atomic_store(&in.tail->tail, in.passed.reply.start + 3000);
	while (now_s() - t0 < 1.0) {
		eventfd_t n;

		fcntl(in.passed.fd[2], F_SETFL, O_NONBLOCK);
		for (unsigned i = 0; i < 500; i++)
			(void)!eventfd_read(in.passed.fd[2], &n);
		(void)!eventfd_write(in.passed.fd[2], full);
		fcntl(in.passed.fd[2], F_SETFL, 0);
		answers_and_goes_on();
		atomic_fetch_add(&in.tail->tail, 3000);
	}
	fcntl(in.passed.fd[2], F_SETFL, O_NONBLOCK);
	atomic_store(&in.tail->tail, UINT64_MAX);
	is_given_up(&in);
}

static void nothing_that_is_handed_out_can_be_written(void **state)
{
	struct inside in;

	(void)state;
	enter(&in);
	for (unsigned i = 0; i < in.passed.nfds; i++) {
		if (i == 1 || i == 2)
			continue;
		assert_true(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED,
				 in.passed.fd[i], 0) == MAP_FAILED);
		assert_int_equal(pwrite(in.passed.fd[i], "x", 1, 0), -1);
		assert_int_equal(ftruncate(in.passed.fd[i], 0), -1);
		assert_int_equal(
			fallocate(in.passed.fd[i],
				  FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				  4096),
			-1);
	}
	assert_int_equal(ftruncate(in.passed.fd[1], 0), -1);
	/* Its own page it may empty: a tail of 0 is one that hasn't moved. */
	assert_int_equal(fallocate(in.passed.fd[1],
				   FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				   0, 4096),
			 0);
	atomic_store(&in.tail->tail, UINT64_MAX);
	is_given_up(&in);
}

/* Last of all. */
static void the_server_closes_in_good_order(void **state)
{
	double t0 = now_s();

	(void)state;
	assert_int_equal(waitpid(survivor, NULL, WNOHANG), 0);
	kill_and_reap(survivor);
	kill(server, SIGTERM);
	assert_int_equal(ended(server), 0);
	assert_true(now_s() - t0 < 60.0);
	assert_int_equal(access(address.fdpass, F_OK), -1);
}

static int set_up(void **state)
{
	struct tsock_stats st;

	(void)state;
	server = start_server();
	survivor = start_reader(&good);
	wait_readers(NAME, 1);
	assert_int_equal(tsi_address_find(NAME, &address, 1), 1);
	/* Once round the ring, so that all is mapped that will be. */
	do
		st = stats_of(NAME);
	while (st.head < 2 * st.capacity);
	one_can_still_join();
	wait_readers(NAME, 1);
	get_token(old_token);
	old_since = now_s();
	fds = open_files(server);
	rss_kib = memory_of(server);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage_on_the_channel_is_dropped),
		cmocka_unit_test(a_flood_of_joins_leaves_room_for_one_more),
		cmocka_unit_test(a_flood_of_hellos_stops_nobody),
		cmocka_unit_test(garbage_on_the_descriptor_socket_is_refused),
		cmocka_unit_test(silent_connections_keep_nobody_out),
		cmocka_unit_test(a_token_serves_once),
		cmocka_unit_test(a_tail_beyond_all_bounds_is_given_up),
		cmocka_unit_test(a_tail_that_goes_back_is_given_up),
		cmocka_unit_test(wants_and_counters_of_any_kind_harm_nobody),
		cmocka_unit_test(an_eventfd_that_blocks_stops_nobody),
		cmocka_unit_test(nothing_that_is_handed_out_can_be_written),
		cmocka_unit_test(an_old_token_opens_nothing),
		cmocka_unit_test(the_server_closes_in_good_order),
	};

	own_folder();
	return cmocka_run_group_tests_name("hostile", tests, set_up, NULL);
}
