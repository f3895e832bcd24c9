/* SPDX-License-Identifier: MIT */
/*
 * op.h - what an operation of a recipe is.
 *
 * An operation is one file with a struct tsi_op_type, and one line of the table
 * in recipe/types.h.  It has a name and arguments as in torchvision (or in the
 * package that types.h says), and up to three parts:
 *
 *   draw   chooses what is random: numbers, which are a sample's draws
 *   plan   of those that choose pixels by their places (a crop, a resize, a
 *          flip): adds to a framing, which is done by the decoder's resampler
 *          for what comes first in a recipe, else on the picture
 *   apply  of those that change pixels: on the finished picture
 *
 * plan and apply depend on the arguments, the draws and the picture alone, so
 * that a sample's draws say all that was done to it.
 */
#ifndef TSI_TRANSFORMS_OP_H
#define TSI_TRANSFORMS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/canvas.h"
#include "ops/framing.h"
#include "ops/boxes.h"
#include "ops/mask.h"
#include "ops/wave.h"
#include "transforms/words.h"

/* Most arguments of an operation, and numbers of an argument. */
#define TSI_OP_ARGS 9
#define TSI_ARG_NUMBERS 6

/* Most operations of a recipe, those in others with them. */
#define TSI_OPS 64

enum tsi_arg_kind {
	TSI_ARG_NUMBER, /* least to most numbers, each from min to max */
	TSI_ARG_WHOLE,  /* whole ones */
	TSI_ARG_SWITCH, /* True or False, which are 1 and 0 */
	TSI_ARG_WORD,   /* one of words, or its number among them */
	TSI_ARG_FILTER, /* enum tsi_filter, by its name or Pillow's number */
};

/* What an argument may be. */
struct tsi_arg {
	const char *name;
	enum tsi_arg_kind kind;
	const char *value; /* its default, as in a text; NULL: there is none */
	unsigned least;    /* how many numbers; 0 counts as 1 */
	unsigned most;     /* 3: those of channels, or one for all */
	double min;
	double max;
	/* Separated by '|'; in place of numbers one has n 0 and its number. */
	const char *words;
	bool none;   /* it may be None, which has no numbers */
	bool colour; /* 3 or 6 numbers are those of three channels */
	bool unsaid; /* the full text leaves it out if it is None */
};

/* What it is, in an operation of a recipe. */
struct tsi_arg_value {
	unsigned n;
	double v[TSI_ARG_NUMBERS];
};

/* What is known of a sample before its image is. */
struct tsi_op_size {
	bool known; /* the picture's size */
	uint32_t width;
	uint32_t height;
	unsigned channels; /* 3 or 1; 0: some samples have 3 and others 1 */
};

/*
 * What the end of a recipe (ToTensor, Normalize) says of a job's tensors.  The
 * job's view does it, not the producer.
 */
struct tsi_ends {
	bool floats; /* from 0 to 1 */
	bool normalize;
	double mean[3];
	double std[3];
};

/* Is what the ends say of the three channels the same? */
bool tsi_op_ends_are_one(const struct tsi_ends *ends);

struct tsi_op;

struct tsi_op_type {
	const char *name;
	/* Up to TSI_OP_ARGS, in order, ended by one without a name. */
	const struct tsi_arg *args;
	/*
	 * Which of the operations between its parentheses are done, in order:
	 * writes their numbers, returns how many.  NULL: there are none.
	 */
	unsigned (*chosen)(const struct tsi_op *op, const double *draws,
			   unsigned *order);
	/* Always exactly one of them. */
	bool one;
	/*
	 * A sentence for --transform help: what it does, and where its pixels
	 * differ from the package's.
	 */
	const char *help;

	/*
	 * What the arguments' limits can't say; may also write what they mean
	 * into them (one number for two, a default that depends on another).
	 * NULL: nothing.  *why is a sentence's end: "scale's first ...".
	 */
	bool (*check)(struct tsi_op *op, const char **why);

	/*
	 * How many numbers it draws, and what they are, in words.  NULL: none.
	 */
	unsigned (*count)(const struct tsi_op *op);
	const char *draws;

	/*
	 * The size after it, of a picture whose size may be known before.  NULL:
	 * the size stays.
	 */
	void (*size)(const struct tsi_op *op, struct tsi_op_size *size);

	/*
	 * Draw for a picture of this size, before the operation.  Fails with
	 * EDATA if the operation can't be done to such a picture.
	 */
	int (*draw)(const struct tsi_op *op, struct tsi_words *w,
		    uint32_t width, uint32_t height, double *draws);

	/*
	 * The picture's size after an operation that has apply and changes it.
	 * NULL: the plan says so, or the size doesn't change.
	 */
	void (*after)(const struct tsi_op *op, const double *draws,
		      uint32_t *width, uint32_t *height);

	/*
	 * What it draws is for a picture of one size: torchvision refuses
	 * several pictures of different sizes.
	 */
	bool sized;

	/* What an operation adds that is done by a job's view. */
	void (*end)(const struct tsi_op *op, struct tsi_ends *ends);
	/* It may stand behind Normalize. */
	bool floats;

	/*
	 * Add the operation to the framing.  False: it can't be added to what
	 * is there, and the framing is unchanged.  Never false for an empty
	 * framing, unless there is an apply.
	 */
	bool (*plan)(const struct tsi_op *op, const double *draws,
		     struct tsi_framing *g);
	/* Its draws decide which rows of the picture are needed. */
	bool moves;
	/*
	 * For an operation that moves: how many rows of a picture of this size,
	 * from the first one on, it needs at least, whatever it draws.  NULL:
	 * 1.
	 */
	uint32_t (*least_bottom)(const struct tsi_op *op, uint32_t width,
				 uint32_t height);

	/* apply mixes the picture (ops/mix.h). */
	bool mixes;
	/* NULL: as it is planned.  Fails with TSOCK_ENOMEM. */
	int (*apply)(const struct tsi_op *op, const double *draws,
		     struct tsi_canvas *c);

	/*
	 * What it does to the mask of the picture; fails as apply does.  NULL,
	 * for an operation that is always planned: that, with 0 where the mask
	 * has nothing.
	 */
	int (*mask)(const struct tsi_op *op, const double *draws,
		    struct tsi_mask *m);
	/* What of these arguments masks can't have, as "with ..."; NULL: nothing. */
	const char *(*unmasked)(const struct tsi_op *op);
	/*
	 * What it does to the boxes of the picture's objects.  NULL, for an
	 * operation that is planned: that.
	 */
	void (*boxes)(const struct tsi_op *op, const double *draws,
		      struct tsi_boxes *b);
	/* What of these arguments boxes can't have, likewise. */
	const char *(*unboxed)(const struct tsi_op *op);
	/* Its apply moves no pixel: masks and boxes stay as they are. */
	bool colours;

	/*
	 * Of an operation on audio: what it does to a sample.  Fails with
	 * TSOCK_ENOMEM.  draw's width and height are frames and channels.
	 */
	int (*sound)(const struct tsi_op *op, const double *draws,
		     struct tsi_wave *w);
	/* It stands first in a recipe: its first argument is a sample's frames. */
	bool crops;
};

/* An operation of a recipe. */
struct tsi_op {
	const struct tsi_op_type *type;
	struct tsi_arg_value arg[TSI_OP_ARGS];
	uint16_t place;       /* in the recipe, counted as its text is read */
	unsigned draws;       /* where its own begin among the recipe's */
	struct tsi_op *child; /* the first of those between its parentheses */
	struct tsi_op *next;  /* the one behind it, there or in the recipe */
	const struct tsi_ends
		*behind; /* what stands before it; NULL: nothing */
};

/* Argument number arg, which is one number. */
static inline double tsi_op_number(const struct tsi_op *op, unsigned arg)
{
	return op->arg[arg].v[0];
}

static inline unsigned tsi_op_children(const struct tsi_op *op)
{
	unsigned n = 0;

	for (const struct tsi_op *c = op->child; c; c = c->next)
		n++;
	return n;
}

/* How many numbers it draws itself. */
static inline unsigned tsi_op_draws(const struct tsi_op *op)
{
	return op->type->count ? op->type->count(op) : 0;
}

/* Which sample it is, and the picture's size up to an operation. */
struct tsi_op_sample {
	uint64_t seed;
	uint32_t epoch;
	uint64_t index;
	uint32_t width;
	uint32_t height;
	uint64_t most; /* pixels that a picture has had */
	/* The size of the sample's first image, if this is another; or 0. */
	uint32_t first_width;
	uint32_t first_height;
};

/*
 * Draw for a sample, whose size becomes that of the result: op's own numbers
 * and those of the operations in it, at their places of draws, which are the
 * recipe's.  What isn't drawn stays as it is.  Fails with EDATA: it can't be
 * done to such a picture, or what is drawn isn't that of the first image.
 */
int tsi_op_draw(const struct tsi_op *op, struct tsi_op_sample *s,
		double *draws);

/* Do it to the canvas's picture.  Fails with TSOCK_ENOMEM. */
int tsi_op_apply(const struct tsi_op *op, const double *draws,
		 struct tsi_canvas *c);

/* Do it to a mask.  Fails with TSOCK_ENOMEM, TSOCK_EDATA. */
int tsi_op_mask(const struct tsi_op *op, const double *draws,
		struct tsi_mask *m);

/* Do it to the boxes of a picture. */
void tsi_op_boxes(const struct tsi_op *op, const double *draws,
		  struct tsi_boxes *b);

/* Do it to a sample of audio.  Fails with TSOCK_ENOMEM. */
int tsi_op_sound(const struct tsi_op *op, const double *draws,
		 struct tsi_wave *w);

/* What an operation is done to beside the picture. */
enum tsi_op_beside { TSI_OP_MASK, TSI_OP_BOXES };

/*
 * The first operation, of op and those in it, that can't be done to these, or
 * NULL; and *why, as "with ...", or NULL where its arguments don't matter.
 */
const struct tsi_op *tsi_op_without(const struct tsi_op *op,
				    enum tsi_op_beside beside,
				    const char **why);

#endif
