/* SPDX-License-Identifier: MIT */
/*
 * number.h - numbers as people read them.
 */
#ifndef TSI_CLI_NUMBER_H
#define TSI_CLI_NUMBER_H

#include <stdint.h>

/* "1,234,567" into buf (at least 28 bytes), which is returned. */
const char *tsi_number_thousands(char *buf, uint64_t n);

/* "308.3 MB" into buf (at least 16 bytes), powers of 1000. */
const char *tsi_number_megabytes(char *buf, uint64_t bytes);

#endif
