/* SPDX-License-Identifier: MIT */
/*
 * batch.c - looking at a batch, using it on a GPU, and giving it back.
 *
 * Looking works in a forked child, too, as long as the parent holds the batch.
 */
#include "base/err.h"
#include "base/fork.h"
#include "base/log.h"
#include "consumer/reader.h"

struct tsock_batch *tsi_batch_of(const tsock_batch *name, const char *call)
{
	struct tsock_batch *b = tsi_name_find(name);

	if (!b)
		tsi_err(TSOCK_EARG, "%s: %s", call,
			name ? "the batch was given back already"
			     : "the batch is NULL");
	return b;
}

uint64_t tsock_batch_count(const tsock_batch *name)
{
	const struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_count");

	return b ? b->count : 0;
}

uint64_t tsock_batch_seq(const tsock_batch *name)
{
	const struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_seq");

	return b ? b->first : UINT64_MAX;
}

uint64_t tsock_batch_epoch(const tsock_batch *name)
{
	const struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_epoch");

	return b ? b->first / tsi_reader_epoch_len(b->reader) : UINT64_MAX;
}

const void *tsock_batch_data(const tsock_batch *name, unsigned i)
{
	const struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_data");

	return b && i < tsi_reader_nfields(b->reader) ? b->placement.data[i]
						      : NULL;
}

void *tsock_batch_data_mut(tsock_batch *name, unsigned i)
{
	struct tsock_batch *b = tsi_batch_of(name, "tsock_batch_data_mut");

	if (!b || i >= tsi_reader_nfields(b->reader) ||
	    !tsi_backend_is_writable(tsi_reader_backend(b->reader)))
		return NULL;
	return b->placement.data[i];
}

/* A batch that a GPU's work can read; NULL with the error in *err. */
static struct tsock_batch *batch_on_gpu(tsock_batch *name, const char *call,
					int *err)
{
	struct tsock_batch *b = tsi_batch_of(name, call);

	*err = b ? 0 : TSOCK_EARG;
	if (b && tsi_reader_in_child(b->reader))
		*err = tsi_fork_err();
	else if (b && !tsi_backend_has_streams(tsi_reader_backend(b->reader)))
		*err = tsi_err(TSOCK_EARG,
			       "%s: the batch is in host memory: open with a "
			       "device",
			       call);
	return *err ? NULL : b;
}

int tsock_batch_use(tsock_batch *name, void *stream)
{
	int err;
	struct tsock_batch *b = batch_on_gpu(name, "tsock_batch_use", &err);
	struct tsi_backend *k = b ? tsi_reader_backend(b->reader) : NULL;

	return err ? err : tsi_backend_use(k, &b->placement, stream);
}

int tsock_batch_convert(tsock_batch *name, unsigned i, void *dst, void *stream)
{
	int err;
	struct tsock_batch *b = batch_on_gpu(name, "tsock_batch_convert", &err);
	struct tsi_backend *k = b ? tsi_reader_backend(b->reader) : NULL;

	if (err)
		return err;
	if (i >= tsi_reader_nfields(b->reader))
		return tsi_err(TSOCK_EARG,
			       "there is no field %u: a batch has %u", i,
			       tsi_reader_nfields(b->reader));
	if (!dst)
		return tsi_err(TSOCK_EARG, "tsock_batch_convert: dst is NULL");
	return tsi_backend_convert(k, &b->placement, i, dst, stream);
}

void tsock_batch_release(tsock_batch *name)
{
	struct tsock_batch *b;
	bool forked;

	if (!name)
		return;
	b = tsi_name_end(name, &forked);
	if (b)
		tsi_reader_batch_unref(b);
	else if (!forked)
		tsi_log(TSOCK_LOG_ERROR,
			"tsock_batch_release() for a batch that was given back "
			"already, or never was one: nothing is done");
}
