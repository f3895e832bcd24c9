/* SPDX-License-Identifier: MIT */
/*
 * textfile.c - a file that an option names, read whole.
 */
#include "data/textfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"

static int unreadable(const char *option, const char *path, const char *why)
{
	return tsi_err(TSOCK_EDATA, "can't read %s %s: %s", option, path, why);
}

/* All bytes of a file that says that it has so many. */
static int read_all(const char *option, int fd, size_t size,
		    struct tsi_textfile *t)
{
	ssize_t got;

	t->text = malloc(size + 1);
	if (!t->text)
		return tsi_err(TSOCK_ENOMEM, "no memory for %s", option);
	got = tsi_file_read(fd, t->text, size);
	if (got < 0)
		return unreadable(option, t->path, strerror(errno));
	t->len = (size_t)got;
	t->text[t->len] = '\0';
	return 0;
}

static int read_open(const char *option, const char *path, int fd,
		     struct tsi_stamp *stamp, struct tsi_textfile *t)
{
	struct tsi_fs_seen seen = { .known = false };
	const char *kind;
	struct stat st;

	t->path = realpath(path, NULL);
	if (!t->path || fstat(fd, &st))
		return unreadable(option, path, strerror(errno));
	kind = tsi_file_kind(st.st_mode);
	if (kind)
		return tsi_err(TSOCK_EDATA,
			       "can't read %s %s: it is %s, not a file", option,
			       path, kind);
	if (tsi_file_made_up(&seen, st.st_dev, fd))
		return unreadable(option, path, TSI_FILE_MADE_UP);
	if (stamp && tsi_stamp_take(fd, &st, stamp))
		return unreadable(option, path, strerror(errno));
	return read_all(option, fd, (size_t)st.st_size, t);
}

int tsi_textfile_read(const char *option, const char *path,
		      struct tsi_stamp *stamp, struct tsi_textfile *out)
{
	/* A FIFO would be waited for. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	int err;

	*out = (struct tsi_textfile){ .path = NULL };
	if (fd < 0)
		return unreadable(option, path, strerror(errno));
	err = read_open(option, path, fd, stamp, out);
	close(fd);
	if (err)
		tsi_textfile_free(out);
	return err;
}

char *tsi_textfile_begin(const struct tsi_textfile *t)
{
	bool mark = t->len >= 3 && memcmp(t->text, "\xef\xbb\xbf", 3) == 0;

	return t->text + (mark ? 3 : 0);
}

void tsi_textfile_free(struct tsi_textfile *t)
{
	free(t->text);
	free(t->path);
	*t = (struct tsi_textfile){ .path = NULL };
}
