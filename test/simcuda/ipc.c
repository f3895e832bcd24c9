/* SPDX-License-Identifier: MIT */
/*
 * ipc.c - legacy IPC: a handle of 64 bytes names the exporting process, its
 * descriptor of the block and the place in it; whoever opens it gets the
 * descriptor from /proc.
 *
 * What is enforced: the base of an allocation of cudaMalloc's only, another
 * process only, the whole block is shared, a second open counts.
 */
#include "sim.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct handle {
	char magic[4];
	uint32_t pid, fd, slot;
	uint64_t ino, off, len, block;
	uint8_t uuid[16];
};

_Static_assert(sizeof(struct handle) == sizeof(cudaIpcMemHandle_t),
	       "a handle has 64 bytes");

static cudaError_t export_part(const void *p, struct handle *h)
{
	struct sim_region *r = sim_region_find(p);
	size_t off = r ? (size_t)((const char *)p - r->va) : 0;
	struct sim_part *part =
		r && r->kind == SIM_MALLOC ? sim_part_at(r, off) : NULL;
	struct sim_phys *phys;

	if (!part || part->off != off)
		return cudaErrorInvalidValue;
	phys = r->map->phys;
	if (part->slot < 0) {
		if (phys->slots == SIM_SLOTS)
			return cudaErrorMemoryAllocation;
		part->slot = (int)phys->slots++;
		atomic_store(&phys->ctrl->live[part->slot], 1);
	}
	memcpy(h->magic, "SIMI", 4);
	h->pid = (uint32_t)getpid();
	h->fd = (uint32_t)phys->fd;
	h->slot = (uint32_t)part->slot;
	h->ino = phys->ino;
	h->off = off;
	h->len = part->len;
	h->block = phys->size;
	memcpy(h->uuid, sim.dev[r->device].uuid, 16);
	return cudaSuccess;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *devPtr)
{
	cudaError_t err = sim_enter("cudaIpcGetMemHandle", SIM_CONTEXT);
	struct handle h;

	if (!err && (!handle || !devPtr))
		err = cudaErrorInvalidValue;
	if (!err)
		err = export_part(devPtr, &h);
	if (!err)
		memcpy(handle, &h, sizeof(h));
	return sim_leave(err);
}

static bool sane(const struct handle *h)
{
	return memcmp(h->magic, "SIMI", 4) == 0 && h->block <= SIZE_MAX &&
	       h->off < h->block && h->len <= h->block - h->off &&
	       h->slot < SIM_SLOTS;
}

static struct sim_region *opened_before(const struct handle *h)
{
	for (unsigned i = 0; i < sim.nregion; i++) {
		struct sim_region *r = sim.region[i];

		if (r->kind == SIM_IPC && r->map->phys->ino == h->ino)
			return r;
	}
	return NULL;
}

static cudaError_t fetch(const struct handle *h, struct sim_phys **out)
{
	char path[64];
	cudaError_t err;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", h->pid, h->fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return cudaErrorMapBufferObjectFailed;
	err = sim_phys_adopt(fd, out);
	if (err)
		return cudaErrorMapBufferObjectFailed;
	if ((*out)->ino == h->ino && (*out)->size == h->block &&
	    !(*out)->ctrl->vmm && memcmp((*out)->ctrl->uuid, h->uuid, 16) == 0)
		return cudaSuccess;
	sim_phys_put(*out);
	return cudaErrorMapBufferObjectFailed;
}

static cudaError_t open_block(const struct handle *h, struct sim_region **out)
{
	struct sim_region *r = opened_before(h);
	struct sim_phys *p;
	cudaError_t err;

	*out = r;
	if (r)
		return cudaSuccess;
	err = fetch(h, &p);
	if (err)
		return err;
	r = sim_region_create(SIM_IPC, p->size, SIM_BLOCK);
	err = r ? sim_region_map(r, 0, p) : cudaErrorMapBufferObjectFailed;
	if (!err)
		r->device = p->device;
	sim_phys_put(p);
	if (err && r)
		sim_region_destroy(r);
	*out = r;
	return err;
}

static cudaError_t open_handle(const struct handle *h, void **out)
{
	unsigned here = sim_current();
	struct sim_region *r;
	struct sim_part *part;
	cudaError_t err;

	if (!sane(h))
		return cudaErrorInvalidValue;
	if (h->pid == (uint32_t)getpid())
		return cudaErrorDeviceUninitialized;
	err = open_block(h, &r);
	if (err)
		return err;
	part = sim_part_at(r, h->off);
	if ((r->device != here && !sim.p2p[here][r->device]) ||
	    !atomic_load(&r->map->phys->ctrl->live[h->slot]) ||
	    (part && (part->off != h->off || part->len != h->len))) {
		if (!r->npart)
			sim_region_destroy(r);
		return cudaErrorMapBufferObjectFailed;
	}
	r->openers |= 1u << here;
	if (part)
		part->count++;
	else
		sim_part_add(r, h->off, h->len)->slot = (int)h->slot;
	*out = r->va + h->off;
	return cudaSuccess;
}

cudaError_t cudaIpcOpenMemHandle(void **devPtr, cudaIpcMemHandle_t handle,
				 unsigned int flags)
{
	cudaError_t err =
		sim_enter("cudaIpcOpenMemHandle", SIM_CONTEXT | SIM_UNSAFE);
	struct handle h;

	if (!err && (!devPtr || flags != cudaIpcMemLazyEnablePeerAccess))
		err = cudaErrorInvalidValue;
	memcpy(&h, &handle, sizeof(h));
	return sim_leave(err ? err : open_handle(&h, devPtr));
}

cudaError_t cudaIpcCloseMemHandle(void *devPtr)
{
	cudaError_t err =
		sim_enter("cudaIpcCloseMemHandle", SIM_CONTEXT | SIM_UNSAFE);
	struct sim_region *r;
	struct sim_part *part;
	size_t off;

	if (err)
		return sim_leave(err);
	sim_quiesce();
	r = sim_region_find(devPtr);
	if (!r || r->kind != SIM_IPC)
		return sim_leave(cudaErrorInvalidValue);
	off = (size_t)((char *)devPtr - r->va);
	part = sim_part_at(r, off);
	if (!part || part->off != off)
		return sim_leave(cudaErrorInvalidValue);
	if (--part->count == 0)
		sim_part_remove(r, part);
	if (!r->npart)
		sim_region_destroy(r);
	return sim_leave(cudaSuccess);
}
