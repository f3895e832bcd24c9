/* SPDX-License-Identifier: MIT */
/*
 * futex.c - sleep on a word that another process writes.
 */
#include "ring/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

void tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
		    int timeout_ms)
{
	tsi_futex_wait_bits(word, value, FUTEX_BITSET_MATCH_ANY, timeout_ms);
}

void tsi_futex_wake(const _Atomic uint32_t *word)
{
	tsi_futex_wake_bits(word, FUTEX_BITSET_MATCH_ANY);
}

void tsi_futex_wait_bits(const _Atomic uint32_t *word, uint32_t value,
			 uint32_t bits, int timeout_ms)
{
	/* FUTEX_WAIT_BITSET takes the time at which the wait ends. */
	int64_t until = tsi_now_ns() + (int64_t)timeout_ms * 1000000;
	struct timespec ts = {
		.tv_sec = (time_t)(until / 1000000000),
		.tv_nsec = (long)(until % 1000000000),
	};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, &ts, NULL, bits);
}

void tsi_futex_wake_bits(const _Atomic uint32_t *word, uint32_t bits)
{
	syscall(SYS_futex, word, FUTEX_WAKE_BITSET, INT_MAX, NULL, NULL, bits);
}
