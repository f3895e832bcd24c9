/* SPDX-License-Identifier: MIT */
/*
 * erasing.c - RandomErasing.
 *
 * Formula: torchvision.transforms.RandomErasing.get_params.
 */
#include <math.h>

#include "ops/erase.h"
#include "transforms/op.h"
#include "transforms/sizes.h"

#define ATTEMPTS 10

enum { P, SCALE, RATIO, VALUE, NOISE };
enum { DONE, TOP, LEFT, HEIGHT, WIDTH, DRAWS, SEED = DRAWS };
enum { RANDOM, COLOR }; /* words of value */

static const struct tsi_arg args[] = {
	[P] = TSI_ARG_P("0.5"),
	[SCALE] = { .name = "scale",
		    .kind = TSI_ARG_NUMBER,
		    .value = "(0.02, 0.33)",
		    .least = 2,
		    .most = 2,
		    .min = 0,
		    .max = 1 },
	[RATIO] = { .name = "ratio",
		    .kind = TSI_ARG_NUMBER,
		    .value = "(0.3, 3.3)",
		    .least = 2,
		    .most = 2,
		    .min = 1e-3,
		    .max = 1e3 },
	[VALUE] = { .name = "value",
		    .kind = TSI_ARG_NUMBER,
		    .value = "0",
		    .least = 1,
		    .most = 3,
		    .min = -1e3,
		    .max = 1e3,
		    .words = "random|color",
		    .colour = true },
	/* Its mean and standard deviation in bytes, or those of each channel. */
	[NOISE] = { .name = "noise",
		    .kind = TSI_ARG_NUMBER,
		    .value = "None",
		    .least = 2,
		    .most = 6,
		    .min = -1e9,
		    .max = 1e9,
		    .none = true,
		    .colour = true,
		    .unsaid = true },
	{ 0 },
};

/* Behind ToTensor or Normalize: the bytes of which a view makes the value. */
static void find_bytes(struct tsi_arg_value *value, const struct tsi_ends *ends)
{
	const bool all = value->n == 3;

	for (unsigned k = 3; k-- > 0;) {
		double v = value->v[all ? k : 0];

		if (ends->normalize)
			v = v * ends->std[k] + ends->mean[k];
		v = rint(v * 255);
		value->v[k] = v < 0 ? 0 : v > 255 ? 255 : v;
	}
	value->n = value->v[0] == value->v[1] && value->v[0] == value->v[2] ? 1
									    : 3;
}

static bool is_noise(const struct tsi_op *op)
{
	return !op->arg[VALUE].n;
}

/* In bytes, without the last digits that a product has too many. */
static double bytes_of(double v)
{
	return rint(v * 255e6) / 1e6;
}

/* The bytes that normalised noise of mean 0 and deviation 1 is made of. */
static void find_noise(struct tsi_arg_value *noise, const struct tsi_ends *ends)
{
	const bool one = tsi_op_ends_are_one(ends);
	const unsigned channels = one ? 1 : 3;

	noise->n = 2 * channels;
	for (unsigned k = 0; k < channels; k++) {
		noise->v[k] = ends->normalize ? bytes_of(ends->mean[k]) : 0;
		noise->v[channels + k] =
			ends->normalize ? bytes_of(ends->std[k]) : 255;
	}
}

static bool check_noise(struct tsi_op *op, const char **why)
{
	struct tsi_arg_value *noise = &op->arg[NOISE];

	if (!is_noise(op) && noise->n)
		*why = "noise is for value=random and value=color";
	if (!is_noise(op))
		return !*why;
	if (!noise->n && op->behind && op->behind->floats)
		find_noise(noise, op->behind);
	if (!noise->n)
		*why = "noise has the mean 0 and the standard deviation 1, so "
		       "it stands behind Normalize: of bytes it would be black";
	else if (noise->n != 2 && noise->n != 6)
		*why = "noise is (mean, std) in bytes, or three means and "
		       "three stds";
	for (unsigned k = noise->n / 2; k < noise->n; k++)
		if (!(noise->v[k] > 0))
			*why = "noise's standard deviations are above 0";
	return !*why;
}

static bool check(struct tsi_op *op, const char **why)
{
	const struct tsi_arg_value *scale = &op->arg[SCALE];
	const struct tsi_arg_value *ratio = &op->arg[RATIO];

	if (scale->v[0] > scale->v[1])
		*why = "scale is (least, most)";
	else if (ratio->v[0] > ratio->v[1])
		*why = "ratio is (least, most)";
	if (*why || !check_noise(op, why))
		return false;
	if (!is_noise(op) && op->behind && op->behind->floats)
		find_bytes(&op->arg[VALUE], op->behind);
	return true;
}

static unsigned count(const struct tsi_op *op)
{
	return DRAWS + is_noise(op);
}

static float log_of(double ratio)
{
	return (float)log((double)(float)ratio);
}

/* One attempt: a block of words.  False: it doesn't fit. */
static bool try_box(const struct tsi_op *op, struct tsi_words *w,
		    uint32_t width, uint32_t height, double *draws)
{
	const double *scale = op->arg[SCALE].v, *ratio = op->arg[RATIO].v;
	double area, r, h, v;

	tsi_words_skip(w);
	area = (double)width * height *
	       (double)tsi_words_uniform(w, (float)scale[0], (float)scale[1]);
	r = (float)exp((double)tsi_words_uniform(w, log_of(ratio[0]),
						 log_of(ratio[1])));
	h = rint(sqrt(area * r));
	v = rint(sqrt(area / r));
	if (!(h < height && v < width))
		return false;
	draws[HEIGHT] = h;
	draws[WIDTH] = v;
	draws[TOP] = tsi_words_below(w, height - (uint32_t)h + 1);
	draws[LEFT] = tsi_words_below(w, width - (uint32_t)v + 1);
	return true;
}

static int draw(const struct tsi_op *op, struct tsi_words *w, uint32_t width,
		uint32_t height, double *draws)
{
	bool done = tsi_words_chance(w, tsi_op_number(op, P));

	for (unsigned i = 0; done && i < ATTEMPTS; i++)
		if (try_box(op, w, width, height, draws)) {
			draws[DONE] = 1;
			break;
		}
	if (draws[DONE] != 0 && is_noise(op))
		draws[SEED] = tsi_words_next(w);
	return 0;
}

static void apply_noise(const struct tsi_op *op, const double *draws,
			const struct tsi_rect *box, struct tsi_canvas *c)
{
	const struct tsi_arg_value *v = &op->arg[NOISE];
	const unsigned channels = v->n / 2;
	struct tsi_erase_noise noise = {
		.seed = (uint32_t)draws[SEED],
		.color = tsi_op_number(op, VALUE) == COLOR,
	};

	for (unsigned k = 0; k < 3; k++) {
		noise.mean[k] = v->v[channels == 3 ? k : 0];
		noise.std[k] = v->v[channels == 3 ? 3 + k : 1];
	}
	tsi_erase_with_noise(c, box, &noise);
}

static int apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c)
{
	const struct tsi_arg_value *v = &op->arg[VALUE];
	const struct tsi_rect box = { (uint32_t)draws[LEFT],
				      (uint32_t)draws[TOP],
				      (uint32_t)draws[WIDTH],
				      (uint32_t)draws[HEIGHT] };
	double value[3];

	for (unsigned k = 0; k < 3; k++)
		value[k] = v->v[v->n == 3 ? k : 0];
	if (draws[DONE] != 0 && is_noise(op))
		apply_noise(op, draws, &box, c);
	else if (draws[DONE] != 0)
		tsi_erase(c, &box, value);
	return 0;
}

const struct tsi_op_type tsi_op_random_erasing = {
	.name = "RandomErasing",
	.args = args,
	.help = "a random box of one colour, with probability p, or with "
		"value=random of noise, with value=color of a random colour; "
		"behind Normalize bytes are those that come nearest to value "
		"or noise",
	.check = check,
	.count = count,
	.draws = "1 if it is done; top, left, height, width of the box; for "
		 "noise its seed",
	.draw = draw,
	.sized = true,
	.apply = apply,
	.colours = true,
	.floats = true,
};
