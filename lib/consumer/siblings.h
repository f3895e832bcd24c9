/* SPDX-License-Identifier: MIT */
/*
 * siblings.h - the readers of this process, to find out which of them waits
 * for another one.
 *
 * A thread that reads two handles of one stream in turn can wait for itself:
 * for samples that can't be made before it goes on with the other handle.
 * After a restart of the producer these are also samples for which the next
 * producer has no room, since it keeps those before them until the other handle
 * has returned, which it does when it is used.  Only a thread that
 * has waited for a while looks at this.  Any thread.
 */
#ifndef TSI_CONSUMER_SIBLINGS_H
#define TSI_CONSUMER_SIBLINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "consumer/finished.h"

struct tsi_reader;

/* What a wait has found so far. */
struct tsi_stuck {
	const struct tsi_sibling *on; /* what blocks it; NULL: unknown */
	uint64_t pos, need;           /* of that one; of this one */
	unsigned tries;               /* of that one */
	int64_t since_ms;
	bool said;
};

/*
 * A sibling, from its join to its leave; if its producer is gone, until it has
 * another producer, or leaves.  stuck belongs to the sibling's own thread.
 */
struct tsi_sibling {
	struct tsi_reader *reader; /* NULL: it waits for the next producer */
	const char *stream;        /* its name */
	unsigned batch_size;
	uint64_t incarnation, epoch_len;
	uint64_t base_capacity;   /* of the ring of the base view */
	bool base;                /* it reads that ring */
	bool gpu;                 /* its ring is on a GPU */
	uint64_t stream_hash;     /* of what the next producer's has as well */
	struct tsi_finished read; /* by its process, before it began */
	bool returns;             /* to the next producer */
	unsigned tries; /* how often it has asked for one, or joined */
	/* While it has no reader: */
	uint64_t pos;     /* where it goes on */
	uintptr_t thread; /* that asked last */
	struct tsi_stuck stuck;
	struct tsi_sibling *next;
};

/* Add s to the siblings, and take it off again. */
void tsi_siblings_add(struct tsi_sibling *s);
void tsi_siblings_remove(struct tsi_sibling *s);

/* Add a sibling that has lost its producer, and goes on at pos with the next
 * one, for which this thread has asked without success: it has no reader
 * yet. */
void tsi_siblings_add_lost(struct tsi_sibling *s, uint64_t pos);

/* Does one of them read from the producer of that incarnation?  True: *read
 * becomes what one of them knew to have been read before; the furthest. */
bool tsi_siblings_read(uint64_t incarnation, struct tsi_finished *read);

/*
 * s, which this thread reads, waits for sample need - 1.  TSOCK_EHELD, which
 * names both, when that can't come before this very thread goes on with another
 * one, and it didn't for a while; 0 else.  A wait for another thread's reader
 * is logged, once.
 */
int tsi_siblings_check(struct tsi_sibling *s, uint64_t need, int64_t now_ms);

#endif
