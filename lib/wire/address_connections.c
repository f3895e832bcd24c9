/* SPDX-License-Identifier: MIT */
/*
 * address_connections.c - how many connections a message channel has.
 *
 * /proc/net/unix has a line for each socket, and a socket that a listener
 * accepted has the listener's path.  A consumer keeps its connection from the
 * moment that it was opened until it is closed, or its process ends.
 */
#include <stdio.h>
#include <string.h>

#include "wire/address.h"

#define CONNECTED 3 /* SS_CONNECTED of linux/net.h */

static int count_lines(FILE *f, const char *path)
{
	char line[TSI_SOCKET_PATH + 128];
	int n = 0;

	while (fgets(line, sizeof(line), f)) {
		unsigned state;
		int at = 0;

		line[strcspn(line, "\n")] = 0;
		/* Address, references, protocol, flags, type, state, inode. */
		if (sscanf(line, "%*s %*x %*x %*x %*x %x %*u %n", &state,
			   &at) == 1 &&
		    at && state == CONNECTED && !strcmp(line + at, path))
			n++;
	}
	return n;
}

int tsi_address_connections(const struct tsi_address *a)
{
	FILE *f = fopen("/proc/net/unix", "re");
	int n;

	if (!f)
		return 0;
	n = count_lines(f, tsi_address_channel(a));
	fclose(f);
	return n;
}
