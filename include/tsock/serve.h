/* SPDX-License-Identifier: MIT */
/*
 * serve.h - serving a stream.  tsock.h includes this header and states the
 * rules that hold for all functions.
 *
 * The program that makes the samples owns a server.  Each of its worker
 * threads, of which there may be any number, repeats three steps: claim
 * sequence numbers, write every field of those samples into their slots,
 * commit.  Threads may finish out of order.  The server does the rest on a
 * thread of its own.
 */
#ifndef TSOCK_SERVE_H
#define TSOCK_SERVE_H

#include <stddef.h>
#include <stdint.h>

#include "common.h"
#include "stats.h"
#include "table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How samples reach a GPU when another GPU has them already. */
enum tsock_fanout {
	TSOCK_FANOUT_AUTO = 0, /* peer where there is access, else host */
	TSOCK_FANOUT_PEER = 1, /* from the GPU that was staged first */
	TSOCK_FANOUT_NCCL = 2, /* broadcast inside the producer */
	TSOCK_FANOUT_HOST = 3, /* each from host memory */
};

enum tsock_slow {
	TSOCK_SLOW_BLOCK = 0, /* all go at the pace of the slowest */
	TSOCK_SLOW_KILL = 1,  /* SIGKILL a reader that others wait for */
	/* Go on without a reader that others wait for.  The batches that it
	 * holds stay as they are; later the reader continues by itself, from
	 * where the stream is by then, and is told what it missed
	 * (tsock_missed()).  Not for ranks, and not for rings on GPUs.
	 * Detaching takes memory for a second ring; as long as there is none,
	 * the stream waits for the reader. */
	TSOCK_SLOW_DETACH = 2,
};

struct tsock_serve_opts {
	uint32_t size;    /* sizeof(struct tsock_serve_opts), by the macro */
	uint32_t nfields; /* 1 to TSOCK_MAX_FIELDS */
	const struct tsock_field *fields;
	uint64_t epoch_len;   /* N, 1 to 2^48 */
	uint64_t dataset_len; /* 0 means N */
	uint64_t epochs;      /* after which the stream ends, with those before
			       * first_epoch; 0 is never */
	const uint64_t *segment_bounds; /* segments + 1 of them, or NULL */
	uint32_t segments;              /* 0 means 1 */
	uint32_t ring;          /* samples; grows as needed; 0 means 2048, or
				     * what two epochs need, if less, but at
				     * most 1 GiB as float32; or ring_bytes */
	uint32_t join_window;   /* samples; 0 means ring / 2 */
	uint32_t max_batch;     /* samples; 0 means 512, or what a ring of
				     * 1 GiB, or of ring_bytes, has room for */
	uint32_t min_consumers; /* nothing is made before; 0 means 1; none
				     * counts where readers of the producer
				     * before go on: their stream has begun */
	uint32_t sequential;    /* 1: consumers leave between epochs */
	uint32_t slow;          /* enum tsock_slow */
	uint32_t slow_ms;       /* so long, unless TSOCK_SLOW_BLOCK */
	uint64_t memory;        /* bytes for all rings; 0: what there is */
	const char *const *classes; /* nclasses names, or NULL */
	uint32_t nclasses;
	uint32_t fanout;        /* enum tsock_fanout */
	uint32_t gpu_transport; /* enum tsock_transport: offered; AUTO: all */
	uint32_t resumable;     /* 1: see below */
	uint64_t gpu_memory;    /* bytes for all rings on one GPU; 0: any */
	uint32_t shard;         /* consumers are told that the stream is ... */
	uint32_t shards;        /* ... this part of so many; 0: all of it */
	const char *identity;   /* for tsock_identity(), UTF-8; NULL is "" */
	uint64_t first_epoch;   /* the first sample is first_epoch * N */
	uint32_t min_wait_ms;   /* min_consumers are waited for so long at most,
				 * from the first one on; 0: any time */
	uint32_t commit_views;  /* 1: see below */
	uint64_t bad_files;     /* that are known: tsock_serve_bad_files() */
	/* Describes or fills in a table of all samples (table.h), called by one
	 * thread at a time, a thread of the server's; what it fails with is the
	 * consumer's error.  NULL: there are no tables. */
	int (*table)(void *arg, struct tsock_serve_table *t);
	void *table_arg;
	uint32_t shard_ranks; /* shards in the part, from shard on; 0: one */
	uint32_t least_batch; /* if max_batch is 0, it isn't less than this */
	uint64_t whole_len;   /* of an epoch of all parts together, where a part
				 * is cut as tsock_part_opts says; else 0 */
	uint64_t start_epoch; /* with whole_len: the stream begins with this
				 * epoch, which is dealt anew ... */
	uint64_t start;       /* ... from this position on; 0: it doesn't */
	uint64_t ring_bytes;  /* that each ring may take at most, also one with
			       * images as float32; 0: see ring, which must be 0
			       * if this isn't */
};
#define TSOCK_SERVE_OPTS_INIT \
	{ \
		sizeof(struct tsock_serve_opts), 0, NULL, 0, 0, 0, NULL, 0, 0, \
			0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, \
			0, 0, 0, 0, NULL, NULL, 0, 0, 0, 0, 0, 0 \
	}

/*
 * Resumable: each sequence number has the same sample, byte for byte, in every
 * run of a producer with this identity, which must not be "".  The program has
 * to make whatever samples it claims; their numbers may begin anywhere and go
 * back, since a consumer that is alone can move the stream to the position that
 * it had reached (tsock_resume()).
 */

/*
 * Commit_views: tsock_serve_commit() converts samples to the dtypes and layouts
 * that consumers on the host read, float32 say, in the thread that calls it,
 * while they are in that processor's cache.  So the work is shared by all threads
 * that commit.  0: one thread of the server for each dtype and layout converts,
 * and a commit takes a moment whatever is read.
 */

typedef struct tsock_server tsock_server;

/* The sizes that a server with these options would have; no server is made. */
struct tsock_geometry {
	uint32_t size; /* set it to sizeof(struct tsock_geometry) */
	uint32_t reserved;
	uint64_t capacity;    /* C */
	uint64_t join_window; /* W */
	uint64_t max_batch;
	uint64_t ring_bytes; /* of the base view, all fields */
	uint64_t f32_bytes;  /* of a float32 view, the same samples */
	uint64_t f16_bytes;  /* of a float16 or bfloat16 view */
};
TSOCK_API int tsock_serve_geometry(const struct tsock_serve_opts *opts,
				   struct tsock_geometry *out);

/*
 * Serve a stream.  Fails with EARG, ENOMEM (the message says how much memory is
 * needed and how much there is), EEXIST (another producer has that name),
 * ENOTSUP, ESYS.
 */
TSOCK_API int tsock_serve_open(const char *name,
			       const struct tsock_serve_opts *opts,
			       tsock_server **out);

/*
 * Claim up to want consecutive samples to make, waiting at most timeout_ms (-1
 * waits).  Returns how many were claimed, starting at *first; or EAGAIN, EENDED
 * (nothing is left to make, or the server is closing), ESTREAM.  Any thread.
 */
TSOCK_API int tsock_serve_claim(tsock_server *s, unsigned want, int timeout_ms,
				uint64_t *first);

/* Where field f of a claimed sample goes.  Any thread. */
TSOCK_API void *tsock_serve_slot(tsock_server *s, unsigned f, uint64_t seq);

/*
 * Say that the samples first .. first+count-1, all of one claim, have been
 * written.  They are published as soon as all samples before them are.  Any
 * thread.
 */
TSOCK_API void tsock_serve_commit(tsock_server *s, uint64_t first,
				  unsigned count);

/* Samples that were made on a GPU and lie in its memory. */
struct tsock_gpu_samples {
	uint32_t size;   /* sizeof(struct tsock_gpu_samples), by the macro */
	uint32_t device; /* as CUDA numbers it in this process */
	/* The stream in which they are being made: a cudaStream_t of that GPU;
	 * NULL, 1 and 2 are CUDA's default streams, as in DLPack. */
	void *stream;
	/* For each field the address of the first sample in GPU memory, which
	 * the others follow; NULL: that field was written into the slots. */
	const void *const *data;
	/* Called once, from any thread, when the memory is needed no more. */
	void (*release)(void *arg);
	void *arg;
};
#define TSOCK_GPU_SAMPLES_INIT \
	{ \
		sizeof(struct tsock_gpu_samples), 0, NULL, NULL, NULL, NULL \
	}

/*
 * Commit samples that lie in a GPU's memory.  When the work queued in the
 * stream is done, they are copied once to their slots in host memory; this call
 * waits until that copy has ended, so it pays to have several threads.
 * Consumers on that GPU get the samples without a second transfer over the bus:
 * while such a consumer reads, the memory is kept until each sample has been
 * copied on the GPU into the ring there, or at most until a whole ring of later
 * samples has been made; without such a consumer it is given back at once.  In
 * every case release(arg) is called, in this call or later, in
 * tsock_serve_close() at the latest; it may neither wait nor call functions of
 * this library.  (The one exception: a GPU driver that never returns from a
 * call.)
 *
 * After an error nothing is committed, release is not called, and the samples
 * may be written into their slots in another way: ENOTSUP (no CUDA, or the
 * stream is being captured), EARG, and the GPU's errors.  Any thread.
 */
TSOCK_API int tsock_serve_commit_gpu(tsock_server *s, uint64_t first,
				     unsigned count,
				     const struct tsock_gpu_samples *from);

/*
 * Stop the stream: every consumer gets TSOCK_ESTREAM and the text why, of which
 * at most 4 KB are passed on (256 bytes to consumers that come later), with
 * line ends and other control characters escaped.  Any thread.
 */
TSOCK_API void tsock_serve_fail(tsock_server *s, const char *why);

/* Add to the statistics that the server can't count by itself.  Any thread. */
TSOCK_API void tsock_serve_count(tsock_server *s, uint64_t read_bytes,
				 uint64_t bad_samples);

/* 1 if somebody has stopped the stream for good (tsock_stop()): then it is
 * drained, and the program should close the server. */
TSOCK_API int tsock_serve_stopped(tsock_server *s);

/*
 * Say what the program is busy with, for consumers that wait: words that
 * continue "which has been ", such as "reading /data/a.jpg"; NULL: nothing
 * keeps it from making samples.  The server measures for how long the text has
 * not changed.  Any thread.
 */
TSOCK_API void tsock_serve_doing(tsock_server *s, const char *what);

/* The number of files, or other sources of samples, known to be bad by now.
 * Any thread. */
TSOCK_API void tsock_serve_bad_files(tsock_server *s, uint64_t bad_files);

/*
 * Warn all readers of the stream, those that come later included: each logs the
 * text, and can fetch it once by tsock_warning(), when it begins an epoch or
 * has read one to its end.  kind: enum tsock_warning_kind.  At most 1,023 bytes
 * of the text are passed on.  Any thread.  Fails with EARG, ENOMEM (a stream
 * has 64 warnings at most).
 */
TSOCK_API int tsock_serve_warn(tsock_server *s, uint32_t kind,
			       const char *text);

TSOCK_API int tsock_serve_stats(tsock_server *s, struct tsock_stats *out);

/*
 * The number of connected consumers, whether they read or have only been
 * opened; a process that asks for statistics counts while it asks.  0 where the
 * system doesn't tell.
 */
TSOCK_API int tsock_serve_connected(tsock_server *s);

/*
 * Let the stream end after that epoch, counted from 0, as if the option epochs
 * had said so when it was opened: consumers get TSOCK_EENDED, those that opened
 * the stream before included, and so do claims once all samples are made.  The
 * stream ends later than asked where a reader has begun a later epoch or was
 * promised one, or where a sample of a later epoch was claimed while there are
 * readers; it never ends later than was said before.  Returns the epoch after
 * which it ends; or EARG, EAGAIN (readers of the previous producer are still
 * expected: ask again).  Any thread.
 */
TSOCK_API int64_t tsock_serve_end_after(tsock_server *s, uint64_t epoch);

/*
 * 1 when the stream is over: no reader needs a sample any more, no consumer has
 * an offer that it may still accept, and a new consumer could get no epoch.
 * From then on nobody can join.
 */
TSOCK_API int tsock_serve_drained(tsock_server *s);

/* Wake every claimer with EENDED: call it before joining worker threads. */
TSOCK_API void tsock_serve_stop(tsock_server *s);

/* Close the server; its consumers find the producer gone.  NULL is allowed. */
TSOCK_API void tsock_serve_close(tsock_server *s);

#ifdef __cplusplus
}
#endif

#endif
