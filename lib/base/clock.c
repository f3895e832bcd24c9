/* SPDX-License-Identifier: MIT */
/*
 * clock.c - how long a wait may last in silence.
 */
#include "base/clock.h"

#include <stdatomic.h>
#include <stdlib.h>

#define DEFAULT_MS 10000

int64_t tsi_patience_ms(void)
{
	static _Atomic int64_t known;
	/* All threads that don't know it yet find the same. */
	int64_t ms = atomic_load_explicit(&known, memory_order_relaxed);
	const char *word;

	if (ms)
		return ms;
	word = secure_getenv("TSOCK_PATIENCE_MS");
	ms = word ? strtol(word, NULL, 10) : 0;
	if (ms <= 0)
		ms = DEFAULT_MS;
	atomic_store_explicit(&known, ms, memory_order_relaxed);
	return ms;
}
