/* SPDX-License-Identifier: MIT */
/*
 * others.c - the images of a sample behind the first.
 */
#include "run/others.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "io/reader.h"
#include "pixel/budget.h"
#include "run/shard_cache.h"

#define NAME 60 /* bytes of a path in a reason */
#define WHY 151

struct tsi_others {
	const struct tsi_sampler *sampler;
	struct tsi_maker *maker;
	struct tsi_budget_claim *claim;
	struct tsi_read_wait *wait;
	unsigned n;
};

/* The image at hand. */
struct other {
	const char *field;
	struct tsi_location at;
	bool direct;
	uint8_t *data;
	size_t len;
};

int tsi_others_create(const struct tsi_sampler *s, struct tsi_maker *m,
		      struct tsi_budget_claim *claim,
		      struct tsi_read_wait *wait, struct tsi_others **out)
{
	const unsigned n =
		tsi_columns_others(tsi_index_columns(tsi_sampler_index(s)));
	struct tsi_others *o = n ? calloc(1, sizeof(*o)) : NULL;

	if (n && !o)
		return tsi_err(TSOCK_ENOMEM, "no memory for a worker");
	if (n)
		*o = (struct tsi_others){ s, m, claim, wait, n };
	*out = o;
	return 0;
}

void tsi_others_destroy(struct tsi_others *o)
{
	free(o);
}

/* ---- what came of it ---- */

static bool fail(struct tsi_outcome *o, enum tsi_came came,
		 const struct other *x, const char *why)
{
	char text[TSI_PATH];
	const char *path = tsi_location_path(&x->at, text);
	const size_t n = strlen(path);
	const bool whole = n < NAME;

	o->came = came;
	snprintf(o->reason, sizeof(o->reason), "its image %s (%s%s): %.150s",
		 x->field, whole ? "" : "...",
		 whole ? path : path + (n - NAME + 4), why);
	return false;
}

/* By the last error's message. */
static bool fail_as_said(struct tsi_outcome *o, enum tsi_came came,
			 const struct other *x)
{
	char why[WHY];

	tsi_err_copy(why, sizeof(why));
	return fail(o, came, x, why);
}

/* A claim or a load has failed by this error, but for EDATA. */
static bool fail_by(struct tsi_outcome *o, int err, const struct other *x)
{
	if (err == TSOCK_ENOMEM)
		return fail_as_said(o, TSI_CAME_NO_MEMORY, x);
	o->came = err == TSOCK_EAGAIN ? TSI_CAME_CROWDED : TSI_CAME_END;
	o->err = err;
	return false;
}

/* ---- reading ---- */

static struct tsi_read_request request_of(const struct tsi_others *m,
					  const struct other *x)
{
	return (struct tsi_read_request){
		.dirfd = tsi_index_dirfd(tsi_sampler_index(m->sampler)),
		.folder = x->at.folder,
		.path = x->at.file,
		.offset = x->at.offset,
		.length = x->at.length,
		.direct = x->direct,
		.size_hint = x->at.size,
	};
}

static int read_file(const struct tsi_others *m, struct other *x, size_t most)
{
	struct tsi_shard_cache *shards = tsi_sampler_shards(m->sampler);
	struct tsi_read_request q = request_of(m, x);
	bool copied = tsi_shard_cache_use(shards, &q);
	int err = tsi_io_read(&q, most, &x->data, &x->len);

	if (!copied || !tsi_shard_cache_failed(shards, x->at.file, err))
		return err;
	q = request_of(m, x);
	return tsi_io_read(&q, most, &x->data, &x->len);
}

/* Its bytes, or those that the file has now. */
static uint64_t size_of(const struct tsi_others *m, const struct other *x)
{
	struct stat st = { .st_size = 0 };

	if (x->at.length)
		return x->at.length;
	tsi_index_stat(tsi_sampler_index(m->sampler), &x->at, &st);
	return (uint64_t)st.st_size;
}

/* One that is too large to be read unasked; *err is the read's. */
static bool read_large(struct tsi_others *m, struct other *x, int *err,
		       struct tsi_outcome *o)
{
	const uint64_t size = size_of(m, x);
	int claimed;

	if (size > TSI_READER_MAX)
		return true;
	claimed = tsi_budget_claim_file(m->claim, size);
	if (claimed == TSOCK_EDATA)
		return fail_as_said(o, TSI_CAME_NEVER, x);
	if (claimed)
		return fail_by(o, claimed, x);
	*err = read_file(m, x, size);
	if (*err == EFBIG)
		return fail(o, TSI_CAME_NOT_NOW, x,
			    "it grows while it is read");
	return true;
}

static bool read_other(struct tsi_others *m, struct other *x,
		       struct tsi_outcome *o)
{
	int err = read_file(m, x, TSI_READER_AHEAD);

	if (err == EFBIG && !read_large(m, x, &err, o))
		return false;
	if (!err)
		return true;
	o->err = err;
	if (err == ENOMEM)
		return fail(o, TSI_CAME_NO_MEMORY, x, "no memory to read it");
	if (tsi_io_reader_blames_file(err))
		return fail(o, TSI_CAME_NEVER, x, tsi_io_reader_strerror(err));
	o->came = TSI_CAME_UNREAD;
	return false;
}

/* ---- making ---- */

/*
 * Is it as bad for every sample?  Else it is looked at again for each one: what
 * is made doesn't depend on which sample was made before.
 */
static bool is_never(const struct tsi_others *m, const struct other *x)
{
	const struct tsi_maker_bytes b = { x->data, x->len, 0 };
	struct tsi_image_extent e;
	int err = tsi_maker_measure(m->maker, &b, &e);

	if (err)
		return err == TSOCK_EDATA;
	return e.rows < tsi_maker_least_end(m->maker, &e) ||
	       (e.rows < e.height && tsi_maker_same_end(m->maker));
}

static bool load(struct tsi_others *m, const struct tsi_sample_id *id,
		 const struct other *x, uint8_t *to, struct tsi_outcome *o)
{
	int err =
		tsi_image_load_other(tsi_maker_image(m->maker), x->data, x->len,
				     (uint32_t)id->epoch, id->draw, to);

	if (!err)
		return true;
	if (err != TSOCK_EDATA)
		return fail_by(o, err, x);
	fail_as_said(o, TSI_CAME_NOT_NOW, x);
	if (!tsi_sampler_raises(m->sampler) && is_never(m, x))
		o->came = TSI_CAME_NEVER;
	return false;
}

unsigned tsi_others_count(const struct tsi_others *m)
{
	return m->n;
}

bool tsi_others_make(struct tsi_others *m, const struct tsi_others_want *q,
		     uint64_t *read_bytes, struct tsi_outcome *o)
{
	const struct tsi_index *index = tsi_sampler_index(m->sampler);
	bool made = true;

	for (unsigned k = 0; k < m->n && made; k++) {
		struct other x = { .direct = q->direct };

		x.field = tsi_columns_other(tsi_index_columns(index), k);
		tsi_index_locate_other(index, k, q->file, &x.at);
		tsi_read_wait_begin(m->wait, q->file);
		made = read_other(m, &x, o);
		tsi_read_wait_end(m->wait);
		if (!made)
			break;
		*read_bytes += x.len;
		made = load(m, q->id, &x, q->to[k], o);
		free(x.data);
	}
	return made;
}
