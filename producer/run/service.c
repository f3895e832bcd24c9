/* SPDX-License-Identifier: MIT */
/*
 * service.c - a stream that is served: the data set, the ring and the workers.
 */
#include "run/service.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "run/catalog.h"
#include "run/identity.h"
#include "run/index_keeper.h"

#define GRACE_MS 10000              /* for the readers of the stream before */
#define SLOW_NS INT64_C(1000000000) /* of a read: consumers are told of it */
#define SLOW_NAME 96                /* bytes of a path that they are told */

struct tsi_service {
	const struct tsi_pipeline_opts *o;
	struct tsock_geometry geometry;
	struct tsi_schema schema;
	uint32_t key_width; /* of the field key; 0: there is none */
	double seconds;     /* that it took to open */
	bool goes_on;       /* after another stream */
	uint64_t first_epoch;
	uint32_t consumers; /* of that one */
	struct tsi_sampler *sampler;
	struct tsi_index_keeper *keeper; /* NULL: nothing is kept */
	struct tsi_pool *pool;
	tsock_server *server;
	bool slow;          /* consumers were told that a read is waited for, */
	uint64_t slow_file; /* of this file */
};

static void serve_opts(const struct tsi_pipeline_opts *o,
		       const struct tsi_schema *schema, uint64_t epoch_len,
		       struct tsock_serve_opts *out)
{
	*out = (struct tsock_serve_opts)TSOCK_SERVE_OPTS_INIT;
	out->nfields = schema->n;
	out->fields = schema->field;
	out->epoch_len = epoch_len;
	out->epochs = o->epochs;
	out->ring = o->ring;
	out->ring_bytes = o->ring_bytes;
	out->least_batch = o->least_batch;
	out->join_window = o->join_window;
	out->max_batch = o->max_batch;
	out->min_consumers = o->min_consumers;
	out->sequential = o->order == TSOCK_ORDER_SEQUENTIAL;
	out->slow = o->slow;
	out->slow_ms = o->slow_ms;
	out->memory = o->memory;
	out->gpu_memory = o->gpu_memory;
	out->fanout = o->fanout;
	out->gpu_transport = o->gpu_transport;
	out->commit_views = o->convert;
	out->shard = o->part.first;
	out->shard_ranks = o->part.ranks;
	out->shards = o->part.world;
}

/* A column of the data set may be called as a view or the masks are. */
static int check_names(const struct tsock_serve_opts *o)
{
	for (unsigned i = 1; i < o->nfields; i++)
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(o->fields[i].name, o->fields[k].name))
				return tsi_err(TSOCK_EARG,
					       "samples would have two fields "
					       "called %s: give the column of "
					       "the table another name",
					       o->fields[i].name);
	return 0;
}

static int geometry_of(const struct tsi_pipeline_opts *o,
		       const struct tsi_schema *schema, uint64_t epoch_len,
		       struct tsock_geometry *out)
{
	struct tsock_serve_opts opts;
	int err;

	serve_opts(o, schema, epoch_len, &opts);
	if (opts.nfields > TSOCK_MAX_FIELDS)
		return tsi_err(TSOCK_EARG,
			       "samples would have %u fields, and %d are the "
			       "most: leave out views of the recipe or columns "
			       "of the table",
			       opts.nfields, TSOCK_MAX_FIELDS);
	err = check_names(&opts);
	if (err)
		return err;
	out->size = sizeof(*out);
	return tsock_serve_geometry(&opts, out);
}

int tsi_service_geometry(const struct tsi_pipeline_opts *o, uint64_t epoch_len,
			 struct tsock_geometry *out)
{
	struct tsi_schema_extras x = {
		.weight = o->select != NULL,
		.key_width = o->keys ? TSI_KEY_MAX + 1 : 0,
	};
	struct tsi_schema schema;

	tsi_schema_make(o, &x, &schema);
	return geometry_of(o, &schema, epoch_len, out);
}

/* The longest key's bytes and a zero, rounded up to a multiple of 8. */
static int find_key_width(struct tsi_service *s)
{
	const struct tsi_index *x = tsi_sampler_index(s->sampler);
	uint64_t n = tsi_index_count(x);
	size_t longest = 0, len;
	char text[TSI_PATH];

	for (uint64_t i = 0; i < n; i++) {
		const char *key = tsi_index_key(x, i, text, &len);

		if (len > TSI_KEY_MAX)
			return tsi_err(TSOCK_EARG,
				       "--keys: the key of sample %llu, "
				       "%.60s..., has %zu bytes, and %d are "
				       "the most: rename its file, or leave "
				       "out --keys",
				       (unsigned long long)i, key, len,
				       TSI_KEY_MAX);
		if (len > longest)
			longest = len;
	}
	s->key_width = (uint32_t)(longest + 8) / 8 * 8;
	return 0;
}

static struct tsi_schema_extras extras_of(const struct tsi_service *s)
{
	const struct tsi_index *x = tsi_sampler_index(s->sampler);

	return (struct tsi_schema_extras){
		.weight = tsi_index_weight_is_field(x),
		.key_width = s->key_width,
		.columns = tsi_index_columns(x),
	};
}

/* The options were read by what the files had then, or before they grew. */
static int check_images(const struct tsi_pipeline_opts *o,
			const struct tsi_index *x)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	const struct tsi_recipe *r = o->recipe;
	uint32_t is[3];

	/* Labels of audio files: they stand for no image. */
	if (o->audio.views)
		return 0;
	if (!c || !r != tsi_columns_imageless(c))
		return c ? tsi_err(TSOCK_EDATA,
				   "samples of %.300s %s an image now: start "
				   "the stream again",
				   tsi_index_name(x),
				   tsi_columns_imageless(c) ? "don't have"
							    : "have")
			 : 0;
	if (!tsi_columns_pixels(c) || !r || !r->of_width)
		return 0;
	tsi_columns_image(c, is);
	if (is[1] == r->of_width && is[0] == r->of_height)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "images of %.300s have %u x %u pixels now, and had "
		       "%u x %u: start the stream again",
		       tsi_index_name(x), is[1], is[0], r->of_width,
		       r->of_height);
}

int tsi_service_open(const struct tsi_pipeline_opts *o,
		     struct tsi_service **out)
{
	struct tsi_service *s = calloc(1, sizeof(*s));
	int64_t begin = tsi_now_ns();
	int err;

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for a stream");
	s->o = o;
	err = tsi_service_geometry(o, TSI_EPOCH_LONG, &s->geometry);
	if (!err)
		err = tsi_sampler_open(o, &s->sampler);
	if (!err)
		err = check_images(o, tsi_sampler_index(s->sampler));
	if (!err && o->keys)
		err = find_key_width(s);
	if (!err) {
		struct tsi_schema_extras x = extras_of(s);

		tsi_schema_make(o, &x, &s->schema);
		err = geometry_of(o, &s->schema,
				  tsi_sampler_epoch_len(s->sampler),
				  &s->geometry);
	}
	if (err) {
		tsi_service_close(s);
		return err;
	}
	s->seconds = (double)(tsi_now_ns() - begin) / 1e9;
	*out = s;
	return 0;
}

int tsi_service_check(const struct tsi_service *s)
{
	if (tsi_sampler_raises(s->sampler))
		return 0;
	return tsi_badlist_check(tsi_sampler_badlist(s->sampler),
				 &s->o->allow_bad);
}

void tsi_service_sizes(const struct tsi_service *s, struct tsock_geometry *out)
{
	*out = s->geometry;
}

struct tsi_sampler *tsi_service_sampler(const struct tsi_service *s)
{
	return s->sampler;
}

void tsi_service_go_on(struct tsi_service *s, uint64_t epoch,
		       uint32_t consumers)
{
	s->goes_on = true;
	s->first_epoch = epoch;
	s->consumers = consumers;
}

bool tsi_service_equal(const struct tsi_service *a, const struct tsi_service *b)
{
	const struct tsi_index *x = tsi_sampler_index(a->sampler);
	const struct tsi_index *y = tsi_sampler_index(b->sampler);

	/* What a class is called is in the names of its files. */
	return tsi_index_count(x) == tsi_index_count(y) &&
	       tsi_index_classes(x) == tsi_index_classes(y) &&
	       tsi_index_fingerprint(x) == tsi_index_fingerprint(y) &&
	       tsi_index_same_folder(x, y);
}

double tsi_service_seconds(const struct tsi_service *s)
{
	return s->seconds;
}

/* The server copies the classes and all else that is pointed to. */
static int open_server(struct tsi_service *s)
{
	const struct tsi_index *x = tsi_sampler_index(s->sampler);
	uint32_t n = tsi_index_unlabelled(x) ? 0 : tsi_index_classes(x);
	const char **classes = calloc(n + 1, sizeof(*classes));
	struct tsock_serve_opts opts;
	char *identity = NULL;
	int err;

	if (!classes)
		return tsi_err(TSOCK_ENOMEM, "no memory for %u classes", n);
	err = tsi_identity_text(s->o, s->sampler, &identity);
	if (err) {
		free(classes);
		return err;
	}
	for (uint32_t i = 0; i < n; i++)
		classes[i] = tsi_index_class(x, i);
	serve_opts(s->o, &s->schema, tsi_sampler_epoch_len(s->sampler), &opts);
	opts.classes = classes;
	opts.nclasses = n;
	opts.identity = identity;
	opts.resumable = 1;
	opts.table = tsi_catalog_table;
	/* Which it only reads. */
	opts.table_arg = (void *)(uintptr_t)x;
	opts.bad_files = tsi_badlist_count(tsi_sampler_badlist(s->sampler));
	opts.dataset_len = tsi_index_count(x);
	opts.first_epoch = s->first_epoch;
	opts.whole_len = tsi_sampler_whole_len(s->sampler);
	opts.start_epoch = s->o->part.start_epoch;
	opts.start = s->o->part.start;
	if (s->goes_on) {
		opts.min_consumers = s->consumers;
		opts.min_wait_ms = GRACE_MS;
	}
	opts.segments = tsi_sampler_segments(s->sampler);
	opts.segment_bounds = tsi_sampler_bounds(s->sampler);
	err = tsock_serve_open(s->o->name, &opts, &s->server);
	free(identity);
	free(classes);
	return err;
}

static void tell_count(void *arg, uint64_t bad)
{
	tsock_serve_bad_files(arg, bad);
}

static void tell_warning(void *arg, const char *text)
{
	tsock_serve_warn(arg, TSOCK_WARNING_BAD_FILES, text);
}

/* Consumers hear of bad files that are found from now on, unless the first one
 * ends the stream. */
static void watch_bad_files(struct tsi_service *s)
{
	bool raises = tsi_sampler_raises(s->sampler);
	struct tsi_badlist_listener to = { .count = tell_count,
					   .warn = raises ? NULL : tell_warning,
					   .arg = s->server };

	tsi_badlist_watch(tsi_sampler_badlist(s->sampler), &s->o->allow_bad,
			  &to);
}

int tsi_service_start(struct tsi_service *s)
{
	struct tsi_pool_opts opts = {
		.threads = s->o->threads,
		.io = s->o->io,
		.direct = s->o->direct,
		.ahead.bytes = s->o->read_ahead,
		.ahead.epochs = s->o->epochs,
		.image_memory = s->o->image_memory,
		.cache = s->o->image_cache,
		.schema = &s->schema,
		.open_files = s->o->open_files,
		.capacity = s->geometry.capacity,
	};
	struct tsi_image_opts image = tsi_sampler_image_opts(s->sampler);
	int err = open_server(s);

	if (!err)
		watch_bad_files(s);
	if (!err)
		err = tsi_index_keeper_open(s->o, tsi_sampler_index(s->sampler),
					    image.jpeg_index, &s->keeper);
	if (!err)
		err = tsi_pool_create(s->sampler, &opts, &s->pool);
	if (!err)
		err = tsi_pool_start(s->pool, s->server);
	return err;
}

struct tsi_pool *tsi_service_pool(const struct tsi_service *s)
{
	return s->pool;
}

tsock_server *tsi_service_server(const struct tsi_service *s)
{
	return s->server;
}

/* The file's path, without its beginning where it is long. */
static void say_file(const struct tsi_service *s, uint64_t file)
{
	const struct tsi_index *x = tsi_sampler_index(s->sampler);
	char name[TSI_INDEX_SAMPLE], path[4096], text[4200];
	size_t len, left = 0;

	snprintf(path, sizeof(path), "%s/%s", tsi_index_root(x),
		 tsi_index_sample(x, file, name, sizeof(name)));
	len = strlen(path);
	if (len > SLOW_NAME)
		left = len - SLOW_NAME;
	snprintf(text, sizeof(text), "waiting for %s%s to be read",
		 left ? "..." : "", path + left);
	tsock_serve_doing(s->server, text);
}

/* Which file the workers wait for, if they have waited for it for long. */
static void tell_slow(struct tsi_service *s)
{
	uint64_t file = 0;
	int64_t since = tsi_pool_waits(s->pool, &file);

	if (since && tsi_now_ns() - since >= SLOW_NS) {
		if (!s->slow || s->slow_file != file)
			say_file(s, file);
		s->slow = true;
		s->slow_file = file;
	} else if (s->slow) {
		tsock_serve_doing(s->server, NULL);
		s->slow = false;
	}
}

void tsi_service_tell(struct tsi_service *s, uint64_t produced)
{
	tell_slow(s);
	tsi_index_keeper_tell(s->keeper,
			      produced / tsi_sampler_epoch_len(s->sampler));
}

void tsi_service_close(struct tsi_service *s)
{
	if (!s)
		return;
	tsi_pool_destroy(s->pool);
	tsock_serve_close(s->server);
	tsi_index_keeper_close(s->keeper);
	tsi_sampler_close(s->sampler);
	free(s);
}
