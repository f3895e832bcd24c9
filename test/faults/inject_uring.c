/* SPDX-License-Identifier: MIT */
/*
 * inject_uring.c - operations of io_uring that fail on demand.
 *
 * The kernel itself answers: an operation becomes one that does nothing and
 * has the result that is asked for (Linux 6.10), a short read asks for less.
 */
#include "test/faults/inject_kinds.h"

#include <errno.h>
#include <liburing.h>
#include <string.h>

#define INJECT_RESULT 1u /* IORING_NOP_INJECT_RESULT */

int __real_io_uring_queue_init(unsigned n, struct io_uring *r, unsigned flags);
int __wrap_io_uring_queue_init(unsigned n, struct io_uring *r, unsigned flags);
int __wrap_io_uring_queue_init(unsigned n, struct io_uring *r, unsigned flags)
{
	int err = inject_hit(KIND_io_uring_queue_init);

	return err ? -err : __real_io_uring_queue_init(n, r, flags);
}

static void replace(struct io_uring_sqe *sqe, int res)
{
	uint64_t data = sqe->user_data;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_NOP;
	sqe->fd = -1;
	sqe->rw_flags = INJECT_RESULT;
	sqe->len = (uint32_t)res;
	sqe->user_data = data;
}

static void spoil(struct io_uring_sqe *sqe)
{
	int err = 0;

	if (sqe->opcode == IORING_OP_OPENAT)
		err = inject_hit(KIND_io_uring_open);
	else if (sqe->opcode == IORING_OP_READ)
		err = inject_hit(KIND_io_uring_read);
	if (err == INJECT_SHORT)
		sqe->len -= sqe->len / 2;
	else if (err)
		replace(sqe, -err);
}

int __real_io_uring_submit(struct io_uring *r);
int __wrap_io_uring_submit(struct io_uring *r);
int __wrap_io_uring_submit(struct io_uring *r)
{
	int err = inject_hit(KIND_io_uring_submit);

	if (err)
		return -err;
	for (unsigned i = r->sq.sqe_head; i != r->sq.sqe_tail; i++)
		spoil(&r->sq.sqes[i & *r->sq.kring_mask]);
	return __real_io_uring_submit(r);
}

/* What io_uring_wait_cqe() and io_uring_peek_cqe() are made of. */
int __real___io_uring_get_cqe(struct io_uring *r, struct io_uring_cqe **cqe,
			      unsigned submit, unsigned wait, sigset_t *mask);
int __wrap___io_uring_get_cqe(struct io_uring *r, struct io_uring_cqe **cqe,
			      unsigned submit, unsigned wait, sigset_t *mask);
int __wrap___io_uring_get_cqe(struct io_uring *r, struct io_uring_cqe **cqe,
			      unsigned submit, unsigned wait, sigset_t *mask)
{
	int err = inject_hit(KIND_io_uring_wait);

	return err ? -err
		   : __real___io_uring_get_cqe(r, cqe, submit, wait, mask);
}

bool inject_uring_works(void)
{
	struct io_uring_cqe *cqe;
	struct io_uring r;
	bool works = false;

	if (__real_io_uring_queue_init(4, &r, 0))
		return false;
	replace(io_uring_get_sqe(&r), -ENOSPC);
	if (__real_io_uring_submit(&r) == 1 &&
	    !__real___io_uring_get_cqe(&r, &cqe, 0, 1, NULL))
		works = cqe->res == -ENOSPC;
	io_uring_queue_exit(&r);
	return works;
}
