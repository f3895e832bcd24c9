/* SPDX-License-Identifier: MIT */
/*
 * reader_uring.c - files by io_uring; the one file that includes
 * liburing.h.
 *
 * Each slot has at most one operation in the kernel: open, then reads.  All
 * operations that are prepared while completions are handled go to the kernel
 * in one call, closes and the opens of the next files included.  A slot's
 * memory is touched only while the kernel has no operation on it.
 *
 * Open, read and close linked to each other, with direct descriptors, and
 * registered buffers too, were tried: of 20 us of CPU for a file of 110 kB they
 * save 0.5, and the file can't be looked at by fstat() before it is read.
 */
#include "io/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

#define BACK_OFF_MS 1000

enum op {
	OP_OPEN,
	OP_READ,
	OP_CLOSE,
	OP_CANCEL,
};

struct uring_backend {
	struct tsi_io_slot *slot;
	unsigned depth;
	struct io_uring ring;
	unsigned flying;  /* operations prepared or in the kernel */
	unsigned closing; /* those of them that close a file */
	bool stopping;
	char path[][TSI_PATH]; /* of each slot's file, until it is open */
};

static void *mark(unsigned i, enum op op)
{
	return (void *)((uintptr_t)i << 2 | op);
}

/* Submit what is prepared.  EAGAIN: completions have to be taken first. */
static int flush(struct uring_backend *u)
{
	int n;

	do
		n = io_uring_submit(&u->ring);
	while (n == -EINTR);
	if (n >= 0)
		return 0;
	if (n == -EAGAIN || n == -EBUSY)
		return TSOCK_EAGAIN;
	errno = -n;
	return tsi_err_sys("io_uring_enter");
}

/* There is always a free entry: the ring has more than the slots can use. */
static struct io_uring_sqe *free_entry(struct uring_backend *u)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

	if (sqe)
		u->flying++;
	return sqe;
}

static void prepare_open(struct uring_backend *u, unsigned i)
{
	const struct tsi_read_request *q = tsi_io_slot_what(&u->slot[i]);
	struct io_uring_sqe *sqe = free_entry(u);

	io_uring_prep_openat(sqe, q->dirfd, tsi_io_slot_path(q, u->path[i]),
			     TSI_IO_OFLAGS, 0);
	io_uring_sqe_set_data(sqe, mark(i, OP_OPEN));
}

static void prepare_read(struct uring_backend *u, unsigned i)
{
	struct tsi_io_piece p = tsi_io_slot_piece(&u->slot[i]);
	struct io_uring_sqe *sqe = free_entry(u);

	io_uring_prep_read(sqe, p.fd, p.to, (unsigned)p.len, p.at);
	io_uring_sqe_set_data(sqe, mark(i, OP_READ));
}

static void close_file(struct uring_backend *u, unsigned i, int fd)
{
	struct io_uring_sqe *sqe = NULL;

	if (!u->stopping && u->closing < u->depth)
		sqe = free_entry(u);
	if (sqe) {
		io_uring_prep_close(sqe, fd);
		io_uring_sqe_set_data(sqe, mark(i, OP_CLOSE));
		u->closing++;
	} else {
		close(fd);
	}
}

/* The next step of slot i after one that gave err, or TSI_IO_MORE. */
static void next_step(struct uring_backend *u, unsigned i, int err)
{
	struct tsi_io_slot *s = &u->slot[i];
	int fd;

	if (err == TSI_IO_MORE && !u->stopping) {
		prepare_read(u, i);
		return;
	}
	fd = tsi_io_slot_ended(s, err == TSI_IO_MORE ? ECANCELED : err);
	tsi_io_slot_hand_over(s);
	if (fd >= 0)
		close_file(u, i, fd);
}

static void opened(struct uring_backend *u, unsigned i, int res)
{
	if (res == -EINTR && !u->stopping)
		prepare_open(u, i);
	else if (res < 0)
		next_step(u, i, -res);
	else
		next_step(u, i, tsi_io_slot_opened(&u->slot[i], res));
}

static void was_read(struct uring_backend *u, unsigned i, int res)
{
	struct tsi_io_slot *s = &u->slot[i];

	if (res == -EAGAIN) {
		/* io_uring can't wait for this file system. */
		struct tsi_io_piece p = tsi_io_slot_piece(s);
		ssize_t n = pread(p.fd, p.to, p.len, (off_t)p.at);

		res = n < 0 ? -errno : (int)n;
	}
	if (res == -EINTR)
		next_step(u, i, TSI_IO_MORE);
	else if (res < 0)
		next_step(u, i, tsi_io_slot_failed(s, -res));
	else
		next_step(u, i, tsi_io_slot_got(s, (size_t)res));
}

static void handle(struct uring_backend *u, const struct io_uring_cqe *cqe)
{
	uintptr_t data = (uintptr_t)io_uring_cqe_get_data(cqe);
	unsigned i = (unsigned)(data >> 2);
	int res = cqe->res;

	u->flying--;
	switch ((enum op)(data & 3)) {
	case OP_OPEN:
		opened(u, i, res);
		break;
	case OP_READ:
		was_read(u, i, res);
		break;
	case OP_CLOSE:
		u->closing--;
		break;
	case OP_CANCEL:
		break;
	}
}

/* Returns how many completions there were. */
static unsigned reap(struct uring_backend *u)
{
	struct io_uring_cqe *cqe;
	unsigned n = 0;

	while (io_uring_peek_cqe(&u->ring, &cqe) == 0) {
		struct io_uring_cqe copy = *cqe;

		io_uring_cqe_seen(&u->ring, cqe);
		handle(u, &copy);
		n++;
	}
	return n;
}

static int wait_one(struct uring_backend *u)
{
	struct io_uring_cqe *cqe;
	int err;

	do
		err = io_uring_wait_cqe(&u->ring, &cqe);
	while (err == -EINTR);
	if (!err || err == -EAGAIN || err == -EBUSY)
		return 0;
	errno = -err;
	return tsi_err_sys("io_uring_enter");
}

/* The kernel took nothing: wait for a completion, or for free memory. */
static int back_off(struct uring_backend *u, unsigned *tries)
{
	struct timespec ms = { 0, 1000000 };

	if (u->flying > io_uring_sq_ready(&u->ring))
		return wait_one(u);
	if (++*tries > BACK_OFF_MS)
		return tsi_err(
			TSOCK_ENOMEM,
			"the kernel has no memory for io_uring requests");
	nanosleep(&ms, NULL);
	return 0;
}

/*
 * A step that is prepared here, the read of a file that is open or the close of
 * one that was read, goes to the kernel at once only if no slot is done.  Else
 * the caller has a file to decode, and the next call takes the step along with
 * the next open: one system call a file in place of three.
 */
static int uring_pump(void *backend, bool block)
{
	struct uring_backend *u = backend;
	unsigned tries = 0;

	for (;;) {
		unsigned ended = reap(u);
		bool refused = false;
		int err = 0;

		if (io_uring_sq_ready(&u->ring) > 0)
			err = flush(u);
		if (err == TSOCK_EAGAIN) {
			refused = true;
			err = 0;
		}
		if (err)
			return err;
		ended += reap(u);
		if (!u->stopping && tsi_io_slots_done(u->slot, u->depth))
			return 0;
		if (ended > 0)
			block = false;
		else if (refused)
			err = back_off(u, &tries);
		else if (block)
			err = wait_one(u);
		else if (io_uring_sq_ready(&u->ring) == 0)
			return 0;
		if (err)
			return err;
	}
}

static void uring_start(void *backend, unsigned i)
{
	struct uring_backend *u = backend;
	int err = tsi_io_slot_is_open(&u->slot[i]);

	if (err == TSI_IO_CLOSED)
		prepare_open(u, i);
	else
		next_step(u, i, err);
}

/*
 * The ring has failed: close the files that it was to read, and those whose
 * close was prepared and never submitted.  A close that the kernel has taken is
 * the kernel's.  So is a reference to each file that it still reads.
 */
static void close_what_is_left(struct uring_backend *u)
{
	const struct io_uring_sq *sq = &u->ring.sq;
	unsigned ready = io_uring_sq_ready(&u->ring);

	for (unsigned at = sq->sqe_tail - ready; at != sq->sqe_tail; at++) {
		const struct io_uring_sqe *sqe =
			&sq->sqes[at & *sq->kring_mask];

		if (sqe->opcode == IORING_OP_CLOSE)
			close(sqe->fd);
	}
	for (unsigned i = 0; i < u->depth; i++) {
		int fd = -1;

		if (tsi_io_slot_is_queued(&u->slot[i]))
			fd = tsi_io_slot_ended(&u->slot[i], ECANCELED);
		if (fd >= 0)
			close(fd);
	}
}

/* When the ring has failed, the kernel never gives back what it still has. */
static bool uring_destroy(void *backend)
{
	struct uring_backend *u = backend;
	int err = 0;

	u->stopping = true;
	for (unsigned i = 0; i < u->depth; i++) {
		struct io_uring_sqe *sqe = NULL;

		if (tsi_io_slot_is_queued(&u->slot[i]))
			sqe = free_entry(u);
		if (!sqe)
			continue;
		io_uring_prep_cancel(sqe,
				     mark(i, tsi_io_slot_fd(&u->slot[i]) < 0
						     ? OP_OPEN
						     : OP_READ),
				     0);
		io_uring_sqe_set_data(sqe, mark(i, OP_CANCEL));
	}
	while (u->flying > 0 && !err)
		err = uring_pump(u, true);
	if (err) {
		/* An open that has ended meanwhile has made a descriptor. */
		reap(u);
		close_what_is_left(u);
	}
	/* What was only prepared isn't in the kernel. */
	if (err && u->flying == io_uring_sq_ready(&u->ring))
		err = 0;
	io_uring_queue_exit(&u->ring);
	if (err) {
		tsi_log(TSOCK_LOG_WARN, "io_uring failed: %s", tsock_errmsg());
		return false;
	}
	free(u);
	return true;
}

/* A ring may be allowed and its use forbidden, so use it once. */
static int try_out(struct uring_backend *u)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(&u->ring);
	struct io_uring_cqe *cqe;
	bool all;
	int err;

	if (!probe)
		return tsi_err(TSOCK_ENOTSUP,
			       "this kernel's io_uring is too old (before 5.6) "
			       "or may not be asked what it can do");
	all = io_uring_opcode_supported(probe, IORING_OP_OPENAT) &&
	      io_uring_opcode_supported(probe, IORING_OP_READ) &&
	      io_uring_opcode_supported(probe, IORING_OP_CLOSE) &&
	      io_uring_opcode_supported(probe, IORING_OP_ASYNC_CANCEL);
	io_uring_free_probe(probe);
	if (!all)
		return tsi_err(TSOCK_ENOTSUP,
			       "this kernel's io_uring can't open and read");
	io_uring_prep_nop(io_uring_get_sqe(&u->ring));
	err = io_uring_submit_and_wait(&u->ring, 1);
	if (err < 0)
		return tsi_err(TSOCK_ENOTSUP, "io_uring_enter: %s",
			       strerror(-err));
	err = io_uring_peek_cqe(&u->ring, &cqe);
	if (err)
		return tsi_err(TSOCK_ENOTSUP, "io_uring gives no results: %s",
			       strerror(-err));
	io_uring_cqe_seen(&u->ring, cqe);
	return 0;
}

static int uring_create(struct tsi_io_slot *slot, unsigned depth, void **out)
{
	struct uring_backend *u =
		calloc(1, sizeof(*u) + depth * sizeof(u->path[0]));
	int err;

	if (!u)
		return tsi_err(TSOCK_ENOMEM, "no memory for a file reader");
	u->slot = slot;
	u->depth = depth;
	/* An open or a read, a close and a cancel for each slot. */
	err = io_uring_queue_init(4 * depth, &u->ring, 0);
	if (err) {
		free(u);
		return tsi_err(TSOCK_ENOTSUP, "io_uring_setup: %s%s",
			       strerror(-err),
			       err == -ENOMEM ? " (ulimit -l?)" : "");
	}
	(void)io_uring_ring_dontfork(&u->ring);
	err = try_out(u);
	if (err) {
		io_uring_queue_exit(&u->ring);
		free(u);
		return err;
	}
	*out = u;
	return 0;
}

const struct tsi_io_backend tsi_io_uring = {
	.name = "io_uring",
	.built_in = true,
	.create = uring_create,
	.start = uring_start,
	.pump = uring_pump,
	.destroy = uring_destroy,
};
