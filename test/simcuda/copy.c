/* SPDX-License-Identifier: MIT */
/*
 * copy.c - work on memory: copies, memsets, kernels and broadcasts.
 *
 * Page-locked and device memory is read and written when the work runs;
 * pageable sources are read at the call, and a copy to pageable memory has
 * ended when the call returns.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static void set_steps(struct sim_op *op, size_t len)
{
	op->nsteps = len < 64 ? 1 : 3 + sim_random() % 6;
}

static struct sim_operand operand(const void *p, size_t len, unsigned device,
				  bool write, bool staged)
{
	struct sim_operand o = { .where = sim_where(p, len),
				 .p = p,
				 .len = len,
				 .write = write,
				 .staged = staged,
				 .device = device };

	return o;
}

/* A copy names its memory rightly; whether it may use it shows later. */
static bool exists(const struct sim_operand *o)
{
	char *at;

	if (o->where == SIM_STRADDLES)
		return false;
	return o->where != SIM_DEVICE ||
	       sim_reach(o, &at) != cudaErrorInvalidValue;
}

static bool fits(enum cudaMemcpyKind kind, const struct sim_operand *dst,
		 const struct sim_operand *src)
{
	bool to = dst->where == SIM_DEVICE, from = src->where == SIM_DEVICE;

	switch (kind) {
	case cudaMemcpyHostToHost:
		return !to && !from;
	case cudaMemcpyHostToDevice:
		return to && !from;
	case cudaMemcpyDeviceToHost:
		return !to && from;
	case cudaMemcpyDeviceToDevice:
		return to && from;
	default:
		return kind == cudaMemcpyDefault;
	}
}

static struct sim_op *new_copy(const struct sim_operand *dst,
			       const struct sim_operand *src)
{
	struct sim_op *op = sim_op_create(SIM_OP_COPY);

	op->operand[0] = *dst;
	op->operand[1] = *src;
	op->noperand = 2;
	set_steps(op, dst->len);
	if (src->where == SIM_PAGEABLE && dst->where == SIM_DEVICE) {
		op->staging = sim_alloc(src->len);
		memcpy(op->staging, src->p, src->len);
		op->operand[1].p = op->staging;
	}
	return op;
}

static cudaError_t copy(void *dst, const void *src, size_t len,
			enum cudaMemcpyKind kind, cudaStream_t stream,
			bool sync)
{
	struct sim_operand to, from;
	struct sim_stream *any, *s;
	cudaError_t err = sim_stream_get(stream, &any);

	if (err || !len)
		return err;
	to = operand(dst, len, any->device, true, true);
	from = operand(src, len, any->device, false, true);
	if (!dst || !src || !exists(&to) || !exists(&from))
		return cudaErrorInvalidValue;
	if (!fits(kind, &to, &from))
		return (unsigned)kind > 4 ? cudaErrorInvalidMemcpyDirection
					  : cudaErrorInvalidValue;
	err = sim_stream_for_work(stream, &s);
	if (err || !s)
		return err;
	sim_enqueue(s, new_copy(&to, &from));
	return sync || to.where == SIM_PAGEABLE ? sim_stream_finish(s)
						: cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
			    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t err = sim_enter("cudaMemcpyAsync", SIM_CONTEXT);

	return sim_leave(err ? err
			     : copy(dst, src, count, kind, stream, false));
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t count,
		       enum cudaMemcpyKind kind)
{
	cudaError_t err = sim_enter("cudaMemcpy", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave(err ? err : copy(dst, src, count, kind, NULL, true));
}

/* Is that memory of the device? */
static bool lies_on(const void *p, unsigned device)
{
	const struct sim_region *r = sim_region_find(p);
	size_t off = r ? (size_t)((const char *)p - r->va) : 0;

	if (!r)
		return false;
	if (r->kind != SIM_VMM)
		return r->device == device;
	for (unsigned i = 0; i < r->nmap; i++)
		if (off - r->map[i].off < r->map[i].len)
			return r->map[i].phys->device == device ||
			       r->map[i].access[device];
	return false;
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int dstDevice, const void *src,
				int srcDevice, size_t count,
				cudaStream_t stream)
{
	cudaError_t err = sim_enter("cudaMemcpyPeerAsync", SIM_CONTEXT);
	unsigned to, from;

	if (!err)
		err = sim_ordinal(dstDevice, &to);
	if (!err)
		err = sim_ordinal(srcDevice, &from);
	if (!err && count && (!lies_on(dst, to) || !lies_on(src, from)))
		err = cudaErrorInvalidValue;
	return sim_leave(err ? err
			     : copy(dst, src, count, cudaMemcpyDeviceToDevice,
				    stream, false));
}

static cudaError_t set(void *p, int value, size_t len, cudaStream_t stream)
{
	struct sim_stream *any, *s;
	struct sim_operand o;
	struct sim_op *op;
	cudaError_t err = sim_stream_get(stream, &any);

	if (err || !len)
		return err;
	o = operand(p, len, any->device, true, false);
	if ((o.where != SIM_DEVICE && o.where != SIM_PINNED) || !exists(&o))
		return cudaErrorInvalidValue;
	err = sim_stream_for_work(stream, &s);
	if (err || !s)
		return err;
	op = sim_op_create(SIM_OP_SET);
	op->operand[0] = o;
	op->noperand = 1;
	op->value = value;
	set_steps(op, len);
	sim_enqueue(s, op);
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *devPtr, int value, size_t count,
			    cudaStream_t stream)
{
	cudaError_t err = sim_enter("cudaMemsetAsync", SIM_CONTEXT);

	return sim_leave(err ? err : set(devPtr, value, count, stream));
}

cudaError_t cudaMemset(void *devPtr, int value, size_t count)
{
	cudaError_t err = sim_enter("cudaMemset", SIM_CONTEXT | SIM_UNSAFE);

	return sim_leave(err ? err : set(devPtr, value, count, NULL));
}

/* ---- kernels ---- */

static struct sim_op *new_kernel(const struct simcuda_kernel *k,
				 unsigned device)
{
	struct sim_op *op = sim_op_create(SIM_OP_KERNEL);

	for (unsigned i = 0; i < k->nranges; i++) {
		const struct simcuda_range *r = &k->range[i];

		op->operand[i] =
			operand(r->ptr, r->len, device, r->write, false);
		/* No kernel can read pageable memory. */
		if (op->operand[i].where == SIM_PAGEABLE)
			op->operand[i].where = SIM_NOWHERE;
	}
	op->noperand = k->nranges;
	op->nsteps = k->steps;
	op->run = k->run;
	op->fini = k->fini;
	op->arg = k->arg;
	return op;
}

static cudaError_t launch(cudaStream_t stream, const struct simcuda_kernel *k)
{
	struct sim_stream *s, *any;
	cudaError_t err = sim_stream_get(stream, &any);

	if (!err && any->device != sim_current())
		err = cudaErrorInvalidResourceHandle;
	if (!err && (!k->steps || k->nranges > SIMCUDA_RANGES || !k->run))
		err = cudaErrorInvalidConfiguration;
	if (!err && sim.no_image[any->device])
		err = cudaErrorNoKernelImageForDevice;
	if (!err)
		err = sim_stream_for_work(stream, &s);
	if (err)
		return err;
	if (s)
		sim_enqueue(s, new_kernel(k, s->device));
	else if (k->fini)
		k->fini(k->arg);
	return cudaSuccess;
}

cudaError_t simcuda_launch(cudaStream_t stream, const struct simcuda_kernel *k)
{
	cudaError_t err = sim_enter("cudaLaunchKernel", SIM_CONTEXT);

	return sim_leave(err ? err : launch(stream, k));
}
