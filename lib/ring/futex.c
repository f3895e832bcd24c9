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

void tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
		    int timeout_ms)
{
	struct timespec ts = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = (long)(timeout_ms % 1000) * 1000000,
	};

	syscall(SYS_futex, word, FUTEX_WAIT, value, &ts, NULL, 0);
}

void tsi_futex_wake(const _Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
