/* SPDX-License-Identifier: MIT */
/*
 * stop_file.c - when a stream was stopped for good, and by whom.
 *
 * One line: the kernel's number of this boot, nanoseconds of CLOCK_MONOTONIC,
 * and who it was.  A line of another boot says nothing.
 */
#include "wire/stop_file.h"

#include <inttypes.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/text.h"

#define BOOT 64

static bool path_of(const struct tsi_address *a, char path[PATH_MAX])
{
	return snprintf(path, PATH_MAX, "%s/%s.stopped", tsi_address_folder(a),
			tsi_address_name(a)) < PATH_MAX;
}

/* Where the kernel doesn't tell, all boots are one. */
static void boot_id(char boot[BOOT])
{
	if (!tsi_file_first_line(boot, BOOT,
				 "/proc/sys/kernel/random/boot_id") ||
	    !boot[0] || strchr(boot, ' '))
		strcpy(boot, "-");
}

int tsi_stop_file_write(const struct tsi_address *a, const char *who)
{
	char path[PATH_MAX], fresh[PATH_MAX + 8], line[512], boot[BOOT];
	char text[TSI_STOP_WHO];
	int fd, err = 0;
	size_t n;

	if (!path_of(a, path))
		return tsi_err(TSOCK_EARG, "the path of %s is too long",
			       tsi_address_folder(a));
	boot_id(boot);
	tsi_text_printable(text, sizeof(text), who);
	n = (size_t)snprintf(line, sizeof(line), "%s %" PRId64 " %s\n", boot,
			     tsi_now_ns(), text);
	snprintf(fresh, sizeof(fresh), "%s.XXXXXX", path);
	fd = mkostemp(fresh, O_CLOEXEC);
	if (fd < 0)
		return tsi_err_sys("make %s", fresh);
	if (!tsi_file_write(fd, line, n) || rename(fresh, path)) {
		err = tsi_err_sys("write %s", path);
		unlink(fresh);
	}
	close(fd);
	return err;
}

bool tsi_stop_file_since(const struct tsi_address *a, int64_t since_ns,
			 char who[TSI_STOP_WHO])
{
	char line[512], boot[BOOT], its[BOOT];
	int64_t then;
	int at = 0;

	if (!tsi_file_first_line(line, sizeof(line), "%s/%s.stopped",
				 tsi_address_folder(a), tsi_address_name(a)) ||
	    sscanf(line, "%63s %" SCNd64 " %n", its, &then, &at) != 2 || !at)
		return false;
	boot_id(boot);
	if (strcmp(boot, its) != 0 || then <= since_ns)
		return false;
	tsi_text_printable(who, TSI_STOP_WHO, line + at);
	return true;
}

int tsi_stop_file_err(const struct tsi_address *a, const char *who)
{
	return tsi_err(TSOCK_EENDED, "the stream '%s' was stopped by %s",
		       tsi_address_name(a), who);
}
