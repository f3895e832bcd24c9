/* SPDX-License-Identifier: MIT */
/*
 * reader.h - one claim on a ring: its batches, and the tail that follows them.
 *
 * The tail is the first sample of the oldest batch that is still held and
 * shows the ring's bytes, else the position.  A batch that was copied or made
 * private in place holds the tail no more.
 *
 * acquire, skip, make_room, make_all_private and retire belong to the thread of
 * the handle.  Any thread releases a batch, with no lock (tail.h).  A reader
 * lives until its handle and all its batches let go of it; its claim until the
 * handle and all batches that show the ring do.
 *
 * A batch that work on a GPU still reads is given back when that is done; until
 * then it is pending.  The reader alone gives batches back; the memory that
 * they are in is a backend's (backend.h).
 *
 * In a forked child every batch stays what it was (forks.h).
 *
 * Knows nothing of messages: what is to be done when the claim is over is a
 * function that its maker brings.
 */
#ifndef TSI_CONSUMER_READER_H
#define TSI_CONSUMER_READER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/fork.h"
#include "consumer/backend.h"
#include "consumer/claim.h"
#include "consumer/dlpack.h"
#include "consumer/forks.h"
#include "consumer/name.h"
#include "consumer/mapping.h"
#include "consumer/tail.h"
#include "ring/ring.h"

/* The struct whose member p points at. */
#define tsi_member_of(p, type, member) \
	((type *)((char *)(p)-offsetof(type, member)))

enum tsi_batch_state {
	TSI_BATCH_HELD,    /* shows the ring: the tail waits for it */
	TSI_BATCH_PINNED,  /* being made private, for itself or for a child */
	TSI_BATCH_PRIVATE, /* its bytes are its own */
	TSI_BATCH_DROPPED, /* given back while it was being made private */
	TSI_BATCH_RELEASED,
};

struct tsock_batch {
	struct tsi_reader *reader;
	struct tsi_name *name;
	struct tsock_batch *next; /* in a list of free ones */
	struct tsock_batch *all;  /* in the list of all */
	_Atomic uint32_t refs;    /* the user's, and one per tensor on loan */
	_Atomic uint32_t state;
	uint64_t first, count;
	uint64_t ticket; /* its entry in the tail */
	struct tsi_placement placement;
	struct tsi_fork_pin fork;
	struct tsi_export *exports; /* one per field, for the usual case */
	_Atomic bool pending; /* no reference is left, but work uses it still */
};

struct tsi_reader {
	unsigned generation;     /* of forks */
	struct tsi_reader *next; /* the handle's, when it has left it */
	bool gone;               /* likewise: no batch holds anybody up */
	struct tsi_fork_client forks;
	/* From the header, when it was checked. */
	uint64_t capacity, join_window, epoch_len;
	unsigned nfields;
	struct tsock_field field[TSOCK_MAX_FIELDS];

	struct tsi_claim claim;
	void (*claim_ended)(void *context,
			    const struct tsi_claim *c); /* any thread */
	void (*free_context)(void *context);
	void *context;

	struct tsi_backend *backend;
	_Atomic uintptr_t user_thread;   /* acquired or waited last */
	_Atomic bool released_elsewhere; /* by another thread */
	struct tsi_tail tail;

	struct tsock_batch *free;
	_Atomic(struct tsock_batch *) all;
	_Atomic(struct tsock_batch *) returned;
	_Atomic unsigned refs, holds;
};

/*
 * What a reader is made of; all of it becomes the reader's on success, the
 * backend also on failure.
 */
struct tsi_reader_parts {
	struct tsi_claim claim;
	struct tsi_backend *backend;
	const struct tsi_geometry *ring; /* checked */
	struct tsi_ring_ident ident;
	uint64_t start, batch;
	void (*claim_ended)(void *context,
			    const struct tsi_claim *c); /* any thread */
	void (*free_context)(void *context);
	void *context;
};

/* ---- what other files may know of a reader ---- */

/* The next one in a list of those that a handle has left. */
static inline struct tsi_reader **tsi_reader_next(struct tsi_reader *r)
{
	return &r->next;
}

static inline bool *tsi_reader_gone(struct tsi_reader *r)
{
	return &r->gone;
}

static inline struct tsi_claim *tsi_reader_claim(struct tsi_reader *r)
{
	return &r->claim;
}

static inline struct tsi_backend *tsi_reader_backend(const struct tsi_reader *r)
{
	return r->backend;
}

/* Was this process forked since it was made?  Then it is the parent's. */
static inline bool tsi_reader_in_child(const struct tsi_reader *r)
{
	return tsi_fork_since(r->generation);
}

static inline unsigned tsi_reader_nfields(const struct tsi_reader *r)
{
	return r->nfields;
}

/* As batches hold it. */
static inline const struct tsock_field *
tsi_reader_field(const struct tsi_reader *r, unsigned i)
{
	return &r->field[i];
}

static inline uint64_t tsi_reader_epoch_len(const struct tsi_reader *r)
{
	return r->epoch_len;
}

/* The stream's end: the first sample that will never be there.  It may become
 * less. */
static inline uint64_t tsi_reader_end(const struct tsi_reader *r)
{
	return tsi_claim_end(&r->claim);
}

static inline uint64_t tsi_reader_capacity(const struct tsi_reader *r)
{
	return r->capacity;
}

/* A name of this thread, as long as it lives. */
static inline uintptr_t tsi_reader_this_thread(void)
{
	return (uintptr_t)pthread_self();
}

/* This thread reads it now. */
static inline void tsi_reader_used_here(struct tsi_reader *r)
{
	/* A name to compare with; nothing hangs on it. */
	atomic_store_explicit(&r->user_thread, tsi_reader_this_thread(),
			      memory_order_relaxed);
}

/* Did this thread acquire its last batch, or wait for it? */
static inline bool tsi_reader_is_used_here(struct tsi_reader *r)
{
	return atomic_load_explicit(&r->user_thread, memory_order_relaxed) ==
	       tsi_reader_this_thread();
}

/* Did a thread release a batch that another one had acquired? */
static inline bool tsi_reader_released_elsewhere(const struct tsi_reader *r)
{
	/* A flag that only rises. */
	return atomic_load_explicit(
		&((struct tsi_reader *)(uintptr_t)r)->released_elsewhere,
		memory_order_relaxed);
}

int tsi_reader_create(const struct tsi_reader_parts *p,
		      struct tsi_reader **out);

/* First sample that isn't taken yet; the first that is still needed. */
uint64_t tsi_reader_pos(const struct tsi_reader *r);
uint64_t tsi_reader_tail(const struct tsi_reader *r);

/* Batches that hold the tail and are not pending. */
uint64_t tsi_reader_held(const struct tsi_reader *r);

/* The oldest that holds the tail, or NULL; is it pending? */
const struct tsock_batch *tsi_reader_oldest(struct tsi_reader *r);
bool tsi_reader_batch_pending(const struct tsock_batch *b);

/* The number of its first sample. */
uint64_t tsi_reader_batch_first(const struct tsock_batch *b);

/* Can the stream get to sample need - 1 in spite of what is held? */
bool tsi_reader_lets_pass(const struct tsi_reader *r, uint64_t need);

/*
 * If it can't: the oldest batch that is in its way by itself.  NULL: what was
 * in the way is being given back by another thread, which may not have moved
 * the tail yet; the batches after it leave room.
 */
const struct tsock_batch *tsi_reader_blocker(struct tsi_reader *r,
					     uint64_t need);

/* To sleep until a batch is released; see tail.h. */
void tsi_reader_expect_release(struct tsi_reader *r, bool expect);
uint32_t tsi_reader_releases(struct tsi_reader *r);
void tsi_reader_await_release(struct tsi_reader *r, uint32_t seen,
			      int timeout_ms);

/* May n more samples after the position be acquired? */
bool tsi_reader_has_room(const struct tsi_reader *r, uint64_t n);

/* Why no batch can be read any more, whatever the producer does; or 0. */
int tsi_reader_trouble(struct tsi_reader *r);

/* TSOCK_EHELD, which names what is held. */
int tsi_reader_err_held(struct tsi_reader *r);

/*
 * See to it that n more samples after the position don't hold the stream up:
 * make the oldest batches private.  TSOCK_EHELD where that can't be done,
 * TSOCK_ENOMEM where it failed.
 */
int tsi_reader_make_room(struct tsi_reader *r, uint64_t n);

/* Make b private, if it is still held; the tail passes it. */
int tsi_reader_make_private(struct tsi_reader *r, struct tsock_batch *b);

/* Make every held batch private.  0, or the first failure. */
int tsi_reader_make_all_private(struct tsi_reader *r);

/* Acquire the next n samples, which are published; *out is a name. */
int tsi_reader_acquire(struct tsi_reader *r, uint64_t n, tsock_batch **out);

/* The batch that a caller names; NULL, with a message, if there is none. */
struct tsock_batch *tsi_batch_of(const tsock_batch *name, const char *call);

/* The ring is in a new generation: samples below need are read from there. */
void tsi_reader_enter(struct tsi_reader *r, uint64_t need);

/* Move the position without reading. */
void tsi_reader_skip(struct tsi_reader *r, uint64_t to);

/*
 * The handle takes no more.  True when the claim is over now; false when
 * batches still hold it: then over() is called when the last is given back.
 */
bool tsi_reader_retire(struct tsi_reader *r);

/* Is the claim over? */
bool tsi_reader_claim_ended(const struct tsi_reader *r);

/* The handle lets go. */
void tsi_reader_unref(struct tsi_reader *r);

/*
 * Any thread: one reference to a batch more, or less.  Not in a forked child,
 * whose batches stay what they were: the callers have asked.
 */
void tsi_reader_batch_ref(struct tsock_batch *b);
void tsi_reader_batch_unref(struct tsock_batch *b);

/* Any thread: the work for which the backend deferred a batch is done. */
void tsi_reader_batch_done(struct tsi_placement *p);

#endif
