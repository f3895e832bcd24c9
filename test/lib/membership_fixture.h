/* SPDX-License-Identifier: MIT */
/*
 * membership_fixture.h - a stream of one ring or several, whose workers and
 * stages do all that they may at once.
 */
#ifndef TEST_LIB_MEMBERSHIP_FIXTURE_H
#define TEST_LIB_MEMBERSHIP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "serve/membership.h"

static struct tsi_membership m;

static inline void make(uint64_t n, uint64_t w, uint64_t c, uint64_t end)
{
	static const uint64_t bounds[] = { 0, 0 };
	static uint64_t b[2];

	memcpy(b, bounds, sizeof(b));
	b[1] = n;
	tsi_membership_init(
		&m, &(struct tsi_membership_config){ .epoch_len = n,
						     .join_window = w,
						     .capacity = c,
						     .end = end,
						     .segments = 1,
						     .bounds = b,
						     .min_members = 1 });
}

static inline struct tsi_joined join(uint32_t how, uint64_t after)
{
	struct tsi_join j = { .join = how, .after = after };
	struct tsi_joined c = { 0 };

	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	return c;
}

/* Fill and publish all that may be filled. */
static inline uint64_t fill(void)
{
	uint64_t first;

	while (tsi_membership_claim(&m, 0, 1, &first))
		tsi_membership_published(&m, 0, first + 1);
	tsi_membership_apply_jump(&m);
	return m.view[0].head;
}

/* A view of the base ring, and one that is made of that view. */
static inline void make_chain(uint64_t n, uint64_t w, uint64_t c,
			      bool needs_base)
{
	make(n, w, c, TSI_NEVER);
	tsi_membership_source(&m, 1, 0, c, false);
	tsi_membership_source(&m, 2, 1, c, needs_base);
}

/* Views as in a stream with float32 and bfloat16 readers, and a GPU's. */
static inline void make_views(uint64_t n, uint64_t w, uint64_t c, uint64_t end)
{
	make(n, w, c, end);
	tsi_membership_source(&m, 1, 0, c, false);
	tsi_membership_source(&m, 2, 0, c, false);
	tsi_membership_source(&m, 3, 2, c, false);
}

static inline struct tsi_joined join_view(unsigned view, uint64_t after)
{
	struct tsi_join j = { .view = view, .leaves = true, .after = after };
	struct tsi_joined c = { 0 };

	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	return c;
}

/* One that stays a reader between two epochs. */
static inline struct tsi_joined hold_view(unsigned view, uint64_t after)
{
	struct tsi_join j = { .view = view, .after = after };
	struct tsi_joined c = { 0 };

	assert_int_equal(tsi_membership_join(&m, &j, 0, &c), 0);
	return c;
}

/* The view's stage makes so many samples more, as it may; the first of them. */
static inline uint64_t stage(unsigned view, unsigned count)
{
	uint64_t first;

	assert_int_equal(tsi_membership_claim(&m, view, count, &first), count);
	tsi_membership_published(&m, view, first + count);
	return first;
}

/* All stages have done all that they may. */
static inline void fill_all(void)
{
	uint64_t first;
	bool more = true;

	while (more) {
		more = false;
		for (unsigned v = 0; v < 4; v++) {
			if (!tsi_membership_claim(&m, v, 1, &first))
				continue;
			tsi_membership_published(&m, v, first + 1);
			more = true;
		}
		more |= tsi_membership_apply_jump(&m);
	}
}

/* A reader reads 64 samples at a time, and all stages follow. */
static inline void read_on(unsigned id, uint64_t from, uint64_t to)
{
	while (from < to) {
		from += 64;
		tsi_membership_tail(&m, id, from, 0);
		fill_all();
	}
}

#endif
