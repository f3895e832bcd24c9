/* SPDX-License-Identifier: MIT */
/*
 * process.h - what the system says of another process.
 */
#ifndef TSI_CLI_PROCESS_H
#define TSI_CLI_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

/* Is it stopped, by a signal or by a debugger?  False if it can't be told. */
bool tsi_process_stopped(uint32_t pid);

#endif
