/* SPDX-License-Identifier: MIT */
/*
 * gpu_table.c - the GPUs that consumers asked for, and what is known of each.
 *
 * The first call to a GPU may take seconds (the driver starts, a context is
 * made), and a GPU that hangs never answers.  So a thread of its own asks each
 * GPU, once; with the lock held the table alone is read.
 *
 * The table keeps what was learnt: what the GPU is, and which transports were
 * tried in vain for its memory.
 */
#include "serve/gpu_table.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/thread.h"

#define KEEP_MS 2000 /* that a GPU can't be used is believed so long */

/* What one thread asks; it belongs to that thread. */
struct inquiry {
	struct tsi_gpu_table *table;
	unsigned entry;
	uint8_t uuid[TSI_UUID];
	struct tsi_gpu_info info;
	unsigned device;
};

/* Without the lock. */
static int inquire(struct inquiry *q)
{
	int err = tsi_gpu_find(q->uuid, &q->device);

	if (!err)
		return tsi_gpu_info(q->device, &q->info);
	if (err != TSOCK_EARG)
		return err;
	return tsi_err(err,
		       "%s (a process sees one MIG instance at most: each "
		       "needs its own producer)",
		       tsock_errmsg());
}

static void *ask_gpu(void *arg)
{
	struct inquiry *q = arg;
	struct tsi_gpu_table *t = q->table;
	struct tsi_gpu_entry *e = &t->entry[q->entry];
	int err;

	tsi_thread_name("tsock-gpu-look");
	err = inquire(q);
	tsi_sync_lock(t->sync);
	e->phase = err ? TSI_GPU_UNUSABLE : TSI_GPU_KNOWN;
	e->device = q->device;
	e->info = q->info;
	e->since_ms = tsi_now_ms();
	if (err)
		tsi_err_copy(e->error, sizeof(e->error));
	t->asking--;
	tsi_sync_wake_stages(t->sync);
	tsi_sync_unlock(t->sync);
	free(q);
	return NULL;
}

static int ask_device(struct tsi_gpu_table *t, struct tsi_gpu_entry *e,
		      const uint8_t *uuid)
{
	struct inquiry *q = calloc(1, sizeof(*q));
	pthread_t thread;
	int err;

	if (!q)
		return tsi_err(TSOCK_ENOMEM, "no memory to look at a GPU");
	q->table = t;
	q->entry = (unsigned)(e - t->entry);
	memcpy(q->uuid, uuid, TSI_UUID);
	err = tsi_thread_start(&thread, ask_gpu, q);
	if (err) {
		free(q);
		return err;
	}
	pthread_detach(thread);
	memset(e, 0, sizeof(*e));
	memcpy(e->uuid, uuid, TSI_UUID);
	e->phase = TSI_GPU_LOOKING;
	t->asking++;
	return TSOCK_EAGAIN;
}

static struct tsi_gpu_entry *find_gpu(struct tsi_gpu_table *t,
				      const uint8_t *uuid)
{
	for (unsigned i = 0; i < TSI_GPU_ENTRIES; i++) {
		struct tsi_gpu_entry *e = &t->entry[i];

		if (e->phase != TSI_GPU_NONE &&
		    !memcmp(e->uuid, uuid, TSI_UUID))
			return e;
	}
	return NULL;
}

/* An entry for another GPU: a free one, or that of an unusable GPU. */
static struct tsi_gpu_entry *free_entry(struct tsi_gpu_table *t)
{
	for (unsigned i = 0; i < TSI_GPU_ENTRIES; i++) {
		struct tsi_gpu_entry *e = &t->entry[i];

		if (e->phase == TSI_GPU_NONE || e->phase == TSI_GPU_UNUSABLE)
			return e;
	}
	return NULL;
}

int tsi_gpu_table_find(struct tsi_gpu_table *t, const uint8_t *uuid,
		       struct tsi_gpu_entry **out)
{
	struct tsi_gpu_entry *e = find_gpu(t, uuid);

	if (!e) {
		e = free_entry(t);
		return e ? ask_device(t, e, uuid)
			 : tsi_err(TSOCK_ENOTSUP,
				   "the producer was asked for %d GPUs "
				   "already, and none has answered",
				   TSI_GPU_ENTRIES);
	}
	if (e->phase == TSI_GPU_LOOKING)
		return TSOCK_EAGAIN;
	if (e->phase == TSI_GPU_KNOWN) {
		*out = e;
		return 0;
	}
	if (e->phase == TSI_GPU_UNUSABLE &&
	    tsi_now_ms() - e->since_ms < KEEP_MS)
		/* The consumer can do without: it then copies by itself. */
		return tsi_err(TSOCK_ENOTSUP,
			       "the producer can't use that GPU: %s", e->error);
	return ask_device(t, e, uuid);
}

/* ---- transports ---- */

static const char *const transport_name[] = { "auto", "vmm", "legacy",
					      "staged" };

const char *tsi_gpu_table_lacks(const struct tsi_gpu_entry *e,
				uint32_t transport)
{
	if (transport == TSOCK_TRANSPORT_VMM && !e->info.vmm_fd)
		return "the GPU has no memory with a descriptor";
	if (transport == TSOCK_TRANSPORT_LEGACY && !e->info.legacy_ipc)
		return "the GPU has no legacy CUDA IPC";
	return NULL;
}

const char *tsi_gpu_table_why_not(const struct tsi_gpu_entry *e,
				  uint32_t transport)
{
	const char *why = tsi_gpu_table_lacks(e, transport);

	if (!why && e->refused[transport][0])
		why = e->refused[transport];
	return why;
}

void tsi_gpu_table_tell(struct tsi_gpu_entry *e, uint32_t transport)
{
	const char *vmm = tsi_gpu_table_why_not(e, TSOCK_TRANSPORT_VMM);

	if (!e->said)
		tsi_log(TSOCK_LOG_INFO, "GPU %u is shared by %s%s%s", e->device,
			transport_name[transport],
			vmm ? ": vmm can't be used: " : "", vmm ? vmm : "");
	e->said = true;
}

void tsi_gpu_table_refuse(struct tsi_gpu_table *t, const uint8_t *uuid,
			  uint32_t transport, const char *why)
{
	struct tsi_gpu_entry *e = find_gpu(t, uuid);

	if (!e || e->phase != TSI_GPU_KNOWN || e->refused[transport][0])
		return;
	snprintf(e->refused[transport], sizeof(e->refused[transport]), "%s",
		 why);
	tsi_log(TSOCK_LOG_WARN,
		"the memory of GPU %u can't be shared by %s: %s", e->device,
		transport_name[transport], why);
	e->said = false;
}
