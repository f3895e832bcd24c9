/* SPDX-License-Identifier: MIT */
/*
 * slot.c - one read of a file or a part of it, step by step, and its buffer.
 *
 * Makes no system call but openat, fstat, fstatfs and fcntl, and those of
 * files.c and direct.c.
 */
#include "io/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "io/direct.h"

#define LARGE \
	((size_t)1 << 20) /* a larger buffer is freed when a small file comes */
#define GRAIN ((size_t)64 << 10) /* smaller files have no parts */

_Static_assert(GRAIN % TSI_DIRECT_ALIGN_MAX == 0, "buffers end in a block");

uint8_t *tsi_io_slot_memory(size_t size, size_t align)
{
	/* Larger blocks than these concern offsets and lengths alone. */
	return align > 1 ? aligned_alloc(TSI_DIRECT_ALIGN, size) : malloc(size);
}

/* Can the buffer take reads of the slot's alignment? */
static bool is_aligned(const struct tsi_io_slot *s)
{
	return s->align == 1 || (uintptr_t)s->buf % TSI_DIRECT_ALIGN == 0;
}

static int grow_buffer(struct tsi_io_slot *s, size_t need)
{
	size_t cap = (need + GRAIN - 1) / GRAIN * GRAIN;
	uint8_t *buf;

	if (cap <= s->cap && is_aligned(s))
		return 0;
	if (s->len == 0) {
		/* The buffer holds nothing to be copied. */
		free(s->buf);
		s->buf = NULL;
		s->cap = 0;
	}
	buf = tsi_io_slot_memory(cap, s->align);
	if (!buf)
		return ENOMEM;
	if (s->len > 0)
		memcpy(buf, s->buf, s->len);
	free(s->buf);
	s->buf = buf;
	s->cap = cap;
	return 0;
}

/* Where in the buffer the next read is to end. */
static size_t end_of_read(const struct tsi_io_slot *s)
{
	size_t end = s->cap;

	if (s->what.length > 0)
		end = tsi_io_direct_up(s->skew + s->what.length, s->align);
	else if (s->align > 1 && s->len + s->again <= s->expect)
		/* Bytes behind a file's end take time here. */
		end = tsi_io_direct_up(s->expect + 1, s->align);
	return end < s->cap ? end : s->cap;
}

static int ask_for_more(struct tsi_io_slot *s)
{
	if (s->len == s->cap) {
		int err = grow_buffer(s, s->cap * 2);

		if (err)
			return err;
	}
	/* What ended within a block: the file grows, say. */
	s->again = s->len & (s->align - 1);
	s->len -= s->again;
	s->asked = end_of_read(s) - s->len;
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
	char text[TSI_PATH];
	const char *path = tsi_io_slot_path(q, text);
	int fd;

	do
		fd = openat(q->dirfd, path, TSI_IO_OFLAGS);
	while (fd < 0 && errno == EINTR);
	return fd;
}

int tsi_io_slot_check_file(int fd, const struct tsi_read_request *q,
			   struct tsi_fs_seen *seen, size_t *expect,
			   size_t *align)
{
	char text[TSI_PATH];
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return TSI_READER_ODD;
	if (tsi_file_made_up(seen, st.st_dev, fd))
		return TSI_READER_MADE_UP;
	err = check_size((uint64_t)st.st_size, q->offset, q->length, expect);
	if (err)
		return err;
	*align = 1;
	if (q->direct)
		*align = tsi_io_direct_begin(fd, tsi_io_slot_path(q, text));
	if (*align > 1)
		return 0;
	/*
	 * O_NONBLOCK only kept the open from blocking; some file systems answer
	 * reads with EAGAIN while it is set.
	 */
	return fcntl(fd, F_SETFL, 0) ? errno : 0;
}

/* ---- parts of a file ---- */

static int ask_for_part(struct tsi_io_slot *s, size_t goal)
{
	s->goal = goal;
	s->asked = goal - s->len;
	return TSI_IO_MORE;
}

static int read_head(struct tsi_io_slot *s)
{
	int err = grow_buffer(s, TSI_READER_HEAD);

	return err ? err : ask_for_part(s, TSI_READER_HEAD);
}

static int next_part(struct tsi_io_slot *s)
{
	const struct tsi_read_part *p = &s->part[s->next++];

	s->shift = p->offset - s->len;
	return ask_for_part(s, s->len + p->length);
}

/* The head has come: read the parts, or else the rest. */
static int choose_parts(struct tsi_io_slot *s)
{
	size_t need = TSI_READER_HEAD;
	int err;

	s->parts = s->what.choose(s->what.arg, s->buf, s->expect, s->part);
	for (unsigned k = 0; k < s->parts; k++)
		need += s->part[k].length;
	if (!s->parts) {
		s->goal = 0;
		need = s->expect + 1;
	}
	if (need > TSI_READER_AHEAD + 1)
		return TSI_READ_LARGE;
	err = grow_buffer(s, need);
	if (err)
		return err;
	return s->parts ? next_part(s) : ask_for_more(s);
}

static int got_part(struct tsi_io_slot *s, size_t n)
{
	if (!n)
		return TSI_READER_TRUNCATED;
	s->len += n;
	if (s->len < s->goal)
		return ask_for_part(s, s->goal);
	if (!s->parts)
		return choose_parts(s);
	return s->next < s->parts ? next_part(s) : 0;
}

/* ---- the steps of a read ---- */

/* The first read of an open file, of which so much is expected. */
static int first_piece(struct tsi_io_slot *s)
{
	size_t need;
	int err;

	s->len = 0;
	s->skew = s->what.offset & (s->align - 1);
	s->shift = s->what.offset - s->skew;
	if (s->what.choose && s->align == 1 && s->expect > GRAIN)
		return read_head(s);
	if (s->expect > TSI_READER_AHEAD)
		return TSI_READ_LARGE;
	/* For a whole file one byte more: one read sees its end, too. */
	need = s->skew + s->expect + (s->what.length == 0);
	err = grow_buffer(s, tsi_io_direct_up(need, s->align));
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
	s->align = tsi_io_file_align(s->file);
	/* If the file is shorter by now, a read comes to its end. */
	s->expect = q->length;
	return first_piece(s);
}

int tsi_io_slot_opened(struct tsi_io_slot *s, int fd)
{
	const struct tsi_read_request *q = &s->what;
	int err;

	s->fd = fd;
	err = tsi_io_slot_check_file(fd, q, &s->seen, &s->expect, &s->align);
	if (err)
		return err;
	if (s->files && q->length > 0)
		s->file = tsi_io_files_keep(s->files, q->dirfd, q->path, fd,
					    s->align);
	return first_piece(s);
}

/* A read gave n bytes; false: there are no more than had come before. */
static bool take_bytes(struct tsi_io_slot *s, size_t n)
{
	size_t again = s->again;

	s->len += n ? n : again;
	s->again = 0;
	return n && n != again;
}

int tsi_io_slot_got(struct tsi_io_slot *s, size_t n)
{
	bool more;

	if (s->goal)
		return got_part(s, n);
	more = take_bytes(s, n);
	if (s->what.length > 0) {
		if (s->len >= s->skew + s->what.length)
			return 0;
		return more ? ask_for_more(s) : TSI_READER_TRUNCATED;
	}
	if (s->len > TSI_READER_AHEAD) {
		/* The file has grown. */
		s->expect = s->len;
		return TSI_READ_LARGE;
	}
	/* Any other short read may have been cut off by a signal. */
	if (!more || (n < s->asked && s->len == s->expect))
		return 0;
	return ask_for_more(s);
}

int tsi_io_slot_failed(struct tsi_io_slot *s, int err)
{
	char text[TSI_PATH];

	if (s->align == 1 ||
	    !tsi_io_direct_refused(s->fd, tsi_io_slot_path(&s->what, text),
				   err))
		return err;
	/* What was to be read again is read again. */
	s->again = 0;
	s->align = 1;
	return ask_for_more(s);
}

struct tsi_io_piece tsi_io_slot_piece(const struct tsi_io_slot *s)
{
	return (struct tsi_io_piece){
		.fd = s->fd,
		.to = s->buf + s->len,
		.len = s->asked,
		.at = s->len + s->shift,
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
	s->skew = 0;
	s->again = 0;
	s->align = 1;
	s->fd = -1;
	s->err = 0;
	s->goal = 0;
	s->next = s->parts = 0;
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
	out->data = s->err ? NULL : s->buf + s->skew;
	out->len = s->err ? 0 : s->what.length ? s->what.length : s->len;
	out->of = !s->err && s->parts ? s->expect : 0;
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
