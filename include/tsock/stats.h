/* SPDX-License-Identifier: MIT */
/*
 * stats.h - which streams and GPUs there are, and the statistics of a running
 * stream, asked from outside.  tsock.h includes this header and states the
 * rules that hold for all functions.
 */
#ifndef TSOCK_STATS_H
#define TSOCK_STATS_H

#include <stdint.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TSOCK_STATS_ROWS 32
#define TSOCK_STATS_WAITS 8

/* What a consumer waits for. */
enum tsock_wait_for {
	TSOCK_FOR_NOTHING,
	TSOCK_FOR_READER,    /* another consumer, which holds the ring up */
	TSOCK_FOR_RANK,      /* another rank of its job */
	TSOCK_FOR_CONSUMERS, /* min_consumers */
	TSOCK_FOR_RETURN,    /* a consumer of the producer before this one */
	TSOCK_FOR_PRODUCER,  /* which makes the samples */
};

/* A wait of more than ten seconds, as the waiting consumer reported it. */
struct tsock_wait {
	uint32_t kind;      /* enum tsock_wait_for */
	uint32_t pid;       /* of the consumer that waits */
	uint32_t for_pid;   /* process that it waits for; 0: none, or unknown */
	uint32_t waited_ms; /* so far */
	uint32_t held_batches; /* READER: how many that one holds ... */
	uint32_t reserved;
	uint64_t held_samples; /* ... and of how many samples */
	/* For people to read: "process 4242 (train.py)", and ", which holds
	 * ..." with what can be done about it; or "". */
	char who[64];
	char why[192];
};

struct tsock_stats_row {
	uint32_t pid;
	uint32_t batch_size;
	uint64_t tail;      /* first sample that it still needs */
	uint64_t samples;   /* taken so far, on this connection */
	uint64_t wait_ns;   /* spent waiting for data */
	uint32_t view;      /* 0: as stored; else one of the derived views */
	uint32_t waiting;   /* 1 while it waits for data */
	uint32_t transport; /* enum tsock_transport; 0: host memory */
	uint32_t reserved;
};

struct tsock_stats {
	uint32_t size; /* set it to sizeof(struct tsock_stats) */
	uint32_t pid;
	uint64_t epoch_len;
	uint64_t head;     /* first sample not yet published */
	uint64_t claimed;  /* first sample that no worker has begun */
	uint64_t limit;    /* first sample that may not be begun yet */
	uint64_t capacity; /* of a ring */
	uint64_t produced; /* samples made by this process */
	uint64_t read_bytes;
	uint64_t bad_samples; /* places filled by a substitute */
	uint64_t memory;      /* bytes in rings */
	uint32_t views;       /* derived views in use */
	uint32_t consumers;   /* readers; may exceed TSOCK_STATS_ROWS */
	uint32_t nrows;
	uint32_t detached; /* consumers, since the start: TSOCK_SLOW_DETACH */
	/* The consumers with the lowest tails, where not all have a row. */
	struct tsock_stats_row row[TSOCK_STATS_ROWS];
	uint32_t nwaits;
	uint32_t reserved;
	struct tsock_wait wait[TSOCK_STATS_WAITS]; /* the longest first */
	uint64_t bad_files; /* known so far: tsock_serve_bad_files() */
	/* As in tsock_info: the part that the stream is. */
	uint32_t shard, shard_ranks, shards, reserved2;
};

/* Statistics of the stream called name; waits timeout_ms.  Any thread. */
TSOCK_API int tsock_query(const char *name, int timeout_ms,
			  struct tsock_stats *out);

/*
 * Call fn(arg, name, folder) for every stream of this user on this machine.
 * The producer of each is alive, but may be stopped: tsock_query() tells.
 * Returns the number of streams.
 */
TSOCK_API int tsock_list(void (*fn)(void *arg, const char *name,
				    const char *folder),
			 void *arg);

/*
 * End the stream called name for good: its consumers get TSOCK_EENDED and wait
 * for no other producer, and Python's loader doesn't start one.  Programs that
 * open the stream after that aren't affected.  Waits timeout_ms for the
 * producer's end.  Fails with EREFUSED where processes read the stream or wait
 * for the next producer, unless force is 1 (the message names them); with
 * ENOPROD where there is no producer and nobody waits for one; with EAGAIN
 * where the stream has ended but its program still runs after timeout_ms.  Any
 * thread.
 */
TSOCK_API int tsock_stop(const char *name, int force, int timeout_ms);

/* TSOCK_EENDED, and a message that says who did it, if the stream called name
 * was stopped by tsock_stop() after since_ns of CLOCK_MONOTONIC; else 0.  Any
 * thread. */
TSOCK_API int tsock_stopped(const char *name, int64_t since_ns);

/*
 * Call fn(arg, line) for every GPU that this process can use, or once with the
 * reason why there is none.  Returns the number of GPUs.
 */
TSOCK_API int tsock_devices(void (*fn)(void *arg, const char *line), void *arg);

#ifdef __cplusplus
}
#endif

#endif
