/* SPDX-License-Identifier: MIT */
/*
 * sampler.h - which file a sample of the stream is made from, and which files
 * are bad.
 *
 * The data set, its order and what is known of bad files, shared by all
 * workers.  A sample is a function of the data set, the options and the
 * sample's number alone: a truncated image stays good for the samples whose
 * crops end above the damage.
 */
#ifndef TSI_RUN_SAMPLER_H
#define TSI_RUN_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "audio/load.h"
#include "data/index.h"
#include "pixel/image.h"
#include "run/badfiles.h"
#include "run/badlist.h"
#include "run/boxes.h"
#include "run/masks.h"
#include "run/shard_cache.h"
#include "run/pipeline.h"
#include "run/substitute.h"

struct tsi_sampler;

/* What sequence number seq of the stream stands for. */
struct tsi_sample_id {
	uint64_t epoch;
	uint64_t index; /* of its own file in the data set, by the order */
	/*
	 * Its augmentation is a function of this number and the epoch.  It is
	 * the index, plus the data set's size for each time that the file came
	 * before in this epoch by --sampler repeat; or, where samples are drawn
	 * with replacement, the position in the epoch.
	 */
	uint64_t draw;
};

/*
 * Index the data set and prepare its order.  Fails with EARG (options that
 * don't fit the data set), EDATA (nothing good in it), and as index and order
 * do.  o must outlive it.
 */
int tsi_sampler_open(const struct tsi_pipeline_opts *o,
		     struct tsi_sampler **out);

/* NULL is allowed. */
void tsi_sampler_close(struct tsi_sampler *s);

/* A bad file stops the stream: no other one stands in for it. */
bool tsi_sampler_raises(const struct tsi_sampler *s);

/* How samples are made of images, without a claim of memory. */
struct tsi_image_opts tsi_sampler_image_opts(const struct tsi_sampler *s);

/* How samples are made of audio files; views 0: they aren't. */
struct tsi_audio_opts tsi_sampler_audio_opts(const struct tsi_sampler *s);
/* What is done to these; NULL: nothing. */
const struct tsi_recipe *tsi_sampler_sound(const struct tsi_sampler *s);

const struct tsi_index *tsi_sampler_index(const struct tsi_sampler *s);

/* Local copies of the samples' files; NULL: there is no such cache. */
struct tsi_shard_cache *tsi_sampler_shards(const struct tsi_sampler *s);

/* The images' masks; NULL: samples have none. */
const struct tsi_masks *tsi_sampler_masks(const struct tsi_sampler *s);

/* The boxes of the images' objects; NULL: samples have none. */
const struct tsi_box_columns *tsi_sampler_boxes(const struct tsi_sampler *s);

/* N, the samples of an epoch; and of an epoch of which that is a part. */
uint64_t tsi_sampler_epoch_len(const struct tsi_sampler *s);
uint64_t tsi_sampler_whole_len(const struct tsi_sampler *s);
uint32_t tsi_sampler_segments(const struct tsi_sampler *s);

/* segments + 1 of them. */
const uint64_t *tsi_sampler_bounds(const struct tsi_sampler *s);

/* Of the order, as an identity says it; 0: it is as it has always been. */
unsigned tsi_sampler_order_version(const struct tsi_sampler *s);

/* Which sample sequence number seq is.  Any thread, and so are the rest. */
int tsi_sampler_at(struct tsi_sampler *s, uint64_t seq,
		   struct tsi_sample_id *out);

/* The files of n samples, from sequence number first on. */
int tsi_sampler_run(struct tsi_sampler *s, uint64_t first, unsigned n,
		    uint64_t *file);

/* What is known of bad files, the list of them, and what stands in for them. */
struct tsi_badfiles *tsi_sampler_badfiles(const struct tsi_sampler *s);
struct tsi_badlist *tsi_sampler_badlist(const struct tsi_sampler *s);
const struct tsi_substitutes *
tsi_sampler_substitutes(const struct tsi_sampler *s);

#endif
