/*
 * batch.c - looking at a batch, and giving it back.
 *
 * Looking works in a forked child, too, as long as the parent holds it.
 */
#include "consumer/lease.h"

uint64_t tsock_batch_count(const tsock_batch *b)
{
	return b->count;
}

uint64_t tsock_batch_seq(const tsock_batch *b)
{
	return b->first;
}

uint64_t tsock_batch_epoch(const tsock_batch *b)
{
	return b->first / b->reader->epoch_len;
}

const void *tsock_batch_data(const tsock_batch *b, unsigned i)
{
	return i < b->reader->nfields ? b->spot.data[i] : NULL;
}

void *tsock_batch_data_mut(tsock_batch *b, unsigned i)
{
	if (i >= b->reader->nfields || tsi_map_common(b->reader->windows.mode))
		return NULL;
	return b->spot.data[i];
}

void tsock_batch_release(tsock_batch *b)
{
	if (b)
		tsi_batch_unref(b);
}
