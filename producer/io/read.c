/* SPDX-License-Identifier: MIT */
/*
 * read.c - one file or range, by the thread that asks for it.
 */
#include "io/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/slot.h"

/* Fill the block with bytes from offset on, or with all that there are. */
static int read_on(int fd, uint8_t *block, size_t want, uint64_t offset,
		   size_t *len)
{
	for (*len = 0; *len < want;) {
		ssize_t n = pread(fd, block + *len, want - *len,
				  (off_t)(offset + *len));

		if (n == 0)
			return 0;
		if (n > 0)
			*len += (size_t)n;
		else if (errno != EINTR)
			return errno;
	}
	return 0;
}

int tsi_io_read(const struct tsi_read_request *q, size_t max, uint8_t **data,
		size_t *len)
{
	uint8_t *block = NULL;
	/* For a whole file one byte more, which shows that there is no more. */
	size_t size, want = q->length ? q->length : max + 1;
	struct tsi_fs_seen seen = { .known = false };
	int err, fd = tsi_io_slot_open_file(q);

	if (fd < 0)
		return errno;
	err = tsi_io_slot_check_file(fd, q, &seen, &size);
	if (!err && size > max)
		err = EFBIG;
	if (!err) {
		block = malloc(want);
		err = block ? read_on(fd, block, want, q->offset, len) : ENOMEM;
	}
	close(fd);
	if (!err && *len > max)
		err = EFBIG;
	if (!err && q->length && *len < q->length)
		err = TSI_READER_TRUNCATED;
	if (err)
		free(block);
	else
		*data = block;
	return err;
}
