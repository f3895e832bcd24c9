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
 * How many devices; TSOCK_ENOTSUP with the reason when there can't be any: no
 * CUDA in this build, no driver, a driver too old for the runtime (naming
 * both versions), no device.
 */
int tsi_gpu_count(unsigned *n);
int tsi_gpu_info(unsigned device, struct tsi_gpu_info *out);
/* TSOCK_EARG when this process can't see a device of that UUID. */
int tsi_gpu_find(const uint8_t *uuid, unsigned *device);

/* Can from read memory of to directly?  Enables it (idempotent). */
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
 * Memory that another process can open.  bytes is a multiple of the device's
 * granularity for VMM.  AUTO takes VMM where it can.  TSOCK_ENOMEM names what
 * is needed and what is free.
 */
int tsi_gpu_mem_create(unsigned device, enum tsock_transport transport,
		       uint64_t bytes, struct tsi_gpu_mem *out);

/*
 * Open another process's memory (transport, and fd or handle, from it): VMM is
 * mapped read-only where the driver can, and twice in a row if asked.  The fd
 * stays the caller's.
 */
int tsi_gpu_mem_open(unsigned device, enum tsock_transport transport, int fd,
		     const uint8_t *handle, uint64_t bytes, bool twice,
		     struct tsi_gpu_mem *out);
void tsi_gpu_mem_close(struct tsi_gpu_mem *m);

/*
 * Page-lock host memory; 0, or why it can't be.  That is done in chunks, since
 * drivers have failed on single large ones, and CUDA refuses a copy that lies
 * in two of them: tsi_gpu_upload() and tsi_gpu_download() split theirs.  base
 * is a page's first byte.
 */
int tsi_gpu_pin(void *base, uint64_t bytes);
void tsi_gpu_unpin(void *base, uint64_t bytes);

/* Tests: the size of a chunk from now on, in whole pages; 0: the usual one. */
void tsi_gpu_pin_chunk(uint64_t bytes);

/* Page-locked memory of this process's own, and plain device memory. */
int tsi_gpu_host_alloc(uint64_t bytes, void **out);
void tsi_gpu_host_free(void *p);
int tsi_gpu_alloc(unsigned device, uint64_t bytes, void **out);
void tsi_gpu_free(unsigned device, void *p);

/* ---- streams and events ---- */

/* A cudaStream_t; NULL, 1 and 2 are CUDA's default streams as in DLPack. */
typedef void *tsi_gpu_stream;

struct tsi_gpu_event; /* local, never interprocess; no timing */

int tsi_gpu_stream_create(unsigned device, tsi_gpu_stream *out);
void tsi_gpu_stream_destroy(unsigned device, tsi_gpu_stream s);

int tsi_gpu_event_create(unsigned device, struct tsi_gpu_event **out);
void tsi_gpu_event_destroy(struct tsi_gpu_event *e);
/*
 * TSOCK_ENOTSUP, and nothing recorded, when the stream is being captured;
 * TSOCK_EARG when the driver sees that it is none of the event's device (any
 * more).  No call here hurts a capture, this thread's own or another's.
 */
int tsi_gpu_event_record(struct tsi_gpu_event *e, tsi_gpu_stream s);
/*
 * 0: all before the record is done; EAGAIN; TSOCK_ENOTSUP: a capture began
 * while it was recorded, which has to be done again; or the device's error.
 */
int tsi_gpu_event_query(struct tsi_gpu_event *e);
/* Sleeps (blocking sync); for the producer alone. */
int tsi_gpu_event_wait(struct tsi_gpu_event *e);
int tsi_gpu_stream_wait(tsi_gpu_stream s, struct tsi_gpu_event *e);

/* ---- work, in stream order ---- */

/* Host to device (from page-locked memory it overlaps). */
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
 * Sleeps until all work of this process on the device is done: for work of
 * which nobody has a stream any more.
 */
int tsi_gpu_finish(unsigned device);

#endif
