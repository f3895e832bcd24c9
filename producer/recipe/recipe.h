/* SPDX-License-Identifier: MIT */
/*
 * recipe.h - how samples are made of images: operations, one after the other.
 *
 * A recipe is read from its text (text.h) and never changes.  Any number of
 * threads may use one.
 */
#ifndef TSI_RECIPE_RECIPE_H
#define TSI_RECIPE_RECIPE_H

#include <stdbool.h>
#include <stdint.h>

#include "transforms/op.h"

/* Bytes of a recipe's text, as given and in full. */
#define TSI_RECIPE_TEXT 3000

/* Most images that a sample has. */
#define TSI_RECIPE_VIEWS 12

/* One of the images that are made for a sample, all of the same file. */
struct tsi_recipe_view {
	struct tsi_op *first; /* of its operations */
	/* Its size, which is known. */
	uint32_t width;
	uint32_t height;
	unsigned channels;
	/*
	 * The first operation alone decides which rows: none behind it that is
	 * planned changes the size.
	 */
	bool first_alone;
};

struct tsi_recipe {
	struct tsi_recipe_view view[TSI_RECIPE_VIEWS];
	unsigned views; /* at least 1 */
	unsigned ops;   /* all, those in others with them */
	unsigned draws; /* numbers that a sample's draws have */
	/*
	 * Each sample needs the same rows of an image, whatever its draws: a
	 * damaged file is bad for all of them, or for none.
	 */
	bool same_rows;
	bool mixes;           /* one of the operations mixes the picture */
	bool several;         /* the text has Views(...) */
	bool ended;           /* the text says what tensors are to be, */
	struct tsi_ends ends; /* which is this */
	/* The text with all arguments, without the ends. */
	char text[TSI_RECIPE_TEXT];
	/* The size that all images have; 0: they may have any. */
	uint32_t of_width, of_height;
	bool of_sound; /* samples are audio: frames and channels are these */
	struct tsi_op op[TSI_OPS];
};

/* Fails with EARG, whose message marks the place in the text; ENOMEM. */
int tsi_recipe_read(const char *text, struct tsi_recipe **out);

/*
 * Likewise, for images that all have this size: samples have one, too, without
 * an operation that gives it to them.  width 0: they may have any.
 */
int tsi_recipe_read_of(const char *text, uint32_t width, uint32_t height,
		       struct tsi_recipe **out);

/* Likewise, for the kind and size of samples that this recipe has. */
int tsi_recipe_read_like(const char *text, const struct tsi_recipe *like,
			 struct tsi_recipe **out);

/* For samples of audio of this size. */
int tsi_recipe_read_sound(const char *text, uint32_t frames, uint32_t channels,
			  struct tsi_recipe **out);
void tsi_recipe_free(struct tsi_recipe *r);

/*
 * Write the draws of a sample, r->draws numbers; s, which has the image's size,
 * gets that of the last view.  Fails with EDATA: an operation can't be done to such an
 * image.
 */
int tsi_recipe_draw(const struct tsi_recipe *r, struct tsi_op_sample *s,
		    double *draws);

/*
 * What of a view can be done while an image of this size is decoded: *g, and
 * the operation that is the first one to be done on the picture, NULL if that
 * is all.
 */
const struct tsi_op *tsi_recipe_plan(const struct tsi_recipe_view *v,
				     uint32_t width, uint32_t height,
				     const double *draws,
				     struct tsi_framing *g);

/* Do `from` and all behind it.  Fails with TSOCK_ENOMEM. */
int tsi_recipe_apply(const struct tsi_op *from, const double *draws,
		     struct tsi_canvas *c);

/* Do all of a view to the boxes of its picture. */
void tsi_recipe_boxes(const struct tsi_recipe_view *v, const double *draws,
		      struct tsi_boxes *b);

/* Do all of a view to a mask.  Fails with TSOCK_ENOMEM, TSOCK_EDATA. */
int tsi_recipe_mask(const struct tsi_recipe_view *v, const double *draws,
		    struct tsi_mask *m);

/* Do all of view k to a sample of audio.  Fails with TSOCK_ENOMEM. */
int tsi_recipe_sound(const struct tsi_recipe *r, unsigned k,
		     const double *draws, struct tsi_wave *w);

/*
 * Can samples have masks?  EARG says why not: an operation that can't be done
 * to them, or several views.
 */
int tsi_recipe_check_masks(const struct tsi_recipe *r);
int tsi_recipe_check_boxes(const struct tsi_recipe *r);

/*
 * Rows from the first one on of an image of this size below which no sample of
 * it can be, at least 1.
 */
uint32_t tsi_recipe_least_bottom(const struct tsi_recipe *r, uint32_t width,
				 uint32_t height);

#endif
