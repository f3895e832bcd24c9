/* SPDX-License-Identifier: MIT */
/*
 * read.c - one file or range, by the thread that asks for it.
 */
#include "io/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/direct.h"
#include "io/slot.h"

struct block {
	uint8_t *data;
	size_t align; /* of reads into it */
	size_t skew;  /* bytes before those of the range */
	size_t size;
	size_t len; /* bytes that have come */
};

/* Fill the block from its begin on, or with all that there is. */
static int read_block(int fd, const struct tsi_read_request *q, struct block *b)
{
	char text[TSI_PATH];

	while (b->len < b->size) {
		size_t from = tsi_io_direct_down(b->len, b->align);
		ssize_t n = pread(fd, b->data + from, b->size - from,
				  (off_t)(q->offset - b->skew + from));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && b->align > 1 &&
		    tsi_io_direct_refused(fd, tsi_io_slot_path(q, text),
					  errno)) {
			b->align = 1;
			continue;
		}
		if (n < 0)
			return errno;
		if (from + (size_t)n <= b->len)
			break;
		b->len = from + (size_t)n;
	}
	return 0;
}

/* Read want bytes, or as many as there are; *data begins with the first. */
static int read_aligned(int fd, const struct tsi_read_request *q, size_t align,
			size_t want, uint8_t **data, size_t *len)
{
	struct block b = { .align = align, .skew = q->offset & (align - 1) };
	int err;

	b.size = tsi_io_direct_up(b.skew + want, align);
	b.data = tsi_io_slot_memory(b.size, align);
	if (!b.data)
		return ENOMEM;
	err = read_block(fd, q, &b);
	if (err) {
		free(b.data);
		return err;
	}
	*len = b.len > b.skew ? b.len - b.skew : 0;
	if (*len > want)
		*len = want;
	/* The caller frees what begins with its bytes. */
	if (b.skew > 0)
		memmove(b.data, b.data + b.skew, *len);
	*data = b.data;
	return 0;
}

int tsi_io_read(const struct tsi_read_request *q, size_t max, uint8_t **data,
		size_t *len)
{
	uint8_t *block = NULL;
	/* For a whole file one byte more, which shows that there is no more. */
	size_t size, align, want = q->length ? q->length : max + 1;
	struct tsi_fs_seen seen = { .known = false };
	int err, fd = tsi_io_slot_open_file(q);

	if (fd < 0)
		return errno;
	err = tsi_io_slot_check_file(fd, q, &seen, &size, &align);
	if (!err && size > max)
		err = EFBIG;
	if (!err)
		err = read_aligned(fd, q, align, want, &block, len);
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
