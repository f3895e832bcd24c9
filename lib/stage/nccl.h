/*
 * nccl.h - one buffer to several GPUs of this process at once, by NCCL.
 *
 * NCCL is loaded when first asked for: libnccl.so.2, or what the environment
 * variable TSOCK_NCCL names.  All ranks are this process's own: a rank that
 * dies in a collective hangs all others for ever, so none may be a trainer.
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
 * NCCL, a device twice, a MIG instance.  The devices are busy meanwhile.
 */
int tsi_nccl_open(const unsigned *devices, unsigned n, struct tsi_nccl **out);

/*
 * Queue a copy of bytes at buf[root] to every other buf[i], in place, each on
 * its own device's stream[i].  All of them or, after an error, none that can
 * be relied on: close the communicator then.
 */
int tsi_nccl_broadcast(struct tsi_nccl *c, unsigned root, void *const *buf,
		       uint64_t bytes, const tsi_gpu_stream *stream);

/* An error that came up while queued work ran; 0 if there is none. */
int tsi_nccl_healthy(struct tsi_nccl *c);

/* Everything queued must be done.  NULL is allowed. */
void tsi_nccl_close(struct tsi_nccl *c);

/* The same where the work hangs or failed: gives it up. */
void tsi_nccl_abort(struct tsi_nccl *c);

#endif
