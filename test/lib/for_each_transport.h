/* SPDX-License-Identifier: MIT */
/*
 * for_each_transport.h - streams for readers of each transport, and tests that
 * run once for each.
 */
#ifndef TEST_LIB_FOR_EACH_TRANSPORT_H
#define TEST_LIB_FOR_EACH_TRANSPORT_H

#include "test/lib/gpu_reader.h"

#ifdef SIMCUDA
#include "simcuda.h"
#define SIMULATED 1
#else
#define SIMULATED 0
#endif

/* Has this process given back all that it took of the GPUs? */
bool transport_nothing_is_left(void);

struct transport_test {
	const char *name;
	CMUnitTestFunction fn;
	enum transport first; /* and all after it */
};
#define FOR_EACH_TRANSPORT(fn) \
	{ \
#fn, fn, HOST \
	}
#define FOR_EACH_GPU_TRANSPORT(fn) \
	{ \
#fn, fn, STAGED \
	}

/* A reader on a GPU that comes, and goes without having taken anything. */
void transport_join_and_leave(const struct reader_proc *r);

/* A producer for readers of this transport. */
pid_t transport_start_source(const struct source *src,
			     enum transport transport);

/* Readers of one stream, all of which end well. */
void transport_run_readers(const struct source *src, struct reader_proc *r,
			   unsigned n);

/* One child of a stream of its own. */
void transport_run_as(void (*fn)(const struct reader_proc *r),
		      const struct reader_proc *r);

/* A stream "small", of 1000 images with fields beside them. */
extern const struct source transport_small_source;

/* One child of that stream, in batches of 16, by the case's transport. */
void transport_run_small(void (*fn)(const struct reader_proc *r), void **state);

/* Skip a test that numbers so many as it likes. */
void transport_need_gpus(unsigned n);

enum transport transport_of_case(void **state);

/*
 * Run tests for each transport, and others once.  The exit status: 77 where
 * there is no GPU.
 */
int transport_run_each(const char *group, const struct transport_test *each,
		       unsigned neach, const struct CMUnitTest *once,
		       unsigned nonce);

#endif
