/* SPDX-License-Identifier: MIT */
/*
 * slot.c - one read of a file or a part of it, step by step, and its buffer.
 *
 * Makes no system call but openat, fstat, fstatfs and fcntl, and those of
 * files.c.
 */
#include "io/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/regular.h"

#define LARGE \
	((size_t)1 << 20) /* a larger buffer is freed when a small file comes */
#define GRAIN ((size_t)64 << 10)

static int grow_buffer(struct tsi_io_slot *s, size_t need)
{
	size_t cap = (need + GRAIN - 1) / GRAIN * GRAIN;
	uint8_t *buf;

	if (cap <= s->cap)
		return 0;
	if (s->len == 0) {
		/* The buffer holds nothing, so realloc() needn't copy it. */
		free(s->buf);
		s->buf = NULL;
		s->cap = 0;
	}
	buf = realloc(s->buf, cap);
	if (!buf)
		return ENOMEM;
	s->buf = buf;
	s->cap = cap;
	return 0;
}

static int ask_for_more(struct tsi_io_slot *s)
{
	if (s->len == s->cap) {
		int err = grow_buffer(s, s->cap * 2);

		if (err)
			return err;
	}
	s->asked = s->cap - s->len;
	if (s->what.length > 0 && s->asked > s->what.length - s->len)
		s->asked = s->what.length - s->len;
	return TSI_IO_MORE;
}

/* How much there is to read of a file of size bytes. */
static int check_size(uint64_t size, uint64_t offset, uint64_t length,
		      size_t *expect)
{
	if (length > 0 && (offset > size || length > size - offset))
		return TSI_READER_TRUNCATED;
	if (length == 0)
		length = size;
	if (length > TSI_READER_MAX)
		return EFBIG;
	*expect = length;
	return 0;
}

int tsi_io_slot_open_file(const struct tsi_read_request *q)
{
	int fd;

	do
		fd = openat(q->dirfd, q->path, TSI_IO_OFLAGS);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int tsi_io_slot_check_file(int fd, const struct tsi_read_request *q,
			   struct tsi_fs_seen *seen, size_t *expect)
{
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return TSI_READER_ODD;
	if (tsi_regular_made_up(seen, st.st_dev, fd))
		return TSI_READER_MADE_UP;
	err = check_size((uint64_t)st.st_size, q->offset, q->length, expect);
	if (err)
		return err;
	/*
	 * O_NONBLOCK only kept the open from blocking; some file systems answer
	 * reads with EAGAIN while it is set.
	 */
	return fcntl(fd, F_SETFL, 0) ? errno : 0;
}

/* The first read of an open file, of which so much is expected. */
static int first_piece(struct tsi_io_slot *s)
{
	int err;

	s->len = 0;
	if (s->expect > TSI_READER_AHEAD)
		return TSI_READ_LARGE;
	/* For a whole file one byte more: one read sees its end, too. */
	err = grow_buffer(s, s->expect + (s->what.length == 0));
	return err ? err : ask_for_more(s);
}

int tsi_io_slot_is_open(struct tsi_io_slot *s)
{
	const struct tsi_read_request *q = &s->what;

	if (s->files && q->length > 0 && q->length <= TSI_READER_MAX)
		s->file = tsi_io_files_take(s->files, q->dirfd, q->path);
	if (!s->file)
		return TSI_IO_CLOSED;
	s->fd = tsi_io_file_fd(s->file);
	/* If the file is shorter by now, a read comes to its end. */
	s->expect = q->length;
	return first_piece(s);
}

int tsi_io_slot_opened(struct tsi_io_slot *s, int fd)
{
	const struct tsi_read_request *q = &s->what;
	int err;

	s->fd = fd;
	err = tsi_io_slot_check_file(fd, q, &s->seen, &s->expect);
	if (err)
		return err;
	if (s->files && q->length > 0)
		s->file = tsi_io_files_keep(s->files, q->dirfd, q->path, fd);
	return first_piece(s);
}

int tsi_io_slot_got(struct tsi_io_slot *s, size_t n)
{
	s->len += n;
	if (s->what.length > 0) {
		if (s->len == s->what.length)
			return 0;
		return n == 0 ? TSI_READER_TRUNCATED : ask_for_more(s);
	}
	if (s->len > TSI_READER_AHEAD) {
		/* The file has grown. */
		s->expect = s->len;
		return TSI_READ_LARGE;
	}
	/* Any other short read may have been cut off by a signal. */
	if (n == 0 || (n < s->asked && s->len == s->expect))
		return 0;
	return ask_for_more(s);
}

struct tsi_io_piece tsi_io_slot_piece(const struct tsi_io_slot *s)
{
	return (struct tsi_io_piece){
		.fd = s->fd,
		.to = s->buf + s->len,
		.len = s->asked,
		.at = s->what.offset + s->len,
	};
}

int tsi_io_slot_ended(struct tsi_io_slot *s, int err)
{
	int fd = s->fd;

	s->err = err;
	s->fd = -1;
	if (!s->file)
		return fd;
	/* What can't be read is perhaps another file by now. */
	tsi_io_files_give(s->files, s->file, err && err != TSI_READ_LARGE);
	s->file = NULL;
	return -1;
}

void tsi_io_slot_hand_over(struct tsi_io_slot *s)
{
	s->state = TSI_IO_DONE;
}

bool tsi_io_slot_is_queued(const struct tsi_io_slot *s)
{
	return s->state == TSI_IO_QUEUED;
}

const struct tsi_read_request *tsi_io_slot_what(const struct tsi_io_slot *s)
{
	return &s->what;
}

int tsi_io_slot_fd(const struct tsi_io_slot *s)
{
	return s->fd;
}

/* ------------------------------------------------------------------------
 * The reader's side
 */

void tsi_io_slot_begin(struct tsi_io_slot *s, const struct tsi_read_request *q)
{
	s->what = *q;
	s->len = 0;
	s->fd = -1;
	s->err = 0;
	if (s->cap > LARGE && q->size_hint < s->cap / 4) {
		free(s->buf);
		s->buf = NULL;
		s->cap = 0;
	}
	s->state = TSI_IO_QUEUED;
}

void tsi_io_slot_take(struct tsi_io_slot *s, struct tsi_read *out)
{
	s->state = TSI_IO_TAKEN;
	out->tag = s->what.tag;
	out->err = s->err;
	out->data = s->err ? NULL : s->buf;
	out->len = s->err ? 0 : s->len;
	out->size = s->err == TSI_READ_LARGE ? s->expect : 0;
}

void tsi_io_slot_release(struct tsi_io_slot *s)
{
	s->state = TSI_IO_FREE;
}

struct tsi_io_slot *tsi_io_slots_free(struct tsi_io_slot *slot, unsigned depth)
{
	for (unsigned i = 0; i < depth; i++)
		if (slot[i].state == TSI_IO_FREE)
			return &slot[i];
	return NULL;
}

struct tsi_io_slot *tsi_io_slots_done(struct tsi_io_slot *slot, unsigned depth)
{
	struct tsi_io_slot *low = NULL;

	for (unsigned i = 0; i < depth; i++) {
		struct tsi_io_slot *s = &slot[i];

		if (s->state == TSI_IO_DONE &&
		    (!low || s->what.tag < low->what.tag))
			low = s;
	}
	return low;
}

struct tsi_io_slot *tsi_io_slots_create(unsigned depth)
{
	struct tsi_io_slot *slot = calloc(depth, sizeof(*slot));

	for (unsigned i = 0; slot && i < depth; i++)
		slot[i].fd = -1;
	return slot;
}

void tsi_io_slots_use_files(struct tsi_io_slot *slot, unsigned depth,
			    struct tsi_io_files *files)
{
	for (unsigned i = 0; i < depth; i++)
		slot[i].files = files;
}

void tsi_io_slots_destroy(struct tsi_io_slot *slot, unsigned depth)
{
	for (unsigned i = 0; slot && i < depth; i++)
		free(slot[i].buf);
	free(slot);
}
