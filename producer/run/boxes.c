/* SPDX-License-Identifier: MIT */
/*
 * boxes.c - which columns hold boxes, and what a sample's geometry makes of
 * them where they lie.
 */
#include "run/boxes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ops/boxes.h"

/* A column, behind which that of its rows' lengths stands. */
struct column {
	unsigned k;
	size_t item;   /* bytes of what a row has one of for each box */
	uint32_t most; /* boxes in a row, as far as there is room */
	const struct tsi_column *is;
};

struct tsi_box_columns {
	const struct tsi_recipe *recipe;
	struct column column[TSI_COLUMNS]; /* the boxes, then the others */
	unsigned n;
};

/* The column whose name has these len bytes. */
static int find(const struct tsi_columns *c, const char *name, size_t len,
		unsigned *found)
{
	for (unsigned k = 0; k < tsi_columns_count(c); k++) {
		const struct tsock_field *f = tsi_columns_field(c, k);

		if (strlen(f->name) != len || memcmp(f->name, name, len) != 0)
			continue;
		if (!(f->flags & TSOCK_FIELD_RAGGED))
			return tsi_err(
				TSOCK_EARG,
				"--boxes: the column %s isn't ragged, as "
				"boxes and what goes with them are: a "
				"row has as many as it has objects",
				f->name);
		*found = k;
		return 0;
	}
	return tsi_err(TSOCK_EARG,
		       "--boxes: the table has no column %.*s beside the label",
		       (int)(len < 64 ? len : 64), name);
}

static int check_boxes(const struct tsock_field *f)
{
	if (f->dtype == TSOCK_F32 && f->ndim == 2 && f->shape[1] == 4)
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--boxes: the items of the column %s are no boxes, "
		       "which are four float32 each: left, top, right, bottom",
		       f->name);
}

/* Is there as much for each row as there are boxes? */
static int check_lengths(const struct tsi_index *x, unsigned boxes,
			 unsigned with)
{
	const struct tsi_columns *c = tsi_index_columns(x);

	for (uint64_t k = 0; k < tsi_index_count(x); k++) {
		int32_t n = 0, values = 0;
		int err = tsi_columns_put(c, boxes + 1, k, &n);

		if (!err)
			err = tsi_columns_put(c, with + 1, k, &values);
		if (!err && n != values)
			err = tsi_err(TSOCK_EDATA,
				      "--boxes: row %" PRIu64
				      " has %d boxes in the column %s, and %d "
				      "values in %s, which is to go with them",
				      tsi_columns_row(c, k), (int)n,
				      c->column[boxes].field.name, (int)values,
				      c->column[with].field.name);
		if (err)
			return err;
	}
	return 0;
}

static int add(struct tsi_box_columns *to, const char *name, size_t len,
	       const struct tsi_index *x)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	unsigned k = 0;
	int err = find(c, name, len, &k);

	for (unsigned i = 0; i < to->n && !err; i++)
		if (to->column[i].k == k)
			err = tsi_err(TSOCK_EARG,
				      "--boxes: the column %s is named twice",
				      c->column[k].field.name);
	if (!err && to->n)
		err = check_lengths(x, to->column[0].k, k);
	else if (!err)
		err = check_boxes(&c->column[k].field);
	if (err)
		return err;
	to->column[to->n++] = (struct column){
		.k = k,
		.is = &c->column[k],
		.item = c->column[k].item,
		.most = (uint32_t)c->column[k].field.shape[0]
	};
	return 0;
}

int tsi_box_columns_open(const char *names, const struct tsi_index *x,
			 const struct tsi_recipe *r,
			 struct tsi_box_columns **out)
{
	struct tsi_box_columns *to;
	const char *at = names;
	int err = 0;

	if (!tsi_index_columns(x))
		return tsi_err(TSOCK_EARG,
			       "--boxes: the data set has no columns: boxes "
			       "are those of a table (--dataset table)");
	to = calloc(1, sizeof(*to));
	if (!to)
		return tsi_err(TSOCK_ENOMEM, "no memory for the boxes");
	to->recipe = r;
	for (;;) {
		size_t len = strcspn(at, ",");

		err = add(to, at, len, x);
		if (err || !at[len])
			break;
		at += len + 1;
	}
	if (err)
		tsi_box_columns_close(to);
	else
		*out = to;
	return err;
}

void tsi_box_columns_close(struct tsi_box_columns *c)
{
	free(c);
}

/* Row i of a column becomes row `at`. */
static void move_row(const struct column *c, const struct tsi_slots *to,
		     uint32_t i, uint32_t at)
{
	uint8_t *rows = to->column[c->k];

	memmove(rows + at * c->item, rows + i * c->item, c->item);
}

/* A column has n rows left, and its pad behind them. */
static void end_column(const struct column *c, const struct tsi_slots *to,
		       uint32_t n)
{
	uint8_t *rows = to->column[c->k];
	int32_t *length = to->column[c->k + 1];

	tsi_column_fill(c->is, rows, n * c->item);
	*length = (int32_t)n;
}

/* A table that is written over may have others than when it was checked. */
static uint32_t boxes_in(const struct tsi_box_columns *c,
			 const struct tsi_slots *to)
{
	uint32_t n = UINT32_MAX;

	for (unsigned k = 0; k < c->n; k++) {
		const int32_t *length = to->column[c->column[k].k + 1];
		const uint32_t has = *length < 0 ? 0 : (uint32_t)*length;

		n = has < n ? has : n;
		n = c->column[k].most < n ? c->column[k].most : n;
	}
	return n;
}

void tsi_box_columns_move(const struct tsi_box_columns *c,
			  const struct tsi_image_drawn *sample,
			  const struct tsi_slots *to)
{
	struct tsi_boxes b = { .box = to->column[c->column[0].k],
			       .n = boxes_in(c, to),
			       .width = sample->width,
			       .height = sample->height };
	uint32_t kept = 0;

	tsi_recipe_boxes(&c->recipe->view[0], sample->draws, &b);
	tsi_boxes_clamp(&b);
	for (uint32_t i = 0; i < b.n; i++) {
		if (!tsi_boxes_keeps(&b, b.box[i]))
			continue;
		for (unsigned k = 0; k < c->n && i != kept; k++)
			move_row(&c->column[k], to, i, kept);
		kept++;
	}
	for (unsigned k = 0; k < c->n; k++)
		end_column(&c->column[k], to, kept);
}
