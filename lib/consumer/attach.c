/* SPDX-License-Identifier: MIT */
/*
 * attach.c - from a token to a mapped ring.
 */
#include "consumer/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/memfd.h"
#include "consumer/gpu/backend.h"
#include "consumer/host.h"
#include "consumer/shared_fd.h"
#include "wire/fdpass.h"

/* Everything that the producer's reply brought. */
struct delivery {
	struct tsi_passed passed;
	struct tsi_ring_shared *shared;
	size_t shared_len;
	struct tsi_geometry geometry; /* what the header states, ... */
	struct tsi_ring_ident ident;  /* ... when it was checked */
	uint64_t ring_id; /* the header's inode: no two memfds share one */
	struct tsi_tail_page *tail;
};

/* The handle is gone, or has begun anew: nobody is there to send LEAVE. */
static void leave_late(void *context, const struct tsi_claim *c)
{
	(void)context;
	tsi_claim_leave(c);
}

_Static_assert(TSI_NONCE == TSI_PAGE_OWNER, "a page is named by the nonce");

/* Is the ring's data on a GPU? */
static bool on_gpu(const struct tsi_attach *a)
{
	return a->gpu && !a->gpu->staged;
}

/* Descriptors of data: a legacy handle came in the OFFER. */
static unsigned data_fds(const struct tsi_attach *a)
{
	return on_gpu(a) && a->gpu->ring.transport == TSOCK_TRANSPORT_LEGACY
		       ? 0
		       : a->nfields;
}

static int check_answer(const struct tsi_attach *a, const struct delivery *d)
{
	const struct tsi_reply *r = &d->passed.reply;
	/* A rank's start may lie epochs before where it goes on. */
	uint64_t first = r->start > a->position ? r->start : a->position;

	if (d->passed.reply.incarnation != a->incarnation)
		return tsi_address_err_restarted(a->address);
	if (d->passed.nfds != 3 + data_fds(a))
		return tsi_err(TSOCK_EPROTO,
			       "the producer sent %u descriptors, not %u; if "
			       "this process is near its limit of open files, "
			       "raise it (ulimit -n)",
			       d->passed.nfds, 3 + data_fds(a));
	if (r->row >= TSI_MAX_ROWS || r->epoch_end <= first ||
	    r->epoch_end - first > a->epoch_len ||
	    r->epoch_end > UINT64_MAX / 2)
		return tsi_err(
			TSOCK_EPROTO,
			"the producer answered with an impossible start");
	return 0;
}

static int map_header(struct delivery *d)
{
	struct stat st;
	void *p;
	int err;

	if (fstat(d->passed.fd[0], &st))
		return tsi_err_sys("fstat the ring's header");
	if (st.st_size < (off_t)sizeof(*d->shared))
		return tsi_err(TSOCK_EPROTO, "the ring's header is too short");
	d->shared_len = (size_t)st.st_size;
	d->ring_id = st.st_ino;
	err = tsi_memfd_check(d->passed.fd[0], d->shared_len, 0,
			      "the ring's header");
	if (err)
		return err;
	p = mmap(NULL, d->shared_len, PROT_READ, MAP_SHARED, d->passed.fd[0],
		 0);
	if (p == MAP_FAILED)
		return tsi_err_sys("map the ring's header");
	d->shared = p;
	return tsi_ring_read(d->shared, d->shared_len, &d->geometry, &d->ident);
}

static int map_tail(struct delivery *d)
{
	int err = tsi_memfd_check(d->passed.fd[1], sizeof(*d->tail),
				  TSI_MEM_PEER_WRITES, "the tail page");
	void *p;

	if (err)
		return err;
	p = mmap(NULL, sizeof(*d->tail), PROT_READ | PROT_WRITE, MAP_SHARED,
		 d->passed.fd[1], 0);
	if (p == MAP_FAILED)
		return tsi_err_sys("map the tail page");
	d->tail = p;
	/* A child has no business with it. */
	madvise(p, sizeof(*d->tail), MADV_DONTFORK);
	return 0;
}

static int check_event(const struct delivery *d)
{
	struct stat st;

	if (fstat(d->passed.fd[2], &st))
		return tsi_err_sys("fstat the producer's eventfd");
	/* Telling the producer something must never make us wait for it. */
	if (!(fcntl(d->passed.fd[2], F_GETFL) & O_NONBLOCK) ||
	    S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) ||
	    S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
		return tsi_err(
			TSOCK_EPROTO,
			"the producer sent something that is no eventfd");
	return 0;
}

static bool same_field(const struct tsock_field *a, const struct tsock_field *b)
{
	return !strncmp(a->name, b->name, sizeof(a->name)) &&
	       a->dtype == b->dtype && a->ndim == b->ndim &&
	       !memcmp(a->shape, b->shape, a->ndim * sizeof(a->shape[0]));
}

static int check_ring(const struct tsi_attach *a, const struct delivery *d)
{
	const struct tsi_geometry *r = &d->geometry;

	if (d->ident.incarnation != a->incarnation ||
	    d->ident.epoch_len != a->epoch_len || r->nfields != a->nfields ||
	    r->max_batch < a->batch ||
	    r->capacity - r->join_window < a->batch ||
	    (on_gpu(a) ? r->two_halves : r->granularity != tsi_geometry_page()))
		return tsi_err(TSOCK_EPROTO,
			       "the producer sent another ring than announced");
	for (unsigned i = 0; i < a->nfields; i++) {
		int err;

		if (!same_field(tsi_geometry_field(r, i), &a->field[i]))
			return tsi_err(TSOCK_EPROTO,
				       "field %u of the ring isn't the '%s' "
				       "that was announced",
				       i, a->field[i].name);
		if (on_gpu(a))
			continue; /* the driver knows its own */
		err = tsi_memfd_check(
			d->passed.fd[3 + i],
			tsi_geometry_map_bytes(r, i) * (r->two_halves ? 2 : 1),
			(r->two_halves ? TSI_MEM_HALF : 0) |
				(tsi_geometry_comes_later(r, i) ? TSI_MEM_LATER
								: 0),
			a->field[i].name);
		if (err)
			return err;
	}
	return 0;
}

/* Takes over the descriptors of the data. */
static int make_backend(const struct tsi_attach *a, struct delivery *d,
			struct tsi_backend **out)
{
	const int *fd = d->passed.fd + 3;

	for (unsigned i = data_fds(a); i < a->nfields; i++)
		d->passed.fd[3 + i] = -1;
	d->passed.nfds = 3;
	return a->gpu ? tsi_gpu_backend_create(a->gpu, &d->geometry, a->batch,
					       fd, out)
		      : tsi_host_backend_create(a->mode, &d->geometry, a->batch,
						fd, out);
}

static int make_reader(const struct tsi_attach *a, struct delivery *d,
		       struct tsi_reader **out)
{
	struct tsi_reader_parts p = {
		.claim = { .ring = d->shared,
			   .ring_len = d->shared_len,
			   .page = d->tail,
			   .page_len = sizeof(*d->tail),
			   .ring_id = d->ring_id,
			   .row = d->passed.reply.row,
			   .reader = d->passed.reply.reader,
			   .page_fd = d->passed.fd[1],
			   .event = d->passed.fd[2],
			   .producer = d->passed.producer,
			   .sock = d->passed.sock },
		.ring = &d->geometry,
		.ident = d->ident,
		.start = d->passed.reply.start,
		.batch = a->batch,
		.claim_ended = leave_late,
	};
	int err;

	tsi_tail_page_name(d->tail, a->nonce);
	err = make_backend(a, d, &p.backend);
	if (!err)
		err = tsi_reader_create(&p, out);
	if (err)
		return err;
	d->shared = NULL;
	d->tail = NULL;
	d->passed.fd[1] = d->passed.fd[2] = -1;
	d->passed.producer = d->passed.sock = -1;
	return 0;
}

/* What nobody took over. */
static void clear(struct delivery *d)
{
	if (d->shared)
		munmap(d->shared, d->shared_len);
	if (d->tail)
		munmap(d->tail, sizeof(*d->tail));
	for (unsigned i = 0; i < d->passed.nfds; i++)
		if (d->passed.fd[i] >= 0)
			close(d->passed.fd[i]);
	tsi_shared_fd_close(d->passed.producer);
	if (d->passed.sock >= 0)
		close(d->passed.sock);
}

int tsi_attach(const struct tsi_attach *a, struct tsi_reader **out,
	       uint64_t *start, uint64_t *end)
{
	struct delivery d = { .shared = NULL };
	int err = tsi_fdpass_connect(tsi_address_fdpass(a->address), a->token,
				     a->timeout_ms, a->connecting, &d.passed);

	if (err)
		return err;
	d.passed.producer = tsi_shared_fd(d.passed.producer);
	err = check_answer(a, &d);
	if (!err)
		err = map_header(&d);
	if (!err)
		err = map_tail(&d);
	if (!err)
		err = check_event(&d);
	if (!err)
		err = check_ring(a, &d);
	if (!err) {
		err = make_reader(a, &d, out);
		if (err && on_gpu(a))
			*a->no_gpu = true;
	}
	clear(&d);
	if (err)
		return err;
	*start = d.passed.reply.start;
	*end = d.passed.reply.epoch_end;
	return 0;
}
