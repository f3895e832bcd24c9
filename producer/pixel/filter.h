/* SPDX-License-Identifier: MIT */
/*
 * filter.h - how pixels are resampled.
 */
#ifndef TSI_PIXEL_FILTER_H
#define TSI_PIXEL_FILTER_H

/* Pillow's filters; bilinear is what zeroed structs have. */
enum tsi_filter {
	TSI_FILTER_BILINEAR,
	TSI_FILTER_NEAREST,
	TSI_FILTER_BOX,
	TSI_FILTER_HAMMING,
	TSI_FILTER_BICUBIC,
	TSI_FILTER_LANCZOS,
};

/* Their names, in this order, as torchvision's InterpolationMode has them. */
#define TSI_FILTER_WORDS "bilinear|nearest|box|hamming|bicubic|lanczos"

#endif
