/* SPDX-License-Identifier: MIT */
/*
 * preset.h - what a preset is: the part of an image that a sample shows, and
 * what is done to the sample's pixels.
 *
 * A preset is one file that defines a struct tsi_preset, and one line in
 * TSI_PRESETS (preset_train.c and preset_eval.c are those that there are;
 * test/unit/preset_tint.c is a small one, with random numbers of its own).  The
 * command line, --help, the identity of a stream and the loading of images go
 * through the table and know no preset by name but the two defaults.
 */
#ifndef TSI_IMAGE_PRESET_H
#define TSI_IMAGE_PRESET_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/image.h"
#include "resample/taps.h"

/* What to compute: the window of a resized area, and where it goes. */
struct tsi_preset_plan {
	struct tsi_axis x;
	struct tsi_axis y;
	uint32_t left; /* of the area in the source image */
	uint32_t top;
	uint32_t to_x; /* of the window in the sample; around it is black */
	uint32_t to_y;
};

/* What a preset's operations are called with. */
struct tsi_preset_sample {
	const struct tsi_image_opts *opts;
	uint32_t epoch; /* with the seed, what random numbers depend on */
	uint64_t index;
};

struct tsi_preset {
	const char *name; /* what --preset calls it */

	/* Without --order: the data set's own order, or else a shuffle. */
	bool in_order;
	/*
	 * NULL: --resize has an effect, and is a part of what a stream is.
	 * Else why it has none: "which ..."
	 */
	const char *no_resize;
	/*
	 * Each sample needs the same rows of an image, whatever its epoch and
	 * index: a damaged file is bad for all of them, or for none.
	 */
	bool same_rows;

	/*
	 * The numbers that this preset's random draws have (draw.h), ended by
	 * one that is 0.  NULL: it draws none.
	 */
	const struct tsi_draw_op *draws;

	/*
	 * Options that can't be, beside a size that is none.  NULL: there are
	 * none.  Fails with EARG.
	 */
	int (*check)(const struct tsi_image_opts *o);

	/*
	 * What to compute for a sample of an image of this size, and the box
	 * that says so to consumers.  A function of its arguments alone.
	 * Unless the preset has same_rows, all of the area's rows are kept:
	 * y.first is 0 and y.count is y.out.
	 * Fails with EDATA: there is no sample of such an image.
	 */
	int (*plan)(const struct tsi_preset_sample *s, uint32_t width,
		    uint32_t height, struct tsi_box *box,
		    struct tsi_preset_plan *plan);

	/*
	 * Rows from the first one on of an image of this size below which no
	 * sample of it can be, at least 1.  NULL, always with same_rows: 1.
	 */
	uint32_t (*least_bottom)(uint32_t width, uint32_t height);

	/*
	 * Change the finished pixels of a sample, opts->size in square, three
	 * bytes each, row by row.  NULL: they stay as they are.
	 */
	void (*apply)(const struct tsi_preset_sample *s, uint8_t *pixels);
};

/*
 * All presets, in the order in which --help lists them, with what it says of
 * each.
 */
#define TSI_PRESETS(P) \
	P(train, "random resized crop and flip (default)") \
	P(eval, "resize and centre crop (default of --split val)")

#define TSI_PRESET_EXTERN(name, help) \
	extern const struct tsi_preset tsi_preset_##name;
TSI_PRESETS(TSI_PRESET_EXTERN)
#undef TSI_PRESET_EXTERN

/* Their names, for --preset: "train|eval". */
#define TSI_PRESET_WORD(name, help) "|" #name
#define TSI_PRESET_WORDS (&TSI_PRESETS(TSI_PRESET_WORD)[1])

/* A line of --help for each: "train: random ...;\neval: ...". */
#define TSI_PRESET_LINE(name, help) ";\n" #name ": " help
#define TSI_PRESET_HELP (&TSI_PRESETS(TSI_PRESET_LINE)[2])

/* Preset k of TSI_PRESETS. */
const struct tsi_preset *tsi_preset_at(unsigned k);

#endif
