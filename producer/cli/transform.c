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
	int err;

	for (size_t k = 0; k < sizeof(other) / sizeof(other[0]); k++)
		if (other[k].given)
			return tsi_err(TSOCK_EARG,
				       "--%s contradicts --transform, whose "
				       "text says all that is done to images: "
				       "leave out one of them",
				       other[k].name);
	if (o->transform[0] != '@')
		return tsi_recipe_read(o->transform, &o->recipe);
	err = read_file(o->transform + 1, text, sizeof(text));
	return err ? err : tsi_recipe_read(text, &o->recipe);
}

/* The recipe as it is, so many times for each sample. */
static int repeat(struct tsi_options *o)
{
	char *text = NULL;
	size_t len;
	FILE *f;
	int err;

	if (o->recipe->several)
		return tsi_err(TSOCK_EARG,
			       "--views contradicts a transform with Views: "
			       "leave out one of them");
	f = open_memstream(&text, &len);
	if (!f)
		return tsi_err(TSOCK_ENOMEM, "no memory for a recipe");
	fprintf(f, "Views(%" PRIu64 " * [%s])", o->views, o->recipe->text);
	err = fclose(f) ? tsi_err(TSOCK_ENOMEM, "no memory for a recipe") : 0;
	tsi_recipe_free(o->recipe);
	o->recipe = NULL;
	if (!err)
		err = tsi_recipe_read(text, &o->recipe);
	free(text);
	return err;
}

int tsi_transform_choose(struct tsi_options *o)
{
	unsigned preset =
		o->split == TSI_SPLIT_VAL ? TSI_PRESET_EVAL : TSI_PRESET_TRAIN;
	bool in_order = o->split == TSI_SPLIT_VAL;
	int err;

	if (o->preset != TSI_UNSET)
		preset = (unsigned)o->preset;
	if (o->transform) {
		err = read_transform(o);
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
	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++) {
		fprintf(to, "  %s(", type->name);
		print_args(to, type);
		fprintf(to, ")\n      %s\n", type->help);
		if (type->draws)
			fprintf(to, "      draws: %s\n", type->draws);
	}
	fprintf(to, "  Views([...], [...], ...)\n"
		    "      several images of each file, decoded once: the "
		    "fields image, image2, ...;\n"
		    "      it holds all other operations but ToTensor, "
		    "Normalize and the like\n");
	fprintf(to, "\nPresets, with --size and --resize for SIZE and "
		    "RESIZE:\n");
	for (unsigned k = 0; (p = tsi_preset_at(k)) != NULL; k++)
		fprintf(to, "  %s\n      %s\n", p->name, p->text);
}
