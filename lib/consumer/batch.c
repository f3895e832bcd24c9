/*
 * batch.c - looking at a batch, and giving it back.
 *
 * Looking works in a forked child, too, as long as the parent holds it.
 */
#include "base/err.h"
#include "consumer/lease.h"

/* No batch: the message says in which call. */
static bool none(const tsock_batch *b, const char *call)
{
	if (!b)
		tsi_err(TSOCK_EARG, "%s: the batch is NULL", call);
	return !b;
}

uint64_t tsock_batch_count(const tsock_batch *b)
{
	return none(b, "tsock_batch_count") ? 0 : b->count;
}

uint64_t tsock_batch_seq(const tsock_batch *b)
{
	return none(b, "tsock_batch_seq") ? UINT64_MAX : b->first;
}

uint64_t tsock_batch_epoch(const tsock_batch *b)
{
	return none(b, "tsock_batch_epoch") ? UINT64_MAX
					    : b->first / b->reader->epoch_len;
}

const void *tsock_batch_data(const tsock_batch *b, unsigned i)
{
	if (none(b, "tsock_batch_data") || i >= b->reader->nfields)
		return NULL;
	return b->spot.data[i];
}

void *tsock_batch_data_mut(tsock_batch *b, unsigned i)
{
	if (none(b, "tsock_batch_data_mut") || i >= b->reader->nfields ||
	    tsi_map_common(b->reader->windows.mode))
		return NULL;
	return b->spot.data[i];
}

void tsock_batch_release(tsock_batch *b)
{
	if (b)
		tsi_batch_unref(b);
}
