/* SPDX-License-Identifier: MIT */
/*
 * policy.h - the operations that RandAugment, TrivialAugmentWide and
 * AutoAugment choose from, and how strong they are.
 *
 * Formulas: torchvision/transforms/autoaugment.py.
 */
#ifndef TSI_TRANSFORMS_POLICY_H
#define TSI_TRANSFORMS_POLICY_H

#include "transforms/op.h"
#include "transforms/warps.h"

/* In the order of torchvision's spaces. */
enum tsi_policy_op {
	TSI_POLICY_IDENTITY,
	TSI_POLICY_SHEAR_X,
	TSI_POLICY_SHEAR_Y,
	TSI_POLICY_TRANSLATE_X,
	TSI_POLICY_TRANSLATE_Y,
	TSI_POLICY_ROTATE,
	TSI_POLICY_BRIGHTNESS,
	TSI_POLICY_COLOR,
	TSI_POLICY_CONTRAST,
	TSI_POLICY_SHARPNESS,
	TSI_POLICY_POSTERIZE,
	TSI_POLICY_SOLARIZE,
	TSI_POLICY_AUTO_CONTRAST,
	TSI_POLICY_EQUALIZE,
	TSI_POLICY_INVERT,
	TSI_POLICY_OPS,
};

/* Operations of a space: identity to equalize. */
#define TSI_POLICY_SPACE 14

/* The largest magnitudes of a space. */
struct tsi_policy_space {
	double shear;
	double translate; /* pixels, or if relative so much of the edge */
	bool relative;
	double rotate;  /* degrees */
	double enhance; /* beside 1 */
	double of_bits; /* so many, */
	double bits;    /* posterize takes off up to these */
};

/*
 * The magnitude of number bin of bins, for a picture of this size: torch's
 * linspace() of float32.  0 for operations that have none.
 */
double tsi_policy_magnitude(const struct tsi_policy_space *s,
			    enum tsi_policy_op op, unsigned bin, unsigned bins,
			    uint32_t width, uint32_t height);

/* Does it go to both sides? */
bool tsi_policy_is_signed(enum tsi_policy_op op);

/* The magnitude or its negative, of operations that go to both sides. */
double tsi_policy_either_side(struct tsi_words *w, enum tsi_policy_op op,
			      double magnitude);

/* _apply_op() on a picture of Pillow's.  Fails with TSOCK_ENOMEM. */
int tsi_policy_apply(enum tsi_policy_op op, double magnitude,
		     enum tsi_filter filter, const uint8_t *fill,
		     struct tsi_canvas *c);

#endif
