/* SPDX-License-Identifier: MIT */
/*
 * inproc.h - a stream of small images that threads of this process fill, and a
 * consumer of it.
 */
#ifndef TEST_LIB_INPROC_H
#define TEST_LIB_INPROC_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tsock/tsock.h"

/* 15,552 bytes an image: batches from 5 on get windows. */
#define INPROC_SIDE 72
#define INPROC_BYTES (INPROC_SIDE * INPROC_SIDE * 3)
#define INPROC_WORKERS 2

struct inproc {
	tsock_server *s;
	uint64_t n;
	_Atomic uint64_t upto; /* workers stop there */
	pthread_t worker[INPROC_WORKERS];
};

/* Every byte of the image of a sample. */
uint8_t inproc_pixel(uint64_t seq);

/* A stream of n samples an epoch, in a ring of 512. */
struct tsock_serve_opts inproc_opts(uint64_t n);

/* Serve the stream "unit" with threads that fill it. */
void inproc_serve(struct inproc *st, const struct tsock_serve_opts *o);

void inproc_serve_n(struct inproc *st, uint64_t n);

/* End the threads and the stream. */
void inproc_stop(struct inproc *st);

/* A consumer of "unit" with this batch size and these flags. */
tsock *inproc_join(uint32_t batch, uint32_t flags);

/* Has the batch the bytes of its samples, of n an epoch? */
bool inproc_good(const tsock_batch *b, uint64_t n);

/* The next batch, or fail. */
tsock_batch *inproc_next(tsock *t);

/* How many consumers the server knows. */
uint64_t inproc_consumers(struct inproc *st);

/* A worker's thread, whose argument is the stream. */
void *inproc_work(void *arg);

/* A fresh folder for the sockets unless the runner has made one. */
void inproc_open_folder(void);
void inproc_close_folder(void);

#endif
