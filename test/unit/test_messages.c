/* SPDX-License-Identifier: MIT */
/*
 * test_messages.c - texts of a stream that are longer than a message can say,
 * or another run's, and what is asked for in a JOIN that can't be had.
 */
#include "serve/messages.h"

#include <sys/resource.h>

#include "base/descriptors.h"
#include "test/lib/channel_fixture.h"
#include "test/lib/readers_fixture.h"

#define MIB (UINT64_C(1) << 20)
#define MOST 256 /* MiB */

/* Each class has the same name, of 1 MiB with its end. */
static void texts_of_more_than_256_mib_are_refused(void **state)
{
	static struct tsi_messages t;
	static const char *classes[MOST];
	struct tsock_serve_opts o = { .classes = classes };
	struct tsi_geometry g = { .nfields = 0 };
	char *name = malloc(MIB);

	(void)state;
	assert_non_null(name);
	memset(name, 'x', MIB - 1);
	name[MIB - 1] = 0;
	for (unsigned i = 0; i < MOST; i++)
		classes[i] = name;
	/* The end of the identity, which is empty, is one too many. */
	o.nclasses = MOST;
	assert_int_equal(tsi_messages_init(&t, &o, &g), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(),
			    "the class names and the identity are too long: "
			    "they have 268435457 bytes, and may have "
			    "268435456");
	assert_null(t.meta);
	o.nclasses = 2;
	assert_int_equal(tsi_messages_init(&t, &o, &g), 0);
	assert_int_equal(t.stream.meta_bytes, 2 * MIB + 1);
	tsi_messages_fini(&t);
	free(name);
}

/* ---- joins that are refused ---- */

#define MAX_BATCH 16

static struct tsi_messages messages;
static struct tsi_waits waits;

static int answers(void **state)
{
	struct tsi_routing_id peer;

	if (channel_open_both(state))
		return -1;
	readers_begin(state);
	tsi_waits_init(&waits, &readers_table, &membership_m);
	messages = (struct tsi_messages){ .sync = &readers_sync,
					  .gate = &readers_gate,
					  .readers = &readers_table,
					  .offers = &readers_offers,
					  .waits = &waits };
	messages.stream.max_batch = MAX_BATCH;
	messages.stream.epoch_len = N;
	return channel_exchange(channel_dealer, 1, &peer);
}

static int ends(void **state)
{
	readers_stop(state);
	return channel_close_both(state);
}

static struct tsi_msg_join join_of_a_consumer(void)
{
	return (struct tsi_msg_join){ .nonce = { 1 },
				      .batch_size = MAX_BATCH,
				      .join = TSOCK_JOIN_EPOCH };
}

/* What is answered to that. */
static void ask(struct tsi_msg *asked, struct tsi_msg *got)
{
	int64_t end = tsi_now_ms() + LONG_MS;
	struct tsi_routing_id peer;
	bool ready;

	asked->serial = 2;
	assert_int_equal(tsi_zmq_send(channel_dealer, NULL, asked), 0);
	do {
		assert_true(tsi_now_ms() < end);
		assert_int_equal(
			tsi_zmq_poll(channel_router, NULL, 0, 20, &ready), 0);
		tsi_messages_answer(&messages, channel_router);
		assert_int_equal(
			tsi_zmq_poll(channel_dealer, NULL, 0, 20, &ready), 0);
	} while (tsi_zmq_recv(channel_dealer, &peer, got) || got->serial != 2);
}

/* The join gets an error that has text in it. */
static void is_refused(const struct tsi_msg_join *join, const char *text)
{
	struct tsi_msg asked = { .type = TSI_JOIN }, got;

	asked.u.join = *join;
	ask(&asked, &got);
	assert_int_equal(got.type, TSI_ERROR);
	assert_int_equal(got.u.error.code, TSOCK_EREFUSED);
	if (!strstr(got.u.error.text, text))
		fail_msg("'%s' lacks '%s'", got.u.error.text, text);
	assert_int_equal(tsi_offers_count(&readers_offers), 0);
}

static void a_batch_has_a_sample_and_no_more_than_the_largest(void **state)
{
	struct tsi_msg_join j = join_of_a_consumer();

	(void)state;
	j.batch_size = 0;
	is_refused(&j, "batch size 0: the stream allows 1 to 16");
	j.batch_size = MAX_BATCH + 1;
	is_refused(&j, "batch size 17: the stream allows 1 to 16");
}

static void a_way_to_join_is_one_that_is_known(void **state)
{
	struct tsi_msg_join j = join_of_a_consumer();

	(void)state;
	j.join = TSOCK_JOIN_NOW + 1;
	is_refused(&j, "is unknown");
}

static void ranks_are_not_detached_one_by_one(void **state)
{
	struct tsi_msg_join j = join_of_a_consumer();

	(void)state;
	tsi_readers_set_slow(&readers_table, TSOCK_SLOW_DETACH, 1000);
	j.world = 2;
	is_refused(&j, "this stream detaches slow consumers one by one");
}

/* Whether it says that it was detached or not, and whatever the stream. */
static void a_consumer_goes_on_within_an_epoch(void **state)
{
	static const struct {
		bool resumable;
		uint32_t detached;
		uint64_t position, end;
		const char *said;
	} ways[] = {
		{ false, 0, 4, N, "at sample 4 of an epoch that ends at 32" },
		{ true, 0, N, N, "at sample 32 of an epoch that ends at 32" },
		{ true, 0, 0, N + 1,
		  "at sample 0 of an epoch that ends at 33" },
		{ false, 1, N, N, "at sample 32 of an epoch that ends at 32" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct tsi_msg_join j = join_of_a_consumer();

		messages.stream.resumable = ways[i].resumable;
		j.detached = ways[i].detached;
		j.position = ways[i].position;
		j.epoch_end = ways[i].end;
		is_refused(&j, ways[i].said);
	}
}

/* One that was detached does in any stream: so it is for another reason that
 * this one is refused. */
static void who_was_detached_goes_on_in_any_stream(void **state)
{
	struct tsi_offer o = readers_offer_of(1);
	struct tsi_reply reply;

	(void)state;
	assert_int_equal(readers_join_by(&o, &reply), 0);
	o.join.epoch_end = N;
	is_refused(&o.join, "can't go on at sample 0");
	o.join.detached = 1;
	is_refused(&o.join, "that connection has joined");
}

/* Three for the consumer, and all of the reserve. */
static void without_descriptors_there_is_no_offer(void **state)
{
	struct tsi_msg_join j = join_of_a_consumer();
	struct rlimit usual, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	few = usual;
	few.rlim_cur = tsi_descriptors().open + 3 + 16 - 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	is_refused(&j, "too few descriptors for one more consumer");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

/* A consumer that asks for texts was told of a stream; the name may have passed
 * to another run since, whose texts are others. */
static void texts_are_those_of_the_run_that_they_are_asked_of(void **state)
{
	struct tsi_msg asked = { .type = TSI_META }, got;
	struct tsi_sockets sockets = { .lock_fd = -1 };
	uint8_t texts[] = "rose\0tulip";

	(void)state;
	messages.sockets = &sockets;
	messages.meta = texts;
	messages.stream.meta_bytes = sizeof(texts);
	tsi_messages_begin(&messages, 4711);
	asked.u.meta = (struct tsi_msg_meta){ 4711, 5 };
	ask(&asked, &got);
	assert_int_equal(got.type, TSI_META_DATA);
	assert_int_equal(got.u.meta_data.offset, 5);
	assert_int_equal(got.u.meta_data.len, 6);
	assert_memory_equal(got.u.meta_data.bytes, "tulip", 6);
	/* Beyond their end there is nothing. */
	asked.u.meta.offset = UINT32_MAX;
	ask(&asked, &got);
	assert_int_equal(got.type, TSI_META_DATA);
	assert_int_equal(got.u.meta_data.len, 0);
	asked.u.meta.incarnation = 4712;
	ask(&asked, &got);
	assert_int_equal(got.type, TSI_ERROR);
	assert_int_equal(got.u.error.code, TSOCK_ELOST);
	assert_non_null(strstr(got.u.error.text, "was restarted"));
}

#undef TEST
#define TEST(f) cmocka_unit_test_setup_teardown(f, answers, ends)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_more_than_256_mib_are_refused),
		TEST(a_batch_has_a_sample_and_no_more_than_the_largest),
		TEST(a_way_to_join_is_one_that_is_known),
		TEST(ranks_are_not_detached_one_by_one),
		TEST(a_consumer_goes_on_within_an_epoch),
		TEST(who_was_detached_goes_on_in_any_stream),
		TEST(without_descriptors_there_is_no_offer),
		TEST(texts_are_those_of_the_run_that_they_are_asked_of),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
