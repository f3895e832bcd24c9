/* SPDX-License-Identifier: MIT */
/*
 * worker.c - from a sequence number to a finished sample.
 *
 * A sample is made from its own file or, where that is bad, from the first of
 * its substitutes that is good for this sample (target.h).
 */
#include "run/worker.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "image/load.h"
#include "base/clock.h"
#include "base/err.h"
#include "pixel/budget.h"
#include "io/reader.h"
#include "run/jobs.h"
#include "run/keep.h"
#include "run/target.h"

struct tsi_worker {
	struct tsi_sampler *sampler;
	struct tsi_io_reader *reader;
	struct tsi_image *image;
	struct tsi_budget_claim claim; /* of memory; ends with each sample */
	struct tsi_keep *keep;         /* NULL: there is no cache */
	unsigned depth, busy;
	bool direct;
	/* For who asks, from another thread: is a read waited for? */
	_Atomic int64_t waits_since_ns; /* 0: none is */
	_Atomic uint64_t waits_file;
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
	opts.claim = &w->claim;
	err = tsi_image_create(&opts, &w->image);
	if (!err)
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
	tsi_image_destroy(w->image);
	tsi_keep_destroy(w->keep);
	free(w);
}

int tsi_worker_use_cache(struct tsi_worker *w, struct tsi_image_cache *c,
			 unsigned reader)
{
	return tsi_keep_create(c, reader, &w->keep);
}

void tsi_worker_use_files(struct tsi_worker *w, struct tsi_io_files *files)
{
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
	return tsi_io_reader_name(w->reader);
}

const char *tsi_worker_reader_why(const struct tsi_worker *w)
{
	return tsi_io_reader_why(w->reader);
}

/* ------------------------------------------------------------------------
 * Samples
 */

static int choose(struct tsi_worker *w, struct tsi_job *j)
{
	return tsi_target_choose(&j->target, w->sampler, w->image);
}

/* Job j's file is bad for its sample: choose another one, or end the stream. */
static int replace(struct tsi_worker *w, struct tsi_job *j, const char *reason)
{
	return tsi_target_replace(&j->target, w->sampler, w->image, reason);
}

/* Where the bytes of job j's target are. */
static struct tsi_read_request bytes_of(const struct tsi_worker *w,
					const struct tsi_job *j)
{
	const struct tsi_index *x = tsi_sampler_index(w->sampler);
	struct tsi_location at;

	tsi_index_locate(x, j->target.file, &at);
	return (struct tsi_read_request){
		.dirfd = tsi_index_dirfd(x),
		.path = at.path,
		.offset = at.offset,
		.length = at.length,
		.direct = w->direct,
		.size_hint = at.size,
		.tag = j->seq,
	};
}

static int read_target(struct tsi_worker *w, struct tsi_job *j)
{
	struct tsi_read_request q = bytes_of(w, j);

	j->target.read_ns = tsi_badfiles_now();
	j->reads++;
	return tsi_io_reader_submit(w->reader, &q);
}

static int submit(struct tsi_worker *w, struct tsi_job *j)
{
	j->kept = tsi_keep_has(w->keep, j->target.file);
	return j->kept ? 0 : read_target(w, j);
}

int tsi_worker_begin(struct tsi_worker *w, uint64_t seq)
{
	struct tsi_job *j = tsi_jobs_free(w->job);
	const char *why = NULL;
	int err;

	j->seq = seq;
	err = tsi_target_first(&j->target, w->sampler, seq);
	if (err)
		return err;
	if (tsi_sampler_raises(w->sampler))
		why = tsi_index_bad_reason(tsi_sampler_index(w->sampler),
					   j->target.file);
	err = why ? replace(w, j, why) : choose(w, j);
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
		  const uint8_t *data, size_t len, const struct tsi_slots *to,
		  struct tsi_box *box)
{
	const uint8_t *record = NULL;
	uint64_t file = j->target.file;
	int err;

	if (w->keep && !j->kept)
		record = tsi_keep_pack(w->keep, file, data, len, &len);
	if (record)
		data = record;
	tsi_image_trust(w->image, record || j->kept);
	/* The draws are the sample's, whichever file it is made from. */
	err = tsi_image_load_file(w->image, file, data, len,
				  (uint32_t)j->target.id.epoch,
				  j->target.id.index, to->image, box);
	tsi_image_trust(w->image, false);
	return err;
}

/* Decode; sets *done when the sample is there, else job j has a new target. */
static int load(struct tsi_worker *w, struct tsi_job *j, const uint8_t *data,
		size_t len, const struct tsi_slots *to, bool *done)
{
	int64_t start = tsi_now_ns();
	struct tsi_box box;
	int err;

	/* Another worker may have been here meanwhile. */
	if (tsi_target_is_bad(&j->target, w->sampler, w->image))
		return choose(w, j);
	err = decode(w, j, data, len, to, &box);
	if (err == TSOCK_EDATA)
		return tsi_target_undecodable(&j->target, w->sampler, w->image,
					      data, len);
	if (err)
		return err;
	tsi_badlist_vouch(tsi_sampler_badlist(w->sampler), j->target.file);
	tsi_jobs_describe(j, tsi_sampler_index(w->sampler), &box, to);
	if (w->keep && !j->kept)
		tsi_keep_offer(w->keep, j->target.file, data, len,
			       (uint64_t)(tsi_now_ns() - start));
	*done = true;
	return 0;
}

/* The target is in the cache, or was when the sample was begun. */
static int load_kept(struct tsi_worker *w, struct tsi_job *j,
		     const struct tsi_slots *to, bool *done)
{
	uint64_t file = j->target.file;
	const uint8_t *data;
	size_t len;
	int err = 0;

	*done = false;
	data = tsi_keep_take(w->keep, file, &len);
	if (data) {
		err = load(w, j, data, len, to, done);
		tsi_budget_claim_end(&w->claim);
	}
	tsi_keep_give(w->keep);
	j->kept = false;
	/* What finds no memory here goes the way of other images. */
	if (err && err != TSOCK_EAGAIN && err != TSOCK_ENOMEM)
		return err;
	err = 0;
	if (!*done)
		err = j->target.file == file ? read_target(w, j) : submit(w, j);
	return err;
}

static void wait_begins(struct tsi_worker *w, uint64_t file)
{
	atomic_store(&w->waits_file, file);
	atomic_store(&w->waits_since_ns, tsi_now_ns());
}

static void wait_ends(struct tsi_worker *w)
{
	atomic_store(&w->waits_since_ns, 0);
}

int64_t tsi_worker_waits(const struct tsi_worker *w, uint64_t *file)
{
	int64_t since = atomic_load(&w->waits_since_ns);

	*file = atomic_load(&w->waits_file);
	/* Else the file may be another wait's. */
	return atomic_load(&w->waits_since_ns) == since ? since : 0;
}

/* The next read, one that has come or, if it may wait, the first that comes. */
static int next_read(struct tsi_worker *w, bool wait, struct tsi_read *r)
{
	int err = tsi_io_reader_next(w->reader, false, r);

	if (err != TSOCK_EAGAIN || !wait)
		return err;
	wait_begins(w, tsi_jobs_first(w->job, w->depth)->target.file);
	err = tsi_io_reader_next(w->reader, true, r);
	wait_ends(w);
	return err;
}

/* Read and decode in this thread; the claim covers the file's bytes. */
static int load_here(struct tsi_worker *w, struct tsi_job *j, size_t size,
		     const struct tsi_slots *to, bool *done)
{
	struct tsi_read_request q = bytes_of(w, j);
	uint8_t *data;
	size_t len;
	int err;

	w->claim.file = size;
	wait_begins(w, j->target.file);
	err = tsi_io_read(&q, size, &data, &len);
	wait_ends(w);
	if (err == ENOMEM)
		return tsi_err(TSOCK_ENOMEM, "no memory to read it");
	if (err == EFBIG)
		return replace(w, j, "it grows while it is read");
	if (err)
		return tsi_target_read_failed(&j->target, w->sampler, w->image,
					      err);
	j->read_bytes += len;
	err = load(w, j, data, len, to, done);
	free(data);
	return err;
}

/*
 * A file too large to be read ahead: memory for its bytes and for its decoder
 * is claimed together.  How much the decoder needs is known once the file was
 * read; if so much isn't free, all is given back before it is waited for.
 */
static int load_large(struct tsi_worker *w, struct tsi_job *j, size_t size,
		      const struct tsi_slots *to, bool *done)
{
	uint64_t total = size;
	char reason[256];
	int err;

	do {
		err = tsi_budget_claim_grow(&w->claim, total);
		if (err == TSOCK_EDATA) {
			tsi_err_copy(reason, sizeof(reason));
			return tsi_target_unreadable(&j->target, w->sampler,
						     w->image, reason);
		}
		if (!err)
			err = load_here(w, j, size, to, done);
		total = w->claim.wanted;
		tsi_budget_claim_end(&w->claim);
	} while (err == TSOCK_EAGAIN);
	return err;
}

/*
 * There was no memory for job j's image: try again while no other large image
 * is decoded.  A large image that finds no memory even then is too large for
 * this machine and a bad file; a small one that finds none ends the stream.
 */
static int load_alone(struct tsi_worker *w, struct tsi_job *j, size_t size,
		      const struct tsi_slots *to, bool *done)
{
	char reason[256];
	bool large;
	int err;

	tsi_budget_claim_end(&w->claim);
	err = tsi_budget_claim_all(&w->claim);
	if (!err)
		err = load_here(w, j, size, to, done);
	large = size > TSI_READER_AHEAD || w->claim.need > TSI_IMAGE_SMALL;
	tsi_budget_claim_end(&w->claim);
	if (err != TSOCK_ENOMEM)
		return err;
	tsi_err_copy(reason, sizeof(reason));
	return large ? replace(w, j, reason)
		     : tsi_target_err(&j->target, w->sampler, TSOCK_ENOMEM,
				      reason);
}

/* A read has come: decode it, and give its memory back to the reader. */
static int use(struct tsi_worker *w, struct tsi_job *j,
	       const struct tsi_read *r, const struct tsi_slots *to, bool *done)
{
	size_t size = TSI_READER_AHEAD;
	int err;

	*done = false;
	if (r->err == TSI_READ_LARGE) {
		size = r->size;
		err = load_large(w, j, size, to, done);
	} else if (r->err == ENOMEM) {
		err = TSOCK_ENOMEM;
	} else if (r->err) {
		err = tsi_target_read_failed(&j->target, w->sampler, w->image,
					     r->err);
	} else {
		j->read_bytes += r->len;
		err = load(w, j, r->data, r->len, to, done);
		tsi_budget_claim_end(&w->claim);
	}
	if (err == TSOCK_ENOMEM)
		err = load_alone(w, j, size, to, done);
	tsi_io_reader_recycle(w->reader, r);
	if (err || *done)
		return err;
	/* After an I/O error its target may still be the same file. */
	return submit(w, j);
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
		err = next_read(w, !kept, &r);
		if (err && (!kept || err != TSOCK_EAGAIN))
			return err;
		read = tsi_now_ns();
		j = err ? kept : tsi_jobs_of(w->job, r.tag);
		slots(arg, j->seq, &to);
		err = err ? load_kept(w, j, &to, &done)
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
