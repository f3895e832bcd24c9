/* SPDX-License-Identifier: MIT */
/*
 * gpu_table.h - the GPUs that consumers asked for, and what is known of each.
 *
 * The table's lock, the server's, is held when these functions are called.
 * None of them waits for a GPU.
 */
#ifndef TSI_SERVE_GPU_TABLE_H
#define TSI_SERVE_GPU_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "mem/gpu.h"
#include "serve/sync.h"
#include "view/spec.h"

#define TSI_GPU_ENTRIES 32

enum tsi_gpu_phase {
	TSI_GPU_NONE,
	TSI_GPU_LOOKING, /* a thread asks it */
	TSI_GPU_KNOWN,
	TSI_GPU_UNUSABLE, /* error says why */
};

struct tsi_gpu_entry {
	enum tsi_gpu_phase phase;
	uint8_t uuid[TSI_UUID];
	unsigned device;
	struct tsi_gpu_info info; /* free_bytes: when it was asked */
	int64_t since_ms;
	char error[256];
	bool said;            /* by which transport it is shared */
	char refused[3][200]; /* by transport: why that one was tried in vain */
};

struct tsi_gpu_table {
	struct tsi_sync *sync; /* its lock guards the table */
	struct tsi_gpu_entry entry[TSI_GPU_ENTRIES];
	unsigned asking; /* threads that wait for GPUs */
};

/*
 * The GPU of this UUID.  TSOCK_EAGAIN while it is asked; TSOCK_ENOTSUP when the
 * producer can't use it.
 */
int tsi_gpu_table_find(struct tsi_gpu_table *t, const uint8_t *uuid,
		       struct tsi_gpu_entry **out);

/* Why the GPU can't share memory by a transport at all; or NULL. */
const char *tsi_gpu_table_lacks(const struct tsi_gpu_entry *e,
				uint32_t transport);
/* Why the GPU doesn't share memory by a transport, tried or not; or NULL. */
const char *tsi_gpu_table_why_not(const struct tsi_gpu_entry *e,
				  uint32_t transport);

/* Log once by which transport the GPU is shared. */
void tsi_gpu_table_tell(struct tsi_gpu_entry *e, uint32_t transport);

/* A transport was tried in vain: the next consumer gets another one. */
void tsi_gpu_table_refuse(struct tsi_gpu_table *t, const uint8_t *uuid,
			  uint32_t transport, const char *why);

#endif
