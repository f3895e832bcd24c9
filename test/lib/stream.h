/* SPDX-License-Identifier: MIT */
/*
 * stream.h - a producer of made-up samples, in a process of its own.
 *
 * Sample s of a stream of N has index perm(s), a label and a payload that are
 * functions of s alone; so whatever a consumer is handed can be checked without
 * asking anybody.
 */
#ifndef TEST_LIB_STREAM_H
#define TEST_LIB_STREAM_H

#include "test/lib/proc.h"

struct source {
	const char *name;
	uint64_t n, epochs;
	uint32_t ring, max_batch, window, segments, min_consumers;
	uint32_t payload; /* bytes of the payload field */
	uint32_t slow_ms; /* kill the slow; 0: block */
	bool detach;      /* ... or detach them */
	uint32_t pace_us; /* a pause for each sample */
	uint32_t image;   /* side of an image field; 0: none */
	uint32_t workers; /* 0 means 1 */
	uint32_t fanout, gpu_transport;
	uint64_t memory, gpu_memory;
	bool sequential;
	/* Views are filled by their threads, and the base ring is ahead of them
	 * by up to a ring; else the workers write views, too. */
	bool view_threads;
	const char *identity; /* resumable by it; NULL: it isn't */
	const char *const *classes;
	uint32_t nclasses;
	/* The producer begins when a byte can be read here; 0: at once. */
	int go;
	/* Called by the producer before its first sample, and at its end. */
	void (*served)(tsock_server *s, const struct source *src);
	void (*closed)(void);
};

/* A number that looks like a random one, of x alone. */
uint64_t stream_mix(uint64_t x);

/* A permutation of 0..n-1 that differs from epoch to epoch; with segments,
 * within each segment only. */
uint64_t stream_index_of(const struct source *src, uint64_t s);

void stream_fill_payload(uint8_t *p, uint32_t bytes, uint64_t s);

bool stream_payload_is(const uint8_t *p, uint32_t bytes, uint64_t s);

/* Called in each process that is about to serve a stream; may be NULL. */
extern void (*stream_serves)(void);

tsock_server *stream_serve(const struct source *src);

void stream_write_sample(tsock_server *s, const struct source *src, uint64_t q);

/* Make samples until the stream ends. */
void stream_produce(tsock_server *s, const struct source *src);

pid_t stream_start_producer(const struct source *src);

/* Die unless these are samples seq .. seq+n-1, whole and unchanged. */
void stream_check_samples(const struct source *src, const char *who,
			  uint64_t seq, uint64_t n, const uint8_t *payload,
			  const int64_t *label, const int64_t *index);

/* The state of a stream, or fail. */
struct tsock_stats stream_stats(const char *name);

/* Wait until the stream has so many readers; fails after a minute. */
void stream_wait_readers(const char *name, uint32_t n);

#endif
