/* SPDX-License-Identifier: MIT */
/*
 * membership_fixture.c - a stream whose workers and stages do all that they may.
 */
#include "test/lib/membership_fixture.h"

struct tsi_membership membership_m;

void membership_make(uint64_t n, uint64_t w, uint64_t c, uint64_t end)
{
	static const uint64_t bounds[] = { 0, 0 };
	static uint64_t b[2];

	memcpy(b, bounds, sizeof(b));
	b[1] = n;
	tsi_membership_init(&membership_m, &(struct tsi_membership_config){
						   .epoch_len = n,
						   .join_window = w,
						   .capacity = c,
						   .end = end,
						   .segments = 1,
						   .bounds = b,
						   .min_members = 1 });
}

struct tsi_joined membership_join(uint32_t how, uint64_t after)
{
	struct tsi_join j = { .join = how, .after = after };
	struct tsi_joined c = { 0 };

	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	return c;
}

uint64_t membership_fill(void)
{
	uint64_t first;

	while (tsi_membership_claim(&membership_m, 0, 1, &first))
		tsi_membership_published(&membership_m, 0, first + 1);
	tsi_membership_apply_jump(&membership_m);
	return membership_m.view[0].head;
}

void membership_make_chain(uint64_t n, uint64_t w, uint64_t c, bool needs_base)
{
	membership_make(n, w, c, TSI_NEVER);
	tsi_membership_source(&membership_m, 1, 0, c, false);
	tsi_membership_source(&membership_m, 2, 1, c, needs_base);
}

void membership_make_views(uint64_t n, uint64_t w, uint64_t c, uint64_t end)
{
	membership_make(n, w, c, end);
	tsi_membership_source(&membership_m, 1, 0, c, false);
	tsi_membership_source(&membership_m, 2, 0, c, false);
	tsi_membership_source(&membership_m, 3, 2, c, false);
}

struct tsi_joined membership_join_view(unsigned view, uint64_t after)
{
	struct tsi_join j = { .view = view, .leaves = true, .after = after };
	struct tsi_joined c = { 0 };

	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	return c;
}

struct tsi_joined membership_hold_view(unsigned view, uint64_t after)
{
	struct tsi_join j = { .view = view, .after = after };
	struct tsi_joined c = { 0 };

	assert_int_equal(tsi_membership_join(&membership_m, &j, 0, &c), 0);
	return c;
}

uint64_t membership_stage(unsigned view, unsigned count)
{
	uint64_t first;

	assert_int_equal(
		tsi_membership_claim(&membership_m, view, count, &first),
		count);
	tsi_membership_published(&membership_m, view, first + count);
	return first;
}

void membership_fill_all(void)
{
	uint64_t first;
	bool more = true;

	while (more) {
		more = false;
		for (unsigned v = 0; v < 4; v++) {
			if (!tsi_membership_claim(&membership_m, v, 1, &first))
				continue;
			tsi_membership_published(&membership_m, v, first + 1);
			more = true;
		}
		more |= tsi_membership_apply_jump(&membership_m);
	}
}

void membership_read_on(unsigned id, uint64_t from, uint64_t to)
{
	while (from < to) {
		from += 64;
		tsi_membership_tail(&membership_m, id, from, 0);
		membership_fill_all();
	}
}
