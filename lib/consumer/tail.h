/*
 * tail.h - the tail, which follows the batches of a reader as they are
 * released.
 *
 * Batches are released in any order and by any thread, with no lock; the tail
 * moves in the order of their samples.  full, append and oldest are for the
 * thread of the handle, the other functions for any thread.
 */
#ifndef TSI_CONSUMER_TAIL_H
#define TSI_CONSUMER_TAIL_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_tail_entry;
struct tsi_reader;
struct tsock_batch;

/* Entries are used again when the tail has moved over them. */
bool tsi_tail_full(const struct tsi_reader *r);
void tsi_tail_append(struct tsi_reader *r, struct tsock_batch *b);

/* The oldest entry that isn't done, from *at on; NULL: none. */
struct tsi_tail_entry *tsi_tail_oldest(struct tsi_reader *r, uint64_t *at);

/* That batch needs the ring no more. */
void tsi_tail_release(struct tsi_reader *r, uint64_t ticket);

/* The tail follows what is done, and the position. */
void tsi_tail_advance(struct tsi_reader *r);

#endif
