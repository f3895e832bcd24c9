/*
 * forked.h - are we still in the process that opened this?
 *
 * A generation counted up in every forked child, so that asking is a load and
 * not a system call.
 */
#ifndef TSI_BASE_FORKED_H
#define TSI_BASE_FORKED_H

#include <stdbool.h>

/* This process's generation.  Counting starts with the first call. */
unsigned tsi_fork_generation(void);

/* Has there been a fork, and we are the child, since that generation? */
bool tsi_forked(unsigned generation);

/* TSOCK_EFORK, with its message. */
int tsi_err_forked(void);

#endif
