/* SPDX-License-Identifier: MIT */
/*
 * backend.h - where a reader's batches are: host memory (host.h), or a GPU's
 * (gpu/backend.h).
 *
 * The reader (reader.h) hands batches out and takes them back; a backend knows
 * the memory that they are in.  It is made with the reader, belongs to it, and
 * never gives a batch back by itself: it tells the reader when it could.
 */
#ifndef TSI_CONSUMER_BACKEND_H
#define TSI_CONSUMER_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tsock/tsock.h"

struct tsi_backend;
struct tsi_placement;
struct tsi_reader;

/*
 * "Handle" below is the thread of the handle, of which there is one at a time;
 * "any" is any thread, and several at once for different batches.  A slot that
 * may be NULL says what its absence means.  Errors are TSOCK_E*, with a message
 * for tsock_errmsg().
 */
struct tsi_backend_ops {
	/*
	 * Handle.  A placement is made, all of it 0, and lives as long as the
	 * backend; acquire memory for it that every batch needs.  TSOCK_ENOMEM.
	 * discard() undoes it, also after a failure: by the thread of the
	 * reader's end, when nothing is placed any more.
	 */
	int (*prepare)(struct tsi_backend *k, struct tsi_placement *p);
	void (*discard)(struct tsi_backend *k, struct tsi_placement *p);

	/*
	 * Handle, for each batch.  Find the published samples first to
	 * first + count - 1, and set p->data, p->count and p->own: true if no
	 * byte of it is the ring's.  Until clear() the data stays where it is.
	 * On failure there is nothing to clear.  In host memory it never
	 * blocks; where batches are copied to a GPU it waits for the copy.
	 */
	int (*place)(struct tsi_backend *k, uint64_t first, uint64_t count,
		     struct tsi_placement *p);

	/*
	 * Handle.  The ring goes on in that half, from sample since on; what is
	 * before it is in the other half.  NULL: the ring has no halves.
	 */
	void (*turn)(struct tsi_backend *k, unsigned half, uint64_t since);

	/*
	 * Any.  Nobody looks at the batch any more: the last call before the
	 * next place().  Doesn't block and can't fail.  NULL: nothing to do.
	 */
	void (*clear)(struct tsi_backend *k, struct tsi_placement *p);

	/*
	 * Handle, with the lock of forks.h.  Make the bytes the process's own,
	 * at the same address, so that the ring may reuse the slots.  NULL:
	 * can't be done (writable is false).  TSOCK_EHELD, TSOCK_ENOMEM.
	 */
	int (*make_private)(struct tsi_backend *k, struct tsi_placement *p);

	/*
	 * Forking, with the lock of forks.h.  The whole pages of field i that
	 * show the ring, for a fork to save: *writable says how (forks.h).
	 * False: none.  NULL: a forked child can't use this memory at all.
	 */
	bool (*pages)(struct tsi_backend *k, const struct tsi_placement *p,
		      unsigned i, void **addr, size_t *len, bool *writable);

	/*
	 * Handle.  Wait until r can acquire n more samples; *timeout_ms
	 * becomes what is left of it.  TSOCK_EHELD if the caller itself holds
	 * the batches, TSOCK_EAGAIN, or the device's error.  NULL: only held
	 * batches can be in the way (await_release.h).
	 */
	int (*make_room)(struct tsi_backend *k, struct tsi_reader *r,
			 uint64_t n, int *timeout_ms);

	/*
	 * Any, after the last reference to a batch is gone and before clear().
	 * in_use(): is there work that still reads the batch?  Then defer()
	 * takes it over, and calls tsi_reader_batch_done(), from a thread of
	 * its own, when that work is done; the batch holds the tail until then.
	 * Neither blocks.  NULL: never in use.
	 */
	bool (*in_use)(struct tsi_backend *k, struct tsi_placement *p);
	void (*defer)(struct tsi_backend *k, struct tsi_placement *p);

	/*
	 * Handle.  For tsock_batch_use(): work queued in stream reads the
	 * batch.  For tsock_batch_convert(): write field i, which there is, as
	 * it is wanted to dst, in stream's order.  TSOCK_EARG, TSOCK_ENOTSUP
	 * for a stream that is being captured, or the device's error.  NULL:
	 * the batch is in host memory, where no stream reads it.
	 */
	int (*use)(struct tsi_backend *k, struct tsi_placement *p,
		   void *stream);
	int (*convert)(struct tsi_backend *k, struct tsi_placement *p,
		       unsigned i, void *dst, void *stream);

	/* Handle.  Why nothing can be read any more, or 0.  NULL: 0. */
	int (*trouble)(struct tsi_backend *k);

	/* Handle.  No more calls of place() come: let go of what they need. */
	void (*retire)(struct tsi_backend *k);

	/* Any, even one of the backend's own.  All placements are discarded. */
	void (*destroy)(struct tsi_backend *k);
};

/* The first member of every backend; constant once it is made. */
struct tsi_backend {
	const struct tsi_backend_ops *ops;
	int device;    /* CUDA's number of the GPU; -1: host memory */
	bool writable; /* batches may be written into, and made private */
	/* As the batches hold them; NULL: as the ring does. */
	const struct tsock_field *field;
};

/* ---- what the reader's side asks of one; the contracts are above ---- */

static inline int tsi_backend_prepare(struct tsi_backend *k,
				      struct tsi_placement *p)
{
	return k->ops->prepare(k, p);
}

static inline void tsi_backend_discard(struct tsi_backend *k,
				       struct tsi_placement *p)
{
	k->ops->discard(k, p);
}

static inline int tsi_backend_place(struct tsi_backend *k, uint64_t first,
				    uint64_t count, struct tsi_placement *p)
{
	return k->ops->place(k, first, count, p);
}

static inline void tsi_backend_turn(struct tsi_backend *k, unsigned half,
				    uint64_t since)
{
	if (k->ops->turn)
		k->ops->turn(k, half, since);
}

static inline void tsi_backend_clear(struct tsi_backend *k,
				     struct tsi_placement *p)
{
	if (k->ops->clear)
		k->ops->clear(k, p);
}

static inline int tsi_backend_make_private(struct tsi_backend *k,
					   struct tsi_placement *p)
{
	return k->ops->make_private(k, p);
}

/* Can a forked child use this memory? */
static inline bool tsi_backend_forks(const struct tsi_backend *k)
{
	return k->ops->pages;
}

static inline bool tsi_backend_pages(struct tsi_backend *k,
				     const struct tsi_placement *p, unsigned i,
				     void **addr, size_t *len, bool *writable)
{
	return k->ops->pages(k, p, i, addr, len, writable);
}

/* Can more than held batches be in the way?  Then make_room() waits. */
static inline bool tsi_backend_makes_room(const struct tsi_backend *k)
{
	return k->ops->make_room;
}

static inline int tsi_backend_make_room(struct tsi_backend *k,
					struct tsi_reader *r, uint64_t n,
					int *timeout_ms)
{
	return k->ops->make_room(k, r, n, timeout_ms);
}

static inline bool tsi_backend_in_use(struct tsi_backend *k,
				      struct tsi_placement *p)
{
	return k->ops->in_use && k->ops->in_use(k, p);
}

static inline void tsi_backend_defer(struct tsi_backend *k,
				     struct tsi_placement *p)
{
	k->ops->defer(k, p);
}

/* Can a stream's work read the batches?  Then there are use and convert. */
static inline bool tsi_backend_has_streams(const struct tsi_backend *k)
{
	return k->ops->use;
}

static inline int tsi_backend_use(struct tsi_backend *k,
				  struct tsi_placement *p, void *stream)
{
	return k->ops->use(k, p, stream);
}

static inline int tsi_backend_convert(struct tsi_backend *k,
				      struct tsi_placement *p, unsigned i,
				      void *dst, void *stream)
{
	return k->ops->convert(k, p, i, dst, stream);
}

static inline int tsi_backend_trouble(struct tsi_backend *k)
{
	return k->ops->trouble ? k->ops->trouble(k) : 0;
}

static inline void tsi_backend_retire(struct tsi_backend *k)
{
	k->ops->retire(k);
}

static inline void tsi_backend_destroy(struct tsi_backend *k)
{
	k->ops->destroy(k);
}

/* CUDA's number of the GPU that the batches are on; -1: in host memory. */
static inline int tsi_backend_device(const struct tsi_backend *k)
{
	return k->device;
}

/* May batches be written into, and made private? */
static inline bool tsi_backend_is_writable(const struct tsi_backend *k)
{
	return k->writable;
}

/* Field i as the batches hold it, which the ring holds as in_ring. */
static inline const struct tsock_field *
tsi_backend_field(const struct tsi_backend *k, unsigned i,
		  const struct tsock_field *in_ring)
{
	return k->field ? &k->field[i] : in_ring;
}

#endif
