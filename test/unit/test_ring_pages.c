/* SPDX-License-Identifier: MIT */
/*
 * test_ring_pages.c - memory that is reserved as it is first written, and where
 * it comes from.
 */
#include "ring/pages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/limits.h"
#include "base/numa.h"
#include "ring/ring.h"
#include "tsock/tsock.h"

#define PIECE TSI_PAGES_PIECE
#define SAMPLE ((uint64_t)300 * 300 * 3) /* never a whole number of pages */
#define SLOTS UINT64_C(80)
#define MARGIN UINT64_C(20)

static const struct tsock_field image = { .name = "image",
					  .dtype = TSOCK_U8,
					  .flags = TSOCK_FIELD_IMAGE,
					  .ndim = 3,
					  .shape = { 300, 300, 3 } };

static uint64_t there(const struct tsi_memfd *m)
{
	struct stat st;

	assert_int_equal(fstat(m->fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void make(struct tsi_ring *r, bool halves)
{
	struct tsi_geometry_wish w = { .ring = SLOTS, .max_batch = MARGIN };
	struct tsi_ring_ident id = { 7, 1000, TSI_NEVER };
	struct tsi_geometry g;

	assert_int_equal(tsi_geometry_make(&image, 1, &w, &g), 0);
	g.two_halves = halves;
	assert_int_equal(g.capacity, SLOTS);
	assert_int_equal(g.field[0].margin, MARGIN);
	assert_int_equal(g.field[0].map_bytes / PIECE, 3);
	assert_int_equal(tsi_ring_create(&g, &id, r), 0);
}

/* Slots 0 .. 31 and the margin's 80 .. 99 lie in pieces 0 and 1, 2 and 3. */
static void pages_come_with_the_samples_that_need_them(void **state)
{
	const struct tsi_memfd *m;
	struct tsi_ring r;

	(void)state;
	make(&r, false);
	m = &r.data[0];
	assert_int_equal(there(m), 0);
	assert_int_equal(tsi_ring_make_room(&r, 2 * SLOTS + 40, 10), 0);
	assert_int_equal(there(m), PIECE);
	assert_int_equal(tsi_memfd_check(m->fd, m->len, TSI_MEM_LATER, "x"), 0);
	assert_int_equal(tsi_memfd_check(m->fd, m->len, 0, "x"), TSOCK_EPROTO);
	/* The last slot, the first one and its copy. */
	assert_int_equal(tsi_ring_make_room(&r, SLOTS - 1, 2), 0);
	assert_int_equal(there(m), 3 * PIECE);
	assert_false(tsi_pages_are_there(&r.pages[0]));
	assert_int_equal(tsi_ring_make_room(&r, 0, 3 * SLOTS), 0);
	assert_in_range(there(m), m->len, m->len + 4096);
	assert_true(tsi_pages_are_there(&r.pages[0]));
	assert_int_equal(tsi_ring_make_room(&r, 0, 3 * SLOTS), 0);
	assert_int_equal(tsi_memfd_check(m->fd, m->len, 0, "x"), 0);
	tsi_ring_destroy(&r);
}

/* Its first half is there, as a consumer checks. */
static void a_ring_of_two_halves_is_reserved_at_once(void **state)
{
	struct tsi_ring r;

	(void)state;
	make(&r, true);
	assert_in_range(there(&r.data[0]), r.data[0].len / 2,
			r.data[0].len / 2 + 4096);
	assert_int_equal(tsi_ring_make_room(&r, 0, SLOTS), 0);
	tsi_ring_destroy(&r);
}

static void what_fails_is_said_with_what_is_there(void **state)
{
	struct tsi_memfd none = { .fd = -1 };
	struct tsi_memfd m;
	struct tsi_pages p;

	(void)state;
	assert_int_equal(tsi_memfd_create("x", 3 * PIECE, TSI_MEM_LATER, &m),
			 0);
	assert_int_equal(tsi_pages_init(&p, 3 * PIECE), 0);
	assert_int_equal(tsi_pages_need(&p, &m, "image", PIECE, 1), 0);
	assert_true(tsi_pages_need(&p, &none, "image", 0, 1) < 0);
	assert_non_null(strstr(tsock_errmsg(),
			       "the ring of field image (8.4 of its 25.2 MB"));
	tsi_pages_fini(&p);
	tsi_memfd_close(&m);
}

/* Else two rings would be promised what only one of them can get. */
static void memory_that_comes_later_counts_as_taken(void **state)
{
	struct tsi_memfd a, b;
	char limiter[256];
	uint64_t have;
	size_t len;

	(void)state;
	if (tsi_limits_memory("", &have, limiter, sizeof(limiter)))
		skip();
	len = have / 5 * 3;
	assert_int_equal(tsi_memfd_create("a", len, TSI_MEM_LATER, &a), 0);
	assert_int_equal(tsi_memfd_create("b", len, TSI_MEM_LATER, &b),
			 TSOCK_ENOMEM);
	assert_non_null(strstr(tsock_errmsg(), "b needs "));
	tsi_memfd_came(len);
	assert_int_equal(tsi_memfd_create("b", len, TSI_MEM_LATER, &b), 0);
	tsi_memfd_came(len);
	tsi_memfd_close(&a);
	tsi_memfd_close(&b);
}

/* ---- nodes ---- */

static struct {
	int mode;
	unsigned long allowed[2];
	unsigned bound;
	unsigned long nodes;
	bool refuses;
} fake;

static long fake_get(int *mode, unsigned long *nodes, unsigned long most,
		     unsigned long flags)
{
	if (fake.refuses)
		return -1;
	if (mode)
		*mode = fake.mode;
	assert_int_equal(flags, nodes ? 4 : 0);
	if (nodes) {
		assert_true(most >= 128);
		memcpy(nodes, fake.allowed, sizeof(fake.allowed));
	}
	return 0;
}

static long fake_bind(void *base, size_t len, int mode,
		      const unsigned long *nodes, unsigned long most)
{
	assert_ptr_equal(base, &fake);
	assert_int_equal(len, 4096);
	assert_int_equal(mode, 3);
	assert_true(most > 128);
	fake.nodes = nodes[0];
	fake.bound++;
	return 0;
}

static void memory_is_spread_over_all_nodes_there_are(void **state)
{
	static const struct tsi_numa_calls calls = { fake_get, fake_bind };

	(void)state;
	fake.allowed[0] = 1;
	assert_int_equal(tsi_numa_interleave(&calls, &fake, 4096), 0);
	fake.allowed[0] = 5;
	fake.refuses = true;
	assert_int_equal(tsi_numa_interleave(&calls, &fake, 4096), 0);
	fake.refuses = false;
	/* As numactl and --numa-node have it. */
	fake.mode = 1;
	assert_int_equal(tsi_numa_interleave(&calls, &fake, 4096), 0);
	assert_int_equal(fake.bound, 0);
	fake.mode = 0;
	assert_int_equal(tsi_numa_interleave(&calls, &fake, 4096), 2);
	assert_int_equal(fake.nodes, 5);
	fake.allowed[1] = 1;
	assert_int_equal(tsi_numa_interleave(&calls, &fake, 4096), 3);
}

/* Whatever it has, the memory can be used. */
static void this_machines_nodes_are_asked_for(void **state)
{
	struct tsi_memfd m;

	(void)state;
	assert_int_equal(tsi_memfd_create("x", 2 * PIECE, TSI_MEM_LATER, &m),
			 0);
	assert_int_equal(tsi_memfd_reserve(&m, "x", PIECE, PIECE), 0);
	assert_int_equal(there(&m), PIECE);
	memset(m.base, 1, 2 * PIECE);
	tsi_memfd_came(2 * PIECE);
	tsi_memfd_close(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_come_with_the_samples_that_need_them),
		cmocka_unit_test(a_ring_of_two_halves_is_reserved_at_once),
		cmocka_unit_test(what_fails_is_said_with_what_is_there),
		cmocka_unit_test(memory_that_comes_later_counts_as_taken),
		cmocka_unit_test(memory_is_spread_over_all_nodes_there_are),
		cmocka_unit_test(this_machines_nodes_are_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
