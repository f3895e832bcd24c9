/* SPDX-License-Identifier: MIT */
/*
 * process.c - what the system says of another process.
 */
#include "cli/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool tsi_process_stopped(uint32_t pid)
{
	char path[48], line[512] = "";
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	f = pid ? fopen(path, "re") : NULL;
	if (!f)
		return false;
	if (!fgets(line, sizeof(line), f))
		line[0] = '\0';
	fclose(f);
	/* "PID (NAME) STATE ...", and a name may have parentheses. */
	at = strrchr(line, ')');
	return at && at[1] == ' ' && (at[2] == 'T' || at[2] == 't');
}
