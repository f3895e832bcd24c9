/* SPDX-License-Identifier: MIT */
/*
 * for_each_transport.c - streams for readers of each transport, and tests that
 * run once for each.
 */
#include "test/lib/for_each_transport.h"

#ifdef SIMCUDA
bool nothing_is_left(void)
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
bool nothing_is_left(void)
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
		pause_us(1000);
	}
	if (after_lock)
		after_lock(s, src);
}

void join_and_leave(const struct reader_proc *r)
{
	struct tsock_opts o = opts_of(r);
	tsock *t;

	o.transport = TSOCK_TRANSPORT_AUTO;
	need(tsock_open(r->src->name, &o, &t) == 0);
	need(tsock_begin(t) == 0);
	tsock_close(t);
}

pid_t start_source(const struct source *src, enum transport transport)
{
	struct reader_proc first = { .src = src,
				     .transport = STORED,
				     .batch = 1 };
	struct source locked = *src;
	pid_t producer;

	if (transport != PINNED)
		return start_producer(src);
	after_lock = src->served;
	locked.served = await_lock;
	producer = start_producer(&locked);
	assert_int_equal(ended(start_as(join_and_leave, &first)), 0);
	wait_readers(src->name, 0);
	return producer;
}

void run_reader_procs(const struct source *src, struct reader_proc *r,
		      unsigned n)
{
	enum transport transport = HOST;
	pid_t producer, pid[32];

	for (unsigned i = 0; i < n; i++)
		if (r[i].transport == PINNED)
			transport = PINNED;
	producer = start_source(src, transport);
	for (unsigned i = 0; i < n; i++) {
		r[i].src = src;
		pid[i] = start_reader_proc(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(ended(pid[i]), 0);
	kill_and_reap(producer);
}

void run_as(void (*fn)(const struct reader_proc *r),
	    const struct reader_proc *r)
{
	pid_t producer = start_source(r->src, r->transport);

	assert_int_equal(ended(start_as(fn, r)), 0);
	kill_and_reap(producer);
}

void need_gpus(unsigned n)
{
	if (gpus() >= n && !getenv("CUDA_VISIBLE_DEVICES"))
		return;
	print_message("%u GPUs are needed, all of them visible\n", n);
	skip();
}

enum transport case_transport(void **state)
{
	return *(const enum transport *)*state;
}

const struct source small_source = { .name = "small",
				     .n = 1000,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 4000,
				     .image = SIDE };

void run_small(void (*fn)(const struct reader_proc *r), void **state)
{
	struct reader_proc r = { .src = &small_source,
				 .transport = case_transport(state),
				 .batch = 16 };

	run_as(fn, &r);
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
		 transport_name[k]);
	c->test[c->n] =
		(struct CMUnitTest){ .name = c->name[c->n],
				     .test_func = b->fn,
				     .teardown_func = end_children,
				     .initial_state = &c->transport[c->n] };
	c->n++;
}

/* TEST_TRANSPORT has a transport's name, or "once" for the tests of none. */
static bool is_wanted(const char *transport)
{
	const char *only = getenv("TEST_TRANSPORT");

	return !only || strcmp(only, transport) == 0;
}

int run_for_each_transport(const char *group, const struct transport_test *each,
			   unsigned neach, const struct CMUnitTest *once,
			   unsigned nonce)
{
	static struct cases c;

	need(neach * TRANSPORTS + nonce <= CASES);
	own_folder();
	if (!gpus())
		return 77;
	for (unsigned i = 0; i < neach; i++)
		for (enum transport k = each[i].first; k < TRANSPORTS; k++)
			if (is_wanted(transport_name[k]))
				add_case(&c, &each[i], k);
	for (unsigned i = 0; i < nonce && is_wanted("once"); i++) {
		c.test[c.n] = once[i];
		c.test[c.n++].teardown_func = end_children;
	}
	if (getenv("TEST_ONLY"))
		cmocka_set_test_filter(getenv("TEST_ONLY"));
	return _cmocka_run_group_tests(group, c.test, c.n, NULL, NULL);
}
