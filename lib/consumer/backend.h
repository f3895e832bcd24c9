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
	 * Any.  Nobody looks at the batch any more: the last call before the
	 * next place().  Doesn't block and can't fail.
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
	 * takes it over, and calls tsi_batch_deferred_done(), from a thread of
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

#endif
