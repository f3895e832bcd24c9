/*
 * connected.c - how many connections a producer's message channel has.
 *
 * The kernel knows: /proc/net/unix has a line for each socket, and those that
 * a listener accepted have its path.  A loader keeps its connection from the
 * moment that it was opened until it is closed, or dies.
 */
#include <stdio.h>
#include <string.h>

#include "wire/place.h"

#define CONNECTED 3 /* SS_CONNECTED of linux/net.h */

static int count(FILE *f, const char *path)
{
	char line[TSI_PATH + 128];
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

int tsi_place_connected(const struct tsi_place *p)
{
	FILE *f = fopen("/proc/net/unix", "re");
	int n;

	if (!f)
		return 0;
	n = count(f, p->channel);
	fclose(f);
	return n;
}
