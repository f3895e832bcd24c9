/* SPDX-License-Identifier: MIT */
/*
 * ring.h - sample slots in shared memory: one writer, many readers.
 *
 * What the processes share is in layout.h; README.md is the specification.
 */
#ifndef TSI_RING_RING_H
#define TSI_RING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memfd.h"
#include "mem/gpu.h"
#include "ring/geometry.h"
#include "ring/layout.h"
#include "ring/pages.h"

/* To which run and stream a ring belongs, and where the samples end. */
struct tsi_ring_ident {
	uint64_t incarnation, epoch_len, end;
};

/* ---- the producer's side ---- */

struct tsi_ring {
	struct tsi_ring_shared *shared;
	struct tsi_geometry geometry; /* as the header has it */
	struct tsi_ring_ident ident;
	struct tsi_memfd header;
	struct tsi_memfd data[TSOCK_MAX_FIELDS];  /* on the host, or ... */
	struct tsi_gpu_mem gpu[TSOCK_MAX_FIELDS]; /* ... on a GPU */
	bool on_gpu;
	const struct tsi_tail_page *tail[TSI_MAX_ROWS]; /* NULL: no reader */
	uint64_t woken[TSI_MAX_ROWS]; /* the want of its last wake-up */
	unsigned rows_used;           /* no row at or above has a reader */
	uint32_t readers;             /* number of the last one that came */
	/* Twice the first sample of the generation, plus its half. */
	_Atomic uint64_t place;
	uint64_t spare; /* bytes of the second half that are reserved */
	struct tsi_pages pages[TSOCK_MAX_FIELDS];
};

int tsi_ring_create(const struct tsi_geometry *g,
		    const struct tsi_ring_ident *id, struct tsi_ring *out);
/* The data in a GPU's memory, where the writer copies the margins itself. */
int tsi_ring_create_gpu(const struct tsi_geometry *g,
			const struct tsi_ring_ident *id, unsigned device,
			enum tsock_transport transport, struct tsi_ring *out);
void tsi_ring_destroy(struct tsi_ring *r);

/* Let another GPU read and write a ring that is on a GPU. */
int tsi_ring_grant(const struct tsi_ring *r, unsigned device);

/* What it was made of; for a field: a sample, the margin, all its memory. */
static inline unsigned tsi_ring_nfields(const struct tsi_ring *r)
{
	return r->geometry.nfields;
}

static inline uint64_t tsi_ring_capacity(const struct tsi_ring *r)
{
	return r->geometry.capacity;
}

static inline const struct tsock_field *tsi_ring_field(const struct tsi_ring *r,
						       unsigned f)
{
	return tsi_geometry_field(&r->geometry, f);
}

static inline uint64_t tsi_ring_margin(const struct tsi_ring *r, unsigned f)
{
	return tsi_geometry_margin(&r->geometry, f);
}

static inline uint64_t tsi_ring_map_bytes(const struct tsi_ring *r, unsigned f)
{
	return tsi_geometry_map_bytes(&r->geometry, f);
}

static inline struct tsi_ring_ident tsi_ring_ident(const struct tsi_ring *r)
{
	return r->ident;
}

/* What another process needs: the header's descriptor, ... */
static inline int tsi_ring_header_fd(const struct tsi_ring *r)
{
	return tsi_memfd_fd(&r->header);
}

/*
 * ... the descriptors of the data, which are written to fd (returns how many),
 * and for memory that is opened without them the handle of each field (returns
 * how many).
 */
unsigned tsi_ring_data_fds(const struct tsi_ring *r, int *fd);
unsigned tsi_ring_handles(const struct tsi_ring *r,
			  uint8_t (*handle)[TSI_GPU_HANDLE]);

/* How its memory on a GPU is opened; AUTO: the ring is in host memory. */
static inline enum tsock_transport tsi_ring_transport(const struct tsi_ring *r)
{
	return r->on_gpu ? tsi_gpu_mem_transport(&r->gpu[0])
			 : TSOCK_TRANSPORT_AUTO;
}

/*
 * The slot of sample s, for tsi_ring_at().  Where the ring has two halves it
 * says which one, and samples of one generation alone lie in a row.
 */
uint64_t tsi_ring_place(const struct tsi_ring *r, uint64_t s);

/* How many samples from s on, up to n, lie in the same half. */
uint64_t tsi_ring_in_half(const struct tsi_ring *r, uint64_t s, uint64_t n);

/*
 * Before these samples are written: the pages of their slots, and of what the
 * margins repeat of them, are there.  Any thread.  Fails with ENOMEM, and the
 * numbers.
 */
int tsi_ring_make_room(struct tsi_ring *r, uint64_t first, uint64_t count);

/* Address of field f of sample s. */
void *tsi_ring_slot(const struct tsi_ring *r, unsigned f, uint64_t s);

/* Address of a slot of field f; from the capacity on they are its margin. */
void *tsi_ring_at(const struct tsi_ring *r, unsigned f, uint64_t slot);

/* The bytes that n samples of field f take. */
static inline uint64_t tsi_ring_bytes(const struct tsi_ring *r, unsigned f,
				      uint64_t n)
{
	return tsi_geometry_bytes(&r->geometry, f, n);
}

/* Copy into the margins what samples first..first+count-1 have there. */
void tsi_ring_mirror(struct tsi_ring *r, uint64_t first, unsigned count);

/*
 * The stream ends there, sooner than the ring has said so far.  No reader has
 * taken a sample at or beyond it.
 */
void tsi_ring_set_end(struct tsi_ring *r, uint64_t end);

/* Move the head, and wake the readers that sleep for it. */
void tsi_ring_publish(struct tsi_ring *r, uint64_t head);

uint64_t tsi_ring_head(const struct tsi_ring *r);

/* The least head beyond this one that a reader waits for, asleep or not;
 * TSI_NEVER: none does. */
uint64_t tsi_ring_waited_for(const struct tsi_ring *r, uint64_t head);

/*
 * What a writer that is at its limit waits for; a reader's tail that gets there
 * wakes it (tsi_header_notifies()).  TSI_NEVER: nothing.  The writer has to
 * read every tail once more, after a seq_cst fence, before it sleeps.
 */
void tsi_ring_want_gate(struct tsi_ring *r, uint64_t gate);
void tsi_ring_want_front(struct tsi_ring *r, uint64_t front);
void tsi_ring_want_start(struct tsi_ring *r, uint64_t start);

/*
 * All samples from there on are kept for readers that have still to return;
 * TSI_NEVER: none are.
 */
void tsi_ring_set_held(struct tsi_ring *r, uint64_t from);

/* Tell readers how many warnings they can ask for. */
void tsi_ring_set_warnings(struct tsi_ring *r, uint32_t n);

/*
 * A reader, whose tail page is mapped at tail, takes a row, and leaves it.
 * What is returned is the reader's number: the row has it until the reader
 * leaves, and no other reader of the ring gets the same.  In a ring that isn't
 * open any more it stays there until another reader takes the row: nothing is
 * written over, so a process that was a reader by then may read on.
 */
uint32_t tsi_ring_attach(struct tsi_ring *r, unsigned row,
			 const struct tsi_tail_page *tail);
void tsi_ring_detach(struct tsi_ring *r, unsigned row);

/*
 * The reader is told that it was detached; what it reads by then stays as it
 * is, and the row is its own until tsi_ring_detach().  After the call it enters
 * no other generation than the one that tsi_tail_page_generation() gives.
 * undo: it had entered the newest one before, and is a reader as it was.
 */
void tsi_ring_set_aside(struct tsi_ring *r, unsigned row);
void tsi_ring_undo_set_aside(struct tsi_ring *r, unsigned row,
			     const struct tsi_tail_page *tail);

/*
 * Samples from since on are of this generation.  Call this before a head beyond
 * since is published, and after the readers that may not enter it were set
 * aside.
 */
void tsi_ring_set_generation(struct tsi_ring *r, uint32_t generation,
			     uint64_t since);

/*
 * Reserve some more of the second half, a few milliseconds' worth.
 * TSOCK_EAGAIN: there is more to do; 0: all of it is there.  TSOCK_ENOMEM.
 */
int tsi_ring_reserve(struct tsi_ring *r);

/* Is all of the second half there; what it takes by now. */
bool tsi_ring_has_spare(const struct tsi_ring *r);
static inline uint64_t tsi_ring_spare(const struct tsi_ring *r)
{
	return r->spare;
}

/*
 * Set the final state, with its text, and wake every reader.  A second call
 * does nothing.
 */
void tsi_ring_finish(struct tsi_ring *r, enum tsi_ring_state state,
		     const char *error);

/* ---- the consumer's side ---- */

/*
 * Copy what never changes of a header that a producer sent, and check the copy
 * before anything in it is used: sizes, counts and lengths agree with each
 * other and stay in bounds.  shared points to len bytes that are mapped
 * read-only.
 */
int tsi_ring_read(const struct tsi_ring_shared *shared, size_t len,
		  struct tsi_geometry *g, struct tsi_ring_ident *id);

#endif
