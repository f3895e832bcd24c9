/*
 * reader.c - what both makes of reader share: slots, buffers, the order in
 * which finished reads are taken.  Makes no system call but fstat, fstatfs and
 * fcntl.
 */
#include "io/reader.h"
#include "io/reader_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/regular.h"

#define GRAIN ((size_t)64 << 10)
#define LARGE ((size_t)1 << 20) /* buffers beyond are not kept for long */

static int room(struct tsi_rslot *s, size_t need)
{
	size_t cap = (need + GRAIN - 1) / GRAIN * GRAIN;
	uint8_t *buf;

	if (cap <= s->cap)
		return 0;
	if (s->len == 0) {
		/* Nothing to keep: don't let realloc copy it. */
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

static int ask(struct tsi_rslot *s)
{
	if (s->len == s->cap) {
		int err = room(s, s->cap * 2);

		if (err)
			return err;
	}
	s->asked = s->cap - s->len;
	return TSI_RMORE;
}

int tsi_file_check(int fd, struct tsi_fs_seen *seen, size_t *size)
{
	struct stat st;

	if (fstat(fd, &st))
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return TSI_READER_ODD;
	if (tsi_regular_made_up(seen, st.st_dev, fd))
		return TSI_READER_MADE_UP;
	if (st.st_size > (off_t)TSI_READER_MAX)
		return EFBIG;
	/*
	 * It only kept the open from blocking; some file systems answer reads
	 * with EAGAIN while it is set.
	 */
	if (fcntl(fd, F_SETFL, 0))
		return errno;
	*size = (size_t)st.st_size;
	return 0;
}

int tsi_rslot_opened(struct tsi_rslot *s, int fd)
{
	int err;

	s->fd = fd;
	s->len = 0;
	err = tsi_file_check(fd, &s->seen, &s->expect);
	if (err)
		return err;
	if (s->expect > TSI_READER_AHEAD)
		return TSI_READ_LARGE;
	/* One byte more, so that one read sees the end too. */
	err = room(s, s->expect + 1);
	return err ? err : ask(s);
}

int tsi_rslot_got(struct tsi_rslot *s, size_t n)
{
	s->len += n;
	if (s->len > TSI_READER_AHEAD) {
		/* It has grown. */
		s->expect = s->len;
		return TSI_READ_LARGE;
	}
	/* A short read elsewhere may have been cut off by a signal. */
	if (n == 0 || (n < s->asked && s->len == s->expect))
		return 0;
	return ask(s);
}

int tsi_file_reader_make_slots(struct tsi_file_reader *r, unsigned depth)
{
	r->slot = calloc(depth, sizeof(*r->slot));
	if (!r->slot)
		return tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	r->depth = depth;
	for (unsigned i = 0; i < depth; i++)
		r->slot[i].fd = -1;
	return 0;
}

void tsi_file_reader_free_slots(struct tsi_file_reader *r)
{
	for (unsigned i = 0; i < r->depth; i++)
		free(r->slot[i].buf);
	free(r->slot);
}

int tsi_file_reader_create(enum tsi_file_reader_kind kind, unsigned depth,
			   struct tsi_file_reader **out)
{
	struct tsi_file_reader *r;
	char why[sizeof(r->why)] = "";
	int err;

	if (depth == 0 || depth > TSI_READER_MAX_DEPTH)
		return tsi_err(TSOCK_EARG,
			       "a read-ahead of %u files is outside 1 to %d",
			       depth, TSI_READER_MAX_DEPTH);
	if (kind == TSI_READER_PREAD)
		return tsi_file_reader_pread_create(depth, out);
	err = tsi_file_reader_uring_create(depth, out);
	if (!err || kind == TSI_READER_URING)
		return err;
	snprintf(why, sizeof(why), "%s", tsock_errmsg());
	err = tsi_file_reader_pread_create(depth, &r);
	if (err)
		return err;
	snprintf(r->why, sizeof(r->why), "%s", why);
	*out = r;
	return 0;
}

const char *tsi_file_reader_name(const struct tsi_file_reader *r)
{
	return r->ops->name;
}

const char *tsi_file_reader_strerror(int err)
{
	switch (err) {
	case TSI_READER_ODD:
		return "is not a regular file";
	case TSI_READER_MADE_UP:
		return TSI_REGULAR_MADE_UP;
	case EISDIR:
		return "is a folder";
	case EFBIG:
		return "is larger than 1 GiB";
	default:
		return strerror(err);
	}
}

const char *tsi_file_reader_why(const struct tsi_file_reader *r)
{
	return r->why[0] ? r->why : NULL;
}

int tsi_file_reader_submit(struct tsi_file_reader *r, int dirfd,
			   const char *path, uint64_t size_hint, uint64_t tag)
{
	unsigned i = 0;
	struct tsi_rslot *s;

	while (i < r->depth && r->slot[i].state != TSI_RFREE)
		i++;
	if (i == r->depth)
		return TSOCK_EAGAIN;
	s = &r->slot[i];
	s->len = 0;
	if (s->cap > LARGE && size_hint < s->cap / 4) {
		free(s->buf);
		s->buf = NULL;
		s->cap = 0;
	}
	s->state = TSI_RQUEUED;
	s->tag = tag;
	s->dirfd = dirfd;
	s->path = path;
	s->fd = -1;
	s->err = 0;
	r->pending++;
	r->ops->start(r, i);
	return 0;
}

static struct tsi_rslot *lowest_done(const struct tsi_file_reader *r)
{
	struct tsi_rslot *low = NULL;

	for (unsigned i = 0; i < r->depth; i++) {
		struct tsi_rslot *s = &r->slot[i];

		if (s->state == TSI_RDONE && (!low || s->tag < low->tag))
			low = s;
	}
	return low;
}

static void take(struct tsi_file_reader *r, struct tsi_rslot *s,
		 struct tsi_read *out)
{
	s->state = TSI_RTAKEN;
	r->pending--;
	out->tag = s->tag;
	out->err = s->err;
	out->data = s->err ? NULL : s->buf;
	out->len = s->err ? 0 : s->len;
	out->size = s->err == TSI_READ_LARGE ? s->expect : 0;
	out->slot = (unsigned)(s - r->slot);
}

int tsi_file_reader_next(struct tsi_file_reader *r, bool wait,
			 struct tsi_read *out)
{
	bool block = false;

	while (r->pending > 0) {
		struct tsi_rslot *s;
		int err = r->ops->pump(r, block);

		if (err)
			return err;
		s = lowest_done(r);
		if (s) {
			take(r, s, out);
			return 0;
		}
		if (!wait)
			break;
		block = true;
	}
	return TSOCK_EAGAIN;
}

void tsi_file_reader_recycle(struct tsi_file_reader *r,
			     const struct tsi_read *read)
{
	r->slot[read->slot].state = TSI_RFREE;
}

unsigned tsi_file_reader_pending(const struct tsi_file_reader *r)
{
	return r->pending;
}

void tsi_file_reader_destroy(struct tsi_file_reader *r)
{
	if (r)
		r->ops->destroy(r);
}
