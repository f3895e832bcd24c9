/* SPDX-License-Identifier: MIT */
/*
 * test_gate.c - rings that can't be joined yet, or any more, and streams that
 * end or fail meanwhile.
 */
#include "serve/gate.h"

#include "serve/production.h"
#include "test/lib/membership_fixture.h"
#include "test/lib/ring_fixture.h"

#define N 32
#define C 64

static struct tsi_sync sync_;
static struct tsi_gate gate;
static struct fixture_ring base, view;

static int begin(void **state)
{
	static const uint64_t bytes[] = { 64 };

	(void)state;
	tsi_sync_init(&sync_);
	membership_make(N, 16, C, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, C, false);
	memset(&gate, 0, sizeof(gate));
	tsi_gate_init(&gate, &sync_, &membership_m);
	fixture_ring_make(&base, bytes, 1, C, 4);
	fixture_ring_make(&view, bytes, 1, C, 4);
	tsi_gate_add_ring(&gate, 0, &base.ring);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	fixture_ring_free(&view);
	fixture_ring_free(&base);
	tsi_sync_fini(&sync_);
	return 0;
}

static enum tsi_ring_state state_of(const struct fixture_ring *f)
{
	return atomic_load(&f->ring.shared->state);
}

static void a_ring_of_a_stream_that_failed_says_why_it_first_did(void **state)
{
	(void)state;
	tsi_gate_fail(&gate, "no disk");
	tsi_gate_fail(&gate, "no network");
	assert_string_equal(tsi_gate_failure(&gate), "no disk");
	tsi_gate_add_ring(&gate, 1, &view.ring);
	assert_int_equal(state_of(&view), TSI_RING_FAILED);
	assert_string_equal(view.ring.shared->error, "no disk");
}

/* As a view's is while it has a reader already, and its ring is being made. */
static void what_has_no_ring_is_told_nothing(void **state)
{
	(void)state;
	assert_int_equal(membership_join_view(1, 0).opened, 1u << 1);
	tsi_gate_views_began(&gate, 1u << 1);
	assert_int_equal(tsi_gate_views_read(&gate), 0);
	tsi_gate_state_wants(&gate, 0);
	assert_int_equal(atomic_load(&base.ring.shared->front_want), 16);
	assert_true(atomic_load(&view.ring.shared->front_want) == TSI_NEVER);
	tsi_gate_add_ring(&gate, 1, &view.ring);
	assert_int_equal(tsi_gate_views_read(&gate), 1);
	tsi_gate_state_wants(&gate, 0);
	assert_int_equal(atomic_load(&view.ring.shared->front_want), 16);
}

static void a_jump_moves_the_rings_that_are_there(void **state)
{
	(void)state;
	assert_int_equal(membership_join_view(1, N).start, N);
	assert_true(tsi_membership_jumping(&membership_m));
	tsi_gate_changed(&gate);
	assert_false(tsi_membership_jumping(&membership_m));
	assert_int_equal(atomic_load(&base.ring.shared->head), N);
	assert_int_equal(atomic_load(&view.ring.shared->head), 0);
}

static void
an_end_that_comes_sooner_ends_the_rings_that_have_come_to_it(void **state)
{
	(void)state;
	membership_join_view(1, 0);
	tsi_gate_add_ring(&gate, 1, &view.ring);
	assert_int_equal(tsi_membership_end_after(&membership_m, 1), 0);
	tsi_gate_end_changed(&gate);
	assert_int_equal(atomic_load(&base.ring.shared->end), 2 * N);
	assert_int_equal(atomic_load(&view.ring.shared->end), 2 * N);
	assert_int_equal(state_of(&view), TSI_RING_OPEN);
	membership_fill_all();
	assert_int_equal(tsi_membership_head(&membership_m, 1), 2 * N);
	tsi_gate_end_changed(&gate);
	assert_int_equal(state_of(&view), TSI_RING_ENDED);
	assert_int_equal(state_of(&base), TSI_RING_ENDED);
}

static void only_what_is_written_is_published(void **state)
{
	struct tsi_production p = { .produced = 0 };
	uint64_t first;

	(void)state;
	assert_int_equal(
		tsi_production_init(&p, C, &sync_, &membership_m, &gate), 0);
	tsi_sync_lock(&sync_);
	membership_join(TSOCK_JOIN_EPOCH, 0);
	assert_int_equal(tsi_membership_claim(&membership_m, 0, 4, &first), 4);
	tsi_sync_unlock(&sync_);
	tsi_production_commit(&p, 0, 0);
	tsi_production_commit(&p, 1, 2);
	assert_int_equal(p.produced, 0);
	assert_int_equal(atomic_load(&base.ring.shared->head), 0);
	tsi_production_commit(&p, 0, 1);
	assert_int_equal(p.produced, 3);
	assert_int_equal(atomic_load(&base.ring.shared->head), 3);
	tsi_production_fini(&p);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ring_of_a_stream_that_failed_says_why_it_first_did),
		TEST(what_has_no_ring_is_told_nothing),
		TEST(a_jump_moves_the_rings_that_are_there),
		TEST(an_end_that_comes_sooner_ends_the_rings_that_have_come_to_it),
		TEST(only_what_is_written_is_published),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
