/* SPDX-License-Identifier: MIT */
/*
 * worker_fixture.h - a tree of small images, and samples that a worker makes of
 * it.
 *
 * For a test of one file: every function is static.  The images are PNGs of one
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

static const uint8_t png[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
	0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00, 0x1e,
	0x08, 0x00, 0x00, 0x00, 0x00, 0x7b, 0xb6, 0x03, 0x01, 0x00, 0x00, 0x00,
	0x1a, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x6c, 0x60, 0x20, 0x0e,
	0x30, 0x31, 0x8c, 0x2a, 0x1c, 0x55, 0x38, 0xaa, 0x70, 0x54, 0xe1, 0x20,
	0x56, 0x08, 0x00, 0xfb, 0x90, 0x00, 0xbc, 0x91, 0x98, 0x23, 0x03, 0x00,
	0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82
};

static char root[64];
static struct tsi_pipeline_opts options;

/* What one sample came out as. */
struct sample {
	uint8_t image[SIZE * SIZE * 3];
	int64_t label, index;
	int32_t box[5];
	float weight;
	char key[32]; /* if the options have keys; of short names */
};

/* Write a file as fopen()'s mode says. */
static inline void write_file(const char *name, const char *mode,
			      const void *data, size_t len)
{
	char path[1400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, mode);
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

static inline void put(const char *name, const void *data, size_t len)
{
	write_file(name, "wb", data, len);
}

static inline void put_image(const char *name)
{
	put(name, png, sizeof(png));
}

static inline int make_root(void **state)
{
	char path[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/tsock-worker-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (char c = 'a'; c <= 'c'; c++) {
		snprintf(path, sizeof(path), "%s/%c", root, c);
		mkdir(path, 0700);
	}
	options = (struct tsi_pipeline_opts){
		.format = &tsi_format_imagefolder,
		.folder = root,
		.recipe = recipes_train(SIZE),
		.order = TSOCK_ORDER_SEQUENTIAL,
		.segments = 1,
		.seed = 9,
		.io = TSI_READER_PREAD,
		.cache = "",
	};
	return 0;
}

static inline int remove_root(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* Files 0 to 4: a/0 a/1 b/0 b/1 c/0. */
static inline void put_five(void)
{
	put_image("a/0.png");
	put_image("a/1.png");
	put_image("b/0.png");
	put_image("b/1.png");
	put_image("c/0.png");
}

static inline struct tsi_sampler *open_sampler(void)
{
	struct tsi_sampler *s;

	if (tsi_sampler_open(&options, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

static inline void into(void *arg, uint64_t seq, struct tsi_slots *out)
{
	struct sample *sample = (struct sample *)arg + seq % 64;

	out->image = sample->image;
	out->label = &sample->label;
	out->index = &sample->index;
	out->box = sample->box;
	out->weight = &sample->weight;
	out->key = options.keys ? sample->key : NULL;
	out->key_width = sizeof(sample->key);
}

/* Make samples 0 .. n-1, several ahead; how many were substituted. */
static inline int make_within(struct tsi_sampler *s, struct tsi_budget *budget,
			      unsigned depth, struct sample *to, uint64_t n,
			      unsigned *substituted)
{
	struct tsi_worker *w;
	uint64_t begun = 0;
	int err = 0;

	*substituted = 0;
	assert_int_equal(tsi_worker_create(s, options.io, depth, budget, &w),
			 0);
	while (!err && (begun < n || tsi_worker_busy(w))) {
		struct tsi_made made;

		while (!err && begun < n && tsi_worker_busy(w) < depth)
			err = tsi_worker_begin(w, begun++);
		if (!err)
			err = tsi_worker_finish(w, into, to, &made);
		if (!err)
			*substituted += made.substituted;
	}
	tsi_worker_destroy(w);
	return err;
}

static inline int make(struct tsi_sampler *s, unsigned depth, struct sample *to,
		       uint64_t n, unsigned *substituted)
{
	return make_within(s, NULL, depth, to, n, substituted);
}

#endif
