/* SPDX-License-Identifier: MIT */
/*
 * test_tail.c - batches that are released while a thread moves the tail: that
 * thread moves it once more.
 */
#include "consumer/tail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#define EVENT 12345 /* the producer's, which this program never opens */
#define START 100

static struct tsi_tail tail;
static struct tsi_tail_page page;
static struct tsi_ring_shared ring;
static uint64_t ticket[3];
static unsigned woken;

/* In place of libc's: another thread releases the next batch just when the
 * producer is woken for the tail. */
ssize_t write(int fd, const void *from, size_t len)
{
	if (fd != EVENT)
		return syscall(SYS_write, fd, from, len);
	woken++;
	if (woken < 3)
		tsi_tail_release(&tail, ticket[woken]);
	return (ssize_t)len;
}

static void what_is_released_while_the_tail_moves_is_passed(void **state)
{
	(void)state;
	assert_int_equal(tsi_tail_init(&tail, 4, START), 0);
	/* The producer waits for every sample. */
	atomic_init(&ring.gate_want, START);
	atomic_init(&ring.front_want, START + 20);
	atomic_init(&ring.start_want, START + 25);
	tsi_tail_share(&tail, &page, &ring, EVENT);
	for (unsigned i = 0; i < 3; i++)
		ticket[i] = tsi_tail_append(&tail, START + 10 * i, NULL);
	tsi_tail_move_position(&tail, START + 30);
	tsi_tail_release(&tail, ticket[0]);
	assert_int_equal(woken, 3);
	assert_int_equal(tsi_tail_shared(&tail), START + 30);
	/* Nobody moves it any more: the next one may. */
	ticket[0] = tsi_tail_append(&tail, START + 30, NULL);
	tsi_tail_move_position(&tail, START + 40);
	assert_int_equal(tsi_tail_shared(&tail), START + 30);
	tsi_tail_release(&tail, ticket[0]);
	assert_int_equal(tsi_tail_shared(&tail), START + 40);
	tsi_tail_fini(&tail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			what_is_released_while_the_tail_moves_is_passed),
	};

	return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
