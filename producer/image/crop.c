/* SPDX-License-Identifier: MIT */
/*
 * crop.c - where to crop, and whether to mirror.
 *
 * Formulas: torchvision.transforms.RandomResizedCrop.get_params,
 * functional._compute_resized_output_size and functional.center_crop.
 */
#include "image/crop.h"

#include <math.h>

#include "base/err.h"
#include "pixel/draw.h"

#define ATTEMPTS 10

bool tsi_crop_try(uint32_t width, uint32_t height, uint32_t area_word,
		  uint32_t ratio_word, struct tsi_box *box)
{
	/* float32 logarithms of 3/4 and 4/3. */
	const float log_low = -0x1.26962p-2f, log_high = 0x1.269624p-2f;
	double area = (double)width * height *
		      (double)tsi_draw_uniform(area_word, 0.08f, 1.0f);
	/*
	 * In double and rounded once: the float functions of different
	 * libraries and processors differ in the last bit.
	 */
	double ratio = (float)exp(
		(double)tsi_draw_uniform(ratio_word, log_low, log_high));
	double w = rint(sqrt(area * ratio));
	double h = rint(sqrt(area / ratio));

	if (!(w > 0 && w <= width && h > 0 && h <= height))
		return false;
	box->width = (int32_t)w;
	box->height = (int32_t)h;
	return true;
}

void tsi_crop_fallback(uint32_t width, uint32_t height, struct tsi_box *box)
{
	const double low = 3.0 / 4.0, high = 4.0 / 3.0;
	double ratio = (double)width / (double)height;

	box->width = (int32_t)width;
	box->height = (int32_t)height;
	if (ratio < low)
		box->height = (int32_t)rint(width / low);
	else if (ratio > high)
		box->width = (int32_t)rint(height * high);
	box->top = ((int32_t)height - box->height) / 2;
	box->left = ((int32_t)width - box->width) / 2;
}

void tsi_crop_train(uint64_t seed, uint32_t epoch, uint64_t index,
		    uint32_t width, uint32_t height, struct tsi_box *box)
{
	struct tsi_philox_ctr r = tsi_draw(seed, epoch, index, TSI_OP_FLIP, 0);
	struct tsi_box b = { .flip = tsi_draw_uniform(r.v[0], 0, 1) < 0.5f };

	*box = b;
	for (uint32_t i = 0; i < ATTEMPTS; i++) {
		r = tsi_draw(seed, epoch, index, TSI_OP_CROP, i);
		if (!tsi_crop_try(width, height, r.v[0], r.v[1], box))
			continue;
		box->top = (int32_t)(r.v[2] %
				     (height - (uint32_t)box->height + 1));
		box->left =
			(int32_t)(r.v[3] % (width - (uint32_t)box->width + 1));
		return;
	}
	tsi_crop_fallback(width, height, box);
}

/* Python's int(round((edge - size) / 2.0)), or the padding, negative. */
static int32_t centre(uint32_t edge, uint32_t size)
{
	if (edge < size)
		return -(int32_t)((size - edge) / 2);
	return (int32_t)rint((double)(edge - size) / 2.0);
}

int tsi_crop_eval(uint32_t width, uint32_t height, uint32_t resize,
		  uint32_t size, uint32_t *new_width, uint32_t *new_height,
		  struct tsi_box *box)
{
	uint32_t shorter = width < height ? width : height;
	uint32_t longer = width < height ? height : width;
	/* Python divides two integers as doubles and truncates. */
	double edge = (double)((uint64_t)resize * longer) / (double)shorter;

	if (edge > INT32_MAX)
		return tsi_err(TSOCK_EDATA,
			       "%u x %u pixels are too thin to resize to a "
			       "short edge of %u",
			       width, height, resize);
	*new_width = width <= height ? resize : (uint32_t)edge;
	*new_height = width <= height ? (uint32_t)edge : resize;
	box->top = centre(*new_height, size);
	box->left = centre(*new_width, size);
	box->height = (int32_t)size;
	box->width = (int32_t)size;
	box->flip = 0;
	return 0;
}
