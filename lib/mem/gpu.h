/* SPDX-License-Identifier: MIT */
/*
 * gpu.h - memory, streams and events of GPUs.
 *
 * The files of mem/cuda are the ones that name CUDA for these, and gpu_none.c
 * stands for them in a build without CUDA.  Everything is checked: a CUDA error
 * becomes one of ours, with CUDA's name and text in the message, and CUDA's
 * last error is cleared, so that it never surfaces in the application's own
 * calls.  Every function makes the device that it needs current and puts back
 * the one that was current before.
 *
 * Devices are numbered as CUDA numbers them in this process; what crosses to
 * another process is the UUID.
 */
#ifndef TSI_MEM_GPU_H
#define TSI_MEM_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tsock/tsock.h"
#include "view/spec.h"

/* ---- devices ---- */

struct tsi_gpu_info {
	uint8_t uuid[TSI_UUID];
	char name[64];
	uint64_t total_bytes, free_bytes;
	uint64_t granularity; /* of VMM mappings; 0: no VMM */
	bool vmm_fd;          /* VMM memory can be exported as a descriptor */
	bool legacy_ipc;
	bool mig;
};

/*
 * The number of devices, 1 or more.  TSOCK_ENOTSUP says why there is none: no
 * CUDA in this build, no driver, a driver too old for the runtime (with both
 * versions), or no device.
 */
int tsi_gpu_count(unsigned *n);
int tsi_gpu_info(unsigned device, struct tsi_gpu_info *out);
/* TSOCK_EARG when this process can't see a device of that UUID. */
int tsi_gpu_find(const uint8_t *uuid, unsigned *device);

/*
 * Can GPU from read the memory of GPU to directly, once it was granted that?
 */
bool tsi_gpu_peer(unsigned from, unsigned to);

/* ---- memory ---- */

#define TSI_GPU_HANDLE 64 /* bytes of a handle of legacy CUDA IPC */

struct tsi_gpu_mem {
	unsigned device;
	enum tsock_transport transport; /* VMM or LEGACY */
	void *base;                     /* device address */
	uint64_t bytes;                 /* of the allocation */
	bool twice;                     /* mapped twice in a row */
	bool ours;                      /* created, not opened */
	int fd;                         /* VMM: to be handed over; else -1 */
	uint8_t handle[TSI_GPU_HANDLE]; /* LEGACY */
};

/*
 * Make memory that another process can open.  For VMM bytes is a multiple of
 * the device's granularity.  AUTO tries VMM, then LEGACY.
 * TSOCK_ENOMEM says how much is needed and how much is free.
 */
int tsi_gpu_mem_create(unsigned device, enum tsock_transport transport,
		       uint64_t bytes, struct tsi_gpu_mem *out);

/*
 * Open another process's memory; that process says by which transport, and sent
 * fd (VMM) or handle (LEGACY).  VMM is mapped read-only where the driver can,
 * and twice in a row if asked.  fd stays the caller's.
 */
int tsi_gpu_mem_open(unsigned device, enum tsock_transport transport, int fd,
		     const uint8_t *handle, uint64_t bytes, bool twice,
		     struct tsi_gpu_mem *out);
void tsi_gpu_mem_close(struct tsi_gpu_mem *m);

/*
 * Let another GPU read and write memory that was created here; by a legacy
 * handle, all such memory of its owner.  Without that copies between the two go
 * by the host, and no kernel can do anything.  An error names both.
 */
int tsi_gpu_mem_grant(const struct tsi_gpu_mem *m, unsigned device);

/* The device address; by what transport another process opens it ... */
static inline void *tsi_gpu_mem_base(const struct tsi_gpu_mem *m)
{
	return m->base;
}

static inline enum tsock_transport
tsi_gpu_mem_transport(const struct tsi_gpu_mem *m)
{
	return m->transport;
}

/* ... and the descriptor (VMM; else -1) or handle (LEGACY) for that. */
static inline int tsi_gpu_mem_fd(const struct tsi_gpu_mem *m)
{
	return m->fd;
}

static inline const uint8_t *tsi_gpu_mem_handle(const struct tsi_gpu_mem *m)
{
	return m->handle;
}

/*
 * Page-lock host memory from base, a page's first byte, on, for every GPU, but
 * by way of that one, which alone has to answer.  That is done in chunks, since
 * drivers have failed on large ranges.  CUDA refuses a copy that lies in two
 * chunks: tsi_gpu_upload() and tsi_gpu_download() split theirs, also while this
 * is under way.  After an error a part of it may be page-locked.
 */
int tsi_gpu_pin(unsigned device, void *base, uint64_t bytes);
/*
 * Undo that, also after an error; by way of the same GPU, or if that is lost of
 * another one that is in use.
 */
void tsi_gpu_unpin(void *base);

/*
 * For tests: the size of later chunks, rounded up to pages; 0: the usual one.
 */
void tsi_gpu_pin_chunk(uint64_t bytes);

/*
 * Page-locked memory of this process's own, made by way of that GPU for all of
 * them; and plain device memory.
 */
int tsi_gpu_host_alloc(unsigned device, uint64_t bytes, void **out);
void tsi_gpu_host_free(unsigned device, void *p);
int tsi_gpu_alloc(unsigned device, uint64_t bytes, void **out);
void tsi_gpu_free(unsigned device, void *p);

/* ---- streams and events ---- */

/* A cudaStream_t; NULL, 1 and 2 are CUDA's default streams as in DLPack. */
typedef void *tsi_gpu_stream;

struct tsi_gpu_event; /* local, never interprocess; no timing */

int tsi_gpu_stream_create(unsigned device, tsi_gpu_stream *out);
void tsi_gpu_stream_destroy(unsigned device, tsi_gpu_stream s);

/*
 * An event that tsi_gpu_event_wait() sleeps for (waited) or that is only looked
 * at, for which the driver needs no interrupt.
 */
int tsi_gpu_event_create(unsigned device, bool waited,
			 struct tsi_gpu_event **out);
void tsi_gpu_event_destroy(struct tsi_gpu_event *e);
/*
 * TSOCK_ENOTSUP when the stream is being captured: nothing is recorded, or if
 * the capture began just now, what must not be waited for: record it again.
 * TSOCK_EARG when the driver sees that s is no stream of the event's device, or
 * was destroyed.  No call here disturbs a capture of this or another thread.
 */
int tsi_gpu_event_record(struct tsi_gpu_event *e, tsi_gpu_stream s);
/*
 * 0: all work before the record is done.  TSOCK_EAGAIN: not yet.
 * TSOCK_ENOTSUP: a capture was there while the event was recorded, and may be
 * there still, which isn't disturbed by this; record it again.
 * Else the device's error.
 */
int tsi_gpu_event_query(struct tsi_gpu_event *e);
/* Sleeps; EARG for an event that wasn't made for that. */
int tsi_gpu_event_wait(struct tsi_gpu_event *e);

/* ---- work, in stream order ---- */

/*
 * Host to device; overlaps with other work if the host memory is page-locked.
 */
int tsi_gpu_upload(unsigned device, tsi_gpu_stream s, void *dst,
		   const void *src, uint64_t bytes);
int tsi_gpu_download(unsigned device, tsi_gpu_stream s, void *dst,
		     const void *src, uint64_t bytes);
int tsi_gpu_copy(unsigned device, tsi_gpu_stream s, void *dst, const void *src,
		 uint64_t bytes);
/* Between devices; s is a stream of the destination. */
int tsi_gpu_copy_peer(tsi_gpu_stream s, unsigned to, void *dst, unsigned from,
		      const void *src, uint64_t bytes);

/* The device's pending or sticky error, 0 if there is none. */
int tsi_gpu_healthy(unsigned device);

/*
 * Sleep until all work of this process on the device is done: for work whose
 * stream was destroyed.
 */
int tsi_gpu_finish(unsigned device);

#endif
