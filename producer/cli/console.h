/* SPDX-License-Identifier: MIT */
/*
 * console.h - standard error: log lines, and the live line below them.
 *
 * Every line goes out in one write.  A terminal that has gone away is no
 * error.
 */
#ifndef TSI_CLI_CONSOLE_H
#define TSI_CLI_CONSOLE_H

#include <stdbool.h>

/* Log lines above level are dropped; live: a line may be rewritten. */
void tsi_console_init(int level, bool live);

/* For tsock_set_logger(). */
void tsi_console_log(void *arg, int level, const char *line);

/* The live line is rewritten in place, on a terminal. */
bool tsi_console_live(void);

/* Standard error is a terminal that may have colours. */
bool tsi_console_colour(void);

/* Columns of the terminal, the last one left free. */
unsigned tsi_console_width(void);

/* Replace the live line; NULL removes it. */
void tsi_console_show(const char *line);

#endif
