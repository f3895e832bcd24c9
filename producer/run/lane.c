/*
 * lane.c - one worker's way from a sequence number to a finished sample.
 */
#include "run/lane.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "io/reader.h"

#define RETRIES 3

struct job {
	bool used;
	uint64_t seq;
	struct tsi_spot spot; /* whose place it is, and so the draws' key */
	uint64_t target;      /* whose file is read for it */
	unsigned failures;    /* of this file, by I/O errors */
	uint64_t read_bytes;
};

struct tsi_lane {
	struct tsi_source *source;
	struct tsi_file_reader *reader;
	struct tsi_image *image;
	unsigned depth, busy;
	struct job job[];
};

int tsi_lane_create(struct tsi_source *s, unsigned depth, struct tsi_lane **out)
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
	err = tsi_image_create(&opts, &l->image);
	if (!err)
		err = tsi_file_reader_create((enum tsi_file_reader_kind)o->io,
					     depth, &l->reader);
	if (err == TSOCK_ENOTSUP && o->io == TSI_READER_URING) {
		char why[160];

		snprintf(why, sizeof(why), "%s", tsock_errmsg());
		err = tsi_err(err, "--io uring: %s; auto does without", why);
	}
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

/* Take the next file that may be good in the place of job j's. */
static int next_target(struct tsi_lane *l, struct job *j)
{
	const struct tsi_index *x = tsi_source_index(l->source);
	uint64_t count = tsi_index_count(x);

	j->failures = 0;
	j->target = tsi_source_good(l->source, (j->target + 1) % count,
				    j->spot.index);
	if (j->target == UINT64_MAX)
		return tsi_err(TSOCK_EDATA,
			       "no file of %s is good any more: the last one "
			       "tried for sample %llu",
			       tsi_index_root(x),
			       (unsigned long long)j->spot.index);
	return 0;
}

/* Job j's file is bad: another one, or the end. */
static int on_bad(struct tsi_lane *l, struct job *j, const char *reason)
{
	if (tsi_source_options(l->source)->on_error == TSI_RAISE)
		return file_error(l, TSOCK_EDATA, j->target, reason);
	tsi_source_bad(l->source, j->target, reason);
	return next_target(l, j);
}

/* Says something about this file, for good; the rest is about the machine. */
static bool is_bad_file(int err)
{
	switch (err) {
	case ENOENT:
	case EACCES:
	case EPERM:
	case ESTALE:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EINVAL:
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

	if (is_bad_file(err))
		return on_bad(l, j, strerror(err));
	if (err == ENOMEM)
		return file_error(l, TSOCK_ENOMEM, j->target,
				  "no memory to read it");
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

static int submit(struct tsi_lane *l, const struct job *j)
{
	const struct tsi_index *x = tsi_source_index(l->source);

	return tsi_file_reader_submit(l->reader, tsi_index_dirfd(x),
				      tsi_index_path(x, j->target),
				      tsi_index_size(x, j->target), j->seq);
}

int tsi_lane_begin(struct tsi_lane *l, uint64_t seq)
{
	const struct tsi_index *x = tsi_source_index(l->source);
	struct job *j = l->job;
	const char *why;
	int err;

	while (j->used)
		j++;
	memset(j, 0, sizeof(*j));
	j->seq = seq;
	err = tsi_source_spot(l->source, seq, &j->spot);
	if (err)
		return err;
	j->target = j->spot.index;
	why = tsi_index_bad_reason(x, j->target);
	if (why)
		err = on_bad(l, j, why);
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
static int load(struct tsi_lane *l, struct job *j, const struct tsi_read *r,
		const struct tsi_slots *to, bool *done)
{
	const struct tsi_index *x = tsi_source_index(l->source);
	struct tsi_box box;
	int err;

	/* The draws belong to the place, whoever's file fills it. */
	err = tsi_image_load(l->image, r->data, r->len, (uint32_t)j->spot.epoch,
			     j->spot.index, to->image, &box);
	if (err == TSOCK_EDATA)
		return on_bad(l, j, tsock_errmsg());
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

/* One read has come: use it, and give its memory back. */
static int use(struct tsi_lane *l, struct job *j, const struct tsi_read *r,
	       const struct tsi_slots *to, bool *done)
{
	int err;

	*done = false;
	if (r->err) {
		err = on_read_error(l, j, r->err);
	} else {
		j->read_bytes += r->len;
		err = load(l, j, r, to, done);
	}
	tsi_file_reader_recycle(l->reader, r);
	if (err || *done)
		return err;
	return submit(l, j);
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
	out->substituted = j->target != j->spot.index;
	out->io_ns = io_ns;
	out->decode_ns = decode_ns;
	j->used = false;
	l->busy--;
	return 0;
}
