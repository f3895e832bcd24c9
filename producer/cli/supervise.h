/* SPDX-License-Identifier: MIT */
/*
 * supervise.h - a process that starts the one that serves again when that was
 * killed.
 */
#ifndef TSI_CLI_SUPERVISE_H
#define TSI_CLI_SUPERVISE_H

#include <signal.h>
#include <stdbool.h>

/*
 * Before there is any thread.  Returns false in a child, which is to serve, and
 * true in this process when it is over: *code is then the exit status.
 *
 * A child that a signal has killed is followed by another one, after 0.1 s, and
 * after twice the time before when it lived for less than a minute, up to 10 s.
 * Any other end is the end,
 * and none follows when the stream of that name was stopped for good.  Signals of the set `stopping` are passed on, and
 * then the child's end is the end, too.  If this process is killed, the child
 * ends as by SIGTERM.
 */
bool tsi_supervise(const char *name, const sigset_t *stopping, int *code);

#endif
