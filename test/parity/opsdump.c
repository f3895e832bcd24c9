/* SPDX-License-Identifier: MIT */
/*
 * opsdump.c - for test_warp.py and test_colour.py: operations on pictures that
 * come from standard input.
 *
 * opsdump LEVEL
 *
 * A command is a line, NAME WIDTH HEIGHT CHANNELS NUMBER..., and the picture's
 * bytes behind it.  The answer is a line, WIDTH HEIGHT CHANNELS, and the new
 * picture's bytes.  Exit status 77: the processor lacks the level.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ops/blur.h"
#include "ops/colour.h"
#include "ops/erase.h"
#include "ops/flip.h"
#include "ops/framing.h"
#include "ops/mix.h"
#include "ops/pad.h"
#include "ops/warp.h"
#include "ops/warp_map.h"
#include "resample/resample.h"

#define NUMBERS 24

struct command {
	const char *name;
	int (*run)(struct tsi_canvas *c, const double *v);
};

static struct tsi_canvas canvas;
static uint8_t fill[3];

static const uint8_t *colour(const double *v)
{
	for (int i = 0; i < 3; i++)
		fill[i] = (uint8_t)v[i];
	return fill;
}

/* WIDTH HEIGHT FILTER FILL*3 M*6 */
static int affine(struct tsi_canvas *c, const double *v)
{
	return tsi_warp_affine(c, (uint32_t)v[0], (uint32_t)v[1], v + 6,
			       (enum tsi_filter)v[2], colour(v + 3));
}

/* DEGREES FILTER FILL*3 EXPAND CENTRED X Y */
static int rotate(struct tsi_canvas *c, const double *v)
{
	return tsi_warp_rotate(c, v[0], (enum tsi_filter)v[1], v[5] != 0,
			       v[6] != 0 ? v + 7 : NULL, colour(v + 2));
}

static int same_size(struct tsi_canvas *c, const double *v, const double *m)
{
	return tsi_warp_affine(c, c->width, c->height, m, (enum tsi_filter)v[0],
			       colour(v + 1));
}

/* FILTER FILL*3 DEGREES TRANSLATE*2 SCALE SHEAR*2 CENTRE*2 */
static int affinity(struct tsi_canvas *c, const double *v)
{
	struct tsi_warp_affinity a = {
		v[4], { v[5], v[6] }, v[7], { v[8], v[9] }, { v[10], v[11] }
	};
	double m[6];

	tsi_warp_map_affine(&a, m);
	return same_size(c, v, m);
}

/* FILTER FILL*3 MAGNITUDE, and so on */
static int shear_x(struct tsi_canvas *c, const double *v)
{
	double m[6];

	tsi_warp_map_shear_x(v[4], m);
	return same_size(c, v, m);
}

static int shear_y(struct tsi_canvas *c, const double *v)
{
	double m[6];

	tsi_warp_map_shear_y(v[4], m);
	return same_size(c, v, m);
}

static int translate(struct tsi_canvas *c, const double *v)
{
	double m[6];

	tsi_warp_map_translate(c->width, c->height, v[4], v[5], m);
	return same_size(c, v, m);
}

static int plain_shear(struct tsi_canvas *c, const double *v)
{
	double m[6];

	tsi_warp_map_plain_shear(v[4], v[5], m);
	return same_size(c, v, m);
}

static int plain_translate(struct tsi_canvas *c, const double *v)
{
	double m[6];

	tsi_warp_map_plain_translate(v[4], v[5], m);
	return same_size(c, v, m);
}

/* FILTER FILL*3 START*8 END*8 */
static int perspective(struct tsi_canvas *c, const double *v)
{
	tsi_warp_point start[4], end[4];
	double m[8];

	memcpy(start, v + 4, sizeof(start));
	memcpy(end, v + 12, sizeof(end));
	if (!tsi_warp_map_perspective(start, end, m))
		return tsi_err(TSOCK_EDATA, "no such map");
	return tsi_warp_perspective(c, m, (enum tsi_filter)v[0], colour(v + 1));
}

/* FILTER FILL*3 M*8 */
static int perspective_map(struct tsi_canvas *c, const double *v)
{
	return tsi_warp_perspective(c, v + 4, (enum tsi_filter)v[0],
				    colour(v + 1));
}

static int flip(struct tsi_canvas *c, const double *v)
{
	if (v[0] != 0)
		tsi_flip_x(c);
	if (v[1] != 0)
		tsi_flip_y(c);
	return 0;
}

static int turn(struct tsi_canvas *c, const double *v)
{
	return tsi_flip_turn(c, (unsigned)v[0]);
}

/* LEFT TOP WIDTH HEIGHT */
static int crop(struct tsi_canvas *c, const double *v)
{
	tsi_flip_crop(c, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2],
		      (uint32_t)v[3]);
	return 0;
}

/* RADIUS*2 */
static int blur_pillow(struct tsi_canvas *c, const double *v)
{
	return tsi_blur_pillow(c, (float)v[0], (float)v[1]);
}

/* SIZE*2 SIGMA*2 */
static int blur_torchvision(struct tsi_canvas *c, const double *v)
{
	return tsi_blur_torchvision(c, (uint32_t)v[0], (uint32_t)v[1], v[2],
				    v[3]);
}

/* MODE FILL*3 LEFT TOP RIGHT BOTTOM */
static int pad(struct tsi_canvas *c, const double *v)
{
	struct tsi_pad_border b = { (int32_t)v[4], (int32_t)v[5], (int32_t)v[6],
				    (int32_t)v[7] };

	return tsi_pad(c, &b, (enum tsi_pad_mode)v[0], colour(v + 1));
}

/* FILTER WIDTH HEIGHT, of the part LEFT TOP WIDTH HEIGHT */
static int resize(struct tsi_canvas *c, const double *v)
{
	struct tsi_framing g = tsi_framing_of(c->width, c->height);

	if (!tsi_framing_crop(&g, (int64_t)v[3], (int64_t)v[4], (uint32_t)v[5],
			      (uint32_t)v[6], fill) ||
	    !tsi_framing_resize(&g, (uint32_t)v[1], (uint32_t)v[2],
				(enum tsi_filter)v[0]))
		return tsi_err(TSOCK_EDATA, "no such part");
	return tsi_framing_apply(&g, c);
}

/* An operation on colours with one number, and one without. */
#define FACTOR(name) \
	static int name(struct tsi_canvas *c, const double *v) \
	{ \
		return tsi_colour_##name(c, v[0]); \
	}

#define COUNT(name, type) \
	static int name(struct tsi_canvas *c, const double *v) \
	{ \
		return tsi_colour_##name(c, (type)v[0]); \
	}

#define PLAIN(name) \
	static int name(struct tsi_canvas *c, const double *v) \
	{ \
		(void)v; \
		return tsi_colour_##name(c); \
	}

FACTOR(brightness)
FACTOR(contrast)
FACTOR(saturation)
FACTOR(sharpness)
FACTOR(hue)
FACTOR(solarize)
COUNT(solarize_add, int)
COUNT(posterize, unsigned)
PLAIN(grayscale)
PLAIN(to_gray)
PLAIN(to_rgb)
PLAIN(invert)
PLAIN(autocontrast)
PLAIN(equalize)

/* LEFT TOP WIDTH HEIGHT VALUE*3 */
static int erase(struct tsi_canvas *c, const double *v)
{
	const struct tsi_rect box = { (uint32_t)v[0], (uint32_t)v[1],
				      (uint32_t)v[2], (uint32_t)v[3] };

	tsi_erase(c, &box, v + 4);
	return 0;
}

/* Version i of a picture, as test_colour.py makes it. */
static int make_version(struct tsi_canvas *c, int i)
{
	if (i == 0)
		return tsi_colour_invert(c);
	if (i == 1)
		return tsi_colour_brightness(c, 1.3);
	return tsi_colour_posterize(c, 3);
}

/* BLENDED WEIGHT*3, and for the original before and behind them */
static int mix(struct tsi_canvas *c, const double *v)
{
	int err = tsi_mix_begin(c);

	if (!err && v[4] != 0)
		tsi_mix_add(c, (float)v[4]);
	for (int i = 0; !err && i < 3; i++) {
		tsi_mix_original(c);
		err = make_version(c, i);
		if (v[0] != 0)
			tsi_mix_blend(c, (float)v[1 + i]);
		else
			tsi_mix_add(c, (float)v[1 + i]);
	}
	if (!err && v[0] == 0)
		tsi_mix_sum(c);
	if (!err && v[5] != 0)
		tsi_mix_with_original(c, (float)v[5]);
	return err;
}

static const struct command commands[] = {
	{ "affine", affine },
	{ "rotate", rotate },
	{ "affinity", affinity },
	{ "shear_x", shear_x },
	{ "shear_y", shear_y },
	{ "translate", translate },
	{ "plain_shear", plain_shear },
	{ "plain_translate", plain_translate },
	{ "perspective", perspective },
	{ "perspective_map", perspective_map },
	{ "flip", flip },
	{ "turn", turn },
	{ "crop", crop },
	{ "blur_pillow", blur_pillow },
	{ "blur_torchvision", blur_torchvision },
	{ "pad", pad },
	{ "resize", resize },
	{ "brightness", brightness },
	{ "contrast", contrast },
	{ "saturation", saturation },
	{ "sharpness", sharpness },
	{ "hue", hue },
	{ "solarize", solarize },
	{ "solarize_add", solarize_add },
	{ "posterize", posterize },
	{ "grayscale", grayscale },
	{ "to_gray", to_gray },
	{ "to_rgb", to_rgb },
	{ "invert", invert },
	{ "autocontrast", autocontrast },
	{ "equalize", equalize },
	{ "erase", erase },
	{ "mix", mix },
};

static const struct command *command_of(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	return NULL;
}

static int run(char *line)
{
	const struct command *command = command_of(strtok(line, " \n"));
	double v[3 + NUMBERS] = { 0 };
	char *word;

	for (int i = 0; i < 3 + NUMBERS && (word = strtok(NULL, " \n")); i++)
		v[i] = strtod(word, NULL);
	if (!command || tsi_canvas_begin(&canvas, (uint32_t)v[0],
					 (uint32_t)v[1], (unsigned)v[2]))
		return 1;
	if (fread(canvas.pixels, tsi_canvas_bytes(&canvas), 1, stdin) != 1 ||
	    command->run(&canvas, v + 3))
		return 1;
	printf("%u %u %u\n", canvas.width, canvas.height, canvas.channels);
	fwrite(canvas.pixels, 1, tsi_canvas_bytes(&canvas), stdout);
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[2048];
	enum tsi_simd level;
	int err = 0;

	if (argc < 2 || tsi_simd_choose(atoi(argv[1]), &level))
		return 77;
	tsi_canvas_init(&canvas, level);
	err = tsi_resample_create(level, &canvas.resample);
	while (!err && fgets(line, sizeof(line), stdin))
		err = run(line);
	if (err)
		fprintf(stderr, "opsdump: %s\n", tsock_errmsg());
	tsi_resample_destroy(canvas.resample);
	tsi_canvas_fini(&canvas);
	return err;
}
