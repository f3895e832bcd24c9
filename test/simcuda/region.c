/* SPDX-License-Identifier: MIT */
/*
 * region.c - device addresses: ranges that the host can't touch, each with a
 * shadow through which the simulation reaches the same bytes.
 *
 * Whether a device may is asked here, each time that work touches memory.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char *reserve(size_t size, size_t align)
{
	char *p = mmap(NULL, size + align, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *at;

	if (p == MAP_FAILED)
		return NULL;
	at = (char *)(((uintptr_t)p + align - 1) / align * align);
	if (at > p)
		munmap(p, (size_t)(at - p));
	munmap(at + size, (size_t)(p + align - at));
	madvise(at, size, MADV_DONTFORK);
	return at;
}

/* The first region that ends behind p. */
static unsigned position(const char *p)
{
	unsigned lo = 0, hi = sim.nregion;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (sim.region[mid]->va + sim.region[mid]->size <= p)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

struct sim_region *sim_region_find(const void *p)
{
	unsigned i = position(p);

	if (i == sim.nregion || sim.region[i]->va > (const char *)p)
		return NULL;
	return sim.region[i];
}

struct sim_region *sim_region_create(enum sim_kind kind, size_t size,
				     size_t align)
{
	struct sim_region *r = sim_alloc(sizeof(*r));
	unsigned i;

	r->kind = kind;
	r->size = size;
	r->va = reserve(size, align);
	r->shadow = r->va ? reserve(size, SIM_BLOCK) : NULL;
	if (!r->shadow) {
		if (r->va)
			munmap(r->va, size);
		free(r);
		return NULL;
	}
	i = position(r->va);
	sim.region =
		sim_grow(sim.region, (sim.nregion + 1) * sizeof(*sim.region));
	memmove(sim.region + i + 1, sim.region + i,
		(sim.nregion++ - i) * sizeof(*sim.region));
	sim.region[i] = r;
	return r;
}

void sim_region_destroy(struct sim_region *r)
{
	unsigned i;

	sim_quiesce();
	i = position(r->va);
	while (r->nmap)
		sim_region_unmap(r, r->nmap - 1);
	munmap(r->va, r->size);
	munmap(r->shadow, r->size);
	memmove(sim.region + i, sim.region + i + 1,
		(--sim.nregion - i) * sizeof(*sim.region));
	free(r->map);
	free(r->part);
	free(r);
}

cudaError_t sim_region_map(struct sim_region *r, size_t off, struct sim_phys *p)
{
	unsigned i = 0;

	while (i < r->nmap && r->map[i].off < off)
		i++;
	if ((i && r->map[i - 1].off + r->map[i - 1].len > off) ||
	    (i < r->nmap && off + p->size > r->map[i].off))
		return cudaErrorInvalidValue;
	if (mmap(r->shadow + off, p->size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, p->fd, 0) == MAP_FAILED)
		return cudaErrorMapBufferObjectFailed;
	madvise(r->shadow + off, p->size, MADV_DONTFORK);
	r->map = sim_grow(r->map, (r->nmap + 1) * sizeof(*r->map));
	memmove(r->map + i + 1, r->map + i, (r->nmap++ - i) * sizeof(*r->map));
	memset(&r->map[i], 0, sizeof(r->map[i]));
	r->map[i].off = off;
	r->map[i].len = p->size;
	r->map[i].phys = p;
	p->refs++;
	return cudaSuccess;
}

void sim_region_unmap(struct sim_region *r, unsigned i)
{
	struct sim_map m;

	sim_quiesce();
	m = r->map[i];
	mmap(r->shadow + m.off, m.len, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	madvise(r->shadow + m.off, m.len, MADV_DONTFORK);
	memmove(r->map + i, r->map + i + 1, (--r->nmap - i) * sizeof(*r->map));
	sim_phys_put(m.phys);
}

struct sim_part *sim_part_at(struct sim_region *r, size_t off)
{
	for (unsigned i = 0; i < r->npart; i++)
		if (r->part[i].off <= off &&
		    off < r->part[i].off + r->part[i].len)
			return &r->part[i];
	return NULL;
}

struct sim_part *sim_part_add(struct sim_region *r, size_t off, size_t len)
{
	unsigned i = 0;

	while (i < r->npart && r->part[i].off < off)
		i++;
	r->part = sim_grow(r->part, (r->npart + 1) * sizeof(*r->part));
	memmove(r->part + i + 1, r->part + i,
		(r->npart++ - i) * sizeof(*r->part));
	r->part[i] = (struct sim_part){ off, len, -1, 1 };
	return &r->part[i];
}

void sim_part_remove(struct sim_region *r, struct sim_part *part)
{
	size_t i = (size_t)(part - r->part);

	memmove(part, part + 1, (--r->npart - i) * sizeof(*part));
}

/* The memory was given back by its owner while we had it open. */
static void check_freed(const struct sim_region *r, const struct sim_part *part)
{
	if (part->slot >= 0 &&
	    !atomic_load(&r->map->phys->ctrl->live[part->slot]))
		sim_die("USE AFTER FREE: memory of another process, opened by "
			"cudaIpcOpenMemHandle, was freed there and is used "
			"here (%zu bytes at %p)",
			part->len, (void *)(r->va + part->off));
}

static cudaError_t reach_part(struct sim_region *r, const struct sim_operand *o)
{
	size_t off = (size_t)(o->p - r->va);
	struct sim_part *part = sim_part_at(r, off);
	unsigned d = o->device;

	if (!part || o->len > part->off + part->len - off)
		return cudaErrorInvalidValue;
	if (r->kind == SIM_IPC)
		check_freed(r, part);
	if (d == r->device || o->staged ||
	    (r->kind == SIM_IPC && r->openers >> d & 1) ||
	    sim.dev[d].reaches >> r->device & 1)
		return cudaSuccess;
	return cudaErrorIllegalAddress;
}

static bool grants(const struct sim_map *m, const struct sim_operand *o)
{
	unsigned want = o->write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
				 : CU_MEM_ACCESS_FLAGS_PROT_READ;

	return (m->access[o->device] & want) == want ||
	       (o->staged && !o->nccl &&
		(m->access[m->phys->device] & want) == want);
}

static cudaError_t reach_maps(const struct sim_region *r,
			      const struct sim_operand *o)
{
	size_t off = (size_t)(o->p - r->va), end = off + o->len;
	cudaError_t err = cudaSuccess;

	if (o->len > r->size - off)
		return cudaErrorInvalidValue;
	for (unsigned i = 0; i < r->nmap && off < end; i++) {
		const struct sim_map *m = &r->map[i];

		if (m->off + m->len <= off)
			continue;
		if (m->off > off)
			break;
		if (!grants(m, o))
			err = cudaErrorIllegalAddress;
		off = m->off + m->len;
	}
	return off < end ? cudaErrorInvalidValue : err;
}

cudaError_t sim_reach(const struct sim_operand *o, char **out)
{
	struct sim_region *r;
	cudaError_t err;

	if (o->where == SIM_PAGEABLE) {
		*out = (char *)(uintptr_t)o->p;
		return cudaSuccess;
	}
	if (o->where == SIM_PINNED) {
		if (sim_where(o->p, o->len) != SIM_PINNED)
			sim_die("USE AFTER FREE: work that was still queued "
				"uses host memory that isn't page-locked any "
				"more (%zu bytes at %p)",
				o->len, (const void *)o->p);
		*out = (char *)(uintptr_t)o->p;
		return cudaSuccess;
	}
	r = sim_region_find(o->p);
	if (!r)
		return cudaErrorInvalidValue;
	err = r->kind == SIM_VMM ? reach_maps(r, o) : reach_part(r, o);
	if (!err)
		*out = r->shadow + (o->p - r->va);
	return err;
}

int sim_owner(const void *p)
{
	const struct sim_region *r = sim_region_find(p);
	size_t off = r ? (size_t)((const char *)p - r->va) : 0;

	if (!r)
		return -1;
	if (r->kind != SIM_VMM)
		return (int)r->device;
	for (unsigned i = 0; i < r->nmap; i++)
		if (off - r->map[i].off < r->map[i].len)
			return (int)r->map[i].phys->device;
	return -1;
}
