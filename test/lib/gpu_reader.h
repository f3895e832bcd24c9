/* SPDX-License-Identifier: MIT */
/*
 * gpu_reader.h - readers over every transport, in processes of their own, that
 * check every byte.
 *
 * A process that forks readers must not have used CUDA itself.  Bytes are
 * looked at twice: copied back and waited for when a batch is handed out, and
 * by copies that are queued before it is released and looked at only some
 * batches later.
 */
#ifndef TEST_LIB_GPU_READER_H
#define TEST_LIB_GPU_READER_H

#include "test/lib/reader.h"

#include <cuda_runtime_api.h>

#define SIDE 10 /* of an image */
#define PIXELS (SIDE * SIDE * 3)
#define DEFER 3 /* batches later */
#define FIELDS 4

#define cu(call) \
	do { \
		cudaError_t e_ = (call); \
		if (e_ != cudaSuccess) \
			die("%s: %s", #call, cudaGetErrorName(e_)); \
	} while (0)

enum transport {
	HOST,
	PINNED, /* in host memory that the producer has page-locked */
	STAGED,
	STAGED_STORED,
	SHARED,
	STORED,
	LEGACY,
	LEGACY_STORED,
	TRANSPORTS,
};

extern const char *const gpu_reader_transport_name[];

/* How many there are; the first time it says why there is none. */
unsigned gpu_reader_gpus(void);

void gpu_reader_set(const char *name, const char *value);

struct reader_proc {
	const struct source *src;
	enum transport transport;
	int device;
	const char *visible; /* CUDA_VISIBLE_DEVICES */
	uint32_t batch, epochs, flags, join, between;
	uint32_t rank, world, job;
	bool floats;      /* f32 CHW in [0, 1]; else as it is stored */
	bool writes;      /* over whatever is its own */
	unsigned streams; /* that use each batch; 0 means 1 */
	unsigned delay_us;
};

/* The host's copy of a batch, on its way. */
struct copy {
	uint8_t *host[FIELDS], *device[FIELDS];
	uint64_t seq, count;
	bool busy;
	cudaStream_t at; /* where it was queued */
};

struct gpu_reader {
	const struct reader_proc *r;
	tsock *t;
	uint64_t bytes[FIELDS]; /* of a sample */
	cudaStream_t stream[4];
	struct copy copy[DEFER + 1];
	unsigned begun; /* epochs */
};

bool gpu_reader_on_gpu(enum transport k);

bool gpu_reader_as_stored(enum transport k);

int gpu_reader_transport(enum transport k);

/*
 * For the process that is that reader.  On the simulation it may have a context
 * on that GPU alone from now on, and a producer where a reader asked for one:
 * a process that makes another one ends with a report.
 */
struct tsock_opts gpu_reader_opts(const struct reader_proc *r);

void gpu_reader_open(struct gpu_reader *s, const struct reader_proc *r);

void gpu_reader_check_image(const struct gpu_reader *s, const void *image,
			    uint64_t q);

void gpu_reader_check_copy(const struct gpu_reader *s, const struct copy *l);

/* Queue copies of the batch to the host in a stream. */
void gpu_reader_queue_copy(struct gpu_reader *s, tsock_batch *b, struct copy *l,
			   cudaStream_t stream);

void gpu_reader_finish_copy(struct gpu_reader *s, struct copy *l);

/* Name the streams, queue a late copy in one of them, give the batch back. */
void gpu_reader_leave_to_gpu(struct gpu_reader *s, tsock_batch *b,
			     unsigned turn);

/* A batch that was taken: look at it, and give it back. */
void gpu_reader_check(struct gpu_reader *s, tsock_batch *b, unsigned turn);

void gpu_reader_settle(struct gpu_reader *s);

/* Begin an epoch; false if the stream has ended. */
bool gpu_reader_begin(struct gpu_reader *s);

/* Some batches of an epoch that was begun. */
void gpu_reader_some(struct gpu_reader *s, unsigned batches);

void gpu_reader_epoch(struct gpu_reader *s);

void gpu_reader_close(struct gpu_reader *s);

void gpu_reader_read_to_the_end(const struct reader_proc *r);

/* A child that does this, and ends well. */
pid_t gpu_reader_start_as(void (*fn)(const struct reader_proc *r),
			  const struct reader_proc *r);

pid_t gpu_reader_start(const struct reader_proc *r);

#endif
