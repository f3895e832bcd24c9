/* SPDX-License-Identifier: MIT */
/*
 * maker.c - the bytes of a file to what a sample has of it.
 */
#include "run/maker.h"

#include <stdlib.h>
#include <string.h>

#include "audio/load.h"
#include "base/err.h"
#include "io/reader.h"
#include "recipe/recipe.h"

/* One of both. */
struct tsi_maker {
	struct tsi_image *image;
	struct tsi_audio *audio;
	unsigned draws; /* numbers of the field draws */
	struct tsi_audio_opts crops;
	const struct tsi_recipe *sound; /* what is done to them; or NULL */
	double *drawn;                  /* for it */
	struct tsi_wave wave;           /* a crop, and memory */
};

_Static_assert(TSI_AUDIO_VIEWS <= TSI_RECIPE_VIEWS, "slots have room for all");
_Static_assert(TSI_AUDIO_VIEWS <= TSI_READER_PARTS, "so have reads");

static int create_sound(struct tsi_maker *m, const struct tsi_recipe *sound)
{
	if (!sound)
		return 0;
	m->sound = sound;
	m->draws = sound->draws;
	m->drawn = calloc(sound->draws + 1, sizeof(double));
	return m->drawn ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for a recipe");
}

int tsi_maker_create(const struct tsi_sampler *s,
		     struct tsi_budget_claim *claim, struct tsi_maker **out)
{
	struct tsi_image_opts image = tsi_sampler_image_opts(s);
	struct tsi_audio_opts audio = tsi_sampler_audio_opts(s);
	struct tsi_maker *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for a decoder");
	image.claim = claim;
	if (image.recipe) {
		m->draws = image.recipe->draws;
		err = tsi_image_create(&image, &m->image);
	} else {
		m->crops = audio;
		err = create_sound(m, tsi_sampler_sound(s));
	}
	if (!err && !image.recipe)
		err = tsi_audio_create(&audio, &m->audio);
	if (err) {
		tsi_maker_destroy(m);
		return err;
	}
	*out = m;
	return 0;
}

void tsi_maker_destroy(struct tsi_maker *m)
{
	if (!m)
		return;
	tsi_image_destroy(m->image);
	tsi_audio_destroy(m->audio);
	free(m->wave.scratch);
	free(m->drawn);
	free(m);
}

struct tsi_image *tsi_maker_image(struct tsi_maker *m)
{
	return m->image;
}

/* For a read that waits, in any thread. */
static unsigned choose(void *arg, const uint8_t *head, uint64_t size,
		       struct tsi_read_part *to)
{
	const struct tsi_maker_need *need = arg;
	struct tsi_audio_part part[TSI_AUDIO_VIEWS];
	unsigned n = tsi_audio_choose(need->maker->audio, head, TSI_READER_HEAD,
				      size, (uint32_t)need->id->epoch,
				      need->id->draw, part);

	for (unsigned k = 0; k < n; k++)
		to[k] = (struct tsi_read_part){ part[k].at, part[k].len };
	return n;
}

void tsi_maker_ask(const struct tsi_maker_need *need,
		   struct tsi_read_request *q)
{
	if (!need->maker->audio)
		return;
	q->choose = choose;
	q->arg = (void *)need;
}

/* Put the first n frames of each channel behind those of the one before. */
static void close_up(const struct tsi_audio_opts *o, float *data, uint32_t n)
{
	for (size_t c = 1; c < o->channels && n < o->frames; c++)
		memmove(data + c * n, data + c * o->frames, n * sizeof(*data));
}

/* And back, with zeros behind each. */
static void spread(const struct tsi_audio_opts *o, float *data, uint32_t n)
{
	size_t c = n < o->frames ? o->channels : 0;

	while (c--) {
		float *to = data + c * o->frames;

		memmove(to, data + c * n, n * sizeof(*data));
		memset(to + n, 0, (o->frames - n) * sizeof(*data));
	}
}

/* Do the recipe to the crops of a sample. */
static int do_sound(struct tsi_maker *m, const struct tsi_sample_id *id,
		    float *const *view)
{
	const struct tsi_audio_opts *o = &m->crops;
	const uint32_t frames = o->clips == TSI_AUDIO_CROP
					? o->frames
					: tsi_audio_last(m->audio);
	struct tsi_op_sample s = { .seed = o->seed,
				   .epoch = (uint32_t)id->epoch,
				   .index = id->draw,
				   .width = frames,
				   .height = o->channels };
	int err = tsi_recipe_draw(m->sound, &s, m->drawn);

	m->wave.frames = frames;
	m->wave.channels = o->channels;
	for (unsigned k = 0; k < o->views && !err; k++) {
		m->wave.data = view[k];
		close_up(o, view[k], frames);
		err = tsi_recipe_sound(m->sound, k, m->drawn, &m->wave);
		spread(o, view[k], frames);
	}
	return err;
}

static int load_audio(struct tsi_maker *m, const struct tsi_maker_bytes *b,
		      const struct tsi_sample_id *id,
		      const struct tsi_slots *to)
{
	float *view[TSI_AUDIO_VIEWS] = { (float *)(void *)to->image };
	int err;

	for (unsigned k = 1; k < m->crops.views; k++)
		view[k] = (float *)(void *)to->more[k - 1];
	err = b->of ? tsi_audio_load_parts(m->audio, b->data, TSI_READER_HEAD,
					   b->of, (uint32_t)id->epoch, id->draw,
					   view)
		    : tsi_audio_load(m->audio, b->data, b->len,
				     (uint32_t)id->epoch, id->draw, view);
	if (!err && to->length)
		*to->length = (int32_t)tsi_audio_last(m->audio);
	if (err || !m->sound)
		return err;
	err = do_sound(m, id, view);
	/* To memory that needn't be aligned. */
	if (!err && to->draws)
		memcpy(to->draws, m->drawn, m->draws * sizeof(double));
	return err;
}

int tsi_maker_load(struct tsi_maker *m, uint64_t file,
		   const struct tsi_maker_bytes *b,
		   const struct tsi_sample_id *id, const struct tsi_slots *to,
		   struct tsi_box *box)
{
	int err;

	if (m->audio)
		return load_audio(m, b, id, to);
	tsi_image_set_more(m->image, to->more);
	err = tsi_image_load_file(m->image, file, b->data, b->len,
				  (uint32_t)id->epoch, id->draw, to->image,
				  box);
	/* To memory that needn't be aligned. */
	if (!err && to->draws)
		memcpy(to->draws, tsi_image_last(m->image).draws,
		       m->draws * sizeof(double));
	return err;
}

int tsi_maker_measure(struct tsi_maker *m, const struct tsi_maker_bytes *b,
		      struct tsi_image_extent *out)
{
	if (m->image)
		return tsi_image_measure(m->image, b->data, b->len, out);
	out->width = 1;
	return tsi_audio_measure(m->audio, b->data, b->len, &out->height,
				 &out->rows);
}

bool tsi_maker_same_end(const struct tsi_maker *m)
{
	return m->image ? tsi_image_same_rows(m->image)
			: tsi_audio_same_frames(m->audio);
}

uint32_t tsi_maker_end(const struct tsi_maker *m,
		       const struct tsi_image_extent *of,
		       const struct tsi_sample_id *id)
{
	return m->image ? tsi_image_bottom(m->image, of->width, of->height,
					   (uint32_t)id->epoch, id->draw)
			: tsi_audio_end(m->audio, of->height,
					(uint32_t)id->epoch, id->draw);
}

uint32_t tsi_maker_least_end(const struct tsi_maker *m,
			     const struct tsi_image_extent *of)
{
	return m->image
		       ? tsi_image_least_bottom(m->image, of->width, of->height)
		       : tsi_audio_least_end(m->audio, of->height);
}
