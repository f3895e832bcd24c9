/* SPDX-License-Identifier: MIT */
/*
 * made.h - a server of made-up samples in this process, and the thread that
 * makes them.
 *
 * Each byte of a sample is a function of the sample's number, so that it can be
 * checked without asking anybody.  No fault meets the making itself.
 */
#ifndef TEST_FAULTS_MADE_H
#define TEST_FAULTS_MADE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "tsock/tsock.h"

#define MADE_NAME "stream"
#define MADE_SIDE 40
#define MADE_BYTES (MADE_SIDE * MADE_SIDE * 3)
#define MADE_EPOCH 60
#define MADE_RING 128

struct made {
	tsock_server *server;
	pthread_t thread;
};

/* What of a server isn't as in the most ordinary one. */
struct made_opts {
	bool resumable;
	uint32_t detach_ms; /* readers that are slow for so long; 0: none */
};

/* 0, or an error with its sentence; then there is nothing to close. */
int made_open(struct made_opts opts, struct made *out);

/* Make no more samples, wait for the thread and close the server. */
void made_close(struct made *m);

/* Die unless each sample is whole: bytes as they are stored, or floats. */
void made_check(const tsock_batch *b, bool stored);

#endif
