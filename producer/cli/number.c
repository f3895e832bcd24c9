/* SPDX-License-Identifier: MIT */
/*
 * number.c - numbers as people read them.
 */
#include "cli/number.h"

#include <inttypes.h>
#include <stdio.h>

const char *tsi_number_thousands(char *buf, uint64_t n)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *to = buf;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buf;
}

const char *tsi_number_megabytes(char *buf, uint64_t bytes)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB" };
	double v = (double)bytes / 1000;
	unsigned u = 0;

	while (v >= 999.95 && u < 4) {
		v /= 1000;
		u++;
	}
	snprintf(buf, 16, "%.1f %s", v, units[u]);
	return buf;
}
