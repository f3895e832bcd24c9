/* SPDX-License-Identifier: MIT */
/*
 * spec.c - what a view is: dtype, layout, normalisation, and the GPU.
 */
#include "view/spec.h"

#include <math.h>
#include <string.h>

#include "base/err.h"

_Static_assert(sizeof(struct tsi_view_spec) == 44 + TSI_UUID,
	       "a spec without padding: equal views have equal bytes");

static int check_mean_std(const struct tsi_view_spec *spec)
{
	for (int c = 0; c < 3; c++) {
		if (!isfinite(spec->mean[c]))
			return tsi_err(TSOCK_EARG,
				       "mean of channel %d is not a finite "
				       "number; give it in [0, 1] units",
				       c);
		if (!isfinite(spec->std[c]) || spec->std[c] == 0)
			return tsi_err(TSOCK_EARG,
				       "std of channel %d is %g; it must be "
				       "a finite number other than 0",
				       c, (double)spec->std[c]);
	}
	return 0;
}

int tsi_view_spec_check(const struct tsi_view_spec *spec)
{
	switch (spec->dtype) {
	case TSOCK_U8:
	case TSOCK_F16:
	case TSOCK_BF16:
	case TSOCK_F32:
		break;
	default:
		return tsi_err(TSOCK_EARG,
			       "an image can't become dtype %u; choose u8, "
			       "f16, bf16 or f32",
			       spec->dtype);
	}
	if (spec->layout != TSOCK_HWC && spec->layout != TSOCK_CHW)
		return tsi_err(TSOCK_EARG,
			       "unknown layout %u; choose HWC or CHW",
			       spec->layout);
	switch (spec->normalize) {
	case TSOCK_RAW:
		return 0;
	case TSOCK_UNIT:
	case TSOCK_MEAN_STD:
		break;
	default:
		return tsi_err(TSOCK_EARG,
			       "unknown normalize %u; choose RAW, UNIT or "
			       "MEAN_STD",
			       spec->normalize);
	}
	if (spec->dtype == TSOCK_U8)
		return tsi_err(TSOCK_EARG,
			       "u8 can't hold normalised values; choose a "
			       "float dtype, or normalize RAW");
	return spec->normalize == TSOCK_MEAN_STD ? check_mean_std(spec) : 0;
}

int tsi_view_spec_check_field(const struct tsi_view_spec *spec,
			      const struct tsock_field *f)
{
	const float *mean = spec->mean, *std = spec->std;

	if (!(f->flags & TSOCK_FIELD_IMAGE) || f->shape[2] != 1 ||
	    spec->normalize != TSOCK_MEAN_STD)
		return 0;
	if (mean[0] == mean[1] && mean[0] == mean[2] && std[0] == std[1] &&
	    std[0] == std[2])
		return 0;
	return tsi_err(TSOCK_EARG,
		       "the images of field '%s' have one channel, and the "
		       "normalisation has other numbers for each of three "
		       "channels; give one mean and one std (in Python: "
		       "normalize=((0.5,), (0.5,)), or None)",
		       f->name);
}

int tsi_view_spec_make(uint32_t dtype, uint32_t layout, uint32_t normalize,
		       const float mean[3], const float std[3],
		       struct tsi_view_spec *out)
{
	struct tsi_view_spec v = { .dtype = dtype ? dtype : TSOCK_U8,
				   .layout = layout,
				   .normalize = normalize };
	int err;

	for (int i = 0; i < 3 && normalize == TSOCK_MEAN_STD; i++) {
		/* -0 becomes 0. */
		v.mean[i] = mean[i] + 0.0f;
		v.std[i] = std[i];
	}
	err = tsi_view_spec_check(&v);
	if (err)
		return err;
	if (tsi_view_spec_is_stored(&v))
		v = (struct tsi_view_spec){ .dtype = 0 };
	*out = v;
	return 0;
}

bool tsi_view_spec_equal(const struct tsi_view_spec *a,
			 const struct tsi_view_spec *b)
{
	return !memcmp(a, b, sizeof(*a));
}

bool tsi_view_spec_is_base(const struct tsi_view_spec *spec)
{
	static const struct tsi_view_spec base;

	return tsi_view_spec_equal(spec, &base);
}

bool tsi_view_spec_is_stored(const struct tsi_view_spec *spec)
{
	return spec->dtype == TSOCK_U8 && spec->layout == TSOCK_HWC;
}

void tsi_view_spec_field(const struct tsi_view_spec *spec,
			 const struct tsock_field *in, struct tsock_field *out)
{
	struct tsock_field f = *in;

	*out = f;
	if (!(in->flags & TSOCK_FIELD_IMAGE))
		return;
	f.dtype = spec->dtype;
	if (spec->layout == TSOCK_CHW) {
		f.shape[0] = in->shape[2];
		f.shape[1] = in->shape[0];
		f.shape[2] = in->shape[1];
	}
	/* A view of a view doesn't exist. */
	if (!tsi_view_spec_is_stored(spec))
		f.flags &= ~TSOCK_FIELD_IMAGE;
	*out = f;
}
