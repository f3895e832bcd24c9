/* SPDX-License-Identifier: MIT */
/*
 * next_producer.h - a stream whose producer dies, and the producer that its
 * readers go on with.
 */
#ifndef TEST_LIB_NEXT_PRODUCER_H
#define TEST_LIB_NEXT_PRODUCER_H

#include "test/lib/reader.h"

/* A stream of 2000 samples for each epoch, with a ring of 256, slowly made. */
struct source next_producer_restart(const char *name);

/*
 * The next producer, which begins when this process says so: it is forked
 * before this process has threads, since ThreadSanitizer lets no child of a
 * process that has some start threads of its own.
 */
struct next_producer {
	pid_t pid;
	int go[2];
};

struct next_producer next_producer_prepare(struct source src);

pid_t next_producer_begin(struct next_producer *p);

#endif
