/*
 * ring.h - sample slots in shared memory: one writer, many readers.
 *
 * What two processes share, and nothing else:
 *
 *   header     one memfd per ring, written by the producer, mapped read-only
 *              by consumers: struct tsi_ring_shared
 *   data       one memfd per field, written by the producer, mapped by
 *              consumers read-only or private (copy-on-write)
 *   tail page  one memfd per connection, written by its consumer, mapped
 *              read-only by the producer: struct tsi_tail_page
 *
 * Sample s lives in slot s mod capacity.  Head and tails only grow, but for a
 * jump of a stream without readers.  Every shared word has exactly one writing
 * process, so no death can leave one behind.  The layout is ABI: see
 * TSI_RING_ABI.
 */
#ifndef TSI_RING_RING_H
#define TSI_RING_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sequence.h"
#include "mem/gpu.h"
#include "mem/memfd.h"
#include "tsock/tsock.h"

#define TSI_RING_MAGIC UINT64_C(0x676e72206b636f74) /* "tock rng" */
#define TSI_RING_ABI 2
#define TSI_MAX_ROWS 256

enum tsi_ring_state {
	TSI_RING_OPEN = 1,
	TSI_RING_ENDED = 2,  /* the last epoch is published: end says where */
	TSI_RING_FAILED = 3, /* error[] says why: a stream error */
	TSI_RING_CLOSED = 4, /* the producer has shut down in good order */
};

enum tsi_row_state {
	TSI_ROW_FREE = 0,
	TSI_ROW_READER = 1,
	TSI_ROW_EVICTED = 2, /* the producer gave this consumer up */
};

/* One per connection, written by the producer; a cache line each. */
struct tsi_row {
	_Atomic uint32_t wake; /* futex: bumped when head reaches want */
	_Atomic uint32_t state;
	_Atomic uint64_t start; /* first sequence number of the claim */
	uint64_t reserved[6];
};

/*
 * A field of the ring.  map_bytes is the data memfd's length: capacity *
 * sample_bytes rounded up to pages, or with margin samples behind it that
 * repeat the ring's first ones.  margin 0: the length is a whole number of
 * pages, and is mapped twice in a row, so a batch that crosses the end is one
 * piece.
 */
struct tsi_ring_field {
	struct tsock_field desc;
	uint64_t sample_bytes;
	uint64_t map_bytes;
	uint64_t margin;
};

struct tsi_ring_shared {
	/* Written once, before any consumer can see it. */
	uint64_t magic;
	uint32_t abi;
	uint32_t header_bytes; /* of the header's memfd */
	uint64_t incarnation;  /* differs at each start of a producer */
	uint64_t generation;
	uint64_t capacity;
	uint64_t epoch_len;
	uint64_t join_window;
	uint64_t max_batch;
	uint64_t end; /* first sequence number that will never be; or NEVER */
	uint64_t granularity; /* of map_bytes: a page, or a GPU's; 0: any */
	uint32_t nfields;
	uint32_t nrows;
	struct tsi_ring_field field[TSOCK_MAX_FIELDS];

	/* First sequence number not yet published. */
	_Alignas(64) _Atomic uint64_t head;

	/*
	 * What the producer sleeps for; TSI_NEVER when it doesn't.  A tail
	 * that moves from at or below gate_want or start_want to above it, or
	 * from below front_want to at or above it, writes the eventfd.  This
	 * ring's writer waits for the gate, any ring's for the lead, that of a
	 * ring that this one is made of for the start.
	 */
	_Alignas(64) _Atomic uint64_t gate_want;
	_Atomic uint64_t front_want;
	_Atomic uint64_t start_want;

	/* error[] is written before state, and never again. */
	_Alignas(64) _Atomic uint32_t state;
	char error[252];

	_Alignas(64) struct tsi_row row[TSI_MAX_ROWS];
};

/* Everything in it is written by one consumer. */
struct tsi_tail_page {
	_Alignas(64) _Atomic uint64_t tail; /* first sample still needed */
	_Atomic uint64_t want; /* head that it waits for; 0 when awake */
	_Atomic uint64_t spin; /* the same, of one that needs no wake-up */
	_Alignas(64) _Atomic uint64_t samples; /* counters, for people */
	_Atomic uint64_t wait_ns;
};

/* ---- geometry, pure ---- */

struct tsi_geometry {
	uint64_t capacity, join_window, max_batch, bytes;
	uint64_t granularity;
	unsigned nfields;
	struct tsi_ring_field field[TSOCK_MAX_FIELDS];
};

size_t tsi_field_bytes(const struct tsock_field *f); /* 0: overflow, bad */

/*
 * Capacity and mapping of a ring of these fields: at least ring samples, at
 * least join_window + 2 * max_batch and 4 * max_batch, and up to 25 % more
 * where that lets fields be mapped twice instead of keeping a margin.
 */
int tsi_geometry_make(const struct tsock_field *field, unsigned nfields,
		      uint64_t ring, uint64_t join_window, uint64_t max_batch,
		      struct tsi_geometry *out);

/*
 * The same with a granularity other than the page: 2 MiB for VMM on a GPU; 0
 * where nothing can be mapped twice, so that every field has a margin.
 */
int tsi_geometry_for(const struct tsock_field *field, unsigned nfields,
		     uint64_t ring, uint64_t join_window, uint64_t max_batch,
		     uint64_t granularity, struct tsi_geometry *out);

/* ---- the producer's side ---- */

struct tsi_ring {
	struct tsi_ring_shared *shared;
	struct tsi_memfd header;
	struct tsi_memfd data[TSOCK_MAX_FIELDS];  /* on the host, or ... */
	struct tsi_gpu_mem gpu[TSOCK_MAX_FIELDS]; /* ... on a GPU */
	bool on_gpu;
	const struct tsi_tail_page *tail[TSI_MAX_ROWS]; /* NULL: no reader */
	uint64_t woken[TSI_MAX_ROWS]; /* the want that it was woken for */
	unsigned rows_used;           /* rows at or above it have no tail */
};

struct tsi_ring_ident {
	uint64_t incarnation, generation, epoch_len, end;
};

int tsi_ring_create(const struct tsi_geometry *g,
		    const struct tsi_ring_ident *id, struct tsi_ring *out);
/* The data in a GPU's memory; mirroring is the writer's business there. */
int tsi_ring_create_gpu(const struct tsi_geometry *g,
			const struct tsi_ring_ident *id, unsigned device,
			enum tsock_transport transport, struct tsi_ring *out);
void tsi_ring_destroy(struct tsi_ring *r);

/* Address of field f of sample s. */
void *tsi_ring_slot(const struct tsi_ring *r, unsigned f, uint64_t s);

/* Copy what samples first..first+count-1 have in a margin. */
void tsi_ring_mirror(struct tsi_ring *r, uint64_t first, unsigned count);

/* Move the head, and wake the readers who wait for it. */
void tsi_ring_publish(struct tsi_ring *r, uint64_t head);

/* Wake every reader, to look at state and row. */
void tsi_ring_wake_all(struct tsi_ring *r);

/* A reader takes a row, and gives it up. */
void tsi_ring_seat(struct tsi_ring *r, unsigned row, uint64_t start,
		   const struct tsi_tail_page *tail);
void tsi_ring_unseat(struct tsi_ring *r, unsigned row, enum tsi_row_state why);

/* Set the state, with its text, once. */
void tsi_ring_finish(struct tsi_ring *r, enum tsi_ring_state state,
		     const char *error);

/* ---- the consumer's side ---- */

/*
 * Check a header that a producer sent before anything in it is used: sizes,
 * counts and lengths agree with each other and stay in bounds.  shared points
 * to a read-only mapping of len bytes.
 */
int tsi_ring_check(const struct tsi_ring_shared *shared, size_t len);

/* True when moving a tail from old to now must write the eventfd. */
static inline bool tsi_tail_rings(const struct tsi_ring_shared *shared,
				  uint64_t old, uint64_t now)
{
	uint64_t gate = atomic_load_explicit(
		&((struct tsi_ring_shared *)(uintptr_t)shared)->gate_want,
		memory_order_relaxed); /* after the caller's seq_cst fence */
	uint64_t lead = atomic_load_explicit(
		&((struct tsi_ring_shared *)(uintptr_t)shared)->front_want,
		memory_order_relaxed); /* the same */
	uint64_t start = atomic_load_explicit(
		&((struct tsi_ring_shared *)(uintptr_t)shared)->start_want,
		memory_order_relaxed); /* the same */

	return (old <= gate && gate < now) || (old < lead && lead <= now) ||
	       (old <= start && start < now);
}

#endif
