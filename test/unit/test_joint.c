/* SPDX-License-Identifier: MIT */
/*
 * test_joint.c - views that workers write as they write the base ring: every
 * sample is in them, also those that were under way when a view began, and a
 * ring stays as long as a worker may write into it.
 *
 * The rules are tried by test_membership_random.c; this is what carries them out.
 */
#include "serve/server.h"

#include <sched.h>
#include <string.h>

#include "test/lib/inproc.h"
#include "test/lib/sanitized.h"

#define EPOCH 300
#define BATCH 10
#define HELD (3 * INPROC_WORKERS) /* samples that workers have at once */
#define ROUNDS (SANITIZED ? 10 : 40)
#define SIDES ((size_t)INPROC_SIDE * INPROC_SIDE * 3)

static struct inproc st;

static void serve(void)
{
	struct tsock_serve_opts o = inproc_opts(EPOCH);

	o.commit_views = 1;
	inproc_serve(&st, &o);
}

static tsock *join_by(uint32_t dtype, uint32_t batch)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t = NULL;

	o.batch_size = batch;
	o.dtype = dtype;
	if (tsock_open("unit", &o, &t) || tsock_begin(t))
		fail_msg("%s", tsock_errmsg());
	return t;
}

static tsock *join(uint32_t dtype)
{
	return join_by(dtype, BATCH);
}

/* The image's first and last value, which are small whole numbers. */
static void check_value(const void *image, uint32_t dtype, uint64_t at,
			float want)
{
	float got = 0;
	uint16_t upper;

	if (dtype == TSOCK_F32) {
		got = ((const float *)image)[at];
	} else {
		upper = (uint16_t)(((const uint16_t *)image)[at]);
		memcpy((uint8_t *)&got + 2, &upper, sizeof(upper));
	}
	assert_true(got == want);
}

/* The next batches, through the ends of epochs, are right. */
static void read_batches(tsock *t, uint32_t dtype, unsigned n)
{
	while (n) {
		tsock_batch *b;
		int err = tsock_next(t, 20000, &b);

		if (err == TSOCK_EEPOCH) {
			assert_int_equal(tsock_begin(t), 0);
			continue;
		}
		if (err)
			fail_msg("%s", tsock_errmsg());
		for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
			uint64_t s = tsock_batch_seq(b) + i;

			assert_int_equal(
				((const int64_t *)tsock_batch_data(b, 1))[i],
				s % EPOCH);
			check_value(tsock_batch_data(b, 0), dtype, i * SIDES,
				    inproc_pixel(s));
			check_value(tsock_batch_data(b, 0), dtype,
				    (i + 1) * SIDES - 1, inproc_pixel(s));
		}
		tsock_batch_release(b);
		n--;
	}
}

static uint64_t claimed(void)
{
	uint64_t n;

	tsi_sync_lock(&st.s->sync);
	n = tsi_membership_claimed(&st.s->membership, 0);
	tsi_sync_unlock(&st.s->sync);
	return n;
}

/* Wait until workers have samples from this one on, of which they commit none. */
static void wait_held(uint64_t from)
{
	while (claimed() < from + HELD)
		sched_yield();
}

static uint64_t joint_from(void)
{
	uint64_t s;

	tsi_sync_lock(&st.s->sync);
	s = tsi_membership_joint(&st.s->membership, 1);
	tsi_sync_unlock(&st.s->sync);
	return s;
}

static void a_view_has_what_was_under_way_when_it_began(void **state)
{
	tsock *t, *u;

	(void)state;
	serve();
	atomic_store(&st.upto, 0);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	wait_held(0);
	u = join(TSOCK_F32);
	assert_int_equal(joint_from(), HELD);
	atomic_store(&st.upto, UINT64_MAX);
	for (unsigned i = 0; i < 4; i++) {
		tsock_batch *b = inproc_next(t);

		assert_true(inproc_good(b, EPOCH));
		tsock_batch_release(b);
	}
	read_batches(u, TSOCK_F32, 4);
	tsock_close(t);
	/* Workers alone write what follows, over several rounds of the ring. */
	read_batches(u, TSOCK_F32, 200);
	tsock_close(u);
	inproc_stop(&st);
}

static void readers_come_and_go(void **state)
{
	static const uint32_t dtype[] = { TSOCK_F32, TSOCK_BF16 };
	tsock *t;

	(void)state;
	serve();
	t = join(TSOCK_F32);
	for (unsigned i = 0; i < ROUNDS; i++) {
		tsock *u = join(dtype[i & 1]);

		read_batches(u, dtype[i & 1], i % 7);
		read_batches(t, TSOCK_F32, i % 5 * 3);
		tsock_close(u);
	}
	tsock_close(t);
	inproc_stop(&st);
}

/* The thread of the view sleeps until nothing is written into its ring. */
static bool drains(void)
{
	struct tsock_server *s = st.s;
	const struct tsi_view *v = &s->views.view[1];
	bool sleeps, ended;

	tsi_sync_lock(&s->sync);
	ended = v->thread_done || v->phase == TSI_VIEW_EMPTY ||
		v->phase == TSI_VIEW_MAKING;
	sleeps =
		v->phase == TSI_VIEW_ENDING &&
		s->sync.staged_at == tsi_membership_head(&s->membership, 0) + 1;
	tsi_sync_unlock(&s->sync);
	assert_false(ended);
	return sleeps;
}

static void a_ring_stays_while_workers_may_write_into_it(void **state)
{
	tsock *t, *u;

	(void)state;
	serve();
	atomic_store(&st.upto, 3 * BATCH);
	t = inproc_join(BATCH, 0);
	assert_int_equal(tsock_begin(t), 0);
	u = join(TSOCK_F32);
	read_batches(u, TSOCK_F32, 1);
	wait_held(3 * BATCH);
	tsock_close(u);
	while (joint_from() != TSI_NEVER)
		sched_yield();
	tsi_sync_lock(&st.s->sync);
	tsi_view_end(&st.s->views.view[1]);
	tsi_sync_unlock(&st.s->sync);
	while (!drains())
		sched_yield();
	atomic_store(&st.upto, UINT64_MAX);
	/* Then the same place is another view's. */
	u = join(TSOCK_BF16);
	read_batches(u, TSOCK_BF16, 3);
	tsock_close(u);
	tsock_close(t);
	inproc_stop(&st);
}

/* A piece of a view's memory is reserved by a claim, as the base ring's is. */
static void pages_are_there_before_workers_write_them(void **state)
{
	const struct tsock_field image = { .name = "image",
					   .dtype = TSOCK_U8,
					   .flags = TSOCK_FIELD_IMAGE,
					   .ndim = 3,
					   .shape = { 640, 640, 3 } };
	struct tsock_serve_opts o = inproc_opts(EPOCH);
	const struct tsi_pages *pages;
	uint64_t first, bytes;
	tsock_server *s;
	tsock_batch *b;
	tsock *t;

	(void)state;
	o.fields = &image;
	o.nfields = 1;
	o.ring = 8;
	o.max_batch = 2;
	o.commit_views = 1;
	assert_int_equal(tsock_serve_open("unit", &o, &s), 0);
	t = join_by(TSOCK_F32, 2);
	pages = &s->views.view[1].ring.pages[0];
	bytes = 640 * 640 * 3 * sizeof(float);
	for (uint64_t n = 2; n <= 6; n += 2) {
		assert_int_equal(tsock_serve_claim(s, 2, 20000, &first), 2);
		assert_true(pages->bytes - pages->missing >= n * bytes);
		tsock_serve_commit(s, first, 2);
		assert_int_equal(tsock_next(t, 20000, &b), 0);
		tsock_batch_release(b);
	}
	tsock_close(t);
	tsock_serve_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_has_what_was_under_way_when_it_began),
		cmocka_unit_test(readers_come_and_go),
		cmocka_unit_test(a_ring_stays_while_workers_may_write_into_it),
		cmocka_unit_test(pages_are_there_before_workers_write_them),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests_name("joint", tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
