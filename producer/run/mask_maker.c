/* SPDX-License-Identifier: MIT */
/*
 * mask_maker.c - the masks of a worker's samples.
 */
#include "run/mask_maker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "io/reader.h"

#define METADATA ((size_t)1 << 20)

struct tsi_mask_maker {
	const struct tsi_masks *masks;
	struct tsi_image_mask *image;
	uint64_t file; /* whose mask was read */
	uint8_t *data;
	size_t len;
};

int tsi_mask_maker_create(const struct tsi_masks *of,
			  const struct tsi_recipe *r,
			  struct tsi_mask_maker **out)
{
	struct tsi_mask_maker *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for a worker");
	m->masks = of;
	err = tsi_image_mask_create(r, &m->image);
	if (err) {
		tsi_mask_maker_destroy(m);
		return err;
	}
	*out = m;
	return 0;
}

void tsi_mask_maker_destroy(struct tsi_mask_maker *m)
{
	if (!m)
		return;
	tsi_image_mask_destroy(m->image);
	free(m->data);
	free(m);
}

/* The mask is no good: neither is its image, whose reason names both. */
static void fail_mask(const struct tsi_mask_maker *m, const char *why,
		      struct tsi_outcome *o)
{
	char name[TSI_MASKS_NAME];

	o->came = TSI_CAME_NEVER;
	snprintf(o->reason, sizeof(o->reason), "its mask %s: %.99s",
		 tsi_masks_name(m->masks, m->file, name, sizeof(name)), why);
}

/* Pixels that can't be compressed, metadata, and as much again. */
static size_t most_bytes(const struct tsi_image_drawn *sample)
{
	return 2 * (size_t)sample->width * sample->height + METADATA;
}

bool tsi_mask_maker_read(struct tsi_mask_maker *m, uint64_t file,
			 const struct tsi_image_drawn *sample, size_t *len,
			 struct tsi_outcome *o)
{
	int err = tsi_masks_read(m->masks, file, most_bytes(sample), &m->data,
				 &m->len);

	m->file = file;
	if (!err) {
		*len = m->len;
		return true;
	}
	m->data = NULL;
	if (err == EFBIG) {
		fail_mask(m, "it is too large for a mask of its image", o);
	} else if (tsi_io_reader_blames_file(err)) {
		fail_mask(m, tsi_io_reader_strerror(err), o);
	} else if (err == ENOMEM) {
		o->came = TSI_CAME_NO_MEMORY;
		snprintf(o->reason, sizeof(o->reason),
			 "no memory to read its mask");
	} else {
		o->came = TSI_CAME_UNREAD;
		o->err = err;
	}
	return false;
}

bool tsi_mask_maker_load(struct tsi_mask_maker *m,
			 const struct tsi_image_drawn *sample, uint8_t *to,
			 struct tsi_outcome *o)
{
	int err = tsi_image_mask_load(m->image, m->data, m->len, sample, to);
	char why[100];

	free(m->data);
	m->data = NULL;
	if (!err)
		return true;
	tsi_err_copy(why, sizeof(why));
	if (err == TSOCK_EDATA) {
		fail_mask(m, why, o);
		return false;
	}
	o->came = TSI_CAME_NO_MEMORY;
	snprintf(o->reason, sizeof(o->reason), "%s", why);
	return false;
}
