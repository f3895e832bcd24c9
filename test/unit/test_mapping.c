/* SPDX-License-Identifier: MIT */
/*
 * test_mapping.c - private mappings of a ring: what is written stays here, what
 * is published arrives, what is kept stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "consumer/pages.h"
#include "consumer/mapping.h"
#include "test/lib/ring_fixture.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* A twice mapped field, one with a margin, a small one of one byte. */
static const uint64_t even[] = { 24576, 1 };
static const uint64_t odd[] = { 299 * 299 * 3, 1 };
static const uint64_t both[] = { 24576, 20001, 8, 1 };

static void open_windows(struct tsi_mapping *w, const struct fixture_ring *f,
			 enum tsi_mapping_mode mode)
{
	int fd[TSOCK_MAX_FIELDS];

	fixture_ring_fds(f, fd);
	assert_int_equal(tsi_mapping_init(w, mode, &f->geometry,
					  f->geometry.max_batch, fd),
			 0);
	assert_int_equal(w->mode, mode);
}

static void spot_init(const struct tsi_mapping *w, struct tsi_placement *s)
{
	memset(s, 0, sizeof(*s));
	s->small = malloc(w->small_bytes + 1);
	assert_non_null(s->small);
}

static void spot_free(struct tsi_placement *s)
{
	free(s->small);
	free(s->copy);
}

static void place(struct tsi_mapping *w, uint64_t first, uint64_t count,
		  struct tsi_placement *s)
{
	assert_int_equal(tsi_mapping_place(w, first, count, s), 0);
}

static bool shows(const struct fixture_ring *f, const struct tsi_placement *s,
		  uint64_t first)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++)
		if (!fixture_ring_equal(f, i, s->data[i], first, s->count))
			return false;
	return true;
}

static void scribble(const struct fixture_ring *f, struct tsi_placement *s)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++)
		memset(s->data[i], 0xee,
		       s->count * f->geometry.field[i].sample_bytes);
}

static bool is_scribbled(const struct fixture_ring *f,
			 const struct tsi_placement *s)
{
	for (unsigned i = 0; i < f->geometry.nfields; i++) {
		const uint8_t *p = s->data[i];
		uint64_t n = s->count * f->geometry.field[i].sample_bytes;

		for (uint64_t j = 0; j < n; j++)
			if (p[j] != 0xee)
				return false;
	}
	return true;
}

/* Every place in the ring, across its end, round and round. */
static void walk(const uint64_t *bytes, unsigned nfields,
		 enum tsi_mapping_mode mode, bool pagemap, bool write)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s;
	uint64_t done = 0;

	fixture_ring_make(&f, bytes, nfields, 32, 8);
	open_windows(&w, &f, mode);
	if (!pagemap && w.pagemap >= 0) {
		close(w.pagemap);
		w.pagemap = -1;
	}
	spot_init(&w, &s);
	for (unsigned step = 0; done < 5 * f.geometry.capacity; step++) {
		uint64_t n = 1 + step % 8;

		fixture_ring_publish(&f, done, n);
		place(&w, done, n, &s);
		assert_true(shows(&f, &s, done));
		if (write)
			scribble(&f, &s);
		tsi_mapping_clear(&w, &s);
		done += n;
	}
	assert_true(w.count <= 2);
	spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void batches_show_what_is_published(void **state)
{
	(void)state;
	walk(even, 2, TSI_MAP_SHARED, true, false);
	walk(odd, 2, TSI_MAP_SHARED, true, false);
	walk(both, 4, TSI_MAP_SHARED, true, false);
	walk(even, 2, TSI_MAP_PRIVATE, true, false);
	walk(odd, 2, TSI_MAP_PRIVATE, true, false);
	walk(both, 4, TSI_MAP_PRIVATE, true, false);
	walk(even, 2, TSI_MAP_COPY, true, false);
	walk(odd, 2, TSI_MAP_COPY, true, false);
	walk(both, 4, TSI_MAP_COPY, true, false);
}

static void later_samples_arrive_after_batches_were_written_into(void **state)
{
	(void)state;
	walk(even, 2, TSI_MAP_PRIVATE, true, true);
	walk(odd, 2, TSI_MAP_PRIVATE, true, true);
	walk(both, 4, TSI_MAP_PRIVATE, true, true);
	walk(both, 4, TSI_MAP_COPY, true, true);
}

static void they_arrive_where_pagemap_is_forbidden(void **state)
{
	(void)state;
	walk(even, 2, TSI_MAP_PRIVATE, false, true);
	walk(odd, 2, TSI_MAP_PRIVATE, false, true);
}

static void what_one_writes_nobody_else_sees(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping a, b;
	struct tsi_placement x, y;

	(void)state;
	fixture_ring_make(&f, both, 4, 32, 8);
	open_windows(&a, &f, TSI_MAP_PRIVATE);
	open_windows(&b, &f, TSI_MAP_PRIVATE);
	spot_init(&a, &x);
	spot_init(&b, &y);
	fixture_ring_publish(&f, 0, 8);
	place(&a, 0, 8, &x);
	place(&b, 0, 8, &y);
	scribble(&f, &x);
	assert_true(shows(&f, &y, 0));
	for (unsigned i = 0; i < 4; i++)
		assert_true(fixture_ring_equal(
			&f, i, tsi_ring_slot(&f.ring, i, 0), 0, 8));
	assert_true(is_scribbled(&f, &x));
	tsi_mapping_clear(&a, &x);
	tsi_mapping_clear(&b, &y);
	spot_free(&x);
	spot_free(&y);
	tsi_mapping_fini(&a);
	tsi_mapping_fini(&b);
	fixture_ring_free(&f);
}

/* Samples 4.. share a page with samples ..3, and are published later. */
static void neighbours_never_share_a_page(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement x, y, z;

	(void)state;
	fixture_ring_make(&f, odd, 2, 32, 8);
	open_windows(&w, &f, TSI_MAP_PRIVATE);
	spot_init(&w, &x);
	spot_init(&w, &y);
	spot_init(&w, &z);
	fixture_ring_publish(&f, 0, 4);
	place(&w, 0, 4, &x);
	scribble(&f, &x);
	fixture_ring_publish(&f, 4, 4);
	place(&w, 4, 4, &y);
	assert_ptr_not_equal(x.window, y.window);
	assert_true(shows(&f, &y, 4));
	scribble(&f, &y);
	assert_true(is_scribbled(&f, &x));
	/* x's page is free again only when x is. */
	fixture_ring_publish(&f, 8, 4);
	tsi_mapping_clear(&w, &x);
	place(&w, 8, 4, &z);
	assert_ptr_not_equal(z.window, y.window);
	assert_true(shows(&f, &z, 8));
	assert_true(is_scribbled(&f, &y));
	tsi_mapping_clear(&w, &y);
	tsi_mapping_clear(&w, &z);
	assert_int_equal(w.count, 2);
	spot_free(&x);
	spot_free(&y);
	spot_free(&z);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void batches_apart_share_a_window(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement x, y;

	(void)state;
	fixture_ring_make(&f, even, 2, 32, 8);
	open_windows(&w, &f, TSI_MAP_PRIVATE);
	spot_init(&w, &x);
	spot_init(&w, &y);
	fixture_ring_publish(&f, 0, 16);
	place(&w, 0, 4, &x);
	place(&w, 4, 4, &y);
	assert_ptr_equal(x.window, y.window);
	scribble(&f, &x);
	assert_true(shows(&f, &y, 4));
	tsi_mapping_clear(&w, &x);
	assert_true(shows(&f, &y, 4));
	tsi_mapping_clear(&w, &y);
	spot_free(&x);
	spot_free(&y);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void keep_over_three_rings(const uint64_t *bytes, unsigned nfields)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement kept, written, s;
	uint64_t at;

	fixture_ring_make(&f, bytes, nfields, 32, 8);
	open_windows(&w, &f, TSI_MAP_PRIVATE);
	spot_init(&w, &kept);
	spot_init(&w, &written);
	spot_init(&w, &s);
	fixture_ring_publish(&f, 0, 16);
	place(&w, 0, 8, &kept);
	place(&w, 8, 8, &written);
	scribble(&f, &written);
	assert_int_equal(tsi_mapping_make_private(&w, &kept), 0);
	assert_int_equal(tsi_mapping_make_private(&w, &written), 0);
	for (at = 16; at < 16 + 3 * f.geometry.capacity; at += 8) {
		fixture_ring_publish(&f, at, 8);
		place(&w, at, 8, &s);
		assert_true(shows(&f, &s, at));
		scribble(&f, &s);
		tsi_mapping_clear(&w, &s);
		assert_true(shows(&f, &kept, 0));
		assert_true(is_scribbled(&f, &written));
	}
	/* Their pages show the ring again. */
	tsi_mapping_clear(&w, &kept);
	tsi_mapping_clear(&w, &written);
	for (unsigned i = 0; i < 8; i++, at += 8) {
		fixture_ring_publish(&f, at, 8);
		place(&w, at, 8, &s);
		assert_true(shows(&f, &s, at));
		tsi_mapping_clear(&w, &s);
	}
	spot_free(&kept);
	spot_free(&written);
	spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void kept_bytes_stay_while_the_ring_goes_round(void **state)
{
	(void)state;
	keep_over_three_rings(even, 2);
	keep_over_three_rings(odd, 2);
	keep_over_three_rings(both, 4);
}

static void all_batches_of_three_rings_can_be_kept(void **state)
{
	enum { BATCHES = 20 };
	struct tsi_placement s[BATCHES];
	struct fixture_ring f;
	struct tsi_mapping w;
	uint64_t at = 0;

	(void)state;
	fixture_ring_make(&f, both, 4, 32, 7);
	open_windows(&w, &f, TSI_MAP_PRIVATE);
	for (unsigned i = 0; i < BATCHES; i++, at += 7) {
		spot_init(&w, &s[i]);
		fixture_ring_publish(&f, at, 7);
		place(&w, at, 7, &s[i]);
		assert_int_equal(tsi_mapping_make_private(&w, &s[i]), 0);
	}
	assert_true(at > 3 * f.geometry.capacity);
	for (unsigned i = 0; i < BATCHES; i++)
		assert_true(shows(&f, &s[i], 7 * i));
	for (unsigned i = 0; i < BATCHES; i++)
		tsi_mapping_clear(&w, &s[i]);
	assert_true(w.count > 3);
	/* Then the windows that were made for them are given back. */
	for (unsigned i = 0; i < 4 * BATCHES; i++, at += 7) {
		fixture_ring_publish(&f, at, 7);
		place(&w, at, 7, &s[0]);
		assert_true(shows(&f, &s[0], at));
		tsi_mapping_clear(&w, &s[0]);
	}
	assert_int_equal(w.count, 2);
	for (unsigned i = 0; i < BATCHES; i++)
		spot_free(&s[i]);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void read_only_batches_cannot_be_kept_or_written(void **state)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s;

	(void)state;
	fixture_ring_make(&f, even, 2, 32, 8);
	open_windows(&w, &f, TSI_MAP_SHARED);
	spot_init(&w, &s);
	fixture_ring_publish(&f, 0, 8);
	place(&w, 0, 8, &s);
	assert_int_equal(tsi_mapping_make_private(&w, &s), TSOCK_EHELD);
	assert_int_equal(
		mprotect(w.field[0].plain, 4096, PROT_READ | PROT_WRITE), -1);
	tsi_mapping_clear(&w, &s);
	spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
}

static void pages_say_whether_they_are_private(void **state)
{
	struct tsi_memfd m;
	int fd = tsi_pages_open();
	size_t len = 5000 * 4096;
	uint8_t *p;

	(void)state;
	if (fd < 0) {
		print_message("/proc/self/pagemap can't be read\n");
		skip();
	}
	assert_int_equal(tsi_memfd_create("test", len, 0, &m), 0);
	memset(m.base, 5, len);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, m.fd, 0);
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(tsi_pages_private(fd, p, len), 0);
	for (size_t i = 0; i < len; i += 4096)
		assert_int_equal(*(volatile uint8_t *)(p + i), 5);
	assert_int_equal(tsi_pages_private(fd, p, len), 0);
	p[len - 1] = 6;
	assert_int_equal(tsi_pages_private(fd, p, len), 1);
	assert_int_equal(tsi_pages_private(fd, p, len - 4096), 0);
	assert_int_equal(tsi_pages_private(-1, p, len), -1);
	assert_true(tsi_pages_reset(fd, p, len));
	assert_int_equal(p[len - 1], 5);
	assert_int_equal(tsi_pages_private(fd, p, len), 0);
	tsi_pages_touch(p, len);
	for (size_t i = 0; i < len; i += 4096) {
		assert_int_equal(tsi_pages_private(fd, p + i, 4096), 1);
		assert_int_equal(p[i], 5);
	}
	munmap(p, len);
	close(fd);
	tsi_memfd_close(&m);
}

static void *count_up(void *arg)
{
	_Atomic uint8_t *p = arg;

	/* The byte that touching writes, too. */
	for (unsigned i = 0; i < 200000; i++)
		atomic_fetch_add(p, 1);
	return NULL;
}

static void touching_undoes_no_write(void **state)
{
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	(void)state;
	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(pthread_create(&t, NULL, count_up, p), 0);
	for (unsigned i = 0; i < 200000; i++)
		tsi_pages_touch(p, 4096);
	pthread_join(t, NULL);
	assert_int_equal(p[0], (uint8_t)200000);
	munmap(p, 4096);
}

/* In a child: limits and mlockall() are for good. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

#define NEED(x) \
	do { \
		if (!(x)) \
			return __LINE__ % 251 + 1; \
	} while (0)

static int limit_address_space(void)
{
	const uint64_t bytes[] = { 1048576, 1 };
	int fd[2];
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s = { .copy = NULL };
	struct rlimit r;
	char line[64];
	unsigned long pages;
	FILE *statm;

	fixture_ring_make(&f, bytes, 2, 32, 8);
	statm = fopen("/proc/self/statm", "r");
	NEED(statm && fgets(line, sizeof(line), statm));
	fclose(statm);
	pages = strtoul(line, NULL, 10);
	/* Too little for a window of 64 MiB, enough for a batch. */
	r.rlim_cur = r.rlim_max = pages * 4096 + (32 << 20);
	NEED(!setrlimit(RLIMIT_AS, &r));
	fixture_ring_fds(&f, fd);
	NEED(!tsi_mapping_init(&w, TSI_MAP_PRIVATE, &f.geometry, 8, fd));
	NEED(w.mode == TSI_MAP_COPY);
	s.small = malloc(w.small_bytes);
	fixture_ring_publish(&f, 0, 8);
	NEED(!tsi_mapping_place(&w, 0, 8, &s));
	NEED(s.own && shows(&f, &s, 0));
	scribble(&f, &s);
	NEED(!tsi_mapping_make_private(&w, &s));
	fixture_ring_publish(&f, 8, 8);
	tsi_mapping_clear(&w, &s);
	NEED(!tsi_mapping_place(&w, 8, 8, &s));
	NEED(shows(&f, &s, 8));
	tsi_mapping_clear(&w, &s);
	spot_free(&s);
	tsi_mapping_fini(&w);

	/* A read-only consumer can't do with less: it is told so. */
	fixture_ring_fds(&f, fd);
	NEED(tsi_mapping_init(&w, TSI_MAP_SHARED, &f.geometry, 8, fd) ==
	     TSOCK_ENOMEM);
	NEED(strstr(tsock_errmsg(), "ulimit -v"));
	fixture_ring_free(&f);
	return 0;
}

static void refused_mappings_become_copies(void **state)
{
	(void)state;
	if (SANITIZED) {
		print_message("sanitizers reserve terabytes of address "
			      "space\n");
		skip();
	}
	assert_int_equal(in_child(limit_address_space), 0);
}

static int lock_all(void)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s = { .copy = NULL };
	int fd[2];

	if (mlockall(MCL_FUTURE))
		return 77;
	fixture_ring_make(&f, even, 2, 32, 8);
	fixture_ring_fds(&f, fd);
	NEED(!tsi_mapping_init(&w, TSI_MAP_PRIVATE, &f.geometry, 8, fd));
	NEED(w.mode == TSI_MAP_PRIVATE);
	s.small = malloc(w.small_bytes + 1);
	for (uint64_t at = 0; at < 96; at += 8) {
		fixture_ring_publish(&f, at, 8);
		NEED(!tsi_mapping_place(&w, at, 8, &s));
		NEED(shows(&f, &s, at));
		scribble(&f, &s);
		/* A user who locks what he was lent. */
		NEED(!mlock(s.data[0], 8 * even[0]));
		tsi_mapping_clear(&w, &s);
	}
	spot_free(&s);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
	return 0;
}

static unsigned warnings;

static void count_warnings(void *arg, int level, const char *line)
{
	(void)arg;
	if (level == TSOCK_LOG_WARN && strstr(line, "mlockall"))
		warnings++;
}

/* Lock all there is by what, again and again, while a batch is in hand. */
static int lock_after_joining(const uint64_t *bytes, int what)
{
	struct fixture_ring f;
	struct tsi_mapping w;
	struct tsi_placement s = { .copy = NULL }, held = { .copy = NULL };
	int fd[2];

	fixture_ring_make(&f, bytes, 2, 32, 8);
	fixture_ring_fds(&f, fd);
	NEED(!tsi_mapping_init(&w, TSI_MAP_PRIVATE, &f.geometry, 8, fd));
	NEED(w.mode == TSI_MAP_PRIVATE);
	s.small = malloc(w.small_bytes + 1);
	held.small = malloc(w.small_bytes + 1);
	fixture_ring_publish(&f, 0, 4);
	NEED(!tsi_mapping_place(&w, 0, 4, &held));
	for (uint64_t at = 4; at < 200; at += 7) {
		/* Odd ones: between two batches; now and then: never. */
		if (at % 3 == 1 && mlockall(what))
			return 77;
		fixture_ring_publish(&f, at, 7);
		if (at < 32)
			NEED(shows(&f, &held, 0));
		if (at == 25) {
			NEED(!tsi_mapping_make_private(&w, &held));
		}
		NEED(!tsi_mapping_place(&w, at, 7, &s));
		NEED(shows(&f, &s, at));
		if (at % 3 == 2 && mlockall(what))
			return 77;
		NEED(shows(&f, &s, at));
		if (at % 2)
			scribble(&f, &s);
		tsi_mapping_clear(&w, &s);
		NEED(shows(&f, &held, 0));
	}
	tsi_mapping_clear(&w, &held);
	munlockall();
	spot_free(&s);
	spot_free(&held);
	tsi_mapping_fini(&w);
	fixture_ring_free(&f);
	return 0;
}

static int lock_later(void)
{
	int rc;

	/* There it succeeds and does nothing. */
	if (SANITIZED)
		return 77;
	tsock_set_logger(count_warnings, NULL);
	rc = lock_after_joining(even, MCL_CURRENT);
	if (!rc)
		rc = lock_after_joining(odd, MCL_CURRENT);
	if (!rc)
		rc = lock_after_joining(odd, MCL_CURRENT | MCL_FUTURE);
#ifdef MCL_ONFAULT
	if (!rc)
		rc = lock_after_joining(odd, MCL_CURRENT | MCL_ONFAULT);
#endif
	tsock_set_logger(NULL, NULL);
	/* Said once. */
	return rc ? rc : warnings == 1 ? 0 : 1;
}

static void locking(int (*fn)(void))
{
	int rc = in_child(fn);

	if (rc == 77) {
		print_message("mlockall() is refused, as under a sanitizer\n");
		skip();
	}
	assert_int_equal(rc, 0);
}

static void locked_memory_shows_what_is_published(void **state)
{
	(void)state;
	locking(lock_all);
}

static void also_if_it_was_locked_after_joining(void **state)
{
	(void)state;
	locking(lock_later);
}

static struct fixture_ring parents;
static struct tsi_placement lent;

static int look_at_parents(void)
{
	return shows(&parents, &lent, 0) ? 0 : 1;
}

static void windows_can_be_read_in_a_child(void **state)
{
	struct tsi_mapping w;

	(void)state;
	fixture_ring_make(&parents, both, 4, 32, 8);
	open_windows(&w, &parents, TSI_MAP_PRIVATE);
	spot_init(&w, &lent);
	fixture_ring_publish(&parents, 0, 8);
	place(&w, 0, 8, &lent);
	assert_int_equal(in_child(look_at_parents), 0);
	tsi_mapping_clear(&w, &lent);
	spot_free(&lent);
	tsi_mapping_fini(&w);
	fixture_ring_free(&parents);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_show_what_is_published),
		cmocka_unit_test(
			later_samples_arrive_after_batches_were_written_into),
		cmocka_unit_test(they_arrive_where_pagemap_is_forbidden),
		cmocka_unit_test(what_one_writes_nobody_else_sees),
		cmocka_unit_test(neighbours_never_share_a_page),
		cmocka_unit_test(batches_apart_share_a_window),
		cmocka_unit_test(kept_bytes_stay_while_the_ring_goes_round),
		cmocka_unit_test(all_batches_of_three_rings_can_be_kept),
		cmocka_unit_test(read_only_batches_cannot_be_kept_or_written),
		cmocka_unit_test(pages_say_whether_they_are_private),
		cmocka_unit_test(touching_undoes_no_write),
		cmocka_unit_test(refused_mappings_become_copies),
		cmocka_unit_test(locked_memory_shows_what_is_published),
		cmocka_unit_test(also_if_it_was_locked_after_joining),
		cmocka_unit_test(windows_can_be_read_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
