/* SPDX-License-Identifier: MIT */
/*
 * fuzz_recipe.c - any bytes are a recipe's text, or are refused; and what a
 * recipe does to a small picture ends with a sample of the size it said.
 *
 * The first three bytes are the picture's width and height and the sample's
 * number.
 */
#include "corpus.h"
#include "recipe/preset.h"
#include "recipe/recipe.h"
#include "recipe/types.h"
#include "resample/resample.h"
#include "tsock/tsock.h"

#define HEAD 3
/* Pixels of the largest picture that is made: the fuzzer is to be quick. */
#define MOST_PIXELS 40000

static struct tsi_canvas canvas;

static void put(const char *folder, const char *name, const char *text)
{
	uint8_t data[HEAD + TSI_RECIPE_TEXT] = { 30, 20, 7 };
	size_t n = strlen(text);

	never(n >= TSI_RECIPE_TEXT);
	memcpy(data + HEAD, text, n);
	corpus_put(folder, name, data, HEAD + n);
}

/* A recipe of each operation, with its defaults, and the presets. */
static void seed(const char *folder)
{
	const struct tsi_op_type *type;
	const struct tsi_preset *p;
	struct tsi_recipe *r;
	char text[600];

	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++) {
		const char *args = !type->args            ? ""
				   : !type->args[0].name  ? ""
				   : !type->args[0].value ? "9"
							  : "";

		snprintf(text, sizeof(text),
			 type->chosen ? "%s([Pad(3), RandomInvert()])%s"
				      : "%s(%s)",
			 type->name, args);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 " Resize((12, 9)) Normalize(0.5, 0.5)");
		put(folder, type->name, text);
	}
	put(folder, "views",
	    "Views([Pad(2) CenterCrop(9)], [RandomResizedCrop(4)])");
	for (unsigned k = 0; (p = tsi_preset_at(k)) != NULL; k++) {
		never(tsi_preset_recipe(p, 16, 20, &r));
		put(folder, p->name, r->text);
		tsi_recipe_free(r);
	}
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);

	tsi_canvas_init(&canvas, tsi_simd_best());
	never(tsi_resample_create(TSI_SIMD_BEST, &canvas.resample));
	if (folder)
		seed(folder);
	return 0;
}

static void make(const struct tsi_recipe_view *v, uint32_t width,
		 uint32_t height, const double *draws)
{
	never(tsi_canvas_begin(&canvas, width, height, 3));
	for (size_t i = 0; i < tsi_canvas_bytes(&canvas); i++)
		canvas.pixels[i] = (uint8_t)(i * 7 + i / 3 * 31);
	never(tsi_recipe_apply(v->first, draws, &canvas));
	never(canvas.width != v->width || canvas.height != v->height ||
	      canvas.channels != v->channels);
}

static void run(const struct tsi_recipe *r, const uint8_t *head)
{
	struct tsi_op_sample s = { .index = head[2],
				   .width = 1 + head[0] % 64,
				   .height = 1 + head[1] % 64 };
	uint32_t width = s.width, height = s.height;
	double *draws = calloc(r->draws + 1, sizeof(*draws));
	int err;

	never(!draws);
	err = tsi_recipe_draw(r, &s, draws);
	never(err && err != TSOCK_EDATA);
	for (unsigned k = 0; !err && s.most <= MOST_PIXELS && k < r->views; k++)
		make(&r->view[k], width, height, draws);
	free(draws);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_recipe *r, *again;
	char *text;
	int err;

	if (size < HEAD)
		return 0;
	text = malloc(size - HEAD + 1);
	never(!text);
	memcpy(text, data + HEAD, size - HEAD);
	text[size - HEAD] = 0;
	err = tsi_recipe_read(text, &r);
	never(err && err != TSOCK_EARG);
	never(err && !*tsock_errmsg());
	free(text);
	if (err)
		return 0;
	never(tsi_recipe_read(r->text, &again));
	never(strcmp(r->text, again->text) || r->draws != again->draws);
	tsi_recipe_free(again);
	run(r, data);
	tsi_recipe_free(r);
	return 0;
}
