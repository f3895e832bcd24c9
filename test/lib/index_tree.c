/* SPDX-License-Identifier: MIT */
/*
 * index_tree.c - a folder of made-up files for tests of the index.
 */
#include "test/lib/index_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/err.h"
#include "data/format.h"

#define ROOM (UINT64_C(256) << 20)

char tree_top[64];
char tree_cache[80];
_Atomic int tree_probed;

static void make_folders(char *full)
{
	for (char *p = full + strlen(tree_top) + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
}

void tree_put(const char *path, const char *text)
{
	int flags = O_CREAT | O_TRUNC | O_WRONLY, fd;
	char full[8192];

	snprintf(full, sizeof(full), "%s/tree/%s", tree_top, path);
	fd = open(full, flags, 0600);
	if (fd < 0) {
		make_folders(full);
		fd = open(full, flags, 0600);
	}
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

void tree_drop(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/tree/%s", tree_top, path);
	assert_int_equal(remove(full), 0);
}

void tree_link(const char *target, const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/tree/%s", tree_top, path);
	assert_int_equal(symlink(target, full), 0);
}

void tree_folder(const char *path)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/tree", tree_top);
	mkdir(full, 0700);
	snprintf(full, sizeof(full), "%s/tree/%s", tree_top, path);
	assert_int_equal(mkdir(full, 0700), 0);
}

/* Good are files that begin with "ok" and have no more bytes than asked for. */
static int sniff(void *arg, const void *data, size_t len, bool whole)
{
	(void)arg;
	atomic_fetch_add(&tree_probed, 1);
	if (len >= 4 && !memcmp(data, "more", 4))
		return TSOCK_EAGAIN;
	if (len >= 5 && !memcmp(data, "whole", 5))
		return whole ? 0 : TSOCK_EAGAIN;
	if (len < 2 || memcmp(data, "ok", 2))
		return tsi_err(TSOCK_EDATA, "isn't ok");
	return 0;
}

struct tsi_index_opts tree_options(void)
{
	static char root[80];
	struct tsi_index_opts o = { .format = &tsi_format_imagefolder,
				    .cache_dir = "",
				    .threads = 4,
				    .sniff = sniff };

	snprintf(root, sizeof(root), "%s/tree", tree_top);
	o.root = root;
	return o;
}

struct tsi_index *tree_open(struct tsi_index_opts o)
{
	struct tsi_index *x = NULL;

	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

const char *tree_path(const struct tsi_index *x, uint64_t i)
{
	static char text[2][TSI_PATH];
	static unsigned turn;

	return tsi_index_path(x, i, text[turn++ % 2]);
}

uint64_t tree_size_of(const struct tsi_index *x, uint64_t i)
{
	struct tsi_location at;

	tsi_index_locate(x, i, &at);
	assert_int_equal(at.offset + at.length, 0);
	return at.size;
}

/* Thousands of files take twenty times longer on a disk, so in memory, if
 * there is room. */
static const char *roomy_folder(void)
{
	const char *tmp = getenv("TMPDIR");
	struct statvfs fs;

	if (!access("/dev/shm", W_OK | X_OK) && !statvfs("/dev/shm", &fs) &&
	    fs.f_bavail * fs.f_frsize >= ROOM)
		return "/dev/shm";
	return tmp ? tmp : "/tmp";
}

int tree_setup(void **state)
{
	(void)state;
	snprintf(tree_top, sizeof(tree_top), "%.32s/index-tree-XXXXXX",
		 roomy_folder());
	if (!mkdtemp(tree_top))
		return -1;
	snprintf(tree_cache, sizeof(tree_cache), "%s/cache/of/scans", tree_top);
	tree_probed = 0;
	return 0;
}

int tree_teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", tree_top);
	return system(command);
}
