/*
 * read.c - one whole file, by the thread that asks for it.
 */
#include "io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/slot.h"

static int open_file(int dirfd, const char *path, int *fd)
{
	do
		*fd = openat(dirfd, path, TSI_IO_OFLAGS);
	while (*fd < 0 && errno == EINTR);
	return *fd < 0 ? errno : 0;
}

/* From at on to the file's end, or until the block of max + 1 bytes is full. */
static int read_on(int fd, uint8_t *block, size_t max, size_t *len)
{
	for (*len = 0; *len <= max;) {
		ssize_t n =
			pread(fd, block + *len, max + 1 - *len, (off_t)*len);

		if (n == 0)
			return 0;
		if (n > 0)
			*len += (size_t)n;
		else if (errno != EINTR)
			return errno;
	}
	return EFBIG;
}

int tsi_file_read(int dirfd, const char *path, size_t max, uint8_t **data,
		  size_t *len)
{
	uint8_t *block = NULL;
	size_t size;
	struct tsi_fs_seen seen = { .known = false };
	int fd, err = open_file(dirfd, path, &fd);

	if (err)
		return err;
	err = tsi_io_check_file(fd, &seen, &size);
	if (!err && size > max)
		err = EFBIG;
	if (!err) {
		/* One byte more shows that there is no more. */
		block = malloc(max + 1);
		err = block ? read_on(fd, block, max, len) : ENOMEM;
	}
	close(fd);
	if (err)
		free(block);
	else
		*data = block;
	return err;
}
