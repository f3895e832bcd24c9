/*
 * lane.c - one worker's way from a sequence number to a finished sample.
 *
 * A place gets its own file or, where that is bad, the next one that is good
 * for it.  Files that are known to be bad for it are passed by without being
 * read.  In a new run of bad files all samples in progress want the same next
 * one: one reads it, the others wait for what comes of it.
 */
#include "run/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "image/budget.h"
#include "io/reader.h"

#define RETRIES 3

struct job {
	bool used;
	uint64_t seq;
	struct tsi_spot spot; /* whose place it is, and so the draws' key */
	uint64_t target;      /* whose file is read for it */
	uint64_t passed;      /* files from its own to the target */
	bool searching;       /* its last target was bad, and news */
	bool parked;          /* another one reads the same target */
	bool again;           /* all that was known was forgotten for it */
	unsigned failures;    /* of this file, by I/O errors */
	int64_t read_ns;      /* when this file's read was asked for */
	uint64_t read_bytes;
	uint32_t reads;
};

struct tsi_lane {
	struct tsi_source *source;
	struct tsi_file_reader *reader;
	struct tsi_image *image;
	struct tsi_claim claim; /* of memory; ends with each sample */
	unsigned depth, busy;
	struct job job[];
};

int tsi_lane_create(struct tsi_source *s, unsigned depth,
		    struct tsi_budget *budget, struct tsi_lane **out)
{
	const struct tsi_options *o = tsi_source_options(s);
	struct tsi_image_opts opts = {
		.pillow = (uint32_t)o->pillow,
		.preset = (enum tsi_preset)o->preset,
		.size = (uint32_t)o->size,
		.resize = (uint32_t)o->resize,
		.seed = o->seed,
	};
	struct tsi_lane *l = calloc(1, sizeof(*l) + depth * sizeof(l->job[0]));
	int err;

	if (!l)
		return tsi_err(TSOCK_ENOMEM, "no memory for a worker");
	l->source = s;
	l->depth = depth;
	l->claim.budget = budget;
	opts.claim = &l->claim;
	err = tsi_image_create(&opts, &l->image);
	if (!err)
		err = tsi_file_reader_create((enum tsi_file_reader_kind)o->io,
					     depth, &l->reader);
	if (err) {
		tsi_lane_destroy(l);
		return err;
	}
	*out = l;
	return 0;
}

void tsi_lane_destroy(struct tsi_lane *l)
{
	if (!l)
		return;
	tsi_file_reader_destroy(l->reader);
	tsi_image_destroy(l->image);
	free(l);
}

unsigned tsi_lane_busy(const struct tsi_lane *l)
{
	return l->busy;
}

const char *tsi_lane_reader(const struct tsi_lane *l)
{
	return tsi_file_reader_name(l->reader);
}

const char *tsi_lane_reader_why(const struct tsi_lane *l)
{
	return tsi_file_reader_why(l->reader);
}

/* ------------------------------------------------------------------------
 * Bad files
 */

/* The tree's own path of a file, for a sentence. */
static int file_error(const struct tsi_lane *l, int code, uint64_t file,
		      const char *what)
{
	const struct tsi_index *x = tsi_source_index(l->source);

	return tsi_err(code, "%s/%s: %s", tsi_index_root(x),
		       tsi_index_path(x, file), what);
}

/* From what is known, file j->target is bad for j's place. */
static bool known_bad(const struct tsi_lane *l, const struct job *j)
{
	const struct tsi_badfiles *b = tsi_source_badfiles(l->source);
	struct tsi_image_extent e;

	if (tsi_badfiles_run(b, j->target, 1))
		return true;
	return tsi_badfiles_extent(b, j->target, &e) &&
	       tsi_image_bottom(l->image, e.width, e.height,
				(uint32_t)j->spot.epoch,
				j->spot.index) > e.rows;
}

/* Pass n files by; false when none is left. */
static bool pass(const struct tsi_lane *l, struct job *j, uint64_t n)
{
	uint64_t count = tsi_index_count(tsi_source_index(l->source));

	j->failures = 0;
	j->passed += n;
	j->target = (j->spot.index + j->passed) % count;
	return j->passed < count;
}

/* Move job j's target on to a file that may be good for its place. */
static bool find_target(const struct tsi_lane *l, struct job *j)
{
	const struct tsi_badfiles *b = tsi_source_badfiles(l->source);
	uint64_t count = tsi_index_count(tsi_source_index(l->source));

	for (;;) {
		uint64_t n = tsi_badfiles_run(b, j->target, count - j->passed);

		if (n == 0 && !known_bad(l, j))
			return true;
		if (!pass(l, j, n ? n : 1))
			return false;
	}
}

/*
 * Choose job j's next file.  Where none is left that isn't known to be bad,
 * all are tried once more: a disk may have been away for a while.
 */
static int choose(struct tsi_lane *l, struct job *j)
{
	const struct tsi_index *x = tsi_source_index(l->source);

	if (j->passed < tsi_index_count(x) && find_target(l, j))
		return 0;
	if (!j->again) {
		tsi_badfiles_forget_all(tsi_source_badfiles(l->source));
		j->again = true;
		j->passed = 0;
		j->target = j->spot.index;
		if (find_target(l, j))
			return 0;
	}
	return tsi_err(TSOCK_EDATA,
		       "no file of %s is good any more: the last one "
		       "tried for sample %llu",
		       tsi_index_root(x), (unsigned long long)j->spot.index);
}

/* Job j's file is bad: another one, or the end. */
static int on_bad(struct tsi_lane *l, struct job *j, const char *reason)
{
	if (tsi_source_options(l->source)->on_error == TSI_RAISE)
		return file_error(l, TSOCK_EDATA, j->target, reason);
	tsi_badfiles_report(tsi_source_badfiles(l->source), j->target, reason);
	j->searching = true;
	pass(l, j, 1);
	return choose(l, j);
}

/* Job j's file can't be read: so it is for every place. */
static int on_unreadable(struct tsi_lane *l, struct job *j, const char *reason)
{
	tsi_badfiles_remember(tsi_source_badfiles(l->source), j->target, NULL,
			      j->read_ns);
	return on_bad(l, j, reason);
}

/*
 * Job j's file can't be decoded for its place.  How far it can be is found
 * out once, for all places.
 */
static int on_undecodable(struct tsi_lane *l, struct job *j,
			  const uint8_t *data, size_t len)
{
	struct tsi_badfiles *b = tsi_source_badfiles(l->source);
	struct tsi_image_extent e;
	char reason[256];
	int err;

	snprintf(reason, sizeof(reason), "%s", tsock_errmsg());
	if (tsi_source_options(l->source)->on_error == TSI_RAISE)
		return on_bad(l, j, reason);
	/* Every place wants the same of it. */
	if (tsi_source_options(l->source)->preset == TSI_EVAL)
		return on_unreadable(l, j, reason);
	err = tsi_image_measure(l->image, data, len, &e);
	if (err == TSOCK_EDATA ||
	    (!err && e.rows < tsi_image_least_bottom(e.width, e.height)))
		return on_unreadable(l, j, reason);
	/* What isn't about its rows may be another thing next time. */
	if (!err && e.rows < e.height)
		tsi_badfiles_remember(b, j->target, &e, j->read_ns);
	return on_bad(l, j, reason);
}

/* Says something about this file, for good; the rest is about the machine. */
static bool is_bad_file(int err)
{
	switch (err) {
	case ENOENT:
	case EACCES:
	case EPERM:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL:
	case TSI_READER_ODD:
	case TSI_READER_MADE_UP:
	case ENXIO:
	case ENODEV:
	case EFBIG:
	case EOVERFLOW:
		return true;
	default:
		return false;
	}
}

/* A read failed: bad file, once more, or the end. */
static int on_read_error(struct tsi_lane *l, struct job *j, int err)
{
	char reason[160];

	if (err == ESTALE) /* replaced while it was read */
		return on_bad(l, j, strerror(err));
	if (is_bad_file(err))
		return on_unreadable(l, j, tsi_file_reader_strerror(err));
	if (err == EMFILE || err == ENFILE) {
		snprintf(reason, sizeof(reason),
			 "%s; raise the limit (ulimit -n) or lower --threads",
			 strerror(err));
		return file_error(l, TSOCK_ESYS, j->target, reason);
	}
	if (j->failures++ < RETRIES)
		return 0;
	snprintf(reason, sizeof(reason), "%s, %d times in a row", strerror(err),
		 RETRIES + 1);
	return file_error(l, TSOCK_ESYS, j->target, reason);
}

/* ------------------------------------------------------------------------
 * Samples
 */

static int submit(struct tsi_lane *l, struct job *j)
{
	const struct tsi_index *x = tsi_source_index(l->source);

	j->read_ns = tsi_badfiles_now();
	j->reads++;
	return tsi_file_reader_submit(l->reader, tsi_index_dirfd(x),
				      tsi_index_path(x, j->target),
				      tsi_index_size(x, j->target), j->seq);
}

/* Another sample's read of job j's target is on its way. */
static bool is_read_already(const struct tsi_lane *l, const struct job *j)
{
	for (unsigned i = 0; i < l->depth; i++) {
		const struct job *o = &l->job[i];

		if (o != j && o->used && !o->parked && o->target == j->target)
			return true;
	}
	return false;
}

/* Read job j's target, or wait until somebody has. */
static int go_on(struct tsi_lane *l, struct job *j)
{
	if (j->searching && is_read_already(l, j)) {
		j->parked = true;
		return 0;
	}
	return submit(l, j);
}

/*
 * What came of this target is known: go on with those that waited for it.
 * Once it is good there is nothing more to wait for.
 */
static int wake(struct tsi_lane *l, uint64_t target, bool good)
{
	int err = 0;

	for (unsigned i = 0; i < l->depth && !err; i++) {
		struct job *j = &l->job[i];

		if (!j->used || !j->parked || j->target != target)
			continue;
		j->parked = false;
		j->searching = !good;
		err = choose(l, j);
		if (!err)
			err = go_on(l, j);
	}
	return err;
}

int tsi_lane_begin(struct tsi_lane *l, uint64_t seq)
{
	struct tsi_badfiles *b = tsi_source_badfiles(l->source);
	struct job *j = l->job;
	const char *why = NULL;
	int err;

	while (j->used)
		j++;
	memset(j, 0, sizeof(*j));
	j->seq = seq;
	err = tsi_source_spot(l->source, seq, &j->spot);
	if (err)
		return err;
	j->target = j->spot.index;
	if (tsi_badfiles_changed(b, j->target))
		tsi_badfiles_forget(b, j->target);
	if (tsi_source_options(l->source)->on_error == TSI_RAISE)
		why = tsi_index_bad_reason(tsi_source_index(l->source),
					   j->target);
	err = why ? on_bad(l, j, why) : choose(l, j);
	if (!err)
		err = submit(l, j);
	if (err)
		return err;
	j->used = true;
	l->busy++;
	return 0;
}

static struct job *job_of(struct tsi_lane *l, uint64_t seq)
{
	struct job *j = l->job;

	while (!j->used || j->seq != seq)
		j++;
	return j;
}

/* Decode; *done when the sample is there, else job j has another file. */
static int load(struct tsi_lane *l, struct job *j, const uint8_t *data,
		size_t len, const struct tsi_slots *to, bool *done)
{
	const struct tsi_index *x = tsi_source_index(l->source);
	struct tsi_box box;
	int err;

	/* Another worker may have been here meanwhile. */
	if (known_bad(l, j)) {
		j->searching = true;
		return choose(l, j);
	}
	/* The draws belong to the place, whoever's file fills it. */
	err = tsi_image_load(l->image, data, len, (uint32_t)j->spot.epoch,
			     j->spot.index, to->image, &box);
	if (err == TSOCK_EDATA)
		return on_undecodable(l, j, data, len);
	if (err)
		return err;
	*to->label = tsi_index_label(x, j->target);
	*to->index = (int64_t)j->target;
	to->box[0] = box.top;
	to->box[1] = box.left;
	to->box[2] = box.height;
	to->box[3] = box.width;
	to->box[4] = box.flip;
	*done = true;
	return 0;
}

/* Read and decode here; the claim holds what the file's bytes take. */
static int load_here(struct tsi_lane *l, struct job *j, size_t size,
		     const struct tsi_slots *to, bool *done)
{
	const struct tsi_index *x = tsi_source_index(l->source);
	uint8_t *data;
	size_t len;
	int err;

	l->claim.file = size;
	err = tsi_file_read(tsi_index_dirfd(x), tsi_index_path(x, j->target),
			    size, &data, &len);
	if (err == ENOMEM)
		return tsi_err(TSOCK_ENOMEM, "no memory to read it");
	if (err == EFBIG)
		return on_bad(l, j, "it grows while it is read");
	if (err)
		return on_read_error(l, j, err);
	j->read_bytes += len;
	err = load(l, j, data, len, to, done);
	free(data);
	return err;
}

/*
 * A file too large to be read ahead: it and its decoder's memory are claimed
 * together.  How much the decoder needs is known once the file was read; if
 * that isn't there, all is given back before it is waited for.
 */
static int load_large(struct tsi_lane *l, struct job *j, size_t size,
		      const struct tsi_slots *to, bool *done)
{
	uint64_t total = size;
	char reason[256];
	int err;

	do {
		err = tsi_claim_grow(&l->claim, total);
		if (err == TSOCK_EDATA) {
			snprintf(reason, sizeof(reason), "%s", tsock_errmsg());
			return on_unreadable(l, j, reason);
		}
		if (!err)
			err = load_here(l, j, size, to, done);
		total = l->claim.wanted;
		tsi_claim_end(&l->claim);
	} while (err == TSOCK_EAGAIN);
	return err;
}

/*
 * There was no memory for job j's image: once more, while no other large one
 * is in work.  One that is large itself and finds none then is too large for
 * this machine; a small one's lack is everybody's.
 */
static int load_alone(struct tsi_lane *l, struct job *j, size_t size,
		      const struct tsi_slots *to, bool *done)
{
	char reason[256];
	bool large;
	int err;

	tsi_claim_end(&l->claim);
	err = tsi_claim_all(&l->claim);
	if (!err)
		err = load_here(l, j, size, to, done);
	large = size > TSI_READER_AHEAD || l->claim.need > TSI_IMAGE_SMALL;
	tsi_claim_end(&l->claim);
	if (err != TSOCK_ENOMEM)
		return err;
	snprintf(reason, sizeof(reason), "%s", tsock_errmsg());
	return large ? on_bad(l, j, reason)
		     : file_error(l, TSOCK_ENOMEM, j->target, reason);
}

/* One read has come: use it, and give its memory back. */
static int use(struct tsi_lane *l, struct job *j, const struct tsi_read *r,
	       const struct tsi_slots *to, bool *done)
{
	uint64_t target = j->target;
	size_t size = TSI_READER_AHEAD;
	int err;

	*done = false;
	if (r->err == TSI_READ_LARGE) {
		size = r->size;
		err = load_large(l, j, size, to, done);
	} else if (r->err == ENOMEM) {
		err = TSOCK_ENOMEM;
	} else if (r->err) {
		err = on_read_error(l, j, r->err);
	} else {
		j->read_bytes += r->len;
		err = load(l, j, r->data, r->len, to, done);
		tsi_claim_end(&l->claim);
	}
	if (err == TSOCK_ENOMEM)
		err = load_alone(l, j, size, to, done);
	tsi_file_reader_recycle(l->reader, r);
	if (err)
		return err;
	/* By I/O errors it may still have the same one. */
	if (!*done)
		err = j->target == target ? submit(l, j) : go_on(l, j);
	if (!err && (*done || j->target != target))
		err = wake(l, target, *done);
	return err;
}

int tsi_lane_finish(struct tsi_lane *l,
		    void (*slots)(void *arg, uint64_t seq,
				  struct tsi_slots *out),
		    void *arg, struct tsi_made *out)
{
	uint64_t io_ns = 0, decode_ns = 0;
	bool done = false;
	struct job *j = NULL;

	while (!done) {
		int64_t start = tsi_now_ns(), read;
		struct tsi_slots to;
		struct tsi_read r;
		int err;

		err = tsi_file_reader_next(l->reader, true, &r);
		if (err)
			return err;
		read = tsi_now_ns();
		j = job_of(l, r.tag);
		slots(arg, j->seq, &to);
		err = use(l, j, &r, &to, &done);
		if (err)
			return err;
		io_ns += (uint64_t)(read - start);
		decode_ns += (uint64_t)(tsi_now_ns() - read);
	}
	out->seq = j->seq;
	out->read_bytes = j->read_bytes;
	out->reads = j->reads;
	out->substituted = j->target != j->spot.index;
	out->io_ns = io_ns;
	out->decode_ns = decode_ns;
	j->used = false;
	l->busy--;
	return 0;
}
