/* SPDX-License-Identifier: MIT */
/*
 * read.c - one file or range, by the thread that asks for it.
 */
#include "io/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fully.h"
#include "io/slot.h"

/* Fill the block from the range's begin on, or with all that there is. */
static int read_block(int fd, const struct tsi_read_request *q, uint8_t *block,
		      size_t want, size_t *len)
{
	ssize_t n = tsi_fully_pread(fd, block, want, q->offset);

	if (n < 0)
		return errno;
	*len = (size_t)n;
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
		err = block ? read_block(fd, q, block, want, len) : ENOMEM;
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
