/* SPDX-License-Identifier: MIT */
/*
 * reader.c - files, or parts of them, into memory: chooses the backend, and the
 * order in which finished reads are taken.  Makes no system call itself.
 */
#include "io/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "io/backend.h"

struct tsi_io_reader {
	const struct tsi_io_backend *backend;
	void *state; /* the backend's */
	struct tsi_io_slot *slot;
	unsigned depth;
	unsigned pending;
	char why[160];
};

/* Choose a backend; AUTO chooses io_uring where this machine has it. */
static int choose_backend(struct tsi_io_reader *r, enum tsi_io_reader_kind kind)
{
	int err = TSOCK_ENOTSUP;

	if (kind != TSI_READER_PREAD) {
		r->backend = &tsi_io_uring;
		err = r->backend->create(r->slot, r->depth, &r->state);
		if (!err || kind == TSI_READER_URING)
			return err;
		tsi_err_copy(r->why, sizeof(r->why));
	}
	r->backend = &tsi_io_pread;
	return r->backend->create(r->slot, r->depth, &r->state);
}

int tsi_io_reader_create(enum tsi_io_reader_kind kind, unsigned depth,
			 struct tsi_io_reader **out)
{
	struct tsi_io_reader *r;
	int err;

	if (depth == 0 || depth > TSI_READER_MAX_DEPTH)
		return tsi_err(TSOCK_EARG,
			       "a read-ahead of %u files is outside 1 to %d",
			       depth, TSI_READER_MAX_DEPTH);
	r = calloc(1, sizeof(*r));
	if (r)
		r->slot = tsi_io_slots_create(depth);
	if (!r || !r->slot) {
		free(r);
		return tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	}
	r->depth = depth;
	err = choose_backend(r, kind);
	if (err) {
		tsi_io_slots_destroy(r->slot, depth);
		free(r);
		return err;
	}
	*out = r;
	return 0;
}

void tsi_io_reader_use_files(struct tsi_io_reader *r,
			     struct tsi_io_files *files)
{
	tsi_io_slots_use_files(r->slot, r->depth, files);
}

bool tsi_io_reader_has_uring(void)
{
	return tsi_io_uring.built_in;
}

const char *tsi_io_reader_name(const struct tsi_io_reader *r)
{
	return r->backend->name;
}

const char *tsi_io_reader_strerror(int err)
{
	switch (err) {
	case TSI_READER_ODD:
		return "is not a regular file";
	case TSI_READER_MADE_UP:
		return TSI_FILE_MADE_UP;
	case TSI_READER_TRUNCATED:
		return "ends before the sample does";
	case EISDIR:
		return "is a folder";
	case EFBIG:
		return "is larger than 1 GiB";
	default:
		return strerror(err);
	}
}

bool tsi_io_reader_blames_file(int err)
{
	switch (err) {
	case ENOENT:
	case EACCES:
	case EPERM:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL:
	case TSI_READER_ODD:
	case TSI_READER_MADE_UP:
	case TSI_READER_TRUNCATED:
	case ENXIO:
	case ENODEV:
	case EFBIG:
	case EOVERFLOW:
		return true;
	default:
		return false;
	}
}

const char *tsi_io_reader_why(const struct tsi_io_reader *r)
{
	return r->why[0] ? r->why : NULL;
}

int tsi_io_reader_submit(struct tsi_io_reader *r,
			 const struct tsi_read_request *q)
{
	struct tsi_io_slot *s;

	if (q->offset > 0 && q->length == 0)
		return tsi_err(TSOCK_EARG, "%s: a range without a length",
			       q->path);
	s = tsi_io_slots_free(r->slot, r->depth);
	if (!s)
		return TSOCK_EAGAIN;
	tsi_io_slot_begin(s, q);
	r->pending++;
	r->backend->start(r->state, (unsigned)(s - r->slot));
	return 0;
}

static void take_slot(struct tsi_io_reader *r, struct tsi_io_slot *s,
		      struct tsi_read *out)
{
	tsi_io_slot_take(s, out);
	out->slot = (unsigned)(s - r->slot);
	r->pending--;
}

int tsi_io_reader_next(struct tsi_io_reader *r, bool wait, struct tsi_read *out)
{
	bool block = false;

	while (r->pending > 0) {
		struct tsi_io_slot *s;
		int err = r->backend->pump(r->state, block);

		if (err)
			return err;
		s = tsi_io_slots_done(r->slot, r->depth);
		if (s) {
			take_slot(r, s, out);
			/* No call may follow for long: close the last files. */
			if (r->pending == 0)
				(void)r->backend->pump(r->state, false);
			return 0;
		}
		if (!wait)
			break;
		block = true;
	}
	return TSOCK_EAGAIN;
}

void tsi_io_reader_recycle(struct tsi_io_reader *r, const struct tsi_read *read)
{
	tsi_io_slot_release(&r->slot[read->slot]);
}

void tsi_io_reader_destroy(struct tsi_io_reader *r)
{
	if (!r)
		return;
	if (r->backend->destroy(r->state))
		tsi_io_slots_destroy(r->slot, r->depth);
	free(r);
}
