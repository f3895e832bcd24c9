/* SPDX-License-Identifier: MIT */
/*
 * image.h - how a sample is made of an image: sizes, options, and the box that
 * was cut out.
 */
#ifndef TSI_PIXEL_IMAGE_H
#define TSI_PIXEL_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An image that needs no more memory than this is decoded in the worker's own;
 * for a larger one memory is claimed first (budget.h).
 */
#define TSI_IMAGE_SMALL ((size_t)16 << 20)
/* What all large images of a process may use together, by default. */
#define TSI_IMAGE_MEMORY (UINT64_C(2) << 30)

/* More pixels than this are bad data, as they are to Pillow. */
#define TSI_IMAGE_PIXELS_MAX 178956970u
/* Widest and highest PNG; libpng's own default. */
#define TSI_IMAGE_EDGE_MAX 1000000u
/* Largest --size and --resize. */
#define TSI_IMAGE_SIZE_MAX 4096u

struct tsi_recipe;
struct tsi_budget_claim;
struct tsi_jpeg_index;

struct tsi_image_opts {
	const struct tsi_recipe *recipe; /* outlives the decoder */
	uint64_t seed;                   /* key of the random draws */
	uint32_t pillow; /* major version to equal; 0 is the newest, 13 */
	bool fast;       /* JPEG: fewer computations, other pixels */
	bool masks;      /* a mask is loaded behind each image: memory for it */
	/* For large images; NULL: no limit.  Outlives the decoder. */
	struct tsi_budget_claim *claim;
	/*
	 * JPEG by libjpeg alone; and where parts of the data set's JPEG files
	 * begin (jpeg/index.h), or NULL.  It outlives the decoder, too.
	 */
	bool stock_jpeg;
	struct tsi_jpeg_index *jpeg_index;
};

/*
 * What was cut out by the operations at the beginning of a recipe.  Pixels of
 * the source image, before a resize (RandomResizedCrop); or, where a part of
 * what was resized is cut out (Resize, CenterCrop), pixels of that: top and
 * left are negative where the crop is larger and a colour surrounds it.
 */
struct tsi_box {
	int32_t top;
	int32_t left;
	int32_t height;
	int32_t width;
	int32_t flip; /* 1: mirrored left to right */
};

#endif
