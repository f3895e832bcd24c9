/* SPDX-License-Identifier: MIT */
/*
 * test_keeping.c - what may be written into and kept, for readers of every
 * transport: nobody else sees it, nobody waits for it, and no byte in hand
 * changes.  If a batch can't be kept, its holder gets an error.
 */
#include "test/lib/for_each_transport.h"

static const unsigned numbers[] = { 1, 2, 8 };

/* Its batches are memory that others read, too. */
static bool common(const struct reader_proc *r)
{
	if (!gpu_reader_on_gpu(r->transport))
		return !r->writes;
	return r->transport != STAGED && !gpu_reader_as_stored(r->transport);
}

/* ---- writing ---- */

/* The transport that reads the same ring, and gets memory of its own. */
static enum transport writer_beside(enum transport k)
{
	return k == SHARED ? STORED : k == LEGACY ? LEGACY_STORED : k;
}

static void some_write_all_over_their_batches_and_nobody_sees_it(void **state)
{
	struct source src = { .name = "scribble",
			      .n = 400,
			      .ring = 128,
			      .max_batch = 32,
			      .payload = 5000,
			      .image = SIDE };

	for (unsigned n = 0; n < 3; n++) {
		struct reader_proc r[8] = { { 0 } };

		for (unsigned i = 0; i < numbers[n]; i++) {
			r[i].writes = i % 2 == 0;
			r[i].transport = transport_of_case(state);
			if (r[i].writes)
				r[i].transport = writer_beside(r[i].transport);
			r[i].batch = 32 - 3 * i;
			r[i].epochs = 2;
			r[i].floats = i % 4 < 2;
			r[i].streams = 1 + i % 3;
		}
		transport_run_readers(&src, r, numbers[n]);
	}
}

#ifdef SIMCUDA
/* Where the driver maps read-only, what a kernel writes is its own error. */
static void read_and_spoil(const struct reader_proc *r)
{
	tsock_batch *b;
	struct gpu_reader s;
	int err;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	gpu_reader_some(&s, 3);
	need(tsock_next(s.t, 60000, &b) == 0);
	need(tsock_batch_use(b, s.stream[0]) == 0);
	cu(cudaMemsetAsync((void *)(uintptr_t)tsock_batch_data(b, 0), 0xee, 100,
			   s.stream[0]));
	tsock_batch_release(b);
	while ((err = tsock_next(s.t, 60000, &b)) == 0)
		tsock_batch_release(b);
	need(err == TSOCK_ESTREAM && strstr(tsock_errmsg(), "IllegalAddress"));
}

static void who_writes_into_common_memory_fails_alone(void **state)
{
	struct source src = { .name = "spoil",
			      .n = 400,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 500,
			      .image = SIDE };
	struct reader_proc bad = { .src = &src,
				   .transport = SHARED,
				   .batch = 16 };
	pid_t producer = stream_start_producer(&src), good[4], pid;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct reader_proc r = { .src = &src,
					 .transport = i ? SHARED : HOST,
					 .batch = 16 - i,
					 .epochs = 3,
					 .floats = i % 2 };

		good[i] = gpu_reader_start(&r);
	}
	pid = gpu_reader_start_as(read_and_spoil, &bad);
	assert_int_equal(proc_ended(pid), 0);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(proc_ended(good[i]), 0);
	proc_kill_and_reap(producer);
}
#endif

/* ---- keeping ---- */

#define KEEP 80

/* A batch, or what was made of it. */
struct kept {
	uint64_t seq, count;
	tsock_batch *b;
	void *device[FIELDS];
};

static void keep(struct gpu_reader *s, tsock_batch *b, struct kept *k)
{
	*k = (struct kept){ .seq = tsock_batch_seq(b),
			    .count = tsock_batch_count(b),
			    .b = b };
	need(!tsock_batch_data_mut(b, 0) ==
	     (gpu_reader_on_gpu(s->r->transport) || !s->r->writes));
	if (!gpu_reader_as_stored(s->r->transport))
		return;
	for (unsigned i = 0; i < FIELDS; i++) {
		cu(cudaMalloc(&k->device[i], s->bytes[i] * k->count));
		need(tsock_batch_convert(b, i, k->device[i], s->stream[i]) ==
		     0);
	}
	tsock_batch_release(b);
	k->b = NULL;
}

static void look_at(struct gpu_reader *s, const struct kept *k)
{
	struct copy *l = &s->copy[0];

	if (k->b) {
		gpu_reader_queue_copy(s, k->b, l, s->stream[0]);
		gpu_reader_finish_copy(s, l);
		return;
	}
	l->seq = k->seq;
	l->count = k->count;
	for (unsigned i = 0; i < FIELDS; i++)
		cu(cudaMemcpyAsync(l->host[i], k->device[i],
				   s->bytes[i] * k->count,
				   cudaMemcpyDeviceToHost, s->stream[i]));
	for (unsigned i = 0; i < FIELDS; i++)
		cu(cudaStreamSynchronize(s->stream[i]));
	gpu_reader_check_copy(s, l);
}

static void look_at_all(struct gpu_reader *s, const struct kept *k, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		look_at(s, &k[i]);
}

/* Write into it, if it may be, and give it back. */
static void drop(struct gpu_reader *s, struct kept *k)
{
	if (k->b && s->r->writes && !gpu_reader_on_gpu(s->r->transport))
		memset(tsock_batch_data_mut(k->b, 0), 1, 100);
	tsock_batch_release(k->b);
	for (unsigned i = 0; i < FIELDS; i++)
		if (k->device[i])
			cu(cudaFree(k->device[i]));
}

/* How many of the first batches are kept, while they may be; the rest is given
 * back. */
static unsigned keep_most;

static void read_and_keep(const struct reader_proc *r)
{
	unsigned n = 0, turn = 0, most = keep_most;
	struct kept kept[KEEP];
	tsock_batch *b;
	struct gpu_reader s;
	char text[64];
	int err;

	gpu_reader_open(&s, r);
	for (unsigned e = 0; e < r->epochs; e++) {
		need(gpu_reader_begin(&s));
		while ((err = tsock_next(s.t, 60000, &b)) != TSOCK_EEPOCH) {
			if (!err && n < most) {
				keep(&s, b, &kept[n++]);
				continue;
			}
			if (!err) {
				gpu_reader_check(&s, b, turn++);
				continue;
			}
			/* The error names the held batches, which go then. */
			need(err == TSOCK_EHELD && common(r) && n);
			snprintf(text, sizeof(text), "(samples %llu to ",
				 (unsigned long long)kept[0].seq);
			need(strstr(tsock_errmsg(), text));
			look_at_all(&s, kept, n);
			while (n)
				gpu_reader_leave_to_gpu(&s, kept[--n].b,
							turn++);
			most = 0;
		}
		look_at_all(&s, kept, n);
	}
	need(common(r) == !n && most == (common(r) ? 0 : keep_most));
	gpu_reader_settle(&s);
	tsock_close(s.t);
	look_at_all(&s, kept, n);
	while (n)
		drop(&s, &kept[--n]);
	s.t = NULL;
	gpu_reader_close(&s);
}

/* Others read the stream, and end well. */
static void keep_beside(struct source *src, struct reader_proc *r,
			unsigned most, unsigned n)
{
	pid_t producer, pid, other[8];

	r->src = src;
	keep_most = most;
	producer = transport_start_source(src, r->transport);
	pid = gpu_reader_start_as(read_and_keep, r);
	for (unsigned i = 0; i < n; i++) {
		struct reader_proc o = { .src = src,
					 .transport =
						 i % 2 ? HOST : r->transport,
					 .batch = 5 + i,
					 .epochs = 3,
					 .floats = i % 4 < 2 };

		other[i] = gpu_reader_start(&o);
	}
	assert_int_equal(proc_ended(pid), 0);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(proc_ended(other[i]), 0);
	proc_kill_and_reap(producer);
}

static void keeping_three_rings_of_batches_holds_nobody_up(void **state)
{
	static const uint32_t size[] = { 1, 1000, 20011 };

	for (unsigned i = 0; i < 3; i++) {
		struct source src = { .name = "kept",
				      .n = 3 * 128 + 5,
				      .ring = 128,
				      .max_batch = 16,
				      .payload = size[i],
				      .image = SIDE };
		struct reader_proc r = { .transport = transport_of_case(state),
					 .batch = 16,
					 .epochs = 3,
					 .floats = i % 2,
					 .writes = true };

		keep_beside(&src, &r, 2 * 25, numbers[i]);
	}
}

static void a_first_batch_is_kept_for_the_whole_run(void **state)
{
	struct source src = { .name = "first",
			      .n = 500,
			      .ring = 128,
			      .max_batch = 16,
			      .payload = 5000,
			      .image = SIDE };
	struct reader_proc r = { .transport = transport_of_case(state),
				 .batch = 16,
				 .epochs = 4,
				 .writes = true };

	keep_beside(&src, &r, 1, 0);
	r.floats = true;
	keep_beside(&src, &r, 1, 1);
}

static void a_read_only_reader_that_keeps_too_much_is_told_so(void **state)
{
	struct source src = { .name = "hoard",
			      .n = 700,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 100,
			      .image = SIDE };
	struct reader_proc r = { .transport = transport_of_case(state),
				 .batch = 16,
				 .epochs = 2 };

	keep_beside(&src, &r, KEEP, 0);
	keep_beside(&src, &r, KEEP, 2);
}

/* ---- rings ---- */

/* 60 slots on the host may be 64 on a GPU, and each wraps at its own end. */
static void odd_sample_sizes_cross_the_rings_end_whole(void **state)
{
	static const uint32_t size[] = { 1, 3, 4095, 4096, 4097, 299 * 299 };

	for (unsigned k = 0; k < sizeof(size) / sizeof(size[0]); k++) {
		struct source src = { .name = "odd",
				      .n = 150,
				      .ring = 41,
				      .max_batch = 10,
				      .payload = size[k],
				      .image = SIDE };
		struct reader_proc r[3] = { { .batch = 10, .writes = true },
					    { .batch = 3, .floats = true },
					    { .batch = 9 } };

		for (unsigned i = 0; i < 3; i++) {
			r[i].transport = transport_of_case(state);
			r[i].epochs = 2;
		}
		transport_run_readers(&src, r, 3);
	}
}

static unsigned views_for(enum transport k)
{
	switch (k) {
	case HOST:
	case PINNED:
		return 1; /* of floats */
	case SHARED:
	case LEGACY:
		return 2; /* and the samples as they are, of which that is */
	case STORED:
	case LEGACY_STORED:
		return 1; /* the samples as they are, whatever is wanted */
	default:
		return 0;
	}
}

static void read_beside_seven(const struct reader_proc *r)
{
	struct tsock_stats first = { 0 }, st;
	tsock_batch *b[8];
	struct reader_proc q[8];
	struct gpu_reader s[8];

	for (unsigned i = 0; i < 8; i++) {
		q[i] = *r;
		q[i].batch = 4 + i;
		q[i].floats = i % 2;
		gpu_reader_open(&s[i], &q[i]);
		need(gpu_reader_begin(&s[i]));
		need(tsock_next(s[i].t, 60000, &b[i]) == 0);
		if (i == 0)
			continue;
		st = stream_stats(r->src->name);
		if (i == 1)
			first = st;
		need(st.views == views_for(r->transport));
		need(st.consumers == i + 1 && st.nrows == i + 1);
		need(st.memory == first.memory);
	}
	for (unsigned i = 0; i < 8; i++) {
		gpu_reader_check(&s[i], b[i], 0);
		gpu_reader_settle(&s[i]);
		gpu_reader_close(&s[i]);
	}
}

static void views_are_made_once_and_shared(void **state)
{
	struct source src = { .name = "views",
			      .n = 400,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .image = SIDE };
	struct reader_proc r = { .src = &src,
				 .transport = transport_of_case(state) };

	transport_run_as(read_beside_seven, &r);
}

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_TRANSPORT(
			some_write_all_over_their_batches_and_nobody_sees_it),
		FOR_EACH_TRANSPORT(
			keeping_three_rings_of_batches_holds_nobody_up),
		FOR_EACH_TRANSPORT(a_first_batch_is_kept_for_the_whole_run),
		FOR_EACH_TRANSPORT(
			a_read_only_reader_that_keeps_too_much_is_told_so),
		FOR_EACH_TRANSPORT(odd_sample_sizes_cross_the_rings_end_whole),
		FOR_EACH_TRANSPORT(views_are_made_once_and_shared),
	};
	const struct CMUnitTest once[] = {
#ifdef SIMCUDA
		cmocka_unit_test(who_writes_into_common_memory_fails_alone),
#endif
		{ 0 },
	};

	return transport_run_each("keeping", each,
				  sizeof(each) / sizeof(each[0]), once,
				  sizeof(once) / sizeof(once[0]) - 1);
}
