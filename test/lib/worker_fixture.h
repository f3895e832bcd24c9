/* SPDX-License-Identifier: MIT */
/*
 * worker_fixture.h - a tree of small images, and samples that a worker makes of
 * it.
 *
 * The images are PNGs of one
 * colour, 40 x 30 pixels.
 */
#ifndef TEST_LIB_WORKER_FIXTURE_H
#define TEST_LIB_WORKER_FIXTURE_H

#include "run/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "io/reader.h"
#include "tsock/tsock.h"
#include "test/lib/recipes.h"

#define SIZE 16
#define DEPTH 4

extern const uint8_t worker_png[83];

extern char worker_root[64];
extern struct tsi_pipeline_opts worker_options;

/* What one sample came out as. */
struct sample {
	uint8_t image[SIZE * SIZE * 3];
	int64_t label, index;
	int32_t box[5];
	float weight;
	char key[32]; /* if the options have keys; of short names */
};

/* Write a file as fopen()'s mode says. */
void worker_write_file(const char *name, const char *mode, const void *data,
		       size_t len);

void worker_put(const char *name, const void *data, size_t len);

void worker_put_image(const char *name);

int worker_make_root(void **state);

int worker_remove_root(void **state);

/* Files 0 to 4: a/0 a/1 b/0 b/1 c/0. */
void worker_put_five(void);

struct tsi_sampler *worker_open_sampler(void);

void worker_into(void *arg, uint64_t seq, struct tsi_slots *out);

/* Make samples 0 .. n-1, several ahead; how many were substituted. */
int worker_make_within(struct tsi_sampler *s, struct tsi_budget *budget,
		       unsigned depth, struct sample *to, uint64_t n,
		       unsigned *substituted);

int worker_make(struct tsi_sampler *s, unsigned depth, struct sample *to,
		uint64_t n, unsigned *substituted);

#endif
