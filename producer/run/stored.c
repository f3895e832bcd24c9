/* SPDX-License-Identifier: MIT */
/*
 * stored.c - a head, and behind it the pixels of a row.
 */
#include "run/stored.h"

#include <stdlib.h>

#include "base/err.h"
#include "data/columns.h"
#include "raw/raw.h"

struct tsi_stored {
	const struct tsi_columns *columns;
	size_t len;
	uint8_t image[];
};

int tsi_stored_create(const struct tsi_index *x, struct tsi_stored **out)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	size_t bytes = c ? tsi_columns_pixels(c) : 0;
	struct tsi_raw_shape shape;
	struct tsi_stored *s;
	uint32_t size[3];

	*out = NULL;
	if (!bytes)
		return 0;
	shape.planar = tsi_columns_image(c, size);
	shape.height = size[0];
	shape.width = size[1];
	shape.channels = size[2];
	s = calloc(1, sizeof(*s) + TSI_RAW_HEAD + bytes + TSI_RAW_SLACK);
	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for an image");
	s->columns = c;
	s->len = TSI_RAW_HEAD + bytes;
	tsi_raw_put_head(&shape, s->image);
	*out = s;
	return 0;
}

void tsi_stored_destroy(struct tsi_stored *s)
{
	free(s);
}

int tsi_stored_take(struct tsi_stored *s, uint64_t file, const uint8_t **data,
		    size_t *len)
{
	int err = tsi_columns_put_pixels(s->columns, file,
					 s->image + TSI_RAW_HEAD);

	*data = s->image;
	*len = s->len;
	return err;
}
