/* SPDX-License-Identifier: MIT */
/*
 * dlpack.c - lending a batch's field as a DLPack tensor.
 *
 * No Python here: a deleter may be called by any thread, with no interpreter
 * left, and does nothing in a forked child.
 */
#include "consumer/dlpack.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/fork.h"
#include "consumer/reader.h"

static void give_back(struct tsi_export *e)
{
	struct tsock_batch *b = e->batch;

	if (tsi_reader_in_child(b->reader))
		return;
	if (e->heap)
		free(e);
	else
		/* Pairs with borrow(): our last use. */
		atomic_store_explicit(&e->used, false, memory_order_release);
	tsi_reader_batch_unref(b);
}

static void delete_plain(struct tsi_dl_managed *self)
{
	if (self)
		give_back(self->context);
}

static void delete_versioned(struct tsi_dl_versioned *self)
{
	if (self)
		give_back(self->context);
}

static struct tsi_export *borrow(struct tsock_batch *b, unsigned i)
{
	struct tsi_export *e = &b->exports[i];

	/* Pairs with give_back(). */
	if (atomic_exchange_explicit(&e->used, true, memory_order_acquire)) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return NULL;
		e->heap = true;
	}
	e->batch = b;
	return e;
}

static void fill_tensor(struct tsi_dl_tensor *t, struct tsi_export *e,
			unsigned i)
{
	static const uint8_t code[] = {
		[TSOCK_U8] = TSI_DL_UINT,     [TSOCK_I32] = TSI_DL_INT,
		[TSOCK_I64] = TSI_DL_INT,     [TSOCK_F16] = TSI_DL_FLOAT,
		[TSOCK_BF16] = TSI_DL_BFLOAT, [TSOCK_F32] = TSI_DL_FLOAT,
		[TSOCK_F64] = TSI_DL_FLOAT,   [TSOCK_I8] = TSI_DL_INT,
		[TSOCK_I16] = TSI_DL_INT,     [TSOCK_U16] = TSI_DL_UINT,
		[TSOCK_U32] = TSI_DL_UINT,    [TSOCK_U64] = TSI_DL_UINT,
		[TSOCK_BOOL] = TSI_DL_BOOL,
	};
	const struct tsi_reader *r = e->batch->reader;
	const struct tsock_field *f = tsi_reader_field(r, i);
	int device = tsi_backend_device(tsi_reader_backend(r));
	int64_t stride = 1;

	*t = (struct tsi_dl_tensor){ .data = e->batch->placement.data[i] };
	t->device.type = TSI_DL_CPU;
	if (device >= 0) {
		t->device.type = TSI_DL_CUDA;
		t->device.id = device;
	}
	t->ndim = (int32_t)f->ndim + 1;
	t->dtype.code = code[f->dtype];
	t->dtype.bits = (uint8_t)(8 * tsock_dtype_size(f->dtype));
	t->dtype.lanes = 1;
	t->shape = e->shape;
	t->strides = e->strides;
	e->shape[0] = (int64_t)e->batch->count;
	for (unsigned d = f->ndim; d > 0; d--) {
		e->shape[d] = (int64_t)f->shape[d - 1];
		e->strides[d] = stride;
		stride *= e->shape[d];
	}
	e->strides[0] = stride;
}

int tsock_batch_dlpack(tsock_batch *name, unsigned i, int versioned, void **out)
{
	struct tsock_batch *b;
	struct tsi_export *e;

	if (out)
		*out = NULL;
	if (!out)
		return tsi_err(TSOCK_EARG, "tsock_batch_dlpack: out is NULL");
	b = tsi_batch_of(name, "tsock_batch_dlpack");
	if (!b)
		return TSOCK_EARG;
	if (tsi_reader_in_child(b->reader))
		return tsi_fork_err();
	if (i >= tsi_reader_nfields(b->reader))
		return tsi_err(TSOCK_EARG,
			       "there is no field %u: a batch has "
			       "%u",
			       i, tsi_reader_nfields(b->reader));
	if (!b->placement.data[i])
		return tsi_err(TSOCK_ENOTSUP,
			       "a batch as stored that this process copies to "
			       "the GPU has no memory there to lend: use "
			       "tsock_batch_convert()");
	e = borrow(b, i);
	if (!e)
		return tsi_err(TSOCK_ENOMEM, "no memory to lend a tensor");
	if (versioned) {
		struct tsi_dl_versioned *m = &e->u.versioned;

		m->version.major = 1;
		m->version.minor = 1;
		m->context = e;
		m->deleter = delete_versioned;
		m->flags =
			tsi_backend_is_writable(tsi_reader_backend(b->reader))
				? 0
				: TSI_DL_READ_ONLY;
		fill_tensor(&m->tensor, e, i);
		*out = m;
	} else {
		struct tsi_dl_managed *m = &e->u.plain;

		m->context = e;
		m->deleter = delete_plain;
		fill_tensor(&m->tensor, e, i);
		*out = m;
	}
	tsi_reader_batch_ref(b);
	return 0;
}
