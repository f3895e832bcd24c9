/* SPDX-License-Identifier: MIT */
/*
 * pin.c - host memory that was allocated elsewhere (rings), page-locked.
 *
 * A large range is registered in chunks, and CUDA refuses a copy that begins in
 * one chunk and ends in the next.  So this file keeps a list of the ranges and
 * tells copies where a chunk ends.
 */
#include "mem/cuda/pin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "mem/cuda/call.h"
#include "mem/cuda/device.h"
#include "mem/gpu.h"

/* Drivers have failed on single registrations far larger than this. */
#define CHUNK ((uint64_t)1 << 30)

struct range {
	struct range *next;
	char *base;
	uint64_t bytes, chunk;
	/* Its own thread's: what is page-locked, and by way of which GPU. */
	uint64_t done;
	unsigned device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
/* How many ranges; 0 in a process that only reads streams. */
static _Atomic unsigned count;
static _Atomic uint64_t wanted;

void tsi_gpu_pin_chunk(uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	atomic_store(&wanted, (bytes + page - 1) / page * page);
}

uint64_t tsi_cuda_pin_run(const void *p, uint64_t bytes)
{
	uint64_t at, left;

	/* The caller has synchronised with the thread that called pin. */
	if (!atomic_load_explicit(&count, memory_order_relaxed))
		return bytes;
	pthread_mutex_lock(&lock);
	for (const struct range *r = ranges; r; r = r->next) {
		at = (uint64_t)(uintptr_t)p - (uint64_t)(uintptr_t)r->base;
		if (at >= r->bytes)
			continue;
		left = r->chunk - at % r->chunk;
		if (left > r->bytes - at)
			left = r->bytes - at;
		if (left < bytes)
			bytes = left;
		break;
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}

/* ---- the list ---- */

static void add_range(struct range *r)
{
	pthread_mutex_lock(&lock);
	r->next = ranges;
	ranges = r;
	atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

/* NULL: no range begins there. */
static struct range *take_range(const void *base)
{
	struct range **at = &ranges, *r;

	pthread_mutex_lock(&lock);
	while (*at && (*at)->base != base)
		at = &(*at)->next;
	r = *at;
	if (r) {
		*at = r->next;
		atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- registering; with a device current ---- */

static int pin_err(CUresult r, const struct range *of)
{
	const char *name = tsi_cuda_name(r);

	(void)cudaGetLastError();
	/* The driver says OUT_OF_MEMORY when a limit is reached, too. */
	return tsi_err(r == CUDA_ERROR_OUT_OF_MEMORY   ? TSOCK_ENOMEM
		       : r == CUDA_ERROR_NOT_SUPPORTED ? TSOCK_ENOTSUP
						       : TSOCK_ESYS,
		       "page-locking %.1f MiB of host memory stopped after "
		       "%.1f MiB: cuMemHostRegister: %s; look at ulimit -l",
		       (double)of->bytes / 1048576, (double)of->done / 1048576,
		       name ? name : "an unknown error");
}

static int register_all(struct range *r)
{
	uint64_t n;
	CUresult rc;

	while (r->done < r->bytes) {
		n = r->bytes - r->done;
		if (n > r->chunk)
			n = r->chunk;
		rc = tsi_cuda_register(r->base + r->done, n);
		if (rc != CUDA_SUCCESS)
			return pin_err(rc, r);
		r->done += n;
	}
	return 0;
}

/* From the end: a device that fails has undone nothing, or leaves a part. */
static int unregister_all(struct range *r)
{
	while (r->done) {
		uint64_t at = (r->done - 1) / r->chunk * r->chunk;

		if (tsi_cuda_unregister(r->base + at) != CUDA_SUCCESS)
			return TSOCK_ESYS;
		r->done = at;
	}
	return 0;
}

/* ---- for everybody ---- */

static int check_device(unsigned device)
{
	int able, err = tsi_cuda_attribute(
			  device, cudaDevAttrHostRegisterSupported, &able);

	if (!err && !able)
		err = tsi_err(TSOCK_ENOTSUP,
			      "this system's GPUs can't use host memory that "
			      "is page-locked afterwards");
	return err;
}

int tsi_gpu_pin(unsigned device, void *base, uint64_t bytes)
{
	uint64_t chunk = atomic_load(&wanted);
	struct range *r;
	int err = check_device(device);

	if (err)
		return err;
	r = malloc(sizeof(*r));
	if (!r)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to note what is page-locked");
	*r = (struct range){ .base = base,
			     .bytes = bytes,
			     .chunk = chunk ? chunk : CHUNK,
			     .device = device };
	/* First of all, for copies that others begin meanwhile. */
	add_range(r);
	return TSI_CUDA_ON(device, register_all(r));
}

void tsi_gpu_unpin(void *base)
{
	/* In a forked child nothing is page-locked, and the list isn't ours. */
	struct range *r = base && !tsi_cuda_begin() ? take_range(base) : NULL;
	int err;

	if (!r)
		return;
	err = TSI_CUDA_ON(r->device, unregister_all(r));
	for (unsigned i = 0; i < TSI_GPUS && err; i++)
		if (tsi_cuda_used(i))
			err = TSI_CUDA_ON(i, unregister_all(r));
	free(r);
}
