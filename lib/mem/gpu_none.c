/*
 * gpu_none.c - what stands for GPUs in a build without CUDA.
 *
 * Every function that can fail says that there is no CUDA; the others do
 * nothing.
 */
#include "mem/gpu.h"

#include "base/err.h"

static int none(void)
{
	return tsi_err(TSOCK_ENOTSUP,
		       "this build has no CUDA: build it again with CUDA=1 "
		       "where the CUDA toolkit is");
}

int tsi_gpu_count(unsigned *n)
{
	(void)n;
	return none();
}

int tsi_gpu_info(unsigned device, struct tsi_gpu_info *out)
{
	(void)device;
	(void)out;
	return none();
}

int tsi_gpu_find(const uint8_t *uuid, unsigned *device)
{
	(void)uuid;
	(void)device;
	return none();
}

bool tsi_gpu_peer(unsigned from, unsigned to)
{
	(void)from;
	(void)to;
	return false;
}

int tsi_gpu_mem_create(unsigned device, enum tsock_transport transport,
		       uint64_t bytes, struct tsi_gpu_mem *out)
{
	(void)device;
	(void)transport;
	(void)bytes;
	(void)out;
	return none();
}

int tsi_gpu_mem_open(unsigned device, enum tsock_transport transport, int fd,
		     const uint8_t *handle, uint64_t bytes, bool twice,
		     struct tsi_gpu_mem *out)
{
	(void)device;
	(void)transport;
	(void)fd;
	(void)handle;
	(void)bytes;
	(void)twice;
	(void)out;
	return none();
}

void tsi_gpu_mem_close(struct tsi_gpu_mem *m)
{
	(void)m;
}

int tsi_gpu_pin(void *base, uint64_t bytes)
{
	(void)base;
	(void)bytes;
	return none();
}

void tsi_gpu_unpin(void *base, uint64_t bytes)
{
	(void)base;
	(void)bytes;
}

void tsi_gpu_pin_chunk(uint64_t bytes)
{
	(void)bytes;
}

int tsi_gpu_host_alloc(uint64_t bytes, void **out)
{
	(void)bytes;
	(void)out;
	return none();
}

void tsi_gpu_host_free(void *p)
{
	(void)p;
}

int tsi_gpu_alloc(unsigned device, uint64_t bytes, void **out)
{
	(void)device;
	(void)bytes;
	(void)out;
	return none();
}

void tsi_gpu_free(unsigned device, void *p)
{
	(void)device;
	(void)p;
}

int tsi_gpu_stream_create(unsigned device, tsi_gpu_stream *out)
{
	(void)device;
	(void)out;
	return none();
}

void tsi_gpu_stream_destroy(unsigned device, tsi_gpu_stream s)
{
	(void)device;
	(void)s;
}

int tsi_gpu_event_create(unsigned device, struct tsi_gpu_event **out)
{
	(void)device;
	(void)out;
	return none();
}

void tsi_gpu_event_destroy(struct tsi_gpu_event *e)
{
	(void)e;
}

int tsi_gpu_event_record(struct tsi_gpu_event *e, tsi_gpu_stream s)
{
	(void)e;
	(void)s;
	return none();
}

int tsi_gpu_event_query(struct tsi_gpu_event *e)
{
	(void)e;
	return none();
}

int tsi_gpu_event_wait(struct tsi_gpu_event *e)
{
	(void)e;
	return none();
}

int tsi_gpu_stream_wait(tsi_gpu_stream s, struct tsi_gpu_event *e)
{
	(void)s;
	(void)e;
	return none();
}

int tsi_gpu_upload(unsigned device, tsi_gpu_stream s, void *dst,
		   const void *src, uint64_t bytes)
{
	(void)device;
	(void)s;
	(void)dst;
	(void)src;
	(void)bytes;
	return none();
}

int tsi_gpu_download(unsigned device, tsi_gpu_stream s, void *dst,
		     const void *src, uint64_t bytes)
{
	(void)device;
	(void)s;
	(void)dst;
	(void)src;
	(void)bytes;
	return none();
}

int tsi_gpu_copy(unsigned device, tsi_gpu_stream s, void *dst, const void *src,
		 uint64_t bytes)
{
	(void)device;
	(void)s;
	(void)dst;
	(void)src;
	(void)bytes;
	return none();
}

int tsi_gpu_copy_peer(tsi_gpu_stream s, unsigned to, void *dst, unsigned from,
		      const void *src, uint64_t bytes)
{
	(void)s;
	(void)to;
	(void)dst;
	(void)from;
	(void)src;
	(void)bytes;
	return none();
}

int tsi_gpu_healthy(unsigned device)
{
	(void)device;
	return none();
}

int tsi_gpu_finish(unsigned device)
{
	(void)device;
	return none();
}
