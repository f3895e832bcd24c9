/* SPDX-License-Identifier: MIT */
/*
 * batches.c - collecting labels, and the places of images.
 */
#include "data/rows/batches.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/rows/pickle.h"
#include "data/text.h"

int tsi_batches_begin(struct tsi_batches *b, const struct tsi_root *root,
		      uint32_t side, size_t stride)
{
	const uint32_t shape[3] = { side, side, 3 };
	int err;

	*b = (struct tsi_batches){ .side = side };
	err = tsi_rows_create(root, &b->rows);
	if (!err)
		err = tsi_rows_pixels(b->rows, shape, true, stride, &b->pixels);
	return err;
}

int tsi_batches_label(struct tsi_batches *b, int64_t label, int64_t more)
{
	int err = tsi_text_grow(&b->label, b->n, &b->label_room,
				sizeof(*b->label));

	if (!err)
		err = tsi_text_grow(&b->more, b->n, &b->more_room,
				    sizeof(*b->more));
	if (err)
		return err;
	b->label[b->n] = label;
	b->more[b->n++] = more;
	return 0;
}

static int add_images(struct tsi_batches *b, unsigned file,
		      const struct tsi_pickle_array *a, uint64_t labels)
{
	const char *path = tsi_rows_path(b->rows, file);
	uint64_t each = (uint64_t)b->side * b->side * 3;

	if (a->dtype != TSOCK_U8 || a->ndim != 2 || a->shape[1] != each)
		return tsi_err(TSOCK_EDATA,
			       "%s: its images are not %" PRIu64
			       " bytes each, of three planes of %u x %u",
			       path, each, b->side, b->side);
	if (a->shape[0] != labels)
		return tsi_err(TSOCK_EDATA,
			       "%s holds %" PRIu64 " images and %" PRIu64
			       " labels",
			       path, a->shape[0], labels);
	return tsi_rows_part(b->rows, b->pixels, file, a->at, labels);
}

int tsi_batches_pickle(struct tsi_batches *b, unsigned file, const char *labels,
		       const char *more, int64_t first)
{
	int64_t *label = NULL, *other = NULL;
	struct tsi_pickle_array data;
	struct tsi_pickle *p;
	uint64_t n = 0, m = 0;
	int err = tsi_pickle_open(b->rows, file, &p);

	if (!err)
		err = tsi_pickle_array(p, "data", &data);
	if (!err)
		err = tsi_pickle_numbers(p, labels, &label, &n);
	if (!err && more)
		err = tsi_pickle_numbers(p, more, &other, &m);
	if (!err && more && n != m)
		err = tsi_err(TSOCK_EDATA, "%s: '%s' and '%s' are not as many",
			      tsi_rows_path(b->rows, file), labels, more);
	if (!err)
		err = add_images(b, file, &data, n);
	for (uint64_t i = 0; i < n && !err; i++)
		/* Unsigned: a label may be the least there is. */
		err = tsi_batches_label(
			b, (int64_t)((uint64_t)label[i] - (uint64_t)first),
			other ? other[i] : 0);
	free(label);
	free(other);
	tsi_pickle_close(p);
	return err;
}

int tsi_batches_finish(struct tsi_batches *b, const char *more,
		       struct tsi_table *t)
{
	int64_t *all = malloc((2 * b->n + 1) * sizeof(*all));
	int err;

	if (!all)
		return tsi_err(TSOCK_ENOMEM, "no memory for labels");
	if (b->n) {
		memcpy(all, b->label, b->n * sizeof(*all));
		memcpy(all + b->n, b->more, b->n * sizeof(*all));
	}
	err = tsi_rows_labels(b->rows, all, b->n, more);
	return err ? err : tsi_rows_finish(b->rows, t);
}

void tsi_batches_end(struct tsi_batches *b)
{
	tsi_rows_destroy(b->rows);
	free(b->label);
	free(b->more);
}
