/* SPDX-License-Identifier: MIT */
/*
 * stamp.c - what a folder or file was when a scan read it.
 */
#include "data/stamp.h"

#include <time.h>

#define TICK_NS 20000000 /* two of the slowest kernel's clock ticks */
#define TRIES 4
#define NEVER INT64_MIN /* no file has this mtime */

static int64_t mtime_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

int tsi_stamp_take(int fd, struct stat *st, struct tsi_stamp *out)
{
	for (int tries = 0; tries < TRIES; tries++) {
		struct timespec now;
		struct timespec rest = { 0, 0 };
		int64_t age;

		if (fstat(fd, st))
			return -1;
		out->ino = st->st_ino;
		out->mtime_ns = mtime_ns(st);
		clock_gettime(CLOCK_REALTIME, &now);
		age = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec -
		      out->mtime_ns;
		if (age < 0 || age >= TICK_NS)
			return 0;
		rest.tv_nsec = (long)(TICK_NS - age);
		nanosleep(&rest, NULL);
	}
	out->mtime_ns = NEVER;
	return 0;
}

bool tsi_stamp_holds(const struct tsi_stamp *s, const struct stat *now)
{
	return (S_ISDIR(now->st_mode) || S_ISREG(now->st_mode)) &&
	       now->st_ino == s->ino && mtime_ns(now) == s->mtime_ns;
}
