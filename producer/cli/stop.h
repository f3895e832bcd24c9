/* SPDX-License-Identifier: MIT */
/*
 * stop.h - --stop: ending a stream for good, if its readers may be ended.
 */
#ifndef TSI_CLI_STOP_H
#define TSI_CLI_STOP_H

#include <stdbool.h>

/* Where the stream has readers, and force isn't given, a person at a terminal is
 * asked; elsewhere nothing is stopped.  Returns the exit code. */
int tsi_stop_stream(const char *name, bool force);

#endif
