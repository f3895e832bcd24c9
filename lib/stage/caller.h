/* SPDX-License-Identifier: MIT */
/*
 * caller.h - calls that may never return, made in a thread of their own, which
 * is left behind when one doesn't.
 */
#ifndef TSI_STAGE_CALLER_H
#define TSI_STAGE_CALLER_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_caller; /* used by one thread at a time */

/*
 * Start the thread.  It calls last(arg) as it ends.  A call that was left may
 * use arg until then, so count the references to it.
 */
int tsi_caller_start(const char *name, void (*last)(void *arg), void *arg,
		     struct tsi_caller **out);

/*
 * Call fn(arg) in the thread, with the arg given above, and wait for limit_ns
 * at most.  True: it has returned, and *err is what it returned, with its
 * message.  False: it hasn't; then ask tsi_caller_is_free() before any other
 * call.
 */
bool tsi_caller_call(struct tsi_caller *c, int (*fn)(void *arg),
		     int64_t limit_ns, int *err);

/* Wait, until tsi_now_ns() is until_ns, for a call that hasn't returned. */
bool tsi_caller_is_free(struct tsi_caller *c, int64_t until_ns);

/* The thread ends, now or when its call returns.  NULL is allowed. */
void tsi_caller_end(struct tsi_caller *c);

#endif
