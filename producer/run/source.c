/*
 * source.c - which file fills a place of the stream, and which files are bad.
 */
#include "run/source.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"

#define LOGGED_MAX 20  /* bad files that get a line of their own */
#define KEPT_MAX 10000 /* bad files whose reason is kept */

struct bad_file {
	uint64_t index;
	char *reason;
};

struct tsi_source {
	const struct tsi_options *o;
	struct tsi_index *index;
	struct tsi_order *order;
	uint64_t count, epoch_len;
	uint32_t segments;
	uint64_t *bounds;

	pthread_mutex_t lock;
	uint8_t *seen; /* a bit per file: already counted as bad */
	struct bad_file *bad;
	size_t nkept;
	uint64_t nbad;
};

static int probe(void *arg, const void *data, size_t len, bool whole)
{
	struct tsi_image_head head;

	(void)arg;
	return tsi_image_probe(data, len, whole, &head);
}

static int open_index(struct tsi_source *s)
{
	struct tsi_index_opts opts = {
		.root = s->o->folder,
		.rescan = s->o->rescan,
		.cache_dir = s->o->cache,
		.probe = probe,
	};
	uint64_t good;
	int err;

	err = tsi_index_open(&opts, &s->index);
	if (err)
		return err;
	s->count = tsi_index_count(s->index);
	good = s->count - tsi_index_bad_count(s->index);
	if (good == 0)
		return tsi_err(TSOCK_EDATA,
			       "no good image under %s: all %" PRIu64
			       " files are bad, the first is %s: %s",
			       tsi_index_root(s->index), s->count,
			       tsi_index_path(s->index, 0),
			       tsi_index_bad_reason(s->index, 0));
	return 0;
}

/* Segments as asked, or as many as cost nothing. */
static int choose_segments(struct tsi_source *s)
{
	const struct tsi_options *o = s->o;

	if (o->segments > s->epoch_len)
		return tsi_err(TSOCK_EARG,
			       "--segments %" PRIu64
			       " is more than the %" PRIu64
			       " samples of an epoch",
			       o->segments, s->epoch_len);
	if (o->segments)
		s->segments = (uint32_t)o->segments;
	else if (o->order != TSI_SEQUENTIAL)
		s->segments = 1;
	else
		s->segments = s->epoch_len < 64 ? (uint32_t)s->epoch_len : 64;
	return 0;
}

static int open_order(struct tsi_source *s)
{
	const struct tsi_options *o = s->o;
	struct tsi_order_opts opts = {
		.kind = (enum tsi_order_kind)o->order,
		.seed = o->seed,
		.count = s->count,
		.sharded = o->sharded,
		.rank = o->rank,
		.world = o->world,
	};
	int err;

	s->epoch_len = s->count;
	if (o->sharded)
		s->epoch_len = (s->count + o->world - 1) / o->world;
	err = choose_segments(s);
	if (err)
		return err;
	opts.segments = s->segments;
	err = tsi_order_create(&opts, &s->order);
	if (err)
		return err;
	s->epoch_len = tsi_order_epoch_len(s->order);
	s->bounds = calloc(s->segments + 1, sizeof(*s->bounds));
	if (!s->bounds)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u segments",
			       s->segments);
	return tsi_order_segment_bounds(s->order, s->bounds);
}

/* What the scan found is said by the summary, not file by file. */
static int note_scanned(struct tsi_source *s)
{
	uint64_t n = tsi_index_bad_count(s->index);

	s->seen = calloc(s->count / 8 + 1, 1);
	s->bad = calloc(KEPT_MAX, sizeof(*s->bad));
	if (!s->seen || !s->bad)
		return tsi_err(TSOCK_ENOMEM, "no memory for %" PRIu64 " files",
			       s->count);
	for (uint64_t k = 0; k < n; k++) {
		uint64_t i = tsi_index_bad_at(s->index, k);

		s->seen[i / 8] |= (uint8_t)(1u << i % 8);
		if (s->nkept < KEPT_MAX) {
			s->bad[s->nkept].index = i;
			s->bad[s->nkept++].reason =
				strdup(tsi_index_bad_reason(s->index, i));
		}
	}
	s->nbad = n;
	return 0;
}

int tsi_source_open(const struct tsi_options *o, struct tsi_source **out)
{
	struct tsi_source *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	s->o = o;
	pthread_mutex_init(&s->lock, NULL);
	err = open_index(s);
	if (!err)
		err = open_order(s);
	if (!err)
		err = note_scanned(s);
	if (err) {
		tsi_source_close(s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_source_close(struct tsi_source *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nkept; i++)
		free(s->bad[i].reason);
	free(s->bad);
	free(s->seen);
	free(s->bounds);
	tsi_order_destroy(s->order);
	tsi_index_close(s->index);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

const struct tsi_options *tsi_source_options(const struct tsi_source *s)
{
	return s->o;
}

const struct tsi_index *tsi_source_index(const struct tsi_source *s)
{
	return s->index;
}

uint64_t tsi_source_epoch_len(const struct tsi_source *s)
{
	return s->epoch_len;
}

uint32_t tsi_source_segments(const struct tsi_source *s)
{
	return s->segments;
}

const uint64_t *tsi_source_bounds(const struct tsi_source *s)
{
	return s->bounds;
}

int tsi_source_spot(struct tsi_source *s, uint64_t seq, struct tsi_spot *out)
{
	out->epoch = seq / s->epoch_len;
	return tsi_order_at(s->order, out->epoch, seq % s->epoch_len,
			    &out->index);
}

uint64_t tsi_source_good(const struct tsi_source *s, uint64_t from,
			 uint64_t end)
{
	for (uint64_t i = from; i != end; i = (i + 1) % s->count)
		if (!tsi_index_bad(s->index, i))
			return i;
	return UINT64_MAX;
}

void tsi_source_bad(struct tsi_source *s, uint64_t index, const char *reason)
{
	uint8_t bit = (uint8_t)(1u << index % 8);
	uint64_t nth;

	pthread_mutex_lock(&s->lock);
	if (s->seen[index / 8] & bit) {
		pthread_mutex_unlock(&s->lock);
		return;
	}
	s->seen[index / 8] |= bit;
	nth = ++s->nbad - tsi_index_bad_count(s->index);
	if (s->nkept < KEPT_MAX) {
		s->bad[s->nkept].index = index;
		s->bad[s->nkept++].reason = strdup(reason);
	}
	pthread_mutex_unlock(&s->lock);

	if (nth <= LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "bad file %s: %s",
			tsi_index_path(s->index, index), reason);
	if (nth == LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "more bad files are counted, and "
					"listed at the end");
}

uint64_t tsi_source_bad_files(struct tsi_source *s)
{
	uint64_t n;

	pthread_mutex_lock(&s->lock);
	n = s->nbad;
	pthread_mutex_unlock(&s->lock);
	return n;
}

void tsi_source_bad_list(struct tsi_source *s,
			 void (*fn)(void *arg, const char *path,
				    const char *reason),
			 void *arg)
{
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->nkept; i++)
		fn(arg, tsi_index_path(s->index, s->bad[i].index),
		   s->bad[i].reason ? s->bad[i].reason : "no memory");
	pthread_mutex_unlock(&s->lock);
}
