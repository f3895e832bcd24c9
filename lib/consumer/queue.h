/*
 * queue.h - the batches of a reader in order, and the tail (lease.h).
 *
 * put, full and oldest belong to the thread of the handle; the others to any.
 */
#ifndef TSI_CONSUMER_QUEUE_H
#define TSI_CONSUMER_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct tsi_queued;
struct tsi_reader;
struct tsock_batch;

/* Entries are used again when the tail has moved over them. */
bool tsi_queue_full(const struct tsi_reader *r);
void tsi_queue_put(struct tsi_reader *r, struct tsock_batch *b);

/* The oldest entry that isn't done, from *at on; NULL: none. */
struct tsi_queued *tsi_queue_oldest(struct tsi_reader *r, uint64_t *at);

/* That batch needs the ring no more. */
void tsi_queue_done(struct tsi_reader *r, uint64_t ticket);

/* The tail follows what is done, and the position. */
void tsi_queue_advance(struct tsi_reader *r);

#endif
