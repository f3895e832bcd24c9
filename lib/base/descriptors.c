/* SPDX-License-Identifier: MIT */
/*
 * descriptors.c - how many descriptors this process may still open.
 */
#include "base/descriptors.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define KEPT_LEAST 16
#define KEPT_MOST 1024

/* Since Linux 6.2 the folder's size is the number; before it was 0. */
static uint64_t count_open(uint64_t limit)
{
	uint64_t n = 0;
	struct stat st;
	DIR *d;

	if (!stat("/proc/self/fd", &st) && st.st_size > 0)
		return (uint64_t)st.st_size;
	d = opendir("/proc/self/fd");
	if (!d)
		return limit;
	while (readdir(d))
		n++;
	closedir(d);
	/* "." and "..", and the folder itself. */
	return n > 3 ? n - 3 : 0;
}

struct tsi_descriptors tsi_descriptors(void)
{
	struct tsi_descriptors d = { .limit = UINT64_MAX };
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur != RLIM_INFINITY)
		d.limit = r.rlim_cur;
	d.open = count_open(d.limit);
	d.kept = d.limit / 4;
	if (d.kept < KEPT_LEAST)
		d.kept = KEPT_LEAST;
	if (d.kept > KEPT_MOST)
		d.kept = KEPT_MOST;
	return d;
}

const char *tsi_descriptors_text(const struct tsi_descriptors *d,
				 char text[TSI_DESCRIPTORS_TEXT])
{
	snprintf(text, TSI_DESCRIPTORS_TEXT,
		 "%llu of %llu are in use, %llu are kept back",
		 (unsigned long long)d->open, (unsigned long long)d->limit,
		 (unsigned long long)d->kept);
	return text;
}

bool tsi_descriptors_room(const struct tsi_descriptors *d, uint64_t more,
			  unsigned quarters)
{
	return d->open + more + d->kept * quarters / 4 <= d->limit;
}
