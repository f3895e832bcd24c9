/* SPDX-License-Identifier: MIT */
/*
 * process.c - what the system says of another process.
 */
#include "cli/process.h"

#include "base/first_line.h"

#include <inttypes.h>
#include <string.h>

bool tsi_process_stopped(uint32_t pid)
{
	char line[512];
	const char *at;

	if (!pid ||
	    !tsi_first_line(line, sizeof(line), "/proc/%" PRIu32 "/stat", pid))
		return false;
	/* "PID (NAME) STATE ...", and a name may have parentheses. */
	at = strrchr(line, ')');
	return at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}
