/* SPDX-License-Identifier: MIT */
/*
 * policy.c - the operations that policies choose from.
 */
#include "transforms/policy.h"

#include <math.h>

#include "ops/colour.h"
#include "ops/warp_map.h"

/*
 * torch.linspace(first, last, n)[k], of float32, with one rounding as in torch's
 * code for AVX2, AVX-512 and aarch64.
 */
static double linspace(double first, double last, unsigned k, unsigned n)
{
	float a = (float)first, b = (float)last;
	float step = n > 1 ? (b - a) / (float)(n - 1) : 0;

	if (k < n / 2 || n == 1)
		return (double)fmaf(step, (float)k, a);
	return (double)fmaf(-step, (float)(n - 1 - k), b);
}

/* of - round(k / ((n - 1) / most)), of float32. */
static double bits_left(double of, double most, unsigned k, unsigned n)
{
	float by = (float)((n > 1 ? n - 1 : 1) / most);

	return of - rint((double)((float)k / by));
}

double tsi_policy_magnitude(const struct tsi_policy_space *s,
			    enum tsi_policy_op op, unsigned bin, unsigned bins,
			    uint32_t width, uint32_t height)
{
	switch (op) {
	case TSI_POLICY_SHEAR_X:
	case TSI_POLICY_SHEAR_Y:
		return linspace(0, s->shear, bin, bins);
	case TSI_POLICY_TRANSLATE_X:
		return linspace(0, s->translate * (s->relative ? width : 1),
				bin, bins);
	case TSI_POLICY_TRANSLATE_Y:
		return linspace(0, s->translate * (s->relative ? height : 1),
				bin, bins);
	case TSI_POLICY_ROTATE:
		return linspace(0, s->rotate, bin, bins);
	case TSI_POLICY_BRIGHTNESS:
	case TSI_POLICY_COLOR:
	case TSI_POLICY_CONTRAST:
	case TSI_POLICY_SHARPNESS:
		return linspace(0, s->enhance, bin, bins);
	case TSI_POLICY_POSTERIZE:
		return bits_left(s->of_bits, s->bits, bin, bins);
	case TSI_POLICY_SOLARIZE:
		return linspace(255, 0, bin, bins);
	default:
		return 0;
	}
}

bool tsi_policy_is_signed(enum tsi_policy_op op)
{
	return op >= TSI_POLICY_SHEAR_X && op <= TSI_POLICY_SHARPNESS;
}

double tsi_policy_either_side(struct tsi_words *w, enum tsi_policy_op op,
			      double magnitude)
{
	/* 0 has no other side; a draw is taken all the same. */
	if (tsi_policy_is_signed(op) && tsi_words_below(w, 2) && magnitude != 0)
		return -magnitude;
	return magnitude;
}

static int warp(enum tsi_policy_op op, double magnitude, enum tsi_filter filter,
		const uint8_t *fill, struct tsi_canvas *c)
{
	double m[6];

	if (op == TSI_POLICY_SHEAR_X)
		tsi_warp_map_shear_x(magnitude, m);
	else if (op == TSI_POLICY_SHEAR_Y)
		tsi_warp_map_shear_y(magnitude, m);
	else if (op == TSI_POLICY_TRANSLATE_X)
		tsi_warp_map_translate(c->width, c->height, trunc(magnitude), 0,
				       m);
	else
		tsi_warp_map_translate(c->width, c->height, 0, trunc(magnitude),
				       m);
	return tsi_warp_affine(c, c->width, c->height, m, filter, fill);
}

int tsi_policy_apply(enum tsi_policy_op op, double magnitude,
		     enum tsi_filter filter, const uint8_t *fill,
		     struct tsi_canvas *c)
{
	switch (op) {
	case TSI_POLICY_SHEAR_X:
	case TSI_POLICY_SHEAR_Y:
	case TSI_POLICY_TRANSLATE_X:
	case TSI_POLICY_TRANSLATE_Y:
		return warp(op, magnitude, filter, fill, c);
	case TSI_POLICY_ROTATE:
		return tsi_warp_rotate(c, magnitude, filter, false, NULL, fill);
	case TSI_POLICY_BRIGHTNESS:
		return tsi_colour_brightness(c, 1 + magnitude);
	case TSI_POLICY_COLOR:
		return tsi_colour_saturation(c, 1 + magnitude);
	case TSI_POLICY_CONTRAST:
		return tsi_colour_contrast(c, 1 + magnitude);
	case TSI_POLICY_SHARPNESS:
		return tsi_colour_sharpness(c, 1 + magnitude);
	case TSI_POLICY_POSTERIZE:
		return tsi_colour_posterize(c, (unsigned)magnitude);
	case TSI_POLICY_SOLARIZE:
		return tsi_colour_solarize(c, magnitude);
	case TSI_POLICY_AUTO_CONTRAST:
		return tsi_colour_autocontrast(c);
	case TSI_POLICY_EQUALIZE:
		return tsi_colour_equalize(c);
	case TSI_POLICY_INVERT:
		return tsi_colour_invert(c);
	default:
		return 0;
	}
}
