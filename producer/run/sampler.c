/* SPDX-License-Identifier: MIT */
/*
 * sampler.c - which file a sample of the stream is made from.
 */
#include "run/sampler.h"

#include <inttypes.h>
#include <stdlib.h>

#include "audio/length.h"
#include "image/sniff.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"
#include "data/epochs.h"
#include "jpeg/check.h"
#include "jpeg/index.h"
#include "run/members.h"
#include "run/others_look.h"
#include "run/picks.h"
#include "run/rate.h"

struct tsi_sampler {
	const struct tsi_pipeline_opts *o;
	struct tsi_index *index;
	struct tsi_members *members; /* by class */
	struct tsi_epochs *epochs;
	struct tsi_picks *picks; /* NULL: samples are those of the order */
	uint64_t count, epoch_len, whole_len;
	uint32_t segments;
	uint64_t *bounds;
	struct tsi_badfiles *bad;
	struct tsi_badlist *badlist;
	struct tsi_substitutes *substitutes;
	struct tsi_jpeg_index *jpeg_index; /* NULL: none is kept */
	bool stock_jpeg;
	uint32_t rate;                  /* of audio files; 0: isn't known */
	struct tsi_masks *masks;        /* NULL: samples have none */
	struct tsi_box_columns *boxes;  /* NULL likewise */
	struct tsi_shard_cache *shards; /* NULL: files are read in place */
};

static int sniff(void *arg, const void *data, size_t len, bool whole)
{
	const struct tsi_sampler *s = arg;
	struct tsi_audio_opts audio = s->o->audio;
	struct tsi_image_head head;
	int err;

	if (!audio.views)
		return tsi_image_sniff(data, len, whole, &head);
	audio.resamples = audio.rate != 0;
	err = tsi_audio_sniff(data, len, whole);
	return err ? err : tsi_audio_length_sniff(&audio, data, len);
}

/* A number for what it calls good. */
static uint32_t sniffs(const struct tsi_sampler *s)
{
	const struct tsi_audio_opts *a = &s->o->audio;
	uint32_t key[3] = { tsi_audio_formats_read(), a->frames, a->rate };

	if (!a->views)
		return tsi_image_formats_read();
	return a->clips == TSI_AUDIO_WHOLE
		       ? (uint32_t)tsi_hash(key, sizeof(key), 0) | 1u << 31
		       : key[0];
}

static int open_index(struct tsi_sampler *s)
{
	struct tsi_index_opts opts = {
		.format = s->o->format,
		.root = s->o->folder,
		.schema = s->o->schema,
		.held_out = s->o->held_out,
		.documents = s->o->documents,
		.select = s->o->select,
		.named = s->o->keys,
		.labels = s->o->labels,
		.rescan = s->o->rescan,
		.allow_empty = s->o->allow_empty,
		.look_at_all = s->o->look_at_all,
		.cache_dir = s->o->cache,
		.sniff = sniff,
		.sniffs = sniffs(s),
		.sniff_arg = s,
		.foreign = s->o->audio.views ? NULL : tsi_image_foreign,
		.survive_eio = !tsi_sampler_raises(s),
	};
	int err;

	err = tsi_index_open(&opts, &s->index);
	if (!err)
		s->count = tsi_index_count(s->index);
	return err;
}

/* What is bad, and that not all is. */
static int open_badlist(struct tsi_sampler *s)
{
	const struct tsi_index *x = s->index;
	int err = tsi_badlist_create(x, &s->badlist);
	char name[TSI_INDEX_SAMPLE];
	uint64_t first;

	if (err || tsi_badlist_count(s->badlist) < s->count)
		return err;
	first = tsi_index_bad_at(x, 0);
	return tsi_err(TSOCK_EDATA,
		       "no good %s under %s: all %" PRIu64
		       " files are bad, the first is %s: %s",
		       s->o->audio.views ? "audio file" : "image",
		       tsi_index_root(x), s->count,
		       tsi_index_sample(x, first, name, sizeof(name)),
		       tsi_index_bad_reason(x, first));
}

/* Segments as asked, or as many as cost nothing. */
static int choose_segments(struct tsi_sampler *s)
{
	const struct tsi_pipeline_opts *o = s->o;

	if (o->segments > s->epoch_len)
		return tsi_err(TSOCK_EARG,
			       "--segments %u is more than the %" PRIu64
			       " samples of an epoch",
			       o->segments, s->epoch_len);
	if (o->segments)
		s->segments = o->segments;
	else if (o->order != TSOCK_ORDER_SEQUENTIAL || o->part.start)
		s->segments = 1;
	else
		s->segments = s->epoch_len < 64 ? (uint32_t)s->epoch_len : 64;
	return 0;
}

static struct tsi_order_opts order_of(const struct tsi_sampler *s)
{
	const struct tsi_pipeline_opts *o = s->o;
	const struct tsi_sampling *by = &o->sampling;
	struct tsi_order_opts opts = {
		.kind = o->order,
		.seed = o->seed,
		.count = s->count,
		.part = o->part,
		.repeat = by->repeat,
		.limit = by->limit,
	};

	/* Its items are positions, each of which has a draw of its own. */
	if (by->way != TSI_SAMPLING_ORDER) {
		opts.kind = TSOCK_ORDER_SEQUENTIAL;
		opts.count = by->limit ? by->limit : s->count;
	}
	return opts;
}

static int open_picks(struct tsi_sampler *s)
{
	const struct tsi_pipeline_opts *o = s->o;

	if (o->sampling.way == TSI_SAMPLING_WEIGHTED)
		return tsi_picks_by_weight(s->index, o->seed, &s->picks);
	if (o->sampling.way == TSI_SAMPLING_BALANCED)
		return tsi_picks_by_class(s->index, s->members, o->seed,
					  &s->picks);
	return 0;
}

static int open_order(struct tsi_sampler *s)
{
	struct tsi_order_opts opts = order_of(s);
	int err = open_picks(s);

	if (err)
		return err;
	s->whole_len = tsi_order_whole(&opts);
	s->epoch_len = tsi_order_len(&opts);
	err = choose_segments(s);
	if (err)
		return err;
	opts.segments = s->segments;
	err = tsi_epochs_create(&opts, &s->epochs);
	if (err)
		return err;
	s->epoch_len = tsi_epochs_len(s->epochs);
	s->bounds = calloc(s->segments + 1, sizeof(*s->bounds));
	if (!s->bounds)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u segments",
			       s->segments);
	tsi_epochs_bounds(s->epochs, s->bounds);
	return 0;
}

/* A decoder that differs from libjpeg's is not used. */
static int open_jpeg(struct tsi_sampler *s)
{
	int err = s->o->recipe ? tsi_jpeg_check(s->o->fast) : 0;

	if (err && err != TSOCK_EDATA)
		return err;
	s->stock_jpeg = err != 0;
	if (err)
		tsi_log(TSOCK_LOG_WARN,
			"%s: JPEG files are decoded by "
			"libjpeg-turbo alone, more slowly",
			tsock_errmsg());
	if (err || !s->o->recipe || !s->o->index_memory)
		return 0;
	return tsi_jpeg_index_create(s->count, s->o->index_memory,
				     &s->jpeg_index);
}

static void remember_bad(void *arg, uint64_t file)
{
	const struct tsi_sampler *s = arg;

	/* What ends the stream isn't passed by. */
	if (!tsi_sampler_raises(s))
		tsi_badfiles_remember(s->bad, file, NULL, tsi_badfiles_now());
}

/* Files have the rate of the first one that can be read. */
static int find_rate(struct tsi_sampler *s)
{
	int err;

	s->rate = s->o->audio.rate;
	for (uint64_t i = 0; i < s->count && !s->rate; i++) {
		err = tsi_rate_of(s->index, i, &s->rate);
		if (err)
			return err;
	}
	return 0;
}

static int open_masks(struct tsi_sampler *s)
{
	int err;

	if (!s->o->masks)
		return 0;
	err = tsi_masks_open(s->o->masks, s->index, &s->masks);
	if (!err)
		err = tsi_masks_look(s->masks, s->o->look_at_all, s->badlist,
				     remember_bad, s);
	return err;
}

int tsi_sampler_open(const struct tsi_pipeline_opts *o,
		     struct tsi_sampler **out)
{
	struct tsi_sampler *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	s->o = o;
	err = open_index(s);
	if (!err)
		err = open_badlist(s);
	if (!err)
		err = tsi_members_create(s->index, &s->members);
	if (!err)
		err = open_order(s);
	if (!err)
		err = tsi_badfiles_create(s->index, &s->bad);
	if (!err)
		err = tsi_others_look(s->index, o->recipe, o->seed);
	if (!err)
		err = open_masks(s);
	if (!err && o->boxes)
		err = tsi_box_columns_open(o->boxes, s->index, o->recipe,
					   &s->boxes);
	if (!err && o->audio.views)
		err = find_rate(s);
	if (!err)
		err = tsi_substitutes_create(s->index, s->members, o->seed,
					     &s->substitutes);
	if (!err)
		err = open_jpeg(s);
	if (!err && o->shard_cache && !o->look_at_all)
		err = tsi_shard_cache_open(o->shard_cache, o->shard_cache_size,
					   s->index, &s->shards);
	if (err) {
		tsi_sampler_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_sampler_close(struct tsi_sampler *s)
{
	if (!s)
		return;
	tsi_shard_cache_close(s->shards);
	tsi_jpeg_index_destroy(s->jpeg_index);
	tsi_substitutes_destroy(s->substitutes);
	tsi_masks_close(s->masks);
	tsi_box_columns_close(s->boxes);
	tsi_badlist_destroy(s->badlist);
	tsi_badfiles_destroy(s->bad);
	free(s->bounds);
	tsi_epochs_destroy(s->epochs);
	tsi_picks_destroy(s->picks);
	tsi_members_destroy(s->members);
	tsi_index_close(s->index);
	free(s);
}

bool tsi_sampler_raises(const struct tsi_sampler *s)
{
	return s->o->on_error == TSI_RAISE;
}

struct tsi_image_opts tsi_sampler_image_opts(const struct tsi_sampler *s)
{
	return (struct tsi_image_opts){
		.recipe = s->o->recipe,
		.seed = s->o->seed,
		.pillow = s->o->pillow,
		.fast = s->o->fast,
		.masks = s->masks != NULL,
		.stock_jpeg = s->stock_jpeg,
		.jpeg_index = s->jpeg_index,
	};
}

struct tsi_audio_opts tsi_sampler_audio_opts(const struct tsi_sampler *s)
{
	struct tsi_audio_opts opts = s->o->audio;

	opts.resamples = opts.rate != 0;
	opts.rate = s->rate;
	return opts;
}

const struct tsi_recipe *tsi_sampler_sound(const struct tsi_sampler *s)
{
	return s->o->sound;
}

const struct tsi_index *tsi_sampler_index(const struct tsi_sampler *s)
{
	return s->index;
}

struct tsi_shard_cache *tsi_sampler_shards(const struct tsi_sampler *s)
{
	return s->shards;
}

const struct tsi_masks *tsi_sampler_masks(const struct tsi_sampler *s)
{
	return s->masks;
}

const struct tsi_box_columns *tsi_sampler_boxes(const struct tsi_sampler *s)
{
	return s->boxes;
}

uint64_t tsi_sampler_epoch_len(const struct tsi_sampler *s)
{
	return s->epoch_len;
}

uint64_t tsi_sampler_whole_len(const struct tsi_sampler *s)
{
	return s->whole_len;
}

uint32_t tsi_sampler_segments(const struct tsi_sampler *s)
{
	return s->segments;
}

const uint64_t *tsi_sampler_bounds(const struct tsi_sampler *s)
{
	return s->bounds;
}

unsigned tsi_sampler_order_version(const struct tsi_sampler *s)
{
	struct tsi_order_opts opts = order_of(s);

	return tsi_order_version(&opts);
}

int tsi_sampler_at(struct tsi_sampler *s, uint64_t seq,
		   struct tsi_sample_id *out)
{
	uint64_t position = seq % s->epoch_len, item;
	int err;

	out->epoch = seq / s->epoch_len;
	err = tsi_epochs_at(s->epochs, out->epoch, position, &item);
	if (err)
		return err;
	out->index = s->picks ? tsi_picks_at(s->picks, out->epoch, item) : item;
	out->draw = item +
		    tsi_epochs_time(s->epochs, out->epoch, position) * s->count;
	return 0;
}

/* Of positions of one epoch. */
static int files_of(struct tsi_sampler *s, uint64_t epoch, uint64_t position,
		    unsigned n, uint64_t *file)
{
	int err = tsi_epochs_run(s->epochs, epoch, position, n, file);

	for (unsigned i = 0; s->picks && !err && i < n; i++)
		file[i] = tsi_picks_at(s->picks, epoch, file[i]);
	return err;
}

int tsi_sampler_run(struct tsi_sampler *s, uint64_t first, unsigned n,
		    uint64_t *file)
{
	int err = 0;

	while (n && !err) {
		uint64_t position = first % s->epoch_len;
		uint64_t left = s->epoch_len - position;
		unsigned some = left < n ? (unsigned)left : n;

		err = files_of(s, first / s->epoch_len, position, some, file);
		first += some;
		file += some;
		n -= some;
	}
	return err;
}

struct tsi_badfiles *tsi_sampler_badfiles(const struct tsi_sampler *s)
{
	return s->bad;
}

struct tsi_badlist *tsi_sampler_badlist(const struct tsi_sampler *s)
{
	return s->badlist;
}

const struct tsi_substitutes *
tsi_sampler_substitutes(const struct tsi_sampler *s)
{
	return s->substitutes;
}
