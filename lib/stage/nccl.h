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

#include <stdbool.h>
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
 * What the next broadcast copies: rank i has these bytes at at[i].  A buffer
 * may be empty.
 */
int tsi_nccl_add(struct tsi_nccl *c, void *const *at, uint64_t bytes);

/*
 * Queue copies of all that was added from rank root to every other rank i, on
 * its own device's stream[i].  ESYS after limit_ns.  After an error no copy can
 * be relied on, and the communicator has to be aborted.
 */
int tsi_nccl_broadcast(struct tsi_nccl *c, unsigned root,
		       const tsi_gpu_stream *stream, int64_t limit_ns);

/* An error of work that was queued; 0 if there is none. */
int tsi_nccl_healthy(struct tsi_nccl *c);

/*
 * Free a communicator: all queued work is done.  ESYS after limit_ns: the
 * thread in which that is done is left behind.  NULL is allowed.
 */
int tsi_nccl_close(struct tsi_nccl *c, int64_t limit_ns);

/*
 * Free one whose work hangs or has failed, likewise.  *queues: a broadcast has
 * not returned even so, and may queue its copies at any time.
 */
int tsi_nccl_abort(struct tsi_nccl *c, int64_t limit_ns, bool *queues);

#endif
