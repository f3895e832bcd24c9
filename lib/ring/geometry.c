/* SPDX-License-Identifier: MIT */
/*
 * geometry.c - how many slots a ring has, and how its fields are mapped.
 */
#include "ring/geometry.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"

#define PAGE_LEAST UINT64_C(4096)
#define LEAST UINT64_C(512) /* where nothing is mapped twice */
#define MAX_SAMPLES (UINT64_C(1) << 31)

size_t tsi_geometry_field_bytes(const struct tsock_field *f)
{
	uint64_t n = tsock_dtype_size(f->dtype);

	if (f->ndim > TSOCK_MAX_DIMS)
		return 0;
	for (unsigned i = 0; i < f->ndim; i++)
		if (__builtin_mul_overflow(n, f->shape[i], &n))
			return 0;
	/* The conversion of images relies on this. */
	if ((f->flags & TSOCK_FIELD_IMAGE) &&
	    (f->dtype != TSOCK_U8 || f->ndim != 3 || f->shape[2] != 3))
		return 0;
	return n <= (UINT64_C(1) << 40) ? n : 0;
}

bool tsi_geometry_field_is_good(const struct tsock_field *f)
{
	return memchr(f->name, 0, sizeof(f->name)) &&
	       tsi_geometry_field_bytes(f);
}

/* Samples after which a field's ring is a whole number of pages; 0: never. */
static uint64_t whole_pages(uint64_t page, uint64_t sample_bytes)
{
	uint64_t low = sample_bytes & -sample_bytes; /* largest power of 2 */

	if (!page)
		return 0;
	return low >= page ? 1 : page / low;
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* The capacity that lets the most fields do without a margin. */
static uint64_t best_capacity(const struct tsi_geometry *g)
{
	uint64_t best = g->capacity, best_unit = 1;

	for (unsigned i = 0; i < g->nfields; i++) {
		uint64_t unit =
			whole_pages(g->granularity, g->field[i].sample_bytes);
		uint64_t c = unit ? round_up(g->capacity, unit) : 0;

		if (unit > best_unit && c <= g->capacity + g->capacity / 4) {
			best = c;
			best_unit = unit;
		}
	}
	return best;
}

static int lay_out(struct tsi_geometry *g)
{
	g->bytes = 0;
	for (unsigned i = 0; i < g->nfields; i++) {
		struct tsi_ring_field *f = &g->field[i];
		uint64_t samples = g->capacity, bytes;

		uint64_t unit = whole_pages(g->granularity, f->sample_bytes);

		f->margin = !unit || samples % unit ? g->max_batch : 0;
		samples += f->margin;
		if (__builtin_mul_overflow(samples, f->sample_bytes, &bytes) ||
		    bytes > (UINT64_C(1) << 46))
			return tsi_err(TSOCK_EARG,
				       "a ring of %llu samples of field %s is "
				       "too large; make the ring smaller",
				       (unsigned long long)samples,
				       f->desc.name);
		f->map_bytes = round_up(bytes, g->granularity ? g->granularity
							      : LEAST);
		g->bytes += f->map_bytes;
	}
	return 0;
}

static int take_fields(struct tsi_geometry *g, const struct tsock_field *field)
{
	for (unsigned i = 0; i < g->nfields; i++) {
		size_t bytes = tsi_geometry_field_bytes(&field[i]);

		if (!memchr(field[i].name, 0, sizeof(field[i].name)) ||
		    !field[i].name[0])
			return tsi_err(TSOCK_EARG, "field %u has no name", i);
		if (!bytes)
			return tsi_err(TSOCK_EARG,
				       "field %s has an unknown dtype or an "
				       "impossible shape",
				       field[i].name);
		g->field[i].desc = field[i];
		g->field[i].sample_bytes = bytes;
	}
	return 0;
}

uint64_t tsi_geometry_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

int tsi_geometry_make(const struct tsock_field *field, unsigned nfields,
		      uint64_t ring, uint64_t join_window, uint64_t max_batch,
		      struct tsi_geometry *out)
{
	return tsi_geometry_for(field, nfields, ring, join_window, max_batch,
				tsi_geometry_page(), out);
}

int tsi_geometry_for(const struct tsock_field *field, unsigned nfields,
		     uint64_t ring, uint64_t join_window, uint64_t max_batch,
		     uint64_t granularity, struct tsi_geometry *out)
{
	struct tsi_geometry g = { .nfields = nfields,
				  .granularity = granularity };
	uint64_t c = ring ? ring : 2048;
	int err;

	if (!nfields || nfields > TSOCK_MAX_FIELDS)
		return tsi_err(TSOCK_EARG,
			       "a stream has 1 to %d fields, not %u",
			       TSOCK_MAX_FIELDS, nfields);
	if (c > MAX_SAMPLES || join_window > MAX_SAMPLES ||
	    max_batch > MAX_SAMPLES / 4)
		return tsi_err(TSOCK_EARG, "a ring has at most %llu samples",
			       (unsigned long long)MAX_SAMPLES);
	err = take_fields(&g, field);
	if (err)
		return err;
	g.max_batch = max_batch ? max_batch : 512;
	if (c < 4 * g.max_batch)
		c = 4 * g.max_batch;
	g.join_window = join_window ? join_window : c / 2;
	if (c < g.join_window + 2 * g.max_batch)
		c = g.join_window + 2 * g.max_batch;
	g.capacity = c;
	g.capacity = best_capacity(&g);
	err = lay_out(&g);
	if (err)
		return err;
	*out = g;
	return 0;
}

/* ---- what another process states ---- */

static bool field_is_sound(const struct tsi_geometry *g,
			   const struct tsi_ring_field *f)
{
	uint64_t samples = g->capacity + f->margin, bytes;
	uint64_t page = g->granularity ? g->granularity : LEAST;

	if (!tsi_geometry_field_is_good(&f->desc) ||
	    f->sample_bytes != tsi_geometry_field_bytes(&f->desc))
		return false;
	if (f->margin && f->margin != g->max_batch)
		return false;
	if (__builtin_mul_overflow(samples, f->sample_bytes, &bytes) ||
	    bytes > f->map_bytes || f->map_bytes - bytes >= page ||
	    f->map_bytes % page)
		return false;
	return f->margin || bytes == f->map_bytes;
}

bool tsi_geometry_is_sound(const struct tsi_geometry *g)
{
	bool ok = g->nfields && g->nfields <= TSOCK_MAX_FIELDS && g->capacity &&
		  g->capacity <= (UINT64_C(1) << 32) && g->max_batch &&
		  g->max_batch <= g->capacity / 4 &&
		  g->join_window <= g->capacity &&
		  !(g->granularity & (g->granularity - 1)) &&
		  (!g->granularity || g->granularity >= PAGE_LEAST) &&
		  g->granularity <= (UINT64_C(1) << 30);

	for (unsigned i = 0; ok && i < g->nfields; i++)
		ok = field_is_sound(g, &g->field[i]);
	return ok;
}
