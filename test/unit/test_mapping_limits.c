/* SPDX-License-Identifier: MIT */
/*
 * test_mapping_limits.c - private mappings of a ring where address space is
 * short, memory is locked, or a child looks on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/lib/mapping_fixture.h"
#include "test/lib/sanitized.h"

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
	NEED(s.own && mapping_shows(&f, &s, 0));
	mapping_scribble(&f, &s);
	NEED(!tsi_mapping_make_private(&w, &s));
	fixture_ring_publish(&f, 8, 8);
	tsi_mapping_clear(&w, &s);
	NEED(!tsi_mapping_place(&w, 8, 8, &s));
	NEED(mapping_shows(&f, &s, 8));
	tsi_mapping_clear(&w, &s);
	mapping_spot_free(&s);
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
	fixture_ring_make(&f, mapping_even, 2, 32, 8);
	fixture_ring_fds(&f, fd);
	NEED(!tsi_mapping_init(&w, TSI_MAP_PRIVATE, &f.geometry, 8, fd));
	NEED(w.mode == TSI_MAP_PRIVATE);
	s.small = malloc(w.small_bytes + 1);
	for (uint64_t at = 0; at < 96; at += 8) {
		fixture_ring_publish(&f, at, 8);
		NEED(!tsi_mapping_place(&w, at, 8, &s));
		NEED(mapping_shows(&f, &s, at));
		mapping_scribble(&f, &s);
		/* A user who locks what he was lent. */
		NEED(!mlock(s.data[0], 8 * mapping_even[0]));
		tsi_mapping_clear(&w, &s);
	}
	mapping_spot_free(&s);
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
			NEED(mapping_shows(&f, &held, 0));
		if (at == 25) {
			NEED(!tsi_mapping_make_private(&w, &held));
		}
		NEED(!tsi_mapping_place(&w, at, 7, &s));
		NEED(mapping_shows(&f, &s, at));
		if (at % 3 == 2 && mlockall(what))
			return 77;
		NEED(mapping_shows(&f, &s, at));
		if (at % 2)
			mapping_scribble(&f, &s);
		tsi_mapping_clear(&w, &s);
		NEED(mapping_shows(&f, &held, 0));
	}
	tsi_mapping_clear(&w, &held);
	munlockall();
	mapping_spot_free(&s);
	mapping_spot_free(&held);
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
	rc = lock_after_joining(mapping_even, MCL_CURRENT);
	if (!rc)
		rc = lock_after_joining(mapping_odd, MCL_CURRENT);
	if (!rc)
		rc = lock_after_joining(mapping_odd, MCL_CURRENT | MCL_FUTURE);
#ifdef MCL_ONFAULT
	if (!rc)
		rc = lock_after_joining(mapping_odd, MCL_CURRENT | MCL_ONFAULT);
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
	return mapping_shows(&parents, &lent, 0) ? 0 : 1;
}

static void windows_can_be_read_in_a_child(void **state)
{
	struct tsi_mapping w;

	(void)state;
	fixture_ring_make(&parents, mapping_both, 4, 32, 8);
	mapping_open(&w, &parents, TSI_MAP_PRIVATE);
	mapping_spot_init(&w, &lent);
	fixture_ring_publish(&parents, 0, 8);
	mapping_place(&w, 0, 8, &lent);
	assert_int_equal(in_child(look_at_parents), 0);
	tsi_mapping_clear(&w, &lent);
	mapping_spot_free(&lent);
	tsi_mapping_fini(&w);
	fixture_ring_free(&parents);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_mappings_become_copies),
		cmocka_unit_test(locked_memory_shows_what_is_published),
		cmocka_unit_test(also_if_it_was_locked_after_joining),
		cmocka_unit_test(windows_can_be_read_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
