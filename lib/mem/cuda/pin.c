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
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *ranges;
/* Of ranges; 0 in a process that only reads streams. */
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

/* ---- registering ---- */

static int pin_err(CUresult r, uint64_t done, uint64_t bytes)
{
	const char *name = tsi_cuda_name(r);

	(void)cudaGetLastError();
	/* The driver says OUT_OF_MEMORY when a limit is reached, too. */
	return tsi_err(r == CUDA_ERROR_OUT_OF_MEMORY   ? TSOCK_ENOMEM
		       : r == CUDA_ERROR_NOT_SUPPORTED ? TSOCK_ENOTSUP
						       : TSOCK_ESYS,
		       "page-locking %.1f MiB of host memory stopped after "
		       "%.1f MiB: cuMemHostRegister: %s; look at ulimit -l",
		       (double)bytes / 1048576, (double)done / 1048576,
		       name ? name : "an unknown error");
}

/* With a device current, as for what follows. */
static void unregister(const struct range *r)
{
	for (uint64_t at = 0; at < r->bytes; at += r->chunk)
		tsi_cuda_unregister(r->base + at);
}

static int register_all(const struct range *r)
{
	uint64_t at = 0, n;
	CUresult rc;

	while (at < r->bytes) {
		n = r->bytes - at < r->chunk ? r->bytes - at : r->chunk;
		rc = tsi_cuda_register(r->base + at, n);
		if (rc != CUDA_SUCCESS) {
			struct range part = *r;

			part.bytes = at;
			unregister(&part);
			return pin_err(rc, at, r->bytes);
		}
		at += n;
	}
	return 0;
}

static void add(struct range *r)
{
	pthread_mutex_lock(&lock);
	r->next = ranges;
	ranges = r;
	atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

/* NULL: no range begins there. */
static struct range *take(const void *base)
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

static int register_on_device(struct range *r)
{
	int able, err = tsi_cuda_attribute(tsi_cuda_used(),
					   cudaDevAttrHostRegisterSupported,
					   &able);

	if (!err && !able)
		return tsi_err(TSOCK_ENOTSUP,
			       "this system's GPUs can't use host memory that "
			       "is page-locked afterwards");
	return err ? err : TSI_CUDA_ON(tsi_cuda_used(), register_all(r));
}

int tsi_gpu_pin(void *base, uint64_t bytes)
{
	uint64_t chunk = atomic_load(&wanted);
	struct range *r = malloc(sizeof(*r));
	int err;

	if (!r)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory to note what is page-locked");
	*r = (struct range){ NULL, base, bytes, chunk ? chunk : CHUNK };
	err = register_on_device(r);
	if (err)
		free(r);
	else
		add(r);
	return err;
}

static int forget(const void *base)
{
	struct range *r = take(base);

	if (r)
		unregister(r);
	free(r);
	return 0;
}

void tsi_gpu_unpin(void *base)
{
	/* In a forked child this fails, and nothing is locked. */
	if (base)
		(void)TSI_CUDA_ON(tsi_cuda_used(), forget(base));
}
