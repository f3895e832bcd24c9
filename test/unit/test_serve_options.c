/* SPDX-License-Identifier: MIT */
/*
 * test_serve_options.c - streams that can't be: each option of a server that is
 * wrong is named, and what is just not wrong is taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "serve/options.h"

#define N 100

static const struct tsock_field field = {
	.name = "x", .dtype = TSOCK_U8, .ndim = 1, .shape = { 16 }
};

static struct tsock_serve_opts good(void)
{
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;

	o.fields = &field;
	o.nfields = 1;
	o.epoch_len = N;
	o.ring = 64;
	o.max_batch = 8;
	return o;
}

static int reads(const struct tsock_serve_opts *o)
{
	struct tsock_serve_opts got;
	struct tsi_geometry g;

	return tsi_options_read("test", o, &got, &g);
}

static void is_taken(const struct tsock_serve_opts *o)
{
	if (reads(o))
		fail_msg("refused: %s", tsock_errmsg());
}

static void is_refused(const struct tsock_serve_opts *o, const char *why)
{
	assert_int_equal(reads(o), TSOCK_EARG);
	if (!strstr(tsock_errmsg(), why))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), why);
}

static void an_epoch_has_samples_and_a_stream_an_end(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	is_taken(&o);
	o.epoch_len = 0;
	is_refused(&o, "an epoch has 1 to 2^48 samples, not 0");
	o.epoch_len = UINT64_C(1) << 48;
	is_taken(&o);
	o.epoch_len++;
	is_refused(&o, "not 281474976710657");
	o = good();
	o.epochs = UINT64_MAX / N;
	is_refused(&o, "epochs are too many");
	o.epochs = 3;
	o.first_epoch = 2;
	is_taken(&o);
	o.first_epoch = 3;
	is_refused(&o, "can't begin with epoch 3");
	o.epochs = 0;
	o.first_epoch = UINT64_MAX / N;
	is_refused(&o, "no stream comes to epoch");
}

static void segments_are_parts_of_an_epoch(void **state)
{
	static const struct {
		uint64_t bounds[4];
		bool good;
	} ways[] = {
		{ { 0, 10, 90, N }, true },      { { 0, 0, N, N }, true },
		{ { 1, 10, 90, N }, false },     { { 0, 90, 10, N }, false },
		{ { 0, 10, 90, N - 1 }, false }, { { 0, 10, N + 1, N }, false },
	};
	struct tsock_serve_opts o = good();

	(void)state;
	o.segments = N;
	is_taken(&o);
	o.segments = N + 1;
	is_refused(&o, "101 segments don't fit an epoch of 100 samples");
	o.segments = 3;
	for (unsigned i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		o.segment_bounds = ways[i].bounds;
		if (ways[i].good)
			is_taken(&o);
		else
			is_refused(&o, "segment bounds must rise from 0");
	}
}

static void a_shard_is_one_of_those_that_there_are(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	o.shards = 2;
	o.shard = 1;
	is_taken(&o);
	o.shard = 2;
	is_refused(&o, "rank 2 of 2");
	o.shards = 0;
	is_refused(&o, "rank 2 of a part");
}

static void a_part_says_how_long_the_whole_epoch_is(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	o.shards = 4;
	o.shard_ranks = 2;
	o.epoch_len = 6;
	o.whole_len = 11;
	is_taken(&o);
	o.start_epoch = 3;
	o.start = 10;
	is_taken(&o);
	o.start = 11;
	is_refused(&o, "position 11");
	o.start = 10;
	o.epochs = 3;
	is_refused(&o, "can't begin in epoch 3");
	o.epochs = 4;
	is_taken(&o);
	o.start_epoch = UINT64_MAX;
	is_refused(&o, "can't begin in epoch");
	o.start_epoch = 3;
	o.whole_len = 13;
	is_refused(&o, "has epochs of 8, not of 6");
	o.whole_len = 0;
	is_refused(&o, "how long the whole epoch is");
}

static void no_more_consumers_are_waited_for_than_there_can_be(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	o.min_consumers = 256;
	is_taken(&o);
	o.min_consumers = 257;
	is_refused(&o, "at most 256 consumers");
}

static void ways_to_gpus_are_those_that_are_known(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	o.fanout = TSOCK_FANOUT_HOST;
	o.gpu_transport = TSOCK_TRANSPORT_STAGED;
	is_taken(&o);
	o.fanout++;
	is_refused(&o, "an unknown fan-out");
	o.fanout--;
	o.gpu_transport++;
	is_refused(&o, "an unknown fan-out, or transport");
}

static void who_goes_on_after_a_restart_knows_the_stream(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	o.resumable = 1;
	is_refused(&o, "resumable by its identity");
	o.identity = "";
	is_refused(&o, "resumable by its identity");
	o.identity = "a";
	is_taken(&o);
}

static void slow_consumers_are_given_time_and_host_memory(void **state)
{
	struct tsock_serve_opts o = good();

	(void)state;
	o.slow = TSOCK_SLOW_BLOCK;
	is_taken(&o);
	o.slow = TSOCK_SLOW_DETACH;
	is_refused(&o, "has no time");
	o.slow_ms = 1000;
	is_taken(&o);
	o.gpu_transport = TSOCK_TRANSPORT_LEGACY;
	is_refused(&o, "from rings in host memory alone");
	o.gpu_transport = TSOCK_TRANSPORT_STAGED;
	is_taken(&o);
	o.slow = TSOCK_SLOW_DETACH + 1;
	is_refused(&o, "the policy for slow consumers is unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_epoch_has_samples_and_a_stream_an_end),
		cmocka_unit_test(segments_are_parts_of_an_epoch),
		cmocka_unit_test(a_shard_is_one_of_those_that_there_are),
		cmocka_unit_test(a_part_says_how_long_the_whole_epoch_is),
		cmocka_unit_test(
			no_more_consumers_are_waited_for_than_there_can_be),
		cmocka_unit_test(ways_to_gpus_are_those_that_are_known),
		cmocka_unit_test(who_goes_on_after_a_restart_knows_the_stream),
		cmocka_unit_test(slow_consumers_are_given_time_and_host_memory),
	};

	return cmocka_run_group_tests_name("serve, options", tests, NULL, NULL);
}
