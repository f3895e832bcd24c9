/* SPDX-License-Identifier: MIT */
/*
 * served.h - a stream that this process serves itself, for tests of the public
 * interface.
 */
#ifndef TEST_LIB_SERVED_H
#define TEST_LIB_SERVED_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tsock/tsock.h"

#define SERVED_SIDE 16 /* of an image: 768 bytes */
#define SERVED_BYTES (SERVED_SIDE * SERVED_SIDE * 3)

struct served {
	const char *name;
	uint64_t n;
	tsock_server *s;
	pthread_t worker;
};

uint8_t served_pixel(uint64_t seq);

/* With an identity the stream is resumable, with NULL not.  Nothing is made. */
void served_open_as(struct served *v, const char *name, uint64_t n,
		    uint32_t ring, uint32_t max_batch, const char *identity);

/* As served_open_as(), and samples are made. */
void served_start_as(struct served *v, const char *name, uint64_t n,
		     uint32_t ring, uint32_t max_batch, const char *identity);

void served_start(struct served *v, const char *name, uint64_t n, uint32_t ring,
		  uint32_t max_batch);

void served_stop(struct served *v);

/* A consumer that has begun an epoch; dtype 0: as stored. */
tsock *served_begin(const struct served *v, uint32_t batch, uint32_t dtype,
		    uint32_t flags);

/* A batch as stored shows its samples. */
bool served_good(const tsock_batch *b);

#endif
