/*
 * room.h - before more samples are taken: batches that are still held must not
 * hold the stream up.
 */
#ifndef TSI_CONSUMER_ROOM_H
#define TSI_CONSUMER_ROOM_H

#include <stdint.h>

struct tsock;

/*
 * See to it that n more samples, up to need, may be waited for.  Batches that
 * other threads hold are waited for: *timeout_ms becomes what is left of it.
 * TSOCK_EHELD when it is this thread that holds them, as far as can be told;
 * TSOCK_EAGAIN, or what failed.
 */
int tsi_room_make(struct tsock *t, uint64_t n, uint64_t need, int *timeout_ms);

#endif
