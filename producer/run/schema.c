/* SPDX-License-Identifier: MIT */
/*
 * schema.c - the fields of a sample, in their order.
 */
#include "run/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/field.h"

/* What a pipeline adds to the fields of the data set. */
static const struct tsock_field the_index = { .name = "index",
					      .dtype = TSOCK_I64 };
static const struct tsock_field the_box = {
	.name = "box", .dtype = TSOCK_I32, .ndim = 1, .shape = { 5 }
};
static const struct tsock_field the_length = { .name = "audio_length",
					       .dtype = TSOCK_I32 };
static const struct tsock_field the_weight = { .name = "weight",
					       .dtype = TSOCK_F32 };
static const struct tsock_field the_key = {
	.name = "key", .dtype = TSOCK_U8, .flags = TSOCK_FIELD_TEXT, .ndim = 1
};
static const struct tsock_field the_draws = { .name = "draws",
					      .dtype = TSOCK_F64,
					      .ndim = 1 };
static const struct tsock_field the_mask = { .name = "mask",
					     .dtype = TSOCK_U8,
					     .ndim = 2 };

static struct tsock_field *add(struct tsi_schema *s,
			       const struct tsock_field *f, int *at)
{
	struct tsock_field *to = &s->field[s->n];

	*to = *f;
	*at = (int)s->n++;
	return to;
}

static void set_size(struct tsock_field *f, const struct tsi_recipe_view *v)
{
	f->shape[0] = v->height;
	f->shape[1] = v->width;
	f->shape[2] = v->channels;
}

static void add_columns(struct tsi_schema *s, const struct tsi_columns *c)
{
	int at;

	s->column = (int)s->n;
	s->columns = c ? tsi_columns_count(c) : 0;
	for (unsigned k = 0; k < s->columns; k++)
		add(s, tsi_columns_field(c, k), &at);
}

static void add_named(struct tsi_schema *s, const struct tsi_schema_extras *x)
{
	if (x->weight)
		add(s, &the_weight, &s->weight);
	s->key_width = x->key_width;
	if (x->key_width)
		add(s, &the_key, &s->key)->shape[0] = x->key_width;
}

static void add_image(struct tsi_schema *s, const struct tsi_pipeline_opts *o,
		      const struct tsi_columns *c)
{
	unsigned n;
	const struct tsock_field *own = tsi_format_fields(o->format, &n);
	const struct tsock_field *label = c ? tsi_columns_label(c) : NULL;

	/* An image and a label are what workers can make. */
	assert(n == TSI_FIELD_INDEX);
	set_size(add(s, &own[TSI_FIELD_IMAGE], &s->image), &o->recipe->view[0]);
	add(s, label ? label : &own[TSI_FIELD_LABEL], &s->label);
	add(s, &the_index, &s->index);
	add(s, &the_box, &s->box);
}

/* A sample of audio, or another crop of the file. */
static void add_audio(struct tsi_schema *s, const struct tsi_pipeline_opts *o,
		      const struct tsi_columns *c)
{
	unsigned n;
	const struct tsock_field *own = tsi_format_fields(o->format, &n);
	const struct tsock_field *label = c ? tsi_columns_label(c) : NULL;
	struct tsock_field *f = add(s, &own[TSI_FIELD_IMAGE], &s->image);

	f->shape[0] = o->audio.channels;
	f->shape[1] = o->audio.frames;
	if (o->audio.clips != TSI_AUDIO_CROP) {
		f->flags |= TSOCK_FIELD_RAGGED_LAST;
		add(s, &the_length, &s->length);
	}
	add(s, label ? label : &own[TSI_FIELD_LABEL], &s->label);
	add(s, &the_index, &s->index);
}

/* A view or an image behind the first one. */
static struct tsock_field *add_more(struct tsi_schema *s)
{
	int at;

	return add(s, &s->field[s->image], &at);
}

static void add_crops(struct tsi_schema *s, const struct tsi_pipeline_opts *o)
{
	struct tsock_field *f;

	if (o->sound && o->sound->draws)
		add(s, &the_draws, &s->draws)->shape[0] = o->sound->draws;
	s->more = (int)s->n;
	s->views = o->audio.views;
	for (unsigned k = 1; k < s->views; k++) {
		f = add_more(s);
		snprintf(f->name, sizeof(f->name), "audio%u", k + 1);
	}
}

static void add_made(struct tsi_schema *s, const struct tsi_pipeline_opts *o,
		     const struct tsi_columns *c)
{
	const struct tsi_recipe *r = o->recipe;
	struct tsock_field *f;

	if (r->draws)
		add(s, &the_draws, &s->draws)->shape[0] = r->draws;
	if (o->masks) {
		f = add(s, &the_mask, &s->mask);
		f->shape[0] = r->view[0].height;
		f->shape[1] = r->view[0].width;
	}
	s->more = (int)s->n;
	s->views = r->views;
	for (unsigned k = 1; k < r->views; k++) {
		f = add_more(s);
		snprintf(f->name, sizeof(f->name), "image%u", k + 1);
		set_size(f, &r->view[k]);
	}
	/* There are no views then. */
	for (unsigned k = 0; k < tsi_columns_others(c); k++, s->views++)
		snprintf(add_more(s)->name, sizeof(f->name), "%s",
			 tsi_columns_other(c, k));
}

void tsi_schema_make(const struct tsi_pipeline_opts *o,
		     const struct tsi_schema_extras *x, struct tsi_schema *out)
{
	struct tsi_schema *s = out;

	*s = (struct tsi_schema){ .n = 0,
				  .image = -1,
				  .label = -1,
				  .box = -1,
				  .length = -1,
				  .weight = -1,
				  .key = -1,
				  .draws = -1,
				  .mask = -1 };
	if (o->recipe) {
		add_image(s, o, x->columns);
		add_named(s, x);
		add_made(s, o, x->columns);
		add_columns(s, x->columns);
		return;
	}
	if (o->audio.views) {
		add_audio(s, o, x->columns);
		add_named(s, x);
		add_crops(s, o);
		add_columns(s, x->columns);
		return;
	}
	add_columns(s, x->columns);
	if (x->columns && tsi_columns_label(x->columns))
		add(s, tsi_columns_label(x->columns), &s->label);
	add(s, &the_index, &s->index);
	add_named(s, x);
}

void tsi_schema_slots(const struct tsi_schema *s, tsock_server *server,
		      uint64_t seq, struct tsi_slots *out)
{
	struct {
		int field;
		void **to;
	} one[] = {
		{ s->image, (void **)&out->image },
		{ s->label, (void **)&out->label },
		{ s->index, (void **)&out->index },
		{ s->box, (void **)&out->box },
		{ s->length, (void **)&out->length },
		{ s->weight, (void **)&out->weight },
		{ s->key, (void **)&out->key },
		{ s->draws, (void **)&out->draws },
		{ s->mask, (void **)&out->mask },
	};

	for (unsigned k = 0; k < sizeof(one) / sizeof(one[0]); k++)
		*one[k].to =
			one[k].field < 0
				? NULL
				: tsock_serve_slot(server,
						   (unsigned)one[k].field, seq);
	for (unsigned k = 1; k < s->views; k++)
		out->more[k - 1] = tsock_serve_slot(
			server, (unsigned)s->more + k - 1, seq);
	for (unsigned k = 0; k < s->columns; k++)
		out->column[k] =
			tsock_serve_slot(server, (unsigned)s->column + k, seq);
	out->key_width = s->key_width;
}

uint64_t tsi_schema_bytes(const struct tsi_schema *s)
{
	uint64_t bytes = 0;

	for (unsigned k = 0; k < s->n; k++)
		bytes += tsi_field_bytes(&s->field[k]);
	return bytes;
}
