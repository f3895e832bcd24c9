/* SPDX-License-Identifier: MIT */
/*
 * phys.c - device memory: one memfd per allocation, so that other processes
 * can really map it and it lives as long as anybody does.
 *
 * Behind the data is one page that says what it is and, for legacy IPC, which
 * of the exported allocations have not been freed yet.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "simcuda";

static struct sim_ctrl *map_ctrl(int fd, size_t size)
{
	void *p = mmap(NULL, SIM_CTRL, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		       (off_t)size);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, SIM_CTRL, MADV_DONTFORK);
	return p;
}

static struct sim_phys *add(int fd, size_t size, uint64_t ino,
			    struct sim_ctrl *ctrl)
{
	struct sim_phys *p = sim_alloc(sizeof(*p));

	p->fd = fd;
	p->size = size;
	p->ino = ino;
	p->ctrl = ctrl;
	p->refs = 1;
	p->next = sim.phys;
	sim.phys = p;
	return p;
}

cudaError_t sim_phys_create(unsigned device, size_t size, bool vmm,
			    unsigned exportable, struct sim_phys **out)
{
	struct sim_device *d = &sim.dev[device];
	struct sim_ctrl *ctrl;
	struct stat st;
	int fd;

	if (size > d->total - d->used)
		return cudaErrorMemoryAllocation;
	fd = memfd_create("simcuda", MFD_CLOEXEC);
	if (fd < 0)
		return cudaErrorOperatingSystem;
	if (ftruncate(fd, (off_t)(size + SIM_CTRL)) || fstat(fd, &st)) {
		close(fd);
		return cudaErrorOperatingSystem;
	}
	ctrl = map_ctrl(fd, size);
	if (!ctrl) {
		close(fd);
		return cudaErrorOperatingSystem;
	}
	memcpy(ctrl->magic, magic, sizeof(magic));
	ctrl->size = size;
	memcpy(ctrl->uuid, d->uuid, sizeof(ctrl->uuid));
	ctrl->exportable = exportable;
	ctrl->vmm = vmm;
	d->used += size;
	*out = add(fd, size, st.st_ino, ctrl);
	(*out)->device = device;
	return cudaSuccess;
}

static int device_with(const uint8_t *uuid)
{
	for (unsigned i = 0; i < sim.ndev; i++)
		if (memcmp(sim.dev[i].uuid, uuid, 16) == 0)
			return (int)i;
	return -1;
}

cudaError_t sim_phys_adopt(int fd, struct sim_phys **out)
{
	struct sim_ctrl *ctrl = NULL;
	struct stat st;
	size_t size = 0;
	int device = -1;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size > (off_t)SIM_CTRL &&
	    (size_t)st.st_size % SIM_BLOCK == SIM_CTRL) {
		size = (size_t)st.st_size - SIM_CTRL;
		ctrl = map_ctrl(fd, size);
	}
	if (ctrl && memcmp(ctrl->magic, magic, sizeof(magic)) == 0 &&
	    ctrl->size == size)
		device = device_with(ctrl->uuid);
	if (device < 0) {
		if (ctrl)
			munmap(ctrl, SIM_CTRL);
		close(fd);
		return cudaErrorInvalidValue;
	}
	*out = add(fd, size, st.st_ino, ctrl);
	(*out)->device = (unsigned)device;
	(*out)->imported = true;
	return cudaSuccess;
}

void sim_phys_put(struct sim_phys *p)
{
	struct sim_phys **at = &sim.phys;

	if (--p->refs)
		return;
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	if (!p->imported)
		sim.dev[p->device].used -= p->size;
	munmap(p->ctrl, SIM_CTRL);
	close(p->fd);
	free(p);
}
