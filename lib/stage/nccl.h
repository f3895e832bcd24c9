/* SPDX-License-Identifier: MIT */
/*
 * nccl.h - one buffer to several GPUs of this process at once, by NCCL.
 *
 * NCCL is loaded when first asked for: libnccl.so.2, or what the environment
 * variable TSOCK_NCCL names.  All ranks are in this process: a rank that dies
 * in a collective hangs all others for ever, so no consumer may be a rank.
 */
#ifndef TSI_STAGE_NCCL_H
#define TSI_STAGE_NCCL_H

#include <stdint.h>

#include "mem/gpu.h"

struct tsi_nccl; /* a communicator over some devices; one thread at a time */

/* NCCL's version as one number (22809 is 2.28.9); ENOTSUP with the reason. */
int tsi_nccl_version(int *version);

/*
 * A communicator over n devices, each once.  ENOTSUP with the reason: no
 * NCCL, a device twice, a MIG instance.  The devices are busy meanwhile.  ESYS
 * after limit_ns: the thread in which that is done is left behind.
 */
int tsi_nccl_open(const unsigned *devices, unsigned n, int64_t limit_ns,
		  struct tsi_nccl **out);

/*
 * Queue a copy of bytes from buf[root] to every other buf[i], each on its own
 * device's stream[i].  After an error no copy can be relied on, and the
 * communicator has to be closed.
 */
int tsi_nccl_broadcast(struct tsi_nccl *c, unsigned root, void *const *buf,
		       uint64_t bytes, const tsi_gpu_stream *stream);

/* An error of work that was queued; 0 if there is none. */
int tsi_nccl_healthy(struct tsi_nccl *c);

/* All queued work must be done.  NULL is allowed. */
void tsi_nccl_close(struct tsi_nccl *c);

/* Close a communicator whose work hangs or has failed.  NULL is allowed. */
void tsi_nccl_abort(struct tsi_nccl *c);

#endif
