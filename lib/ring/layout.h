/* SPDX-License-Identifier: MIT */
/*
 * layout.h - what a producer and its consumers share in memory.
 *
 * This is an ABI between processes: the sizes and offsets below belong to
 * TSI_RING_ABI, which changes with them.  README.md beside this file is the
 * specification: which process writes which word, and in which memory order.
 */
#ifndef TSI_RING_LAYOUT_H
#define TSI_RING_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sequence.h"
#include "tsock/tsock.h"

#define TSI_RING_MAGIC UINT64_C(0x676e72206b636f74) /* "tock rng" */
#define TSI_RING_ABI 11
#define TSI_MAX_ROWS 256
#define TSI_ROWS_A_WORD 32 /* of those that share a word to sleep on */
#define TSI_CACHE_LINE 64
#define TSI_RING_ERROR 4092                   /* bytes of error[] */
#define TSI_PAGE_OWNER 16                     /* bytes of owner[] */
#define TSI_ROW_DETACHED UINT32_C(0x80000000) /* beside a reader's number */

enum tsi_ring_state {
	TSI_RING_OPEN = 1,
	TSI_RING_ENDED = 2,   /* the last epoch is published: end says where */
	TSI_RING_FAILED = 3,  /* error[] says why: a stream error */
	TSI_RING_CLOSED = 4,  /* the producer has shut down in good order */
	TSI_RING_STOPPED = 5, /* for good: error[] says by whom */
};

/*
 * A field of the ring.  map_bytes is the length of the field's data memory.
 * Without a margin that is capacity * sample_bytes, a whole number of pages,
 * and a consumer maps the memory twice in a row, so that a batch that crosses
 * the ring's end is one piece.  With a margin, so many samples lie behind the
 * ring and repeat its first ones, and the length is rounded up to pages.
 */
struct tsi_ring_field {
	struct tsock_field desc;
	uint64_t sample_bytes;
	uint64_t map_bytes;
	uint64_t margin; /* samples: 0 or max_batch */
};

/* The header: one for each ring, written by the producer. */
struct tsi_ring_shared {
	/* Written once, before any consumer can see it. */
	uint64_t magic;
	uint32_t abi;
	uint32_t header_bytes; /* of this struct */
	uint64_t incarnation;  /* differs at each start of a producer */
	uint64_t halves;       /* 2 if readers may be detached, else 1 */
	uint64_t capacity;     /* samples */
	uint64_t epoch_len;
	uint64_t join_window;
	uint64_t max_batch;
	/* First number that no sample will have; or TSI_NEVER.  Written again
	 * when the stream is to end sooner: it never grows, and no reader has a
	 * sample at or beyond it. */
	_Atomic uint64_t end;
	uint64_t granularity; /* of map_bytes: a page, or a GPU's; 0: any */
	uint32_t nfields;
	uint32_t nrows;
	struct tsi_ring_field field[TSOCK_MAX_FIELDS];

	/* First sequence number not yet published. */
	_Alignas(TSI_CACHE_LINE) _Atomic uint64_t head;

	/*
	 * Samples of generation g, from since[g & 1] on, are in half
	 * (g - 1) & 1; those before it are in the other half.  Generations
	 * are counted from 1; since[] is written before generation.
	 */
	_Atomic uint32_t generation;
	/* Warnings that consumers can ask for; it only grows. */
	_Atomic uint32_t warnings;
	_Atomic uint64_t since[2];

	/*
	 * The tails that writers sleep for; TSI_NEVER while none does.  A
	 * reader writes the eventfd when its tail moves from at or below
	 * gate_want or start_want to above it, or from below front_want to at
	 * or above it.  This ring's writer waits for the gate, the writer of
	 * any ring for the front, and the writer of a ring from which this one
	 * is made for the start.
	 */
	_Alignas(TSI_CACHE_LINE) _Atomic uint64_t gate_want;
	_Atomic uint64_t front_want;
	_Atomic uint64_t start_want;
	/* All samples from there on are kept for readers of the producer before
	 * that have still to return; or TSI_NEVER. */
	_Atomic uint64_t held;

	/* error[] is written before state, and never again. */
	_Alignas(TSI_CACHE_LINE) _Atomic uint32_t state;
	char error[TSI_RING_ERROR];

	/*
	 * Futexes, each for TSI_ROWS_A_WORD rows in turn: bumped when the head
	 * reaches what one of their readers wants.  A row has its own bit, so
	 * that one system call wakes the readers that want it, and no others.
	 */
	_Alignas(TSI_CACHE_LINE) _Atomic uint32_t
		wake[TSI_MAX_ROWS / TSI_ROWS_A_WORD];
	/* Number of the reader that has a row, beside TSI_ROW_DETACHED if it
	 * was detached; 0: none. */
	_Alignas(TSI_CACHE_LINE) _Atomic uint32_t reader[TSI_MAX_ROWS];
};

/* The tail page: one for each reader, written by its consumer. */
struct tsi_tail_page {
	_Alignas(TSI_CACHE_LINE) _Atomic uint64_t tail; /* first one needed */
	_Atomic uint64_t want; /* head that it sleeps for; 0 when awake */
	_Atomic uint64_t spin; /* head that it spins for: needs no wake-up */
	_Alignas(TSI_CACHE_LINE) _Atomic uint64_t samples; /* for statistics */
	_Atomic uint64_t wait_ns;
	_Atomic uint32_t generation; /* whose half it may have samples in */
	_Atomic uint32_t left;       /* 1: it is a reader no more */
	/* The claim that the page is of.  Written before any tail. */
	uint8_t owner[TSI_PAGE_OWNER];
	/* First sample not taken: from tail to there it may hold some. */
	_Atomic uint64_t position;
};

#define TSI_LAYOUT_AT(type, member, offset) \
	_Static_assert(offsetof(struct type, member) == offset, \
		       "TSI_RING_ABI: " #type "." #member)
TSI_LAYOUT_AT(tsi_ring_shared, field, 88);
TSI_LAYOUT_AT(tsi_ring_shared, head, 1792);
TSI_LAYOUT_AT(tsi_ring_shared, generation, 1800);
TSI_LAYOUT_AT(tsi_ring_shared, warnings, 1804);
TSI_LAYOUT_AT(tsi_ring_shared, since, 1808);
TSI_LAYOUT_AT(tsi_ring_shared, gate_want, 1856);
TSI_LAYOUT_AT(tsi_ring_shared, front_want, 1864);
TSI_LAYOUT_AT(tsi_ring_shared, start_want, 1872);
TSI_LAYOUT_AT(tsi_ring_shared, held, 1880);
TSI_LAYOUT_AT(tsi_ring_shared, state, 1920);
TSI_LAYOUT_AT(tsi_ring_shared, wake, 6016);
TSI_LAYOUT_AT(tsi_ring_shared, reader, 6080);
TSI_LAYOUT_AT(tsi_ring_field, sample_bytes, 80);
TSI_LAYOUT_AT(tsi_tail_page, samples, 64);
TSI_LAYOUT_AT(tsi_tail_page, generation, 80);
TSI_LAYOUT_AT(tsi_tail_page, left, 84);
TSI_LAYOUT_AT(tsi_tail_page, owner, 88);
TSI_LAYOUT_AT(tsi_tail_page, position, 104);
_Static_assert(sizeof(struct tsi_ring_shared) == 7104, "TSI_RING_ABI");
_Static_assert(sizeof(struct tsi_ring_field) == 104, "TSI_RING_ABI");
_Static_assert(sizeof(struct tsi_tail_page) == 128, "TSI_RING_ABI");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_INT_LOCK_FREE == 2,
	       "a lock would not be shared with the other process");
#undef TSI_LAYOUT_AT

#endif
