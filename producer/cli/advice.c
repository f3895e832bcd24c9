/* SPDX-License-Identifier: MIT */
/*
 * advice.c - what somebody probably meant.
 */
#include "cli/advice.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/log.h"
#include "cli/split.h"
#include "data/contents.h"

/* ------------------------------------------------------------------------
 * What lies in a folder that is no data set
 */

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The folder below the root in which Kaggle keeps ImageNet's images. */
static int advise_kaggle(const struct tsi_dataset *d)
{
	static const char *const below[] = { "ILSVRC/Data/CLS-LOC",
					     "Data/CLS-LOC", "CLS-LOC" };
	char path[4096];

	for (unsigned i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s/train", d->root, below[i]);
		if (is_folder(path))
			return tsi_err(TSOCK_EDATA,
				       "%s holds ImageNet as Kaggle lays it "
				       "out: give --dataset imagenet --root "
				       "%s/%s",
				       d->root, d->root, below[i]);
	}
	return 0;
}

/* Images without folders; a table beside them may know their classes. */
static int advise_flat(const struct tsi_dataset *d,
		       const struct tsi_contents *c)
{
	int kind = tsi_contents_most(c);
	char what[160];

	if (kind >= 0 && !tsi_contents_is_native(kind))
		return tsi_err(TSOCK_EDATA,
			       "%s holds %u images and no folders, beside "
			       "%s: %s",
			       d->folder, c->images,
			       tsi_contents_say(c, what, sizeof(what)),
			       tsi_contents_way(kind));
	if (tsi_format_has_splits(d->format) && d->split == TSI_SPLIT_VAL)
		return tsi_err(TSOCK_EDATA,
			       "%s holds images side by side, as ImageNet's "
			       "validation set comes: move each into a folder "
			       "of its class first, named as in train "
			       "(valprep.sh, which many guides link to, does "
			       "it)",
			       d->folder);
	return tsi_err(TSOCK_EDATA,
		       "%s holds images (%u) and no folders: move them into "
		       "one folder per class%s; or give --dataset images if "
		       "they have no labels, or a table of them that "
		       "tsock.index(FILE.csv, TABLE) writes",
		       d->folder, c->images,
		       !tsi_format_has_splits(d->format)
			       ? ", or give the folder above as --root if this "
				 "is one class of several"
			       : "");
}

static int advise_kind(const char *folder, const struct tsi_contents *c)
{
	int kind = tsi_contents_most(c);
	char what[160];

	if (kind < 0)
		return 0;
	return tsi_err(TSOCK_EDATA, "%s holds no folders of images but %s: %s",
		       folder, tsi_contents_say(c, what, sizeof(what)),
		       tsi_contents_is_native(kind)
			       ? "give --dataset webdataset if labels are in "
				 "them too, else unpack them first, so that "
				 "there is one folder of images per class"
			       : tsi_contents_way(kind));
}

int tsi_advice_layout(const struct tsi_dataset *d)
{
	struct tsi_contents c, above;
	int err;

	if (!tsi_contents_look(AT_FDCWD, d->folder, 0, &c))
		return is_folder(d->root) ? advise_kaggle(d) : 0;
	if (c.folders && !(d->split == TSI_SPLIT_NONE && c.folders < 4))
		return 0;
	if (d->split == TSI_SPLIT_NONE && advise_kaggle(d))
		return TSOCK_EDATA;
	if (c.folders)
		return 0;
	if (c.images)
		return advise_flat(d, &c);
	err = advise_kind(d->folder, &c);
	/* Next to a split as well: train/ and val/ may be empty still. */
	if (!err && tsi_contents_look(AT_FDCWD, d->root, 0, &above))
		err = advise_kind(d->root, &above);
	return err;
}

/* What to do with an address, by its beginning. */
static const char *way_to(const char *url)
{
	if (!strncasecmp(url, "s3:", 3))
		return "mount the bucket, by mount-s3 or s3fs";
	if (!strncasecmp(url, "gs:", 3))
		return "mount the bucket, by gcsfuse";
	if (!strncasecmp(url, "hf:", 3))
		return "download the data set, by hf download";
	return "mount it, by rclone mount for example, or copy it here";
}

int tsi_advice_url(const char *option, const char *value)
{
	const char *colon = strchr(value, ':');
	const char *slash = strchr(value, '/');

	if (!colon || (slash && slash < colon) ||
	    (strncmp(colon, "://", 3) != 0 && strncmp(value, "pipe:", 5) != 0))
		return 0;
	return tsi_err(TSOCK_EARG,
		       "%s %s: files of this machine alone are read; %s, and "
		       "give that folder (docs/operate/object-stores.md)",
		       option, value, way_to(value));
}

/* ------------------------------------------------------------------------
 * Classes
 */

void tsi_advice_classes(const struct tsi_dataset *d, const struct tsi_index *x)
{
	uint32_t n = tsi_index_classes(x);
	uint32_t splits = 0;

	if (!tsi_format_has_class_folders(tsi_index_format(x)))
		return;
	for (uint32_t i = 0; i < n && i < 8; i++)
		splits += tsi_split_is(tsi_index_class(x, i));
	if (splits == n)
		tsi_log(TSOCK_LOG_WARN,
			"the %s called %s%s%s: --root seems to be one folder "
			"too high; give --root %s/%s, or --split train if "
			"that is meant",
			n == 1 ? "only class is" : "classes are",
			tsi_index_class(x, 0), n > 1 ? " and " : "",
			n > 1 ? tsi_index_class(x, n - 1) : "", d->folder,
			tsi_index_class(x, 0));
	else if (n == 1)
		tsi_log(TSOCK_LOG_WARN,
			"there is one class, %s: every label is 0; --root is "
			"the folder that holds one folder per class",
			tsi_index_class(x, 0));
}
