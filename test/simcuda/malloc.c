/* SPDX-License-Identifier: MIT */
/*
 * malloc.c - cudaMalloc: blocks of 2 MiB in which small allocations lie side
 * by side, a block of its own for a large one.
 *
 * Fresh memory holds garbage, as the real one's may.
 */
#include "sim.h"

#include <string.h>

#define ALIGN 512
#define SMALL (SIM_BLOCK / 2)
#define GARBAGE_MAX ((size_t)16 << 20)

static struct sim_region *new_block(unsigned device, size_t size,
				    cudaError_t *err)
{
	size_t whole = (size + SIM_BLOCK - 1) / SIM_BLOCK * SIM_BLOCK;
	struct sim_region *r;
	struct sim_phys *p;

	*err = sim_phys_create(device, whole, false, 0, &p);
	if (*err)
		return NULL;
	r = sim_region_create(SIM_MALLOC, whole, SIM_BLOCK);
	*err = r ? sim_region_map(r, 0, p) : cudaErrorMemoryAllocation;
	sim_phys_put(p);
	if (*err) {
		if (r)
			sim_region_destroy(r);
		return NULL;
	}
	r->device = device;
	r->whole = size > SMALL;
	return r;
}

/* Room for size bytes between the parts of a block; its size if none. */
static size_t gap(const struct sim_region *r, size_t size)
{
	size_t off = 0;

	for (unsigned i = 0; i < r->npart; i++) {
		if (r->part[i].off - off >= size)
			return off;
		off = r->part[i].off + r->part[i].len + ALIGN - 1;
		off -= off % ALIGN;
	}
	return off <= r->size && r->size - off >= size ? off : r->size;
}

static cudaError_t allocate(unsigned device, size_t size, void **out)
{
	struct sim_region *r = NULL;
	cudaError_t err;
	size_t off = 0;

	for (unsigned i = 0; size <= SMALL && i < sim.nregion && !r; i++) {
		struct sim_region *b = sim.region[i];

		if (b->kind != SIM_MALLOC || b->device != device || b->whole)
			continue;
		off = gap(b, size);
		if (off < b->size)
			r = b;
	}
	if (!r) {
		off = 0;
		if (size > sim.dev[device].total)
			return cudaErrorMemoryAllocation;
		r = new_block(device, size, &err);
		if (!r)
			return err;
	}
	sim_part_add(r, off, size);
	if (size <= GARBAGE_MAX)
		memset(r->shadow + off, 0xa5, size);
	*out = r->va + off;
	return cudaSuccess;
}

cudaError_t cudaMalloc(void **devPtr, size_t size)
{
	cudaError_t err = sim_enter("cudaMalloc", SIM_CONTEXT | SIM_UNSAFE);

	if (!err && !devPtr)
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave(err);
	*devPtr = NULL;
	if (size)
		err = allocate(sim_current(), size, devPtr);
	return sim_leave(err);
}

/* The allocation that starts at p. */
static struct sim_part *allocation(const void *p, struct sim_region **region)
{
	struct sim_region *r = sim_region_find(p);
	size_t off = r ? (size_t)((const char *)p - r->va) : 0;
	struct sim_part *part;

	if (!r || r->kind != SIM_MALLOC)
		return NULL;
	part = sim_part_at(r, off);
	*region = r;
	return part && part->off == off ? part : NULL;
}

/* Waits for the device, as the real one does. */
cudaError_t cudaFree(void *devPtr)
{
	cudaError_t err = sim_enter("cudaFree", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_region *r;
	struct sim_part *part;

	if (err || !devPtr)
		return sim_leave(err);
	if (!allocation(devPtr, &r))
		return sim_leave(cudaErrorInvalidValue);
	err = sim_device_finish(r->device);
	sim_quiesce();
	part = allocation(devPtr, &r);
	if (err || !part)
		return sim_leave(err ? err : cudaErrorInvalidValue);
	if (part->slot >= 0)
		atomic_store(&r->map->phys->ctrl->live[part->slot], 0);
	if (part->len <= GARBAGE_MAX)
		memset(r->shadow + part->off, 0xdd, part->len);
	sim_part_remove(r, part);
	if (!r->npart)
		sim_region_destroy(r);
	return sim_leave(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free, size_t *total)
{
	cudaError_t err = sim_enter("cudaMemGetInfo", SIM_CONTEXT);
	const struct sim_device *d;

	if (!err && (!free || !total))
		err = cudaErrorInvalidValue;
	if (err)
		return sim_leave(err);
	d = &sim.dev[sim_current()];
	*free = d->total - d->used;
	*total = d->total;
	return sim_leave(cudaSuccess);
}
