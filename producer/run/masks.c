/* SPDX-License-Identifier: MIT */
/*
 * masks.c - the folder of masks beside a data set's images.
 */
#include "run/masks.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/format.h"
#include "data/root.h"
#include "image/mask.h"
#include "io/reader.h"

#define LOOKED 1024 /* images whose masks a start looks at */
#define WHY 256     /* bytes of what is wrong with one */

struct tsi_masks {
	struct tsi_root root;
	const struct tsi_index *index;
};

int tsi_masks_open(const char *folder, const struct tsi_index *x,
		   struct tsi_masks **out)
{
	struct tsi_masks *m;

	if (!tsi_format_has_file_each(tsi_index_format(x)))
		return tsi_err(
			TSOCK_EARG,
			"--masks: %s is read as a %s, and masks belong "
			"to image files of their own; leave out --masks, "
			"or serve a folder of images",
			tsi_index_root(x),
			tsi_format_name(tsi_index_format(x)));
	m = calloc(1, sizeof(*m));
	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for the masks");
	tsi_root_init(&m->root);
	m->index = x;
	if (tsi_root_open(&m->root, folder)) {
		int err = tsi_err_sys("open the folder of masks %s", folder);

		tsi_masks_close(m);
		return err;
	}
	*out = m;
	return 0;
}

void tsi_masks_close(struct tsi_masks *m)
{
	if (!m)
		return;
	tsi_root_close(&m->root);
	free(m);
}

/* The path of image i's mask below the folder; false: it is too long. */
static bool path_of(const struct tsi_masks *m, uint64_t i, char *to, size_t len)
{
	const char *path = tsi_index_path(m->index, i);
	const char *name = strrchr(path, '/');
	const char *dot = strrchr(name ? name : path, '.');
	int stem = (int)(dot ? (size_t)(dot - path) : strlen(path));

	return (size_t)snprintf(to, len, "%.*s.png", stem, path) < len;
}

const char *tsi_masks_name(const struct tsi_masks *m, uint64_t i, char *to,
			   size_t len)
{
	char path[PATH_MAX], whole[2 * PATH_MAX];
	size_t n, left = 0;

	path_of(m, i, path, sizeof(path));
	snprintf(whole, sizeof(whole), "%s/%s", tsi_root_path(&m->root), path);
	n = strlen(whole);
	if (n >= len)
		left = n - len + sizeof("...");
	snprintf(to, len, "%s%s", left ? "..." : "", whole + left);
	return to;
}

int tsi_masks_read(const struct tsi_masks *m, uint64_t i, size_t max,
		   uint8_t **data, size_t *len)
{
	char path[PATH_MAX];
	struct tsi_read_request q = { .dirfd = tsi_root_fd(&m->root),
				      .path = path };

	if (!path_of(m, i, path, sizeof(path)))
		return ENAMETOOLONG;
	return tsi_io_read(&q, max, data, len);
}

/* ------------------------------------------------------------------------
 * At a start
 */

/* Why image i's mask can't be used; false: it seems that it can. */
static bool find_fault(const struct tsi_masks *m, uint64_t i, char *why,
		       size_t len)
{
	char path[PATH_MAX];
	uint8_t head[TSI_IMAGE_MASK_HEAD];
	struct tsi_read_request q = { .dirfd = tsi_root_fd(&m->root),
				      .path = path,
				      .length = sizeof(head) };
	size_t got = 0;
	uint8_t *data;
	int err = ENAMETOOLONG;

	if (path_of(m, i, path, sizeof(path)))
		err = tsi_io_read(&q, sizeof(head), &data, &got);
	if (err) {
		/* A PNG isn't shorter. */
		snprintf(why, len, "%s",
			 err == TSI_READER_TRUNCATED
				 ? "it is no PNG"
				 : tsi_io_reader_strerror(err));
		return true;
	}
	err = tsi_image_mask_look(data, got);
	free(data);
	if (err)
		tsi_err_copy(why, len);
	return err != 0;
}

/* No image that was looked at has a mask: what the first one's would be. */
static int refuse(const struct tsi_masks *m, uint64_t i, const char *why)
{
	char image[TSI_INDEX_SAMPLE], mask[TSI_MASKS_NAME];

	return tsi_err(TSOCK_EDATA,
		       "--masks: no image of %s has a mask in %s: that of %s "
		       "would be %s: %s",
		       tsi_index_root(m->index), tsi_root_path(&m->root),
		       tsi_index_sample(m->index, i, image, sizeof(image)),
		       tsi_masks_name(m, i, mask, sizeof(mask)), why);
}

/* How many images there are to look at, and which one is number k. */
static uint64_t looked(const struct tsi_masks *m, bool all)
{
	uint64_t n = tsi_index_count(m->index);

	return all || n < LOOKED ? n : LOOKED;
}

static uint64_t looked_at(const struct tsi_masks *m, uint64_t of, uint64_t k)
{
	uint64_t n = tsi_index_count(m->index);

	return k * (n / of) + k * (n % of) / of;
}

/* Is there a mask that can be used?  *at, *why: the first image without. */
static bool find_good(const struct tsi_masks *m, uint64_t n, uint64_t *at,
		      char *why, size_t len)
{
	bool first = true;

	for (uint64_t k = 0; k < n; k++) {
		uint64_t i = looked_at(m, n, k);
		char fault[WHY];

		if (tsi_index_bad(m->index, i))
			continue;
		if (!find_fault(m, i, fault, sizeof(fault)))
			return true;
		if (first) {
			*at = i;
			snprintf(why, len, "%s", fault);
		}
		first = false;
	}
	return first;
}

int tsi_masks_look(const struct tsi_masks *m, bool all, struct tsi_badlist *l,
		   void (*bad)(void *arg, uint64_t file), void *arg)
{
	const uint64_t n = looked(m, all);
	char why[WHY], name[TSI_MASKS_NAME], reason[TSI_MASKS_NAME + WHY + 16];
	uint64_t first = 0;

	if (!find_good(m, n, &first, why, sizeof(why)))
		return refuse(m, first, why);
	for (uint64_t k = 0; k < n; k++) {
		uint64_t i = looked_at(m, n, k);

		if (tsi_index_bad(m->index, i) ||
		    !find_fault(m, i, why, sizeof(why)))
			continue;
		snprintf(reason, sizeof(reason), "its mask %s: %s",
			 tsi_masks_name(m, i, name, sizeof(name)), why);
		if (bad)
			bad(arg, i);
		tsi_badlist_report(l, i, reason, false);
	}
	return 0;
}
