/*
 * nccl_none.c - what stands for NCCL in a build without CUDA.
 */
#include "stage/nccl.h"

#include "base/err.h"

static int none(void)
{
	return tsi_err(TSOCK_ENOTSUP, "no NCCL: this build has no CUDA");
}

int tsi_nccl_version(int *version)
{
	(void)version;
	return none();
}

int tsi_nccl_open(const unsigned *devices, unsigned n, struct tsi_nccl **out)
{
	(void)devices;
	(void)n;
	(void)out;
	return none();
}

int tsi_nccl_broadcast(struct tsi_nccl *c, unsigned root, void *const *buf,
		       uint64_t bytes, const tsi_gpu_stream *stream)
{
	(void)c;
	(void)root;
	(void)buf;
	(void)bytes;
	(void)stream;
	return none();
}

int tsi_nccl_healthy(struct tsi_nccl *c)
{
	(void)c;
	return none();
}

void tsi_nccl_close(struct tsi_nccl *c)
{
	(void)c;
}

void tsi_nccl_abort(struct tsi_nccl *c)
{
	(void)c;
}
