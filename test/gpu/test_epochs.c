/* SPDX-License-Identifier: MIT */
/*
 * test_epochs.c - whole epochs: readers of every transport, with batches as
 * large as they like, see every sample of each epoch exactly once, from a
 * stream's first epoch to its last.
 */
#include "test/lib/for_each_transport.h"

static const unsigned numbers[] = { 1, 2, 8 };

/* ---- coverage ---- */

static void batch_sizes(enum transport transport, unsigned n)
{
	static const uint32_t size[] = { 32, 7, 1, 24, 31, 10, 3, 17 };
	struct source src = { .name = "cover",
			      .n = 403,
			      .ring = 128,
			      .max_batch = 32,
			      .payload = n == 2 ? 65536 : 1500,
			      .image = SIDE };
	struct reader_proc r[8] = { { 0 } };
	unsigned seed = 5;

	for (unsigned i = 0; i < n; i++) {
		r[i].transport = transport;
		r[i].batch = size[i];
		r[i].epochs = 3;
		r[i].floats = i % 2 == 0;
		r[i].streams = 1 + i % 2;
		r[i].delay_us = (unsigned)rand_r(&seed) % 50000;
		r[i].flags = i % 3 == 2 ? TSOCK_DROP_LAST : 0;
		r[i].between = i % 2 ? TSOCK_BETWEEN_LEAVE : TSOCK_BETWEEN_HOLD;
		r[i].writes = i % 4 == 3;
	}
	transport_run_readers(&src, r, n);
}

static void batch_sizes_that_divide_nothing_alone(void **state)
{
	batch_sizes(transport_of_case(state), 1);
}

static void batch_sizes_that_divide_nothing_by_two(void **state)
{
	batch_sizes(transport_of_case(state), 2);
}

static void batch_sizes_that_divide_nothing_by_eight(void **state)
{
	batch_sizes(transport_of_case(state), 8);
}

static void data_sets_smaller_than_a_batch_or_a_ring(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 15, 16, 17, 63, 64, 65 };
	static const uint32_t batch[] = { 16, 1, 7, 16, 5, 13, 2, 10 };

	for (unsigned k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		struct source src = { .name = "small",
				      .n = sizes[k],
				      .ring = 64,
				      .max_batch = 16,
				      .payload = 33,
				      .image = SIDE };
		struct reader_proc r[8] = { { 0 } };

		for (unsigned i = 0; i < 8; i++) {
			r[i].transport = transport_of_case(state);
			r[i].batch = batch[(i + k) % 8];
			r[i].epochs = 3 + i % 4;
			r[i].floats = (i + k) % 2;
			r[i].flags = i % 3 == 2 ? TSOCK_DROP_LAST : 0;
			r[i].delay_us = i % 2 * 10000;
		}
		transport_run_readers(&src, r, numbers[k % 3]);
	}
}

static void readers_of_all_kinds_share_a_stream(void **state)
{
	struct source src = { .name = "all",
			      .n = 301,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 700,
			      .image = SIDE };
	struct reader_proc r[2 * TRANSPORTS] = { { 0 } };

	(void)state;
	for (unsigned i = 0; i < 2 * TRANSPORTS; i++) {
		r[i].transport = i % TRANSPORTS;
		r[i].device = (int)(i / 5 % gpu_reader_gpus());
		r[i].batch = 1 + i * 7 % 16;
		r[i].epochs = 2;
		r[i].floats = i >= TRANSPORTS;
		r[i].writes = i % 3 == 0;
		r[i].delay_us = i * 2000;
	}
	transport_run_readers(&src, r, 2 * TRANSPORTS);
}

/* ---- beginnings and ends of a stream ---- */

/* The reader sees the whole stream. */
static void read_until_it_ends(const struct reader_proc *r)
{
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	while (gpu_reader_begin(&s)) {
		need(tsock_epoch(s.t) == s.begun - 1);
		gpu_reader_epoch(&s);
	}
	need(strstr(tsock_errmsg(), "ended"));
	need(s.begun == r->src->epochs);
	gpu_reader_close(&s);
}

static void check_nothing_is_left(void)
{
	need(transport_nothing_is_left());
}

static void check_gone(const char *name, const char *what)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s.%s", getenv("TSOCK_DIR"), name,
		 what);
	assert_int_equal(access(path, F_OK), -1);
}

static void whole_stream(enum transport transport, unsigned n, uint32_t between)
{
	struct source src = { .name = "ends",
			      .n = 100,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .image = SIDE,
			      .epochs = 3,
			      .min_consumers = n,
			      .closed = check_nothing_is_left };
	pid_t producer = transport_start_source(&src, transport), pid[8];

	for (unsigned i = 0; i < n; i++) {
		struct reader_proc r = { .src = &src,
					 .transport = transport,
					 .batch = 16 - 2 * i,
					 .between = between,
					 .floats = i % 2 };

		pid[i] = gpu_reader_start_as(read_until_it_ends, &r);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	assert_int_equal(proc_ended(producer), 0);
	check_gone("ends", "door");
	check_gone("ends", "bus");
}

static void epochs_end_the_stream_and_nothing_is_left(void **state)
{
	for (unsigned n = 0; n < 3; n++)
		whole_stream(transport_of_case(state), numbers[n],
			     TSOCK_BETWEEN_HOLD);
	/*
	 * Beside others it might miss an epoch; so it might alone, if the host
	 * ring has gone on while the GPU's was full.
	 */
	if (gpu_reader_transport(transport_of_case(state)) ==
		    TSOCK_TRANSPORT_AUTO ||
	    gpu_reader_transport(transport_of_case(state)) ==
		    TSOCK_TRANSPORT_STAGED)
		whole_stream(transport_of_case(state), 1, TSOCK_BETWEEN_LEAVE);
}

static void read_from_the_start(const struct reader_proc *r)
{
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	for (uint64_t e = 0; e < 2; e++) {
		need(gpu_reader_begin(&s));
		need(tsock_epoch(s.t) == e);
		gpu_reader_epoch(&s);
	}
	gpu_reader_close(&s);
}

static void min_consumers_start_together(void **state)
{
	for (unsigned n = 1; n < 3; n++) {
		struct source src = { .name = "together",
				      .n = 300,
				      .ring = 64,
				      .max_batch = 16,
				      .payload = 16,
				      .image = SIDE,
				      .min_consumers = numbers[n] };
		struct reader_proc r = { .src = &src,
					 .transport =
						 transport_of_case(state) };
		pid_t producer = transport_start_source(&src, r.transport),
		      pid[8];

		for (unsigned i = 0; i < numbers[n]; i++) {
			r.batch = 16 - 2 * i;
			r.floats = i % 2;
			if (i == numbers[n] - 1) {
				stream_wait_readers("together", i);
				assert_int_equal(
					stream_stats("together").claimed, 0);
			}
			pid[i] = gpu_reader_start_as(read_from_the_start, &r);
		}
		for (unsigned i = 0; i < numbers[n]; i++)
			assert_int_equal(proc_ended(pid[i]), 0);
		proc_kill_and_reap(producer);
	}
}

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_TRANSPORT(batch_sizes_that_divide_nothing_alone),
		FOR_EACH_TRANSPORT(batch_sizes_that_divide_nothing_by_two),
		FOR_EACH_TRANSPORT(batch_sizes_that_divide_nothing_by_eight),
		FOR_EACH_TRANSPORT(data_sets_smaller_than_a_batch_or_a_ring),
		FOR_EACH_TRANSPORT(epochs_end_the_stream_and_nothing_is_left),
		FOR_EACH_TRANSPORT(min_consumers_start_together),
	};
	const struct CMUnitTest once[] = {
		cmocka_unit_test(readers_of_all_kinds_share_a_stream),
	};

	return transport_run_each("epochs", each,
				  sizeof(each) / sizeof(each[0]), once, 1);
}
