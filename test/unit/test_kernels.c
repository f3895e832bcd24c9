/* SPDX-License-Identifier: MIT */
/*
 * test_kernels.c - whatever this processor has vector instructions for gives
 * the bytes of plain C: every slot of every group, at every level.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/lib/kernels.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

typedef void (*slot_fn)(void);

static const struct kernels_group *const groups[] = {
	&kernels_colour, &kernels_convert, &kernels_entropy,  &kernels_expand,
	&kernels_gather, &kernels_jpeg,    &kernels_resample, &kernels_warp,
};

/* Any group's struct: its slots. */
struct kernel {
	slot_fn slot[KERNELS_MOST];
};

static struct kernel at_level(const struct kernels_group *g,
			      enum tsi_simd level)
{
	struct kernel k;

	memset(&k, 0, sizeof(k));
	g->init(&k, level);
	return k;
}

static slot_fn slot_of(const struct kernel *k, const struct kernels_slot *s)
{
	return k->slot[s->at / sizeof(slot_fn)];
}

/* What a level has from the one below was compared there. */
static bool is_own(const struct kernels_group *g, const struct kernels_slot *s,
		   enum tsi_simd level)
{
	struct kernel k = at_level(g, level), below;

	if (level == TSI_SIMD_SCALAR)
		return slot_of(&k, s) != NULL;
	below = at_level(g, level - 1);
	return slot_of(&k, s) != slot_of(&below, s);
}

static void compare_group(const struct kernels_group *g, enum tsi_simd level)
{
	struct kernel kernel = at_level(g, level);
	struct kernel plain = at_level(g, TSI_SIMD_SCALAR);
	struct kernels_at k = { level, &kernel, &plain };
	unsigned own = 0;

	for (const struct kernels_slot *s = g->slot; s->name; s++) {
		if (!is_own(g, s, level))
			continue;
		print_message("%s: %s\n", tsi_simd_name(level), s->name);
		s->compare(&k);
		own++;
	}
	/* Else speed is lost without anybody seeing it. */
	assert_int_not_equal(own, 0);
}

static void every_slot_gives_the_bytes_of_plain_c(void **state)
{
	for (int l = TSI_SIMD_SCALAR; l <= (int)tsi_simd_best(); l++)
		compare_group(*state, l);
}

/* A slot that a struct gets is compared, or this fails. */
static void every_slot_has_a_comparison(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(groups); i++) {
		const struct kernels_slot *s = groups[i]->slot;
		size_t at = 0;

		for (; s->name; s++, at += sizeof(slot_fn))
			assert_int_equal(s->at, at);
		assert_int_equal(at, groups[i]->size);
		assert_true(at < sizeof(struct kernel));
	}
}

static void a_level_that_is_missing_is_an_error_not_a_crash(void **state)
{
	enum tsi_simd best = tsi_simd_best(), level;

	(void)state;
	assert_int_equal(tsi_simd_choose(TSI_SIMD_BEST, &level), 0);
	assert_int_equal(level, best);
	for (int l = TSI_SIMD_SCALAR; l <= (int)best; l++) {
		assert_int_equal(tsi_simd_choose(l, &level), 0);
		assert_int_equal(level, l);
		assert_string_not_equal(tsi_simd_name(l), "none");
	}
	level = TSI_SIMD_SCALAR;
	assert_int_equal(tsi_simd_choose(best + 1, &level), TSOCK_ENOTSUP);
	assert_int_equal(level, TSI_SIMD_SCALAR);
	assert_string_equal(tsi_simd_name(best + 1), "none");
}

int main(void)
{
	struct CMUnitTest tests[COUNT(groups) + 2] = {
		cmocka_unit_test(every_slot_has_a_comparison),
		cmocka_unit_test(
			a_level_that_is_missing_is_an_error_not_a_crash),
	};

	for (size_t i = 0; i < COUNT(groups); i++)
		tests[i + 2] = (struct CMUnitTest){
			.name = groups[i]->name,
			.test_func = every_slot_gives_the_bytes_of_plain_c,
			.initial_state = (void *)(uintptr_t)groups[i],
		};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
