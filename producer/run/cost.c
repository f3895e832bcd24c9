/* SPDX-License-Identifier: MIT */
/*
 * cost.c - the time that samples take, measured.
 */
#include "run/cost.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "image/load.h"
#include "io/reader.h"
#include "pixel/budget.h"
#include "recipe/recipe.h"
#include "run/stored.h"

struct measure {
	struct tsi_sampler *sampler;
	struct tsi_image *image;
	struct tsi_stored *stored; /* NULL: images are files */
	struct tsi_budget *budget;
	struct tsi_budget_claim claim;
	uint8_t *pixels; /* of all views */
	int64_t ns[TSI_COST_SAMPLES];
	unsigned n;
};

static size_t view_bytes(const struct tsi_recipe_view *v)
{
	return (size_t)v->width * v->height * v->channels;
}

/* Memory for a sample: the views go one behind the other. */
static int prepare_views(struct measure *m, const struct tsi_recipe *r)
{
	uint8_t *to[TSI_RECIPE_VIEWS] = { NULL };
	size_t all = 0;

	for (unsigned k = 0; k < r->views; k++)
		all += view_bytes(&r->view[k]);
	m->pixels = malloc(all);
	if (!m->pixels)
		return tsi_err(TSOCK_ENOMEM, "no memory for a sample");
	to[0] = m->pixels;
	for (unsigned k = 1; k < r->views; k++)
		to[k] = to[k - 1] + view_bytes(&r->view[k - 1]);
	tsi_image_set_more(m->image, to + 1);
	return 0;
}

static int prepare(struct measure *m, uint64_t image_memory)
{
	struct tsi_image_opts opts = tsi_sampler_image_opts(m->sampler);
	int err = tsi_budget_create(image_memory, &m->budget);

	if (err)
		return err;
	m->claim = tsi_budget_claim_of(m->budget);
	opts.claim = &m->claim;
	err = tsi_image_create(&opts, &m->image);
	if (!err)
		err = tsi_stored_create(tsi_sampler_index(m->sampler),
					&m->stored);
	return err ? err : prepare_views(m, opts.recipe);
}

static void finish(struct measure *m)
{
	tsi_image_destroy(m->image);
	tsi_stored_destroy(m->stored);
	tsi_budget_destroy(m->budget);
	free(m->pixels);
}

/* The bytes of a file, or of pixels that lie in one; false: the file is bad. */
static bool take(struct measure *m, uint64_t file, const uint8_t **data,
		 uint8_t **mem, size_t *len)
{
	const struct tsi_index *x = tsi_sampler_index(m->sampler);
	struct tsi_read_request q = { .dirfd = tsi_index_dirfd(x) };
	struct tsi_location at;

	*mem = NULL;
	if (m->stored)
		return !tsi_stored_take(m->stored, file, data, len);
	tsi_index_locate_bytes(x, file, &at);
	q.folder = at.folder;
	q.path = at.file;
	q.offset = at.offset;
	q.length = at.length;
	if (tsi_index_bad(x, file) || tsi_io_read(&q, TSI_READER_MAX, mem, len))
		return false;
	*data = *mem;
	return true;
}

/* Make this sample of its own file; false: the file is bad. */
static bool make(struct measure *m, const struct tsi_sample_id *id, int64_t *ns)
{
	const uint8_t *data;
	struct tsi_box box;
	uint8_t *mem;
	size_t len;
	int err;

	if (!take(m, id->index, &data, &mem, &len))
		return false;
	*ns = tsi_now_ns();
	err = tsi_image_load_file(m->image, id->index, data, len,
				  (uint32_t)id->epoch, id->draw, m->pixels,
				  &box);
	*ns = tsi_now_ns() - *ns;
	tsi_budget_claim_end(&m->claim);
	free(mem);
	return !err;
}

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void take_median(struct measure *m, struct tsi_cost *out)
{
	const unsigned half = m->n / 2;

	qsort(m->ns, m->n, sizeof(m->ns[0]), compare);
	*out = (struct tsi_cost){ .samples = m->n };
	if (m->n)
		out->us = (double)(m->ns[half] + m->ns[(m->n - 1) / 2]) / 2e3;
}

int tsi_cost_measure(struct tsi_sampler *s, uint64_t image_memory,
		     struct tsi_cost *out)
{
	const uint64_t len = tsi_sampler_epoch_len(s);
	const uint64_t tried = len < TSI_COST_SAMPLES ? len : TSI_COST_SAMPLES;
	struct measure m = { .sampler = s };
	int err = prepare(&m, image_memory);

	for (uint64_t k = 0; k < tried && !err; k++) {
		struct tsi_sample_id id;

		err = tsi_sampler_at(s, len / tried * k, &id);
		/* Twice, since the first one's memory is new to the process. */
		if (!err && !m.n)
			make(&m, &id, &m.ns[0]);
		if (!err && make(&m, &id, &m.ns[m.n]))
			m.n++;
	}
	if (!err)
		take_median(&m, out);
	finish(&m);
	return err;
}
