/* SPDX-License-Identifier: MIT */
/*
 * backend_none.c - what stands for batches on a GPU in a build without CUDA.
 *
 * tsi_negotiate_options() has refused a device before.
 */
#include "consumer/gpu/backend.h"

#include "base/err.h"

int tsi_gpu_backend_create(const struct tsi_gpu_backend_parts *parts,
			   const struct tsi_geometry *ring, uint64_t batch,
			   const int *fd, struct tsi_backend **out)
{
	(void)parts;
	(void)batch;
	(void)out;
	tsi_mapping_close_fds(ring, fd);
	return tsi_err(TSOCK_ENOTSUP, "this build has no CUDA");
}
