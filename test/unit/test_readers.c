/* SPDX-License-Identifier: MIT */
/*
 * test_readers.c - peers that become readers or can't, and readers that lose
 * their view, of a producer that has nothing but its tables and rings.
 */
#include "serve/readers.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "ring/tail_page.h"
#include "test/lib/membership_fixture.h"
#include "test/lib/ring_fixture.h"

#define N 32
#define C 64

static struct tsi_sync sync_;
static struct tsi_gate gate;
static struct tsi_offers offers;
static struct tsi_readers readers;
static struct fixture_ring ring[2];
static struct tsi_reply reply; /* to who joined last */

static void begin_with(uint64_t end)
{
	static const uint64_t bytes[] = { 64 };

	tsi_sync_init(&sync_);
	make(N, 16, C, end);
	tsi_membership_source(&m, 1, 0, C, false);
	memset(&gate, 0, sizeof(gate));
	memset(&offers, 0, sizeof(offers));
	memset(&readers, 0, sizeof(readers));
	tsi_gate_init(&gate, &sync_, &m);
	tsi_readers_init(&readers, &sync_, &gate, &m, &offers);
	for (unsigned i = 0; i < 2; i++) {
		fixture_ring_make(&ring[i], bytes, 1, C, 4);
		tsi_gate_add_ring(&gate, i, &ring[i].ring);
	}
}

static int begin(void **state)
{
	(void)state;
	begin_with(TSI_NEVER);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	tsi_readers_drop_all(&readers, "leaves");
	for (unsigned i = 0; i < 2; i++)
		fixture_ring_free(&ring[i]);
	tsi_sync_fini(&sync_);
	return 0;
}

/* What a consumer, whose nonce is its name, was offered. */
static struct tsi_offer offer_of(uint8_t name)
{
	struct tsi_offer o = { .used = true };

	memset(o.join.nonce, name, TSI_NONCE);
	o.join.batch_size = 4;
	o.join.join = TSOCK_JOIN_EPOCH;
	o.join.between = TSOCK_BETWEEN_LEAVE;
	return o;
}

/* A rank of a job of two, which have both asked. */
static struct tsi_offer offer_of_rank(uint32_t rank)
{
	struct tsi_offer o[2];

	for (uint32_t i = 0; i < 2; i++) {
		o[i] = offer_of((uint8_t)(1 + i));
		o[i].join.world = 2;
		o[i].join.rank = i;
		memset(o[i].join.job, 'j', TSOCK_JOB);
		tsi_jobs_ask(&readers.jobs, &o[i].join, tsi_now_ms());
	}
	return o[rank];
}

static int joins(const struct tsi_offer *o)
{
	struct tsi_peer peer = { .pid = (uint32_t)getpid(), .pidfd = -1 };
	int s[2], err;

	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s), 0);
	close(s[1]);
	peer.sock = s[0];
	reply = (struct tsi_reply){ .code = 0 };
	err = tsi_readers_join(&readers, o, &peer, &reply);
	/* It is the reader's from then on. */
	if (err)
		close(s[0]);
	return err;
}

/* A reader that has come so far that the ring no longer holds sample 0. */
static void pass_the_first_samples(unsigned id)
{
	struct tsi_tail_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED,
		     tsi_memfd_fd(&readers.conn[id].tail), 0);

	assert_true(page != MAP_FAILED);
	tsi_tail_page_move(page, C);
	munmap(page, sizeof(*page));
	fill_all();
	tsi_membership_tail(&m, id, C, 0);
	fill_all();
	assert_int_equal(tsi_membership_head(&m, 0), 2 * C);
}

static void said(const char *text)
{
	if (!strstr(tsock_errmsg(), text))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), text);
}

/* Where the stream goes on is known when they have said where they are. */
static void nobody_joins_before_it_is_known_where_others_return(void **state)
{
	struct tsi_reader_row row = { .nonce = { 9 } };
	struct tsi_offer o = offer_of(1);
	uint64_t from;

	(void)state;
	assert_true(tsi_returners_add(&readers.returners, &row, 0));
	assert_int_equal(joins(&o), TSOCK_EAGAIN);
	assert_int_equal(m.count, 0);
	assert_true(tsi_returners_take(&readers.returners, row.nonce));
	assert_int_equal(tsi_returners_step(&readers.returners, 0, &from),
			 TSI_RETURNERS_RELEASE);
	assert_int_equal(joins(&o), 0);
	assert_true(tsi_readers_has(&readers, o.join.nonce));
}

static void a_rank_whose_job_was_forgotten_asks_again(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	memset(&readers.jobs, 0, sizeof(readers.jobs));
	assert_int_equal(joins(&o), TSOCK_EAGAIN);
	said("the job's ranks came too late");
	assert_int_equal(m.count, 0);
}

static void ranks_that_go_on_go_on_at_one_sample(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	o.join.epoch_end = N;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(reply.start, 0);
	o = offer_of_rank(1);
	o.join.epoch_end = N;
	o.join.position = 4;
	assert_int_equal(joins(&o), TSOCK_EREFUSED);
	said("rank 1 goes on at sample 4, and the other ranks of its job at 0");
	o.join.position = 0;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(m.count, 2);
}

/* It has read the epoch that the first rank begins with. */
static void a_rank_that_is_ahead_begins_later(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	assert_int_equal(joins(&o), 0);
	o = offer_of_rank(1);
	o.join.after = N;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(reply.start, N);
}

/* One that leaves between epochs has no claim to it; one that stays does. */
static void a_start_that_is_gone_is_missed_by_ranks_that_stay(void **state)
{
	struct tsi_offer o = offer_of_rank(0);

	(void)state;
	assert_int_equal(joins(&o), 0);
	pass_the_first_samples(reply.row);
	o = offer_of_rank(1);
	o.join.between = TSOCK_BETWEEN_HOLD;
	assert_int_equal(joins(&o), TSOCK_EREFUSED);
	said("rank 1 can't begin at sample 0");
	o.join.between = TSOCK_BETWEEN_LEAVE;
	assert_int_equal(joins(&o), 0);
	assert_int_equal(reply.start, C);
}

static void who_cannot_return_to_its_job_makes_none(void **state)
{
	struct tsi_reader_row row = { .nonce = { 9 }, .together = 1 };
	struct tsi_offer o = offer_of(1);
	uint64_t from;

	(void)state;
	assert_int_equal(joins(&o), 0);
	pass_the_first_samples(reply.row);
	assert_true(tsi_returners_add(&readers.returners, &row, 0));
	assert_int_equal(tsi_returners_step(&readers.returners, 600, &from),
			 TSI_RETURNERS_HOLD);
	o = offer_of(2);
	o.join.world = 2;
	o.join.epoch_end = N;
	o.join.returns = 1;
	memcpy(o.join.was, row.nonce, TSI_NONCE);
	assert_int_equal(joins(&o), TSOCK_EREFUSED);
	said("sample 0 (of epoch 0) can't be read again");
	assert_int_equal(readers.jobs.waiting, 0);
}

static void a_view_that_is_lost_takes_its_readers_and_no_others(void **state)
{
	struct tsi_offer o = offer_of(1), other = offer_of(2);

	(void)state;
	assert_int_equal(joins(&other), 0);
	o.view = 1;
	assert_int_equal(joins(&o), 0);
	assert_true(tsi_readers_need(&readers, 1));
	tsi_readers_drop_view(&readers, 1);
	assert_false(tsi_readers_has(&readers, o.join.nonce));
	assert_true(tsi_readers_has(&readers, other.join.nonce));
	assert_false(tsi_readers_need(&readers, 1));
}

/* Its consumer was told that it can join. */
static void a_stream_with_an_offer_is_not_over(void **state)
{
	struct tsi_offer o = offer_of(1);

	(void)state;
	stop(NULL);
	begin_with(N);
	assert_false(tsi_readers_over(&readers));
	assert_int_equal(joins(&o), 0);
	fill_all();
	tsi_membership_tail(&m, reply.row, N, 0);
	tsi_membership_leave(&m, reply.row);
	tsi_conn_close(&readers.conn[reply.row]);
	assert_true(tsi_membership_ended(&m));
	assert_non_null(tsi_offers_add(&offers, &o.join, 0, 0));
	assert_false(tsi_readers_over(&readers));
	tsi_offers_withdraw(&offers, o.join.nonce);
	assert_true(tsi_readers_over(&readers));
	/* For good. */
	assert_non_null(tsi_offers_add(&offers, &o.join, 0, 0));
	assert_true(tsi_readers_over(&readers));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_joins_before_it_is_known_where_others_return),
		TEST(a_rank_whose_job_was_forgotten_asks_again),
		TEST(ranks_that_go_on_go_on_at_one_sample),
		TEST(a_rank_that_is_ahead_begins_later),
		TEST(a_start_that_is_gone_is_missed_by_ranks_that_stay),
		TEST(who_cannot_return_to_its_job_makes_none),
		TEST(a_view_that_is_lost_takes_its_readers_and_no_others),
		TEST(a_stream_with_an_offer_is_not_over),
	};

	return cmocka_run_group_tests_name("readers", tests, NULL, NULL);
}
