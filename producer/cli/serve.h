/* SPDX-License-Identifier: MIT */
/*
 * serve.h - the command that serves: checks, scan, stream, reports, exit code.
 */
#ifndef TSI_CLI_SERVE_H
#define TSI_CLI_SERVE_H

#include "cli/options.h"

/* Exit codes; the larger ones are those of sysexits.h. */
enum tsi_exit {
	TSI_EXIT_OK = 0,
	TSI_EXIT_STREAM = 1,
	TSI_EXIT_USAGE = 2,
	TSI_EXIT_NO_INPUT = 66,
	TSI_EXIT_TAKEN = 69,
	TSI_EXIT_SYSTEM = 71,
	TSI_EXIT_MISFIT = 78,
};

/* The code for what failed before the stream was there. */
int tsi_serve_exit(int err);

/*
 * Check, scan, and serve until a signal or the stream's end; with
 * --check-config and --dry-run, stop after that.  Returns an exit code and has
 * said why.  stop_signal() waits at most ms for a signal to end by.
 */
int tsi_serve(const struct tsi_options *o, int (*stop_signal)(int ms));

/* For a signal handler that ends the process before stop_signal() was called:
 * the stream's name, if it is taken already, is given back. */
void tsi_serve_abandon(void);

#endif
