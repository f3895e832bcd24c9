/* SPDX-License-Identifier: MIT */
/*
 * test_hostile_tails.c - who was let in harms nobody either: with a token, or
 * through a tail page and what else is handed out.
 */
#include "test/lib/watched_server.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include "ring/ring.h"
#include "wire/fdpass.h"
#include "wire/zmq.h"

static uint8_t old_token[TSI_TOKEN];
static double old_since;

/* ---- tokens ---- */

static void get_token(uint8_t *token)
{
	struct tsi_msg m = watched_join_message(), r;
	struct tsi_channel *channel;
	bool ready;

	assert_int_equal(tsi_zmq_connect(watched_address.channel, &channel), 0);
	for (unsigned i = 0;; i++) {
		assert_true(i < 300);
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
	struct tsi_connecting c = { .open = false };
	int err = tsi_fdpass_connect(watched_address.fdpass, token, 20000, &c,
				     &in->passed);

	tsi_fdpass_abandon(&c);
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
	double t0 = watched_now_s();

	while (atomic_load(&in->ring->reader[in->passed.reply.row])) {
		assert_true(watched_now_s() - t0 < 60.0);
		proc_pause_us(1000);
	}
	let_go(in);
	watched_is_as_before();
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
	while (watched_now_s() - old_since < 10.5)
		proc_pause_us(50000);
	assert_int_not_equal(go_in(old_token, &in), 0);
	watched_is_as_before();
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
	double t0 = watched_now_s();

	(void)state;
	enter(&in);
	atomic_store(&in.tail->tail, in.passed.reply.start + 5);
	for (bool seen = false; !seen;) {
		struct tsock_stats st = stream_stats(WATCHED);

		assert_true(watched_now_s() - t0 < 60.0);
		for (unsigned i = 0; i < st.nrows; i++)
			seen |= st.row[i].batch_size == 16 &&
				st.row[i].tail == in.passed.reply.start + 5;
	}
	atomic_store(&in.tail->tail, in.passed.reply.start + 1);
	is_given_up(&in);
}

/* As if it skipped so many samples: it holds nobody up for an hour. */
#define FAR 100000000

static void wants_and_counters_of_any_kind_harm_nobody(void **state)
{
	struct inside in;
	double t0;

	(void)state;
	enter(&in);
	atomic_store(&in.tail->tail, in.passed.reply.start + FAR);
	t0 = watched_now_s();
	/* Once at least: the server has to see a tail that then goes back. */
	do {
		for (unsigned i = 0; i < 1000; i++) {
			atomic_store(&in.tail->want,
				     watched_roll() >> watched_roll() % 64);
			atomic_store(&in.tail->samples, watched_roll());
			atomic_store(&in.tail->wait_ns, watched_roll());
		}
		watched_answers_and_goes_on();
		atomic_fetch_add(&in.tail->tail, 3000);
	} while (watched_now_s() - t0 < 1.0);
	atomic_store(&in.tail->tail, 0);
	is_given_up(&in);
}

/* The eventfd is everybody's: its flags and its counter are fair game. */
static void an_eventfd_that_blocks_stops_nobody(void **state)
{
	struct inside in;
	double t0;
	uint64_t full = UINT64_MAX - 1;

	(void)state;
	enter(&in);
	atomic_store(&in.tail->tail, in.passed.reply.start + FAR);
	t0 = watched_now_s();
	do {
		eventfd_t n;

		fcntl(in.passed.fd[2], F_SETFL, O_NONBLOCK);
		for (unsigned i = 0; i < 500; i++)
			(void)!eventfd_read(in.passed.fd[2], &n);
		(void)!eventfd_write(in.passed.fd[2], full);
		fcntl(in.passed.fd[2], F_SETFL, 0);
		watched_answers_and_goes_on();
		atomic_fetch_add(&in.tail->tail, 3000);
	} while (watched_now_s() - t0 < 1.0);
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

static int set_up(void **state)
{
	(void)state;
	watched_set_up();
	get_token(old_token);
	old_since = watched_now_s();
	watched_measure();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_serves_once),
		cmocka_unit_test(a_tail_beyond_all_bounds_is_given_up),
		cmocka_unit_test(a_tail_that_goes_back_is_given_up),
		cmocka_unit_test(wants_and_counters_of_any_kind_harm_nobody),
		cmocka_unit_test(an_eventfd_that_blocks_stops_nobody),
		cmocka_unit_test(nothing_that_is_handed_out_can_be_written),
		cmocka_unit_test(an_old_token_opens_nothing),
		cmocka_unit_test(watched_closes_in_good_order),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("hostile_tails", tests, set_up,
					   NULL);
}
