/* SPDX-License-Identifier: MIT */
/*
 * test_restarts.c - producers that are killed and started again under readers
 * of every transport: these go on at the exact next sample.
 */
#include "test/lib/for_each_transport.h"

static const struct source model = { .name = "restarts",
				     .n = 1500,
				     .ring = 128,
				     .max_batch = 16,
				     .payload = 700,
				     .image = SIDE,
				     .pace_us = 60,
				     .identity = "kind=test\n" };

#define READERS 3
#define KILLS 5

/* Kill and start the producer until the readers are through. */
static unsigned disturb(pid_t producer, enum transport transport,
			const pid_t *pid)
{
	unsigned seed = 7, left = READERS, killed = 0;
	bool over[READERS] = { false };

	while (left) {
		proc_pause_us(50000 + (unsigned)rand_r(&seed) % 200000);
		if (killed < KILLS) {
			proc_kill_and_reap(producer);
			killed++;
			producer = stream_start_producer(&model);
		}
		for (unsigned i = 0; i < READERS; i++) {
			if (over[i] || !proc_has_ended(pid[i]))
				continue;
			assert_int_equal(proc_ended(pid[i]), 0);
			over[i] = true;
			left--;
		}
	}
	proc_kill_and_reap(producer);
	print_message("%s: %u producers killed\n",
		      gpu_reader_transport_name[transport], killed);
	return killed;
}

static void readers_go_on_with_the_next_producer(void **state)
{
	enum transport transport = transport_of_case(state);
	struct reader_proc r[READERS] = {
		{ .batch = 16, .epochs = 3, .floats = true },
		{ .batch = 7, .epochs = 2, .streams = 2 },
		{ .batch = 10,
		  .epochs = 2,
		  .floats = true,
		  .flags = TSOCK_DROP_LAST },
	};
	pid_t producer = transport_start_source(&model, transport),
	      pid[READERS];

	for (unsigned i = 0; i < READERS; i++) {
		r[i].src = &model;
		r[i].transport = transport;
		pid[i] = gpu_reader_start(&r[i]);
	}
	assert_true(disturb(producer, transport, pid) > 0);
}

int main(void)
{
	const struct transport_test each[] = {
		FOR_EACH_TRANSPORT(readers_go_on_with_the_next_producer),
	};

	return transport_run_each("restarts", each, 1, NULL, 0);
}
