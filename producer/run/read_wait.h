/* SPDX-License-Identifier: MIT */
/*
 * read_wait.h - is a worker waiting for a read, since when, and of which file?
 *
 * One thread begins and ends the waits; any thread may ask.
 */
#ifndef TSI_RUN_READ_WAIT_H
#define TSI_RUN_READ_WAIT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"

/* All zero: there is none. */
struct tsi_read_wait {
	_Atomic int64_t since_ns; /* 0: none is waited for */
	_Atomic uint64_t file;
};

static inline void tsi_read_wait_begin(struct tsi_read_wait *w, uint64_t file)
{
	atomic_store(&w->file, file);
	atomic_store(&w->since_ns, tsi_now_ns());
}

static inline void tsi_read_wait_end(struct tsi_read_wait *w)
{
	atomic_store(&w->since_ns, 0);
}

/* Since when, by tsi_now_ns(), or 0; and of which file. */
static inline int64_t tsi_read_wait_ask(const struct tsi_read_wait *w,
					uint64_t *file)
{
	int64_t since = atomic_load(&w->since_ns);

	*file = atomic_load(&w->file);
	/* Else the file may be another wait's. */
	return atomic_load(&w->since_ns) == since ? since : 0;
}

#endif
