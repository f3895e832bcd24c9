/* SPDX-License-Identifier: MIT */
/*
 * transform.c - the recipe that samples are made by.
 */
#include "cli/transform.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "recipe/preset.h"
#include "recipe/types.h"

/* The text of a file, whose name stands behind an '@'. */
static int read_file(const char *name, char *text, size_t size)
{
	FILE *f = fopen(name, "re");
	size_t n;

	if (!f)
		return tsi_err_sys("--transform @%s: can't open it", name);
	n = fread(text, 1, size - 1, f);
	text[n] = 0;
	if (ferror(f)) {
		int err = tsi_err_sys("--transform @%s: can't read it", name);

		fclose(f);
		return err;
	}
	if (fgetc(f) != EOF || strlen(text) < n) {
		fclose(f);
		return tsi_err(TSOCK_EARG,
			       "--transform @%s: that is no recipe: it has "
			       "zeros or more than %zu bytes",
			       name, size - 1);
	}
	fclose(f);
	return 0;
}

static int read_recipe(struct tsi_options *o, const char *text)
{
	const struct tsi_samples *s = &o->data.samples;

	return s->sound.frames
		       ? tsi_recipe_read_sound(text, s->sound.frames,
					       s->sound.channels, &o->sound)
		       : tsi_recipe_read_of(text, s->width, s->height,
					    &o->recipe);
}

/* The recipe of images, or of audio. */
static struct tsi_recipe **recipe_of(struct tsi_options *o)
{
	return o->data.samples.sound.frames ? &o->sound : &o->recipe;
}

static int read_transform(struct tsi_options *o)
{
	char text[TSI_RECIPE_TEXT];
	const struct {
		bool given;
		const char *name;
	} other[] = {
		{ o->given[TSI_OPTION_preset], "preset" },
		{ o->given[TSI_OPTION_size], "size" },
		{ o->given[TSI_OPTION_resize], "resize" },
	};
	const bool sound = o->data.samples.sound.frames != 0;
	int err;

	/* Of audio these are refused, or say where the crops lie. */
	for (size_t k = 0; k < sizeof(other) / sizeof(other[0]) && !sound; k++)
		if (other[k].given)
			return tsi_err(TSOCK_EARG,
				       "--%s contradicts --transform, whose "
				       "text says all that is done to images: "
				       "leave out one of them",
				       other[k].name);
	if (o->transform[0] != '@')
		return read_recipe(o, o->transform);
	err = read_file(o->transform + 1, text, sizeof(text));
	return err ? err : read_recipe(o, text);
}

/* The recipe as it is, so many times for each sample. */
static int repeat(struct tsi_options *o)
{
	struct tsi_recipe **r = recipe_of(o);
	char *text = NULL;
	size_t len;
	FILE *f;
	int err;

	if ((*r)->several)
		return tsi_err(TSOCK_EARG,
			       "--views contradicts a transform with Views: "
			       "leave out one of them");
	f = open_memstream(&text, &len);
	if (!f)
		return tsi_err(TSOCK_ENOMEM, "no memory for a recipe");
	fprintf(f, "Views(%" PRIu64 " * [%s])", o->views, (*r)->text);
	err = fclose(f) ? tsi_err(TSOCK_ENOMEM, "no memory for a recipe") : 0;
	tsi_recipe_free(*r);
	*r = NULL;
	if (!err)
		err = read_recipe(o, text);
	free(text);
	return err;
}

/*
 * The first option that is about images, and not about crops of audio either if
 * these are made, and was given; NULL: there is none.
 */
static const char *image_option(const struct tsi_options *o, bool crops)
{
	const struct {
		enum tsi_option_id id;
		const char *name;
		bool crops;
	} about[] = {
		{ TSI_OPTION_transform, "transform", true },
		{ TSI_OPTION_preset, "preset", true },
		{ TSI_OPTION_size, "size", false },
		{ TSI_OPTION_resize, "resize", false },
		{ TSI_OPTION_views, "views", true },
		{ TSI_OPTION_masks, "masks", false },
		{ TSI_OPTION_boxes, "boxes", false },
		{ TSI_OPTION_pillow, "pillow", false },
		{ TSI_OPTION_fast, "fast", false },
		{ TSI_OPTION_cache, "cache", false },
	};

	for (size_t k = 0; k < sizeof(about) / sizeof(about[0]); k++)
		if (o->given[about[k].id] && !(crops && about[k].crops))
			return about[k].name;
	return NULL;
}

/* Samples without an image: they are served as they are, or crops of audio. */
static int choose_none(struct tsi_options *o, bool crops)
{
	const char *option = image_option(o, crops);

	if (option)
		return tsi_err(TSOCK_EARG,
			       "--%s: samples of --dataset %s have no images, "
			       "to which alone it could be done: leave it out",
			       option, tsi_format_name(o->data.format));
	/* What is drawn has no order. */
	if (o->order == TSI_UNSET)
		o->order = o->middle && o->sampler.way == TSI_SAMPLING_ORDER
				   ? TSOCK_ORDER_SEQUENTIAL
				   : TSOCK_ORDER_PHILOX;
	return 0;
}

/* Samples of several lengths are one of each file; whole ones are no crops. */
static int check_clips(const struct tsi_options *o)
{
	const struct tsi_recipe *r = o->sound;
	bool views = o->views > 1 || (r && r->views > 1);
	const char *word = o->clips == TSI_AUDIO_WHOLE ? "whole" : "cut";

	if (o->clips == TSI_AUDIO_CROP)
		return 0;
	if (views)
		return tsi_err(
			TSOCK_EARG,
			"--clips %s makes one sample of each file: leave "
			"out %s, or --clips",
			word, o->views > 1 ? "--views" : "Views");
	for (unsigned k = 0; r && o->clips == TSI_AUDIO_WHOLE && k < r->ops;
	     k++)
		if (r->op[k].type->crops)
			return tsi_err(
				TSOCK_EARG,
				"--clips whole makes no crops: leave out "
				"%s of --transform, or give --clips cut "
				"for crops of longer files",
				r->op[k].type->name);
	return 0;
}

/*
 * Of audio files the presets say where crops lie, and --transform what is done
 * to them.
 */
static int choose_crops(struct tsi_options *o)
{
	bool given = o->preset != TSI_UNSET;
	int err = 0;

	if (given && o->preset != TSI_PRESET_EVAL &&
	    o->preset != TSI_PRESET_TRAIN)
		return tsi_err(TSOCK_EARG,
			       "--preset %s is for images: of audio files, "
			       "train has crops at random places and eval "
			       "those of the middle",
			       tsi_preset_at((unsigned)o->preset)->name);
	if (given)
		o->middle = o->preset == TSI_PRESET_EVAL;
	if (o->transform)
		err = read_transform(o);
	if (!err)
		err = check_clips(o);
	if (!err && o->transform && o->views > 1)
		err = repeat(o);
	return err ? err : choose_none(o, true);
}

int tsi_transform_choose(struct tsi_options *o)
{
	const struct tsi_samples *samples = &o->data.samples;
	const char *own =
		o->split == TSI_SPLIT_VAL ? samples->eval : samples->train;
	unsigned preset =
		o->split == TSI_SPLIT_VAL ? TSI_PRESET_EVAL : TSI_PRESET_TRAIN;
	bool in_order = o->split == TSI_SPLIT_VAL;
	int err;

	o->middle = in_order;
	if (samples->sound.frames)
		return choose_crops(o);
	if (samples->imageless)
		return choose_none(o, false);
	if (o->preset != TSI_UNSET)
		preset = (unsigned)o->preset;
	if (o->transform) {
		err = read_transform(o);
	} else if (*own && !o->given[TSI_OPTION_preset] &&
		   !o->given[TSI_OPTION_size] && !o->given[TSI_OPTION_resize]) {
		err = read_recipe(o, own);
	} else {
		o->images = tsi_preset_at(preset);
		in_order = o->images->in_order;
		err = tsi_preset_recipe(o->images, (uint32_t)o->size,
					(uint32_t)o->resize, &o->recipe);
	}
	if (!err && o->views > 1)
		err = repeat(o);
	/* What is drawn has no order. */
	in_order = in_order && o->sampler.way == TSI_SAMPLING_ORDER;
	if (o->order == TSI_UNSET)
		o->order =
			in_order ? TSOCK_ORDER_SEQUENTIAL : TSOCK_ORDER_PHILOX;
	return err;
}

struct tsi_audio_opts tsi_transform_audio(const struct tsi_options *o)
{
	const struct tsi_sound *s = &o->data.samples.sound;

	return (struct tsi_audio_opts){
		.channels = s->channels,
		.frames = s->frames,
		.rate = s->rate,
		.centre = o->middle,
		.clips = (enum tsi_audio_clips)o->clips,
		.views = !s->frames ? 0
			 : o->sound ? o->sound->views
				    : (unsigned)o->views,
		.seed = o->seed,
	};
}

void tsi_transform_warn(struct tsi_options *o)
{
	const struct tsi_preset *p = o->images;
	char *to = o->warning[0];
	const size_t room = sizeof(o->warning[0]);

	if (!p)
		return;
	if (o->given[TSI_OPTION_resize] && !tsi_preset_has_resize(p))
		snprintf(to, room,
			 "--resize has no effect with the %s preset, which is "
			 "%s",
			 p->name, p->text);
	else if (o->given[TSI_OPTION_size] && !tsi_preset_has_size(p))
		snprintf(to, room,
			 "--size has no effect with the %s preset, which is %s",
			 p->name, p->text);
	else if (tsi_preset_has_resize(p) && o->size > o->resize)
		snprintf(to, room,
			 "--size %" PRIu64 " is above --resize %" PRIu64
			 ": images get black margins, as torchvision makes "
			 "them",
			 o->size, o->resize);
}

/* ------------------------------------------------------------------------
 * --transform help
 */

static void print_args(FILE *to, const struct tsi_op_type *type)
{
	const struct tsi_arg *a = type->args;
	const char *between = "";

	if (type->chosen) {
		fprintf(to, "[...]");
		between = ", ";
	}
	for (unsigned k = 0; a && k < TSI_OP_ARGS && a[k].name; k++) {
		fprintf(to, "%s%s%s%s", between, a[k].name,
			a[k].value ? "=" : "", a[k].value ? a[k].value : "");
		between = ", ";
	}
}

static void print_type(FILE *to, const struct tsi_op_type *type)
{
	fprintf(to, "  %s(", type->name);
	print_args(to, type);
	fprintf(to, ")\n      %s\n", type->help);
	if (type->draws)
		fprintf(to, "      draws: %s\n", type->draws);
}

void tsi_transform_help(FILE *to)
{
	const struct tsi_preset *p;
	const struct tsi_op_type *type;

	fprintf(to,
		"--transform TEXT, or @FILE with the text, is what is done to "
		"each image: operations\nwith torchvision's names and "
		"arguments, as print() shows them, for example\n"
		"  --transform 'RandomResizedCrop(224) "
		"RandomHorizontalFlip()'\n\nOperations, with their "
		"defaults:\n");
	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++)
		print_type(to, type);
	fprintf(to, "  Views([...], [...], ...)\n"
		    "      several images of each file, decoded once: the "
		    "fields image, image2, ...;\n"
		    "      it holds all other operations but ToTensor, "
		    "Normalize and the like\n");
	fprintf(to, "\nOf audio (--dataset audio): Views, RandomApply, "
		    "RandomChoice, RandomOrder, and\n");
	for (unsigned k = 0; (type = tsi_sound_type_at(k)) != NULL; k++)
		print_type(to, type);
	fprintf(to, "\nPresets, with --size and --resize for SIZE and "
		    "RESIZE:\n");
	for (unsigned k = 0; (p = tsi_preset_at(k)) != NULL; k++)
		fprintf(to, "  %s\n      %s\n", p->name, p->text);
}
