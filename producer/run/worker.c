/* SPDX-License-Identifier: MIT */
/*
 * worker.c - from a sequence number to a finished sample.
 *
 * A sample is made from its own file or, where that is bad, from the first of
 * its substitutes that is good for this sample (target.h).
 */
#include "run/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "pixel/budget.h"
#include "io/reader.h"
#include "run/jobs.h"
#include "run/keep.h"
#include "run/maker.h"
#include "run/mask_maker.h"
#include "run/others.h"
#include "run/read_wait.h"
#include "run/stored.h"
#include "run/target.h"

struct tsi_worker {
	struct tsi_sampler *sampler;
	struct tsi_io_reader *reader; /* NULL: images aren't files */
	struct tsi_maker *maker;
	struct tsi_mask_maker *mask;   /* NULL: samples have none */
	struct tsi_others *others;     /* NULL: they have one image */
	struct tsi_budget_claim claim; /* of memory; ends with each sample */
	struct tsi_keep *keep;         /* NULL: there is no cache */
	struct tsi_stored *stored;     /* NULL: images are files */
	unsigned depth, busy;
	bool direct;
	struct tsi_read_wait wait;
	struct tsi_job job[];
};

int tsi_worker_create(struct tsi_sampler *s, enum tsi_io_reader_kind io,
		      unsigned depth, struct tsi_budget *budget,
		      struct tsi_worker **out)
{
	struct tsi_image_opts opts = tsi_sampler_image_opts(s);
	struct tsi_worker *w =
		calloc(1, sizeof(*w) + depth * sizeof(w->job[0]));
	int err;

	if (!w)
		return tsi_err(TSOCK_ENOMEM, "no memory for a worker");
	w->sampler = s;
	w->depth = depth;
	w->claim.budget = budget;
	err = tsi_maker_create(s, &w->claim, &w->maker);
	if (!err && opts.masks)
		err = tsi_mask_maker_create(tsi_sampler_masks(s), opts.recipe,
					    &w->mask);
	if (!err)
		err = tsi_others_create(s, w->maker, &w->claim, &w->wait,
					&w->others);
	if (!err)
		err = tsi_stored_create(tsi_sampler_index(s), &w->stored);
	if (!err && !w->stored)
		err = tsi_io_reader_create(io, depth, &w->reader);
	if (err) {
		tsi_worker_destroy(w);
		return err;
	}
	*out = w;
	return 0;
}

void tsi_worker_destroy(struct tsi_worker *w)
{
	if (!w)
		return;
	tsi_io_reader_destroy(w->reader);
	tsi_maker_destroy(w->maker);
	tsi_mask_maker_destroy(w->mask);
	tsi_others_destroy(w->others);
	tsi_keep_destroy(w->keep);
	tsi_stored_destroy(w->stored);
	free(w);
}

int tsi_worker_use_cache(struct tsi_worker *w, struct tsi_image_cache *c,
			 unsigned reader)
{
	return tsi_keep_create(c, reader, &w->keep);
}

void tsi_worker_use_files(struct tsi_worker *w, struct tsi_io_files *files)
{
	if (w->reader)
		tsi_io_reader_use_files(w->reader, files);
}

void tsi_worker_use_direct(struct tsi_worker *w)
{
	w->direct = true;
}

unsigned tsi_worker_busy(const struct tsi_worker *w)
{
	return w->busy;
}

const char *tsi_worker_reader(const struct tsi_worker *w)
{
	return w->reader ? tsi_io_reader_name(w->reader) : NULL;
}

const char *tsi_worker_reader_why(const struct tsi_worker *w)
{
	return w->reader ? tsi_io_reader_why(w->reader) : NULL;
}

/* ------------------------------------------------------------------------
 * Samples
 */

static int read_target(struct tsi_worker *w, struct tsi_job *j)
{
	struct tsi_read_request q = tsi_jobs_request(j, w->sampler, w->direct);

	j->need = (struct tsi_maker_need){ w->maker, &j->target.id };
	tsi_maker_ask(&j->need, &q);
	j->target.read_ns = tsi_badfiles_now();
	j->reads++;
	return tsi_io_reader_submit(w->reader, &q);
}

static int submit(struct tsi_worker *w, struct tsi_job *j)
{
	j->kept = w->stored || tsi_keep_has(w->keep, j->target.file);
	return j->kept ? 0 : read_target(w, j);
}

int tsi_worker_begin(struct tsi_worker *w, uint64_t seq)
{
	struct tsi_job *j = tsi_jobs_free(w->job);
	int err;

	j->seq = seq;
	err = tsi_target_first(&j->target, w->sampler, w->maker, seq);
	if (!err)
		err = submit(w, j);
	if (err)
		return err;
	j->used = true;
	w->busy++;
	return 0;
}

/*
 * Make job j's sample of its target's bytes: of the packed form if that is
 * kept, now or before.
 */
static int decode(struct tsi_worker *w, const struct tsi_job *j,
		  struct tsi_maker_bytes b, const struct tsi_slots *to,
		  struct tsi_box *box)
{
	struct tsi_image *img = tsi_maker_image(w->maker);
	const uint8_t *record = NULL;
	uint64_t file = j->target.file;
	int err;

	if (w->keep && !j->kept)
		record = tsi_keep_pack(w->keep, file, b.data, b.len, &b.len);
	if (record)
		b.data = record;
	if (img)
		tsi_image_trust(img, record || j->kept);
	/* The draws are the sample's, whichever file it is made from. */
	err = tsi_maker_load(w->maker, file, &b, &j->target.id, to, box);
	if (img)
		tsi_image_trust(img, false);
	return err;
}

/* What a decoder's failure means. */
static void fail_read(struct tsi_worker *w, int err,
		      const struct tsi_maker_bytes *b, struct tsi_outcome *o)
{
	tsi_err_copy(o->reason, sizeof(o->reason));
	o->came = err == TSOCK_EDATA    ? TSI_CAME_UNDECODABLE
		  : err == TSOCK_EAGAIN ? TSI_CAME_CROWDED
		  : err == TSOCK_ENOMEM ? TSI_CAME_NO_MEMORY
					: TSI_CAME_END;
	o->err = err;
	/* Where that decides anything. */
	if (err == TSOCK_EDATA && !tsi_sampler_raises(w->sampler) &&
	    !tsi_maker_same_end(w->maker))
		o->measure_err = tsi_maker_measure(w->maker, b, &o->extent);
}

/* Make the mask of the sample that was just loaded; false: o says why not. */
static bool make_mask(struct tsi_worker *w, struct tsi_job *j, uint8_t *to,
		      struct tsi_outcome *o)
{
	const struct tsi_image_drawn last =
		tsi_image_last(tsi_maker_image(w->maker));
	size_t len;
	bool read;

	tsi_read_wait_begin(&w->wait, j->target.file);
	read = tsi_mask_maker_read(w->mask, j->target.file, &last, &len, o);
	tsi_read_wait_end(&w->wait);
	if (!read)
		return false;
	j->reads++;
	j->read_bytes += len;
	return tsi_mask_maker_load(w->mask, &last, to, o);
}

/* Likewise the images behind the first. */
static bool make_others(struct tsi_worker *w, struct tsi_job *j,
			const struct tsi_slots *to, struct tsi_outcome *o)
{
	const struct tsi_others_want q = { j->target.file, &j->target.id,
					   w->direct, to->more };

	j->reads += tsi_others_count(w->others);
	return tsi_others_make(w->others, &q, &j->read_bytes, o);
}

/* Do to the sample's boxes what was done to its image. */
static void move_boxes(struct tsi_worker *w, const struct tsi_slots *to)
{
	const struct tsi_box_columns *boxes = tsi_sampler_boxes(w->sampler);

	if (boxes) {
		const struct tsi_image_drawn last =
			tsi_image_last(tsi_maker_image(w->maker));

		tsi_box_columns_move(boxes, &last, to);
	}
}

/* Make job j's sample of these bytes of its target. */
static void make_sample(struct tsi_worker *w, struct tsi_job *j,
			const struct tsi_maker_bytes *b,
			const struct tsi_slots *to, struct tsi_outcome *o)
{
	int64_t start = tsi_now_ns();
	struct tsi_box box;
	int err;

	o->came = TSI_CAME_KNOWN;
	if (tsi_target_is_bad(&j->target, w->sampler, w->maker))
		return;
	err = decode(w, j, *b, to, &box);
	if (err) {
		fail_read(w, err, b, o);
		return;
	}
	if ((w->mask && !make_mask(w, j, to->mask, o)) ||
	    (w->others && !make_others(w, j, to, o)))
		return;
	tsi_badlist_vouch(tsi_sampler_badlist(w->sampler), j->target.file);
	err = tsi_jobs_describe(j, tsi_sampler_index(w->sampler), &box, to);
	if (err) {
		o->came = TSI_CAME_END;
		o->err = err;
		return;
	}
	move_boxes(w, to);
	if (w->keep && !j->kept)
		tsi_keep_offer(w->keep, j->target.file, b->data, b->len,
			       (uint64_t)(tsi_now_ns() - start));
	o->came = TSI_CAME_SAMPLE;
}

/* The target came to this: the sample is made, or something is read for it. */
static int follow_target(struct tsi_worker *w, struct tsi_job *j,
			 const struct tsi_outcome *o)
{
	int err;

	if (o->came == TSI_CAME_SAMPLE)
		return 0;
	err = tsi_target_next(&j->target, w->sampler, w->maker, o);
	return err ? err : submit(w, j);
}

/* The image lies in the data set's file as pixels, where it always is. */
static int make_stored(struct tsi_worker *w, struct tsi_job *j,
		       const struct tsi_slots *to, bool *done)
{
	struct tsi_outcome o;
	struct tsi_maker_bytes b = { .of = 0 };
	int err = tsi_stored_take(w->stored, j->target.file, &b.data, &b.len);

	if (err)
		return err;
	j->read_bytes += b.len;
	make_sample(w, j, &b, to, &o);
	tsi_budget_claim_end(&w->claim);
	*done = o.came == TSI_CAME_SAMPLE;
	return follow_target(w, j, &o);
}

/* The target is in the cache, or was when the sample was begun. */
static int make_kept(struct tsi_worker *w, struct tsi_job *j,
		     const struct tsi_slots *to, bool *done)
{
	struct tsi_outcome o;
	struct tsi_maker_bytes b = { .of = 0 };
	bool made = false;

	if (w->stored)
		return make_stored(w, j, to, done);
	b.data = tsi_keep_take(w->keep, j->target.file, &b.len);
	if (b.data) {
		make_sample(w, j, &b, to, &o);
		tsi_budget_claim_end(&w->claim);
		/* What finds no memory here goes the way of other images. */
		made = o.came != TSI_CAME_CROWDED &&
		       o.came != TSI_CAME_NO_MEMORY;
	}
	tsi_keep_give(w->keep);
	j->kept = false;
	if (!made)
		return read_target(w, j);
	*done = o.came == TSI_CAME_SAMPLE;
	return follow_target(w, j, &o);
}

int64_t tsi_worker_waits(const struct tsi_worker *w, uint64_t *file)
{
	return tsi_read_wait_ask(&w->wait, file);
}

/* The next read, one that has come or, if it may wait, the first that comes. */
static int next_read(struct tsi_worker *w, bool wait, struct tsi_read *r)
{
	int err;

	/* Asking alone may take long: the kernel may open files meanwhile. */
	tsi_read_wait_begin(&w->wait,
			    tsi_jobs_first(w->job, w->depth)->target.file);
	err = tsi_io_reader_next(w->reader, false, r);
	if (err == TSOCK_EAGAIN && wait)
		err = tsi_io_reader_next(w->reader, true, r);
	tsi_read_wait_end(&w->wait);
	return err;
}

/* Read and decode in this thread; the claim covers the file's bytes. */
static void make_here(struct tsi_worker *w, struct tsi_job *j, size_t size,
		      const struct tsi_slots *to, struct tsi_outcome *o)
{
	struct tsi_read_request q = tsi_jobs_request(j, w->sampler, w->direct);
	uint8_t *data;
	size_t len;
	int err;

	w->claim.file = size;
	tsi_read_wait_begin(&w->wait, j->target.file);
	err = tsi_io_read(&q, size, &data, &len);
	if (tsi_jobs_copy_failed(j, w->sampler, err)) {
		q = tsi_jobs_request(j, w->sampler, w->direct);
		err = tsi_io_read(&q, size, &data, &len);
	}
	tsi_read_wait_end(&w->wait);
	if (!err) {
		j->read_bytes += len;
		make_sample(w, j, &(struct tsi_maker_bytes){ data, len, 0 }, to,
			    o);
		free(data);
		return;
	}
	o->came = err == ENOMEM  ? TSI_CAME_NO_MEMORY
		  : err == EFBIG ? TSI_CAME_NOT_NOW
				 : TSI_CAME_UNREAD;
	o->err = err;
	snprintf(o->reason, sizeof(o->reason), "%s",
		 err == ENOMEM ? "no memory to read it"
			       : "it grows while it is read");
}

/*
 * A file too large to be read ahead: memory for its bytes and for its decoder
 * is claimed together.  How much the decoder needs is known once the file was
 * read; if so much isn't free, all is given back before it is waited for.
 */
static void make_large(struct tsi_worker *w, struct tsi_job *j, size_t size,
		       const struct tsi_slots *to, struct tsi_outcome *o)
{
	uint64_t total = size;

	do {
		o->err = tsi_budget_claim_grow(&w->claim, total);
		if (o->err) {
			tsi_err_copy(o->reason, sizeof(o->reason));
			o->came = o->err == TSOCK_EDATA ? TSI_CAME_NEVER
							: TSI_CAME_END;
		} else {
			make_here(w, j, size, to, o);
		}
		total = w->claim.wanted;
		tsi_budget_claim_end(&w->claim);
	} while (o->came == TSI_CAME_CROWDED);
}

/*
 * There was no memory for job j's image: try again while no other large image
 * is decoded.  A large image that finds no memory even then is too large for
 * this machine and a bad file; a small one that finds none ends the stream.
 */
static void make_alone(struct tsi_worker *w, struct tsi_job *j, size_t size,
		       const struct tsi_slots *to, struct tsi_outcome *o)
{
	bool large;

	tsi_budget_claim_end(&w->claim);
	o->err = tsi_budget_claim_all(&w->claim);
	o->came = TSI_CAME_END;
	if (!o->err)
		make_here(w, j, size, to, o);
	large = size > TSI_READER_AHEAD || w->claim.need > TSI_IMAGE_SMALL;
	tsi_budget_claim_end(&w->claim);
	if (o->came == TSI_CAME_NO_MEMORY && large)
		o->came = TSI_CAME_NOT_NOW;
}

/* A read has come: decode it, and give its memory back to the reader. */
static int use(struct tsi_worker *w, struct tsi_job *j,
	       const struct tsi_read *r, const struct tsi_slots *to, bool *done)
{
	struct tsi_outcome o = { .came = TSI_CAME_UNREAD, .err = r->err };
	size_t size = r->err == TSI_READ_LARGE ? r->size : TSI_READER_AHEAD;

	if (tsi_jobs_copy_failed(j, w->sampler, r->err)) {
		tsi_io_reader_recycle(w->reader, r);
		return read_target(w, j);
	}
	if (r->err == TSI_READ_LARGE) {
		make_large(w, j, size, to, &o);
	} else if (r->err == ENOMEM) {
		o.came = TSI_CAME_NO_MEMORY;
	} else if (!r->err) {
		j->read_bytes += r->len;
		make_sample(w, j,
			    &(struct tsi_maker_bytes){ r->data, r->len, r->of },
			    to, &o);
		tsi_budget_claim_end(&w->claim);
	}
	/* Several images want more together than was free. */
	if (o.came == TSI_CAME_CROWDED)
		make_large(w, j, size, to, &o);
	if (o.came == TSI_CAME_NO_MEMORY)
		make_alone(w, j, size, to, &o);
	tsi_io_reader_recycle(w->reader, r);
	*done = o.came == TSI_CAME_SAMPLE;
	return follow_target(w, j, &o);
}

int tsi_worker_finish(struct tsi_worker *w,
		      void (*slots)(void *arg, uint64_t seq,
				    struct tsi_slots *out),
		      void *arg, struct tsi_made *out)
{
	uint64_t io_ns = 0, decode_ns = 0;
	bool done = false;
	struct tsi_job *j = NULL;

	while (!done) {
		int64_t start = tsi_now_ns(), read;
		struct tsi_job *kept = tsi_jobs_first_kept(w->job, w->depth);
		struct tsi_slots to = { .image = NULL };
		struct tsi_read r;
		int err;

		/* What was read comes first: it holds memory. */
		err = w->stored ? TSOCK_EAGAIN : next_read(w, !kept, &r);
		if (err && (!kept || err != TSOCK_EAGAIN))
			return err;
		read = tsi_now_ns();
		j = err ? kept : tsi_jobs_of(w->job, r.tag);
		slots(arg, j->seq, &to);
		err = err ? make_kept(w, j, &to, &done)
			  : use(w, j, &r, &to, &done);
		if (err)
			return err;
		io_ns += (uint64_t)(read - start);
		decode_ns += (uint64_t)(tsi_now_ns() - read);
	}
	out->seq = j->seq;
	out->read_bytes = j->read_bytes;
	out->reads = j->reads;
	out->substituted = j->target.file != j->target.id.index;
	out->io_ns = io_ns;
	out->decode_ns = decode_ns;
	j->used = false;
	w->busy--;
	return 0;
}
