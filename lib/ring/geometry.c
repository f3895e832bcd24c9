/* SPDX-License-Identifier: MIT */
/*
 * geometry.c - how many slots a ring has, and how its fields are mapped.
 */
#include "ring/geometry.h"

#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/field.h"
#include "base/sequence.h"

#define PAGE_LEAST UINT64_C(4096)
#define LEAST UINT64_C(512) /* where nothing is mapped twice */
#define MAX_SAMPLES (UINT64_C(1) << 31)
#define USUAL_RING UINT64_C(2048)
#define SMALL_MARGIN (UINT64_C(64) << 10)
#define SMALL_RING UINT64_C(64) /* enough for all threads to have work */

size_t tsi_geometry_field_bytes(const struct tsock_field *f)
{
	uint64_t n = tsi_field_bytes(f);

	/* The conversion of images relies on this. */
	if ((f->flags & TSOCK_FIELD_IMAGE) &&
	    (f->dtype != TSOCK_U8 || f->ndim != 3 ||
	     (f->shape[2] != 3 && f->shape[2] != 1)))
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

/*
 * The capacity with which the most fields need no margin.  A field whose margin
 * takes less memory than the samples that avoid it doesn't count.
 */
static uint64_t best_capacity(const struct tsi_geometry *g)
{
	uint64_t best = g->capacity, best_unit = 1;

	for (unsigned i = 0; i < g->nfields; i++) {
		uint64_t unit =
			whole_pages(g->granularity, g->field[i].sample_bytes);
		uint64_t c = unit ? round_up(g->capacity, unit) : 0;

		if (g->max_batch * g->field[i].sample_bytes < SMALL_MARGIN)
			continue;
		if (unit > best_unit && c <= g->capacity + g->capacity / 4) {
			best = c;
			best_unit = unit;
		}
	}
	return best;
}

static int lay_out_ring(struct tsi_geometry *g)
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

/* ---- how many samples ---- */

/*
 * Samples from the first of a batch to the last of the next one, at most: since
 * a batch ends where its epoch does, two in a row have no more than an epoch,
 * unless each is one.
 */
static uint64_t two_batches(uint64_t max_batch, uint64_t epoch)
{
	return max_batch < epoch ? min64(2 * max_batch, epoch) : 2 * epoch;
}

/*
 * The ring that is chosen where nothing was said.  Of a small data set two
 * epochs are enough: one that late joiners still get all of, and the next; and
 * more in hand and ahead would be the same images again.
 */
static uint64_t usual_ring(uint64_t least, uint64_t epoch)
{
	return min64(USUAL_RING, max64(max64(2 * epoch, least), SMALL_RING));
}

/* Bytes of a sample of these fields where its images are float32. */
static uint64_t widest_sample(const struct tsi_geometry *g)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < g->nfields; i++)
		n += g->field[i].sample_bytes *
		     (g->field[i].desc.flags & TSOCK_FIELD_IMAGE ? 4 : 1);
	return n;
}

/* The least ring for two batches where a join window isn't said: a ninth of the
 * ring is for late readers. */
static uint64_t least_of_two(uint64_t two)
{
	return two + max64(two / 8, 1);
}

/* What is chosen where the wish says no number of samples. */
struct room {
	uint64_t fit; /* samples that the bytes have room for; 0: any number */
	uint64_t batch; /* the largest that there is then */
};

/* As least_of_two(): four ninths for each of two batches. */
static struct room room_for(const struct tsi_geometry *g,
			    const struct tsi_geometry_wish *w)
{
	uint64_t usual = w->usual ? w->usual : TSI_GEOMETRY_USUAL;
	uint64_t bytes = w->bytes ? w->bytes : usual;
	struct room r = { .batch = max64(TSI_GEOMETRY_BATCH, w->least_batch) };

	if (w->ring)
		return r;
	/* Rounding up to whole pages would exceed it again. */
	r.fit = max64(bytes / widest_sample(g), 1);
	if (r.fit > 8)
		r.fit -= r.fit % 8;
	r.batch = min64(TSI_GEOMETRY_BATCH, max64(r.fit * 4 / 9, 1));
	r.batch = max64(r.batch, w->least_batch);
	return r;
}

static uint64_t choose_capacity(const struct tsi_geometry_wish *w,
				const struct room *r, uint64_t two,
				uint64_t epoch)
{
	uint64_t least = min64(2 * two, epoch + two), c;

	if (w->ring)
		return max64(w->ring, least);
	if (w->bytes)
		return r->fit;
	c = max64(usual_ring(least, epoch), least);
	return c <= r->fit ? c : max64(r->fit, min64(least, least_of_two(two)));
}

/* Bytes were said: the numbers that don't fit are the caller's. */
static int err_room(const struct tsi_geometry *g,
		    const struct tsi_geometry_wish *w, const struct room *r,
		    uint64_t batch, uint64_t need)
{
	uint64_t wide = widest_sample(g);

	return tsi_err(TSOCK_EARG,
		       "a ring of %.1f MB has room for %llu samples of %.3f MB "
		       "(as float32), and two batches of %llu with a join "
		       "window of %llu need %llu, %.1f MB: make --ring larger, "
		       "or --max-batch or --join-window smaller",
		       (double)w->bytes / 1e6, (unsigned long long)r->fit,
		       (double)wide / 1e6, (unsigned long long)batch,
		       (unsigned long long)(w->join_window ? w->join_window
							   : need - 2 * batch),
		       (unsigned long long)need, (double)(need * wide) / 1e6);
}

/* The wish's numbers are within bounds, the fields are known. */
static int choose_sizes(struct tsi_geometry *g,
			const struct tsi_geometry_wish *w)
{
	uint64_t epoch = w->epoch_len && w->epoch_len < MAX_SAMPLES
				 ? w->epoch_len
				 : MAX_SAMPLES;
	struct room r = room_for(g, w);
	uint64_t batch = w->max_batch ? w->max_batch : r.batch;
	uint64_t two = two_batches(batch, epoch);
	uint64_t c = choose_capacity(w, &r, two, epoch);
	uint64_t need =
		w->join_window ? w->join_window + two : least_of_two(two);

	if (w->bytes && !w->ring && c < need)
		return err_room(g, w, &r, batch, need);
	g->max_batch = min64(batch, epoch);
	g->join_window =
		w->join_window ? w->join_window : min64(c / 2, c - two);
	g->capacity = max64(c, g->join_window + two);
	return 0;
}

static int begin_fields(struct tsi_geometry *g, const struct tsock_field *field,
			unsigned nfields)
{
	if (!nfields || nfields > TSOCK_MAX_FIELDS)
		return tsi_err(TSOCK_EARG,
			       "a stream has 1 to %d fields, not %u",
			       TSOCK_MAX_FIELDS, nfields);
	g->nfields = nfields;
	return take_fields(g, field);
}

/* Its sizes are known: how each field is mapped. */
static int finish_fields(struct tsi_geometry *g)
{
	g->capacity = best_capacity(g);
	return lay_out_ring(g);
}

int tsi_geometry_make(const struct tsock_field *field, unsigned nfields,
		      const struct tsi_geometry_wish *wish,
		      struct tsi_geometry *out)
{
	struct tsi_geometry g = { .granularity = tsi_geometry_page() };
	int err;

	if (wish->ring > MAX_SAMPLES || wish->join_window > MAX_SAMPLES ||
	    wish->max_batch > MAX_SAMPLES / 4 ||
	    wish->least_batch > MAX_SAMPLES / 4)
		return tsi_err(TSOCK_EARG, "a ring has at most %llu samples",
			       (unsigned long long)MAX_SAMPLES);
	err = begin_fields(&g, field, nfields);
	if (!err)
		err = choose_sizes(&g, wish);
	if (!err)
		err = finish_fields(&g);
	if (!err)
		*out = g;
	return err;
}

int tsi_geometry_like(const struct tsi_geometry *base,
		      const struct tsock_field *field, unsigned nfields,
		      uint64_t granularity, struct tsi_geometry *out)
{
	struct tsi_geometry g = { .capacity = base->capacity,
				  .join_window = base->join_window,
				  .max_batch = base->max_batch,
				  .granularity = granularity };
	int err = begin_fields(&g, field, nfields);

	if (!err)
		err = finish_fields(&g);
	if (!err)
		*out = g;
	return err;
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
		  g->max_batch <= g->capacity / 2 &&
		  g->join_window <= g->capacity &&
		  !(g->granularity & (g->granularity - 1)) &&
		  (!g->granularity || g->granularity >= PAGE_LEAST) &&
		  g->granularity <= (UINT64_C(1) << 30);

	for (unsigned i = 0; ok && i < g->nfields; i++)
		ok = field_is_sound(g, &g->field[i]);
	return ok;
}
