/* SPDX-License-Identifier: MIT */
/*
 * stop.c - --stop: ending a stream for good, if its readers may be ended.
 */
#include "cli/stop.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/serve.h"
#include "tsock/tsock.h"

#define STOP_MS 30000

static int fail(int err)
{
	fprintf(stderr, "tsock-producer: %s\n", tsock_errmsg());
	return err == TSOCK_EREFUSED || err == TSOCK_ENOPROD
		       ? TSI_EXIT_TAKEN
		       : tsi_serve_exit(err);
}

/* What tsock_errmsg() names is to be ended. */
static bool agrees(const char *name)
{
	char line[16];

	fprintf(stderr, "%s\nStop %s all the same? [y/N] ", tsock_errmsg(),
		name);
	return fgets(line, sizeof(line), stdin) &&
	       (line[0] == 'y' || line[0] == 'Y');
}

int tsi_stop_stream(const char *name, bool force)
{
	int err = tsock_stop(name, force, STOP_MS);

	if (err == TSOCK_EREFUSED) {
		if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
			fprintf(stderr,
				"tsock-producer: %s; --force stops it all the "
				"same\n",
				tsock_errmsg());
			return TSI_EXIT_TAKEN;
		}
		if (!agrees(name))
			return TSI_EXIT_TAKEN;
		err = tsock_stop(name, true, STOP_MS);
	}
	if (err)
		return fail(err);
	printf("stopped %s\n", name);
	return TSI_EXIT_OK;
}
