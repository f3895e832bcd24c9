/* SPDX-License-Identifier: MIT */
/*
 * for_each_transport.c - streams for readers of each transport, and tests that
 * run once for each.
 */
#include "test/lib/for_each_transport.h"

#ifdef SIMCUDA
bool transport_nothing_is_left(void)
{
	struct simcuda_live live;

	simcuda_live(&live);
	return !live.bytes && !live.allocations && !live.handles &&
	       !live.reservations && !live.mappings && !live.imports &&
	       !live.pinned && !live.streams && !live.events;
}

static bool is_locked(const struct source *src, void *slot)
{
	struct simcuda_live live;

	(void)slot;
	simcuda_live(&live);
	return live.pinned >= (src->image ? 4 : 3);
}
#else
bool transport_nothing_is_left(void)
{
	return true; /* it can't be told */
}

static bool is_locked(const struct source *src, void *slot)
{
	struct cudaPointerAttributes a;

	(void)src;
	return !cudaPointerGetAttributes(&a, slot) &&
	       a.type == cudaMemoryTypeHost;
}
#endif

static void (*after_lock)(tsock_server *s, const struct source *src);

static void await_lock(tsock_server *s, const struct source *src)
{
	for (unsigned i = 0; !is_locked(src, tsock_serve_slot(s, 0, 0)); i++) {
		need(i < 20000);
		proc_pause_us(1000);
	}
	if (after_lock)
		after_lock(s, src);
}

void transport_join_and_leave(const struct reader_proc *r)
{
	struct tsock_opts o = gpu_reader_opts(r);
	tsock *t;

	o.transport = TSOCK_TRANSPORT_AUTO;
	need(tsock_open(r->src->name, &o, &t) == 0);
	need(tsock_begin(t) == 0);
	tsock_close(t);
}

pid_t transport_start_source(const struct source *src, enum transport transport)
{
	struct reader_proc first = { .src = src,
				     .transport = STORED,
				     .batch = 1 };
	struct source locked = *src;
	pid_t producer;

	if (transport != PINNED)
		return stream_start_producer(src);
	after_lock = src->served;
	locked.served = await_lock;
	producer = stream_start_producer(&locked);
	assert_int_equal(proc_ended(gpu_reader_start_as(
				 transport_join_and_leave, &first)),
			 0);
	stream_wait_readers(src->name, 0);
	return producer;
}

void transport_run_readers(const struct source *src, struct reader_proc *r,
			   unsigned n)
{
	enum transport transport = HOST;
	pid_t producer, pid[32];

	for (unsigned i = 0; i < n; i++)
		if (r[i].transport == PINNED)
			transport = PINNED;
	producer = transport_start_source(src, transport);
	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = gpu_reader_start(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	proc_kill_and_reap(producer);
}

void transport_run_as(void (*fn)(const struct reader_proc *r),
		      const struct reader_proc *r)
{
	pid_t producer = transport_start_source(r->src, r->transport);

	assert_int_equal(proc_ended(gpu_reader_start_as(fn, r)), 0);
	proc_kill_and_reap(producer);
}

void transport_need_gpus(unsigned n)
{
	if (gpu_reader_gpus() >= n && !getenv("CUDA_VISIBLE_DEVICES"))
		return;
	print_message("%u GPUs are needed, all of them visible\n", n);
	skip();
}

enum transport transport_of_case(void **state)
{
	return *(const enum transport *)*state;
}

const struct source transport_small_source = { .name = "small",
					       .n = 1000,
					       .ring = 64,
					       .max_batch = 16,
					       .payload = 4000,
					       .image = SIDE };

void transport_run_small(void (*fn)(const struct reader_proc *r), void **state)
{
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .batch = 16 };

	transport_run_as(fn, &r);
}

#define CASES 256

struct cases {
	struct CMUnitTest test[CASES];
	enum transport transport[CASES];
	char name[CASES][120];
	unsigned n;
};

static void add_case(struct cases *c, const struct transport_test *b,
		     enum transport k)
{
	c->transport[c->n] = k;
	snprintf(c->name[c->n], sizeof(c->name[0]), "%s_%s", b->name,
		 gpu_reader_transport_name[k]);
	c->test[c->n] =
		(struct CMUnitTest){ .name = c->name[c->n],
				     .test_func = b->fn,
				     .teardown_func = proc_end_children,
				     .initial_state = &c->transport[c->n] };
	c->n++;
}

/* TEST_TRANSPORT has a transport's name, or "once" for the tests of none. */
static bool is_wanted(const char *transport)
{
	const char *only = getenv("TEST_TRANSPORT");

	return !only || strcmp(only, transport) == 0;
}

int transport_run_each(const char *group, const struct transport_test *each,
		       unsigned neach, const struct CMUnitTest *once,
		       unsigned nonce)
{
	static struct cases c;

	need(neach * TRANSPORTS + nonce <= CASES);
	proc_own_folder();
	if (!gpu_reader_gpus())
		return 77;
	for (unsigned i = 0; i < neach; i++)
		for (enum transport k = each[i].first; k < TRANSPORTS; k++)
			if (is_wanted(gpu_reader_transport_name[k]))
				add_case(&c, &each[i], k);
	for (unsigned i = 0; i < nonce && is_wanted("once"); i++) {
		c.test[c.n] = once[i];
		c.test[c.n++].teardown_func = proc_end_children;
	}
	if (getenv("TEST_ONLY"))
		cmocka_set_test_filter(getenv("TEST_ONLY"));
	return _cmocka_run_group_tests(group, c.test, c.n, NULL, NULL);
}
