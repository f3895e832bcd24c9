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
#include <sys/stat.h>

#include "base/err.h"
#include "data/beside.h"
#include "data/columns.h"
#include "data/format.h"
#include "data/packed/pack.h"
#include "data/root.h"
#include "image/mask.h"
#include "io/reader.h"

#define LOOKED 1024 /* images whose masks a start looks at */
#define WHY 256     /* bytes of what is wrong with one */

#define ENDING ".seg.png" /* of masks in tar files */
#define THREADS 8u        /* that look for them there */

/* Where a mask lies in a tar file or shard; length 0: there is none. */
struct range {
	uint64_t offset, length;
	uint32_t shard; /* of a pack */
};

struct tsi_masks {
	struct tsi_root root;
	const struct tsi_index *index;
	struct range *range; /* of each image; NULL: masks are files */
	bool packed;         /* they lie in a pack's shards */
};

/* ---- masks in tar files ---- */

/* Do the images lie in tar files, as those of a WebDataset? */
static bool in_tars(const struct tsi_index *x)
{
	struct tsi_location at = { 0 };

	if (tsi_index_count(x))
		tsi_index_locate(x, 0, &at);
	return at.member && !tsi_format_keeps_index(tsi_index_format(x));
}

static const char *tar_of(void *arg, uint64_t i)
{
	const struct tsi_masks *m = arg;

	/* In a tar file's table all paths are whole. */
	return tsi_index_path(m->index, i, NULL);
}

static const char *key_of(void *arg, uint64_t i, size_t *len)
{
	const struct tsi_masks *m = arg;

	return tsi_index_key(m->index, i, NULL, len);
}

static int take_range(void *arg, uint64_t i, unsigned k,
		      const struct tsi_beside_file *f)
{
	struct tsi_masks *m = arg;
	const char *why = m->range[i].length ? "is there twice"
			  : f->sparse ? "is stored as a sparse file: make "
					"the tar file without --sparse"
				      : NULL;

	(void)k;
	if (why)
		return tsi_err(TSOCK_EDATA, "--masks: %.300s: %.300s %s",
			       f->path, f->name, why);
	m->range[i] = (struct range){ .offset = f->offset, .length = f->size };
	return 0;
}

/* Find those of all images, beside them or in tar files of the same names. */
static int find_ranges(struct tsi_masks *m)
{
	static const char *const ending[] = { ENDING };
	const uint64_t n = tsi_index_count(m->index);
	const struct tsi_beside b = {
		.rows = n,
		.path = tar_of,
		.key = key_of,
		.take = take_range,
		.ending = ending,
		.endings = 1,
		.arg = m,
		.fd = tsi_root_fd(&m->root),
		.folder = tsi_root_path(&m->root),
		.what = "masks",
	};

	m->range = calloc(n, sizeof(*m->range));
	if (!m->range)
		return tsi_err(TSOCK_ENOMEM, "no memory for the masks");
	return tsi_beside_read(&b, THREADS);
}

/* ---- masks in a pack ---- */

static bool in_pack(const struct tsi_index *x)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	struct tsi_columns_mask at;

	return c && tsi_index_count(x) && tsi_columns_mask(c, 0, &at);
}

/* They are the pack's own: --masks names the pack, too. */
static int take_packed(struct tsi_masks *m)
{
	const struct tsi_columns *c = tsi_index_columns(m->index);
	const uint64_t n = tsi_index_count(m->index);
	struct stat root, here;

	if (fstat(tsi_root_fd(&m->root), &here) ||
	    fstat(tsi_index_dirfd(m->index), &root) ||
	    here.st_ino != root.st_ino || here.st_dev != root.st_dev)
		return tsi_err(TSOCK_EARG,
			       "--masks: %s is a pack with masks of its own: "
			       "give it as --masks, too",
			       tsi_index_root(m->index));
	m->range = calloc(n, sizeof(*m->range));
	if (!m->range)
		return tsi_err(TSOCK_ENOMEM, "no memory for the masks");
	m->packed = true;
	for (uint64_t i = 0; i < n; i++) {
		struct tsi_columns_mask at;

		tsi_columns_mask(c, i, &at);
		m->range[i] = (struct range){ at.offset, at.length, at.shard };
	}
	return 0;
}

/* ---- all masks ---- */

static int refuse_format(const struct tsi_index *x)
{
	if (tsi_index_format(x) == &tsi_format_packed)
		return tsi_err(TSOCK_EARG,
			       "--masks: %s is a pack without masks: make it "
			       "by tsock-pack --masks, or serve the folder of "
			       "images",
			       tsi_index_root(x));
	return tsi_err(TSOCK_EARG,
		       "--masks: %s is read as a %s, and masks belong "
		       "to image files of their own, or to those of tar "
		       "files; leave out --masks, or serve a folder of images",
		       tsi_index_root(x), tsi_format_name(tsi_index_format(x)));
}

int tsi_masks_open(const char *folder, const struct tsi_index *x,
		   struct tsi_masks **out)
{
	const bool tars = in_tars(x), packed = in_pack(x);
	struct tsi_masks *m;
	int err = 0;

	if (!tars && !packed && !tsi_format_has_file_each(tsi_index_format(x)))
		return refuse_format(x);
	m = calloc(1, sizeof(*m));
	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for the masks");
	tsi_root_init(&m->root);
	m->index = x;
	if (tsi_root_open(&m->root, folder))
		err = tsi_err_sys("open the folder of masks %s", folder);
	else if (tars)
		err = find_ranges(m);
	else if (packed)
		err = take_packed(m);
	if (err) {
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
	free(m->range);
	free(m);
}

/* Cityscapes' images and their masks, as torchvision's semantic targets. */
#define CITY "_leftImg8bit"
#define CITY_MASK "_gtFine_labelIds"

/* The path of image i's mask below the folder; false: it is too long. */
static bool path_of(const struct tsi_masks *m, uint64_t i, char *to, size_t len)
{
	const size_t city = strlen(CITY);
	char text[TSI_PATH];
	const char *path = tsi_index_path(m->index, i, text);
	const char *name = strrchr(path, '/');
	const char *dot = strrchr(name ? name : path, '.');
	size_t stem = dot ? (size_t)(dot - path) : strlen(path);
	bool is_city = stem > city && !strncmp(path + stem - city, CITY, city);

	if (m->packed)
		return (size_t)snprintf(to, len, TSI_PACK_SHARD,
					m->range[i].shard) < len;
	if (m->range)
		return (size_t)snprintf(to, len, "%s", path) < len;
	return (size_t)snprintf(to, len, "%.*s%s.png",
				(int)(is_city ? stem - city : stem), path,
				is_city ? CITY_MASK : "") < len;
}

/* ": KEY.seg.png" behind a tar file's path; a shard has no names of masks. */
static void append_member(const struct tsi_masks *m, uint64_t i, char *to,
			  size_t len)
{
	size_t at = strlen(to), n;
	char text[TSI_PATH];
	const char *key = tsi_index_key(m->index, i, text, &n);

	snprintf(to + at, len - at,
		 m->packed ? ": mask of %.*s" : ": %.*s" ENDING, (int)n, key);
}

const char *tsi_masks_name(const struct tsi_masks *m, uint64_t i, char *to,
			   size_t len)
{
	char path[PATH_MAX], whole[2 * PATH_MAX];
	size_t n, left = 0;

	path_of(m, i, path, sizeof(path));
	snprintf(whole, sizeof(whole), "%s/%s", tsi_root_path(&m->root), path);
	if (m->range)
		append_member(m, i, whole, sizeof(whole));
	n = strlen(whole);
	if (n >= len)
		left = n - len + sizeof("...");
	snprintf(to, len, "%s%s", left ? "..." : "", whole + left);
	return to;
}

/* Of a mask in a tar file, the first bytes at most; false: there is none. */
static bool in_range(const struct tsi_masks *m, uint64_t i, uint64_t most,
		     struct tsi_read_request *q)
{
	const struct range *r = m->range ? &m->range[i] : NULL;

	if (!r)
		return true;
	q->offset = r->offset;
	q->length = r->length < most ? r->length : most;
	return r->length != 0;
}

int tsi_masks_read(const struct tsi_masks *m, uint64_t i, size_t max,
		   uint8_t **data, size_t *len)
{
	char path[PATH_MAX];
	struct tsi_read_request q = { .dirfd = tsi_root_fd(&m->root),
				      .path = path };

	if (!path_of(m, i, path, sizeof(path)))
		return ENAMETOOLONG;
	if (!in_range(m, i, UINT64_MAX, &q))
		return ENOENT;
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
		err = in_range(m, i, sizeof(head), &q)
			      ? tsi_io_read(&q, sizeof(head), &data, &got)
			      : ENOENT;
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

int tsi_masks_any(const struct tsi_masks *m)
{
	uint64_t first = 0;
	char why[WHY];

	return find_good(m, looked(m, false), &first, why, sizeof(why))
		       ? 0
		       : refuse(m, first, why);
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
