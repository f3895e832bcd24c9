/* SPDX-License-Identifier: MIT */
/*
 * load.c - the bytes of an audio file to the numbers of one sample.
 */
#include "audio/load.h"

#include <stdlib.h>
#include <string.h>

#include "audio/length.h"
#include "audio/parts.h"
#include "audio/soxr.h"
#include "audio/source.h"
#include "audio/window.h"
#include "base/err.h"
#include "pixel/draw.h"

#define CHUNK 4096   /* frames at a time */
#define SPARED 65536 /* bytes that aren't read, for which parts are */

struct tsi_audio {
	struct tsi_audio_opts o;
	struct tsi_sndfile *lib; /* NULL: there is none */
	float *raw;              /* CHUNK frames as the file has them */
	float *resampled;        /* and as they are when resampled */
	size_t room;             /* numbers of each */
	uint32_t last;           /* frames of the last sample */
};

/* The crop of each view, of a file that is open. */
struct crops {
	uint64_t first[TSI_AUDIO_VIEWS];
	uint64_t frames;      /* of each; the rest is zeros */
	uint64_t end;         /* of the last one */
	unsigned view, views; /* those that are made, from one to another */
	uint32_t carried;     /* channels that are read: one, or all */
	float *const *to;
};

int tsi_audio_create(const struct tsi_audio_opts *o, struct tsi_audio **out)
{
	struct tsi_audio *a = calloc(1, sizeof(*a));
	int err;

	if (!a)
		return tsi_err(TSOCK_ENOMEM, "no memory for a decoder");
	a->o = *o;
	err = tsi_sndfile_create(&a->lib);
	if (err) {
		tsi_audio_destroy(a);
		return err;
	}
	*out = a;
	return 0;
}

void tsi_audio_destroy(struct tsi_audio *a)
{
	if (!a)
		return;
	tsi_sndfile_destroy(a->lib);
	free(a->raw);
	free(a->resampled);
	free(a);
}

/* Memory for a chunk of so many channels. */
static int make_room(struct tsi_audio *a, uint32_t channels)
{
	size_t want = (size_t)CHUNK * channels;

	if (want <= a->room)
		return 0;
	free(a->raw);
	free(a->resampled);
	a->raw = malloc(want * sizeof(float));
	a->resampled = malloc(want * sizeof(float));
	a->room = a->raw && a->resampled ? want : 0;
	return a->room ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for a decoder");
}

/* ---- where crops lie ---- */

/* Where view k begins in a file of so many frames. */
static uint64_t first_of(const struct tsi_audio *a, uint64_t frames, unsigned k,
			 uint32_t epoch, uint64_t index)
{
	uint64_t starts;

	if (frames <= a->o.frames)
		return 0;
	if (a->o.centre)
		return (frames - a->o.frames) / 2;
	starts = frames - a->o.frames + 1;
	return tsi_draw(a->o.seed, epoch, index, (uint16_t)(TSI_AUDIO_OP + k),
			0)
		       .v[0] %
	       starts;
}

static void place(const struct tsi_audio *a, uint64_t frames, uint32_t epoch,
		  uint64_t index, struct crops *c)
{
	c->frames = frames < a->o.frames ? frames : a->o.frames;
	c->end = 0;
	c->view = 0;
	c->views = a->o.views;
	for (unsigned k = 0; k < a->o.views; k++) {
		c->first[k] = first_of(a, frames, k, epoch, index);
		if (c->first[k] + c->frames > c->end)
			c->end = c->first[k] + c->frames;
	}
}

static bool resamples(const struct tsi_audio *a,
		      const struct tsi_audio_source *s)
{
	return tsi_audio_length_differs(&a->o, s->rate);
}

static uint64_t frames_of(const struct tsi_audio *a,
			  const struct tsi_audio_source *s)
{
	return tsi_audio_length(&a->o, s->rate, s->frames);
}

/* ---- frames to samples ---- */

/* The mean of channels, in place. */
static void mix(float *frames, size_t n, uint32_t channels)
{
	const float *from = frames;

	for (size_t i = 0; i < n; i++, from += channels) {
		float sum = from[0];

		for (uint32_t c = 1; c < channels; c++)
			sum += from[c];
		frames[i] = sum / (float)channels;
	}
}

/* n frames from frame at on, with the channels that are carried. */
static int read_some(struct tsi_audio *a, struct tsi_audio_source *s,
		     const struct crops *c, uint64_t at, size_t n)
{
	int err = tsi_audio_source_read(s, at, n, a->raw);

	if (!err && c->carried < s->channels)
		mix(a->raw, n, s->channels);
	return err;
}

/* What of n frames, which begin with frame at, belongs to view k. */
static void put(const struct tsi_audio *a, const struct crops *c, unsigned k,
		const float *from, uint64_t at, size_t n)
{
	uint64_t low = at, high = at + n, first = c->first[k];

	if (low < first)
		low = first;
	if (high > first + c->frames)
		high = first + c->frames;
	if (low >= high)
		return;
	for (uint32_t ch = 0; ch < a->o.channels; ch++) {
		float *to = c->to[k] + (size_t)ch * a->o.frames + low - first;
		const float *f = from + (low - at) * c->carried +
				 (c->carried > 1 ? ch : 0);

		if (c->carried == 1) {
			memcpy(to, f, (high - low) * sizeof(*to));
			continue;
		}
		for (uint64_t i = 0; i < high - low; i++)
			to[i] = f[i * c->carried];
	}
}

static size_t less(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}

static int cut_view(struct tsi_audio *a, struct tsi_audio_source *s,
		    const struct crops *c, unsigned k)
{
	uint64_t at = c->first[k], end = at + c->frames;

	/* The numbers of a file are a sample's. */
	if (a->o.channels == 1 && s->channels == 1)
		return tsi_audio_source_read(s, at, c->frames, c->to[k]);
	while (at < end) {
		size_t n = less(end - at, CHUNK);
		int err = read_some(a, s, c, at, n);

		if (err)
			return err;
		put(a, c, k, a->raw, at, n);
		at += n;
	}
	return 0;
}

static int cut(struct tsi_audio *a, struct tsi_audio_source *s,
	       const struct crops *c)
{
	int err = 0;

	for (unsigned k = 0; k < a->o.views && !err; k++)
		err = cut_view(a, s, c, k);
	return err;
}

/* What comes of n frames of a->raw (0: of the end), behind *made frames. */
static int resample_some(struct tsi_audio *a, struct tsi_soxr *by, size_t n,
			 const struct crops *c, uint64_t *made)
{
	const float *in = n ? a->raw : NULL;
	size_t given;

	do {
		size_t taken = n;
		int err = tsi_soxr_run(by, in, &taken, a->resampled, CHUNK,
				       &given);

		if (err)
			return err;
		for (unsigned k = c->view; k < c->views; k++)
			put(a, c, k, a->resampled, *made, given);
		*made += given;
		n -= taken;
		if (in)
			in += taken * c->carried;
		/* With nothing to take it would be told of the end. */
	} while (in ? n : given && *made < c->end);
	return 0;
}

/* Make the crops that lie in what comes of a window. */
static int resample_window(struct tsi_audio *a, struct tsi_audio_source *s,
			   const struct crops *c,
			   const struct tsi_audio_window *w)
{
	struct tsi_soxr *by;
	uint64_t at = w->from, made = w->first;
	int err = tsi_soxr_open(s->rate, a->o.rate, c->carried, &by);

	if (err)
		return err;
	while (!err && made < c->end && at < w->to) {
		size_t n = less(w->to - at, CHUNK);

		err = read_some(a, s, c, at, n);
		if (!err)
			err = resample_some(a, by, n, c, &made);
		at += n;
	}
	if (!err && made < c->end)
		err = resample_some(a, by, 0, c, &made);
	tsi_soxr_close(by);
	if (!err && made < c->end)
		err = tsi_err(TSOCK_ESYS, "libsoxr made less than it says");
	return err;
}

static int resample(struct tsi_audio *a, struct tsi_audio_source *s,
		    const struct crops *c)
{
	struct tsi_audio_window w[TSI_AUDIO_VIEWS];
	unsigned n = tsi_audio_windows(s->rate, a->o.rate, s->frames, c->first,
				       c->frames, a->o.views, w);
	struct crops one = *c;
	int err = 0;

	if (n < a->o.views)
		return resample_window(a, s, c, &w[0]);
	for (unsigned k = 0; k < n && !err; k++) {
		one.view = k;
		one.views = k + 1;
		one.end = c->first[k] + c->frames;
		err = resample_window(a, s, &one, &w[k]);
	}
	return err;
}

/* ---- files ---- */

static int check_source(const struct tsi_audio *a,
			const struct tsi_audio_source *s)
{
	if (a->o.rate && !a->o.resamples && s->rate != a->o.rate)
		return tsi_err(TSOCK_EDATA,
			       "its rate is %u Hz, and the first file's %u: "
			       "give the rate of all samples behind --schema's "
			       "shape, as float32[%u,%u]@%u",
			       s->rate, a->o.rate, a->o.channels, a->o.frames,
			       a->o.rate);
	if (a->o.channels > 1 && s->channels > 1 &&
	    s->channels != a->o.channels)
		return tsi_err(TSOCK_EDATA,
			       "it has %u channels, and samples have %u: ask "
			       "for one channel, which is the mean of all",
			       s->channels, a->o.channels);
	return tsi_audio_length_check(&a->o, s->rate, s->frames);
}

static int open_source(struct tsi_audio *a, const void *data, size_t len,
		       struct tsi_audio_source *s)
{
	int err = tsi_audio_source_open(s, a->lib, data, len);

	if (err)
		return err;
	err = check_source(a, s);
	if (!err && !s->frames)
		err = tsi_err(TSOCK_EDATA, "it has no frames");
	if (!err)
		err = make_room(a, s->channels);
	if (err)
		tsi_audio_source_close(s);
	return err;
}

/* What is behind the frames of a short file. */
static void put_zeros(const struct tsi_audio *a, const struct crops *c)
{
	size_t n = a->o.frames - c->frames;

	for (unsigned k = 0; n && k < a->o.views; k++)
		for (uint32_t ch = 0; ch < a->o.channels; ch++)
			memset(c->to[k] + (size_t)ch * a->o.frames + c->frames,
			       0, n * sizeof(float));
}

static uint32_t carried(const struct tsi_audio *a,
			const struct tsi_audio_source *s)
{
	return a->o.channels == 1 ? 1 : s->channels;
}

int tsi_audio_load(struct tsi_audio *a, const void *data, size_t len,
		   uint32_t epoch, uint64_t index, float *const *to)
{
	struct tsi_audio_source s;
	struct crops c = { .to = to };
	int err = open_source(a, data, len, &s);
	bool soxr;

	if (err)
		return err;
	soxr = resamples(a, &s);
	c.carried = carried(a, &s);
	place(a, frames_of(a, &s), epoch, index, &c);
	a->last = (uint32_t)c.frames;
	put_zeros(a, &c);
	/* A file that is damaged is bad for all crops of what comes of it. */
	if (soxr && !tsi_audio_source_whole(&s))
		err = tsi_audio_source_read(&s, s.frames - 1, 1, a->raw);
	if (!err)
		err = soxr ? resample(a, &s, &c) : cut(a, &s, &c);
	tsi_audio_source_close(&s);
	return err;
}

uint32_t tsi_audio_last(const struct tsi_audio *a)
{
	return a->last;
}

/* ---- parts of files ---- */

/* The parts that crops c of a source are made of. */
static void find_parts(const struct tsi_audio *a,
		       const struct tsi_audio_source *s, const struct crops *c,
		       size_t head, struct tsi_audio_parts *p)
{
	struct tsi_audio_window w[TSI_AUDIO_VIEWS];
	unsigned n = a->o.views;

	if (resamples(a, s))
		n = tsi_audio_windows(s->rate, a->o.rate, s->frames, c->first,
				      c->frames, n, w);
	else
		for (unsigned k = 0; k < n; k++)
			w[k] = (struct tsi_audio_window){
				c->first[k], c->first[k] + c->frames, 0
			};
	*p = tsi_audio_parts_of(head);
	for (unsigned k = 0; k < n; k++) {
		uint64_t at = tsi_audio_source_place(s, w[k].from);

		tsi_audio_parts_add(p, at,
				    tsi_audio_source_place(s, w[k].to) - at);
	}
}

unsigned tsi_audio_choose(const struct tsi_audio *a, const void *data,
			  size_t head, uint64_t size, uint32_t epoch,
			  uint64_t index, struct tsi_audio_part *to)
{
	struct tsi_audio_source s;
	struct tsi_audio_parts p;
	struct crops c;

	if (tsi_audio_source_head(&s, data, head, size) ||
	    check_source(a, &s) || !s.frames)
		return 0;
	place(a, frames_of(a, &s), epoch, index, &c);
	/* Of a damaged file that is resampled nothing is good. */
	if (!tsi_audio_source_has(&s, resamples(a, &s) ? s.frames : c.end))
		return 0;
	find_parts(a, &s, &c, head, &p);
	if (tsi_audio_parts_bytes(&p) + SPARED > size)
		return 0;
	return tsi_audio_parts_behind(&p, head, to);
}

int tsi_audio_load_parts(struct tsi_audio *a, const void *data, size_t head,
			 uint64_t size, uint32_t epoch, uint64_t index,
			 float *const *to)
{
	struct tsi_audio_source s;
	struct tsi_audio_parts p;
	struct crops c = { .to = to };
	int err = tsi_audio_source_head(&s, data, head, size);

	if (!err)
		err = make_room(a, s.channels);
	if (err)
		return err;
	c.carried = carried(a, &s);
	place(a, frames_of(a, &s), epoch, index, &c);
	find_parts(a, &s, &c, head, &p);
	tsi_audio_source_parts(&s, data, &p);
	a->last = (uint32_t)c.frames;
	put_zeros(a, &c);
	return resamples(a, &s) ? resample(a, &s, &c) : cut(a, &s, &c);
}

int tsi_audio_measure(struct tsi_audio *a, const void *data, size_t len,
		      uint32_t *frames, uint32_t *there)
{
	struct tsi_audio_source s;
	int err = open_source(a, data, len, &s);

	if (err)
		return err;
	*frames = (uint32_t)s.frames;
	*there = (uint32_t)tsi_audio_source_there(&s, CHUNK, a->raw);
	/* All of it is resampled. */
	if (!*there || (resamples(a, &s) && *there < *frames))
		err = tsi_err(TSOCK_EDATA, "truncated audio file");
	tsi_audio_source_close(&s);
	return err;
}

bool tsi_audio_same_frames(const struct tsi_audio *a)
{
	return a->o.centre || a->o.clips == TSI_AUDIO_WHOLE;
}

uint32_t tsi_audio_end(const struct tsi_audio *a, uint32_t frames,
		       uint32_t epoch, uint64_t index)
{
	struct crops c;

	place(a, frames, epoch, index, &c);
	return (uint32_t)c.end;
}

uint32_t tsi_audio_least_end(const struct tsi_audio *a, uint32_t frames)
{
	return frames < a->o.frames ? frames : a->o.frames;
}

int tsi_audio_rate(const void *data, size_t len, uint32_t *rate)
{
	struct tsi_audio_source s;
	struct tsi_sndfile *lib;
	int err = tsi_sndfile_create(&lib);

	if (!err)
		err = tsi_audio_source_open(&s, lib, data, len);
	if (!err) {
		*rate = s.rate;
		tsi_audio_source_close(&s);
	}
	tsi_sndfile_destroy(lib);
	return err;
}
