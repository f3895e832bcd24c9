/* SPDX-License-Identifier: MIT */
/*
 * maker.h - the bytes of a file to what a sample has of it: an image with its
 * views, box and draws, or crops of audio.
 *
 * How much of a damaged file there is, is counted in rows of an image and in
 * frames of audio: what a sample needs of a file ends with one of these.
 *
 * Used by one thread.
 */
#ifndef TSI_RUN_MAKER_H
#define TSI_RUN_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "image/load.h"
#include "run/sampler.h"
#include "run/schema.h"

struct tsi_budget_claim;
struct tsi_maker;
struct tsi_read_request;

/* What is asked for by a read: what this sample needs of a file. */
struct tsi_maker_need {
	const struct tsi_maker *maker;
	const struct tsi_sample_id *id;
};

/* The bytes of a file, or its head and parts of it as they are read. */
struct tsi_maker_bytes {
	const uint8_t *data;
	size_t len;
	uint64_t of; /* the file's size, if there are parts; 0: all is there */
};

/*
 * For the sampler's samples; claim: of memory for large images, ended by the
 * caller; NULL: any memory.  Fails with ENOMEM, EARG.
 */
int tsi_maker_create(const struct tsi_sampler *s,
		     struct tsi_budget_claim *claim, struct tsi_maker **out);

/* NULL is allowed. */
void tsi_maker_destroy(struct tsi_maker *m);

/* What loads images; NULL: samples are of audio. */
struct tsi_image *tsi_maker_image(struct tsi_maker *m);

/* Let a read of a file choose the parts that are needed; need lives as long. */
void tsi_maker_ask(const struct tsi_maker_need *need,
		   struct tsi_read_request *q);

/*
 * Make what sample id has of this file, whose number in the index is file.
 * Fails as tsi_image_load() and tsi_audio_load() do.
 */
int tsi_maker_load(struct tsi_maker *m, uint64_t file,
		   const struct tsi_maker_bytes *b,
		   const struct tsi_sample_id *id, const struct tsi_slots *to,
		   struct tsi_box *box);

/* How much of a damaged file is there.  Fails as tsi_image_measure() does. */
int tsi_maker_measure(struct tsi_maker *m, const struct tsi_maker_bytes *b,
		      struct tsi_image_extent *out);

/* Each sample needs the same of a file, whatever its draws. */
bool tsi_maker_same_end(const struct tsi_maker *m);

/*
 * Where what sample id needs of a file of this extent ends; and where that of
 * no sample ends before.
 */
uint32_t tsi_maker_end(const struct tsi_maker *m,
		       const struct tsi_image_extent *of,
		       const struct tsi_sample_id *id);
uint32_t tsi_maker_least_end(const struct tsi_maker *m,
			     const struct tsi_image_extent *of);

#endif
