/* SPDX-License-Identifier: MIT */
/*
 * hooks.h - what tests ask of the simulation, and do to it.  Names nothing of
 * CUDA's.
 */
#ifndef SIMCUDA_HOOKS_H
#define SIMCUDA_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(default)

/*
 * Call fn(arg) once, on the same thread, right after the next call of that name
 * has returned to its caller, or would have: what another thread might do just
 * then.
 */
void simcuda_after(const char *name, void (*fn)(void *arg), void *arg);

/* What this process has and hasn't given back. */
struct simcuda_live {
	uint64_t bytes; /* of device memory created here */
	unsigned allocations, handles, reservations, mappings, imports;
	unsigned pinned, streams, events;
	uint64_t through_host; /* bytes copied so from device to device */
	uint32_t contexts;     /* bit i: one was made on ordinal i */
};

void simcuda_live(struct simcuda_live *out);

/*
 * The devices, a bit for each by its number in the machine, on which this
 * process may have contexts: to make one elsewhere ends it with a report.  The
 * word may change, and be shared with other processes.
 */
void simcuda_may_use(const _Atomic uint32_t *devices);

/* Some drivers see that a stream was destroyed: its use is an error then, and
 * not the end of the process. */
void simcuda_see_destroyed(bool yes);

/* In the place of SIMCUDA_FAULT, counted from now on. */
void simcuda_set_faults(const char *list);

#pragma GCC visibility pop

#endif
