/* SPDX-License-Identifier: MIT */
/*
 * schema.h - the fields of a sample: which there are, and where those of a
 * sample go.
 *
 * A sample with an image has image, label, index and box, then those of weight,
 * key, draws and mask that were asked for, the views behind the first or the data
 * set's other images, and what it has beside images and labels.  One of audio has
 * audio in the image's place, behind which its length stands if samples have
 * several, and no box.  One without has what the data set has, the label
 * last, and then index, weight and key.
 */
#ifndef TSI_RUN_SCHEMA_H
#define TSI_RUN_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/columns.h"
#include "recipe/recipe.h"
#include "run/pipeline.h"
#include "tsock/tsock.h"

/* The numbers of those that a sample with an image always has. */
enum tsi_field {
	TSI_FIELD_IMAGE,
	TSI_FIELD_LABEL,
	TSI_FIELD_INDEX,
	TSI_FIELD_BOX,
	/* Most fields: these, four more, views and columns. */
	TSI_FIELDS = 8 + TSI_RECIPE_VIEWS - 1 + TSI_COLUMNS,
};

_Static_assert(TSI_OTHERS <= TSI_RECIPE_VIEWS - 1, "they go where views do");

/* Where the fields of one sample go. */
struct tsi_slots {
	/* height * width * channels, or audio's floats; NULL: there is none */
	uint8_t *image;
	int64_t *label; /* NULL: there is none */
	int64_t *index;
	int32_t *box;     /* 5; NULL: there is no image */
	int32_t *length;  /* frames; NULL: all samples have as many, or none */
	float *weight;    /* NULL: isn't wanted */
	char *key;        /* NULL: isn't wanted */
	size_t key_width; /* of key; any sample's has less bytes */
	double *draws;    /* NULL: aren't wanted */
	uint8_t *mask;    /* height * width; NULL: there is none */
	/* The views behind the first, or the other images. */
	uint8_t *more[TSI_RECIPE_VIEWS - 1];
	void *column[TSI_COLUMNS]; /* those that the data set has */
};

struct tsi_schema {
	struct tsock_field field[TSI_FIELDS];
	unsigned n;
	/* Which field is which; -1: there is none.  more and column: the first. */
	int image, label, index, box, length, weight, key, draws, mask, more,
		column;
	unsigned views; /* or images */
	unsigned columns;
	uint32_t key_width;
};

/* What samples have beside the fields of every stream. */
struct tsi_schema_extras {
	bool weight;        /* the field of a selection */
	uint32_t key_width; /* bytes of the field key; 0: there is none */
	const struct tsi_columns *columns; /* the data set's; NULL: none */
};

/* The fields of a pipeline's samples. */
void tsi_schema_make(const struct tsi_pipeline_opts *o,
		     const struct tsi_schema_extras *x, struct tsi_schema *out);

/* Where a claimed sample goes. */
void tsi_schema_slots(const struct tsi_schema *s, tsock_server *server,
		      uint64_t seq, struct tsi_slots *out);

/* Bytes of a sample. */
uint64_t tsi_schema_bytes(const struct tsi_schema *s);

#endif
