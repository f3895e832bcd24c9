/* SPDX-License-Identifier: MIT */
/*
 * imagefolder.c - the formats imagefolder and imagenet: a tree with a folder
 * of image files per class, as torchvision's ImageFolder reads it; and images,
 * a tree of image files without classes.
 *
 * The first two have the same rows; imagenet is a tree of such trees, one per
 * split.
 */
#include "data/format.h"

#include <errno.h>

#include "base/err.h"
#include "data/imagefolder/scan.h"

static int open_root(const char *root, struct tsi_root *r)
{
	if (!tsi_root_open(r, root))
		return 0;
	if (errno == ENOENT)
		return tsi_err(TSOCK_EARG,
			       "there is no folder %s: the data set's root "
			       "should hold one folder per class",
			       root);
	if (errno == ENOTDIR)
		return tsi_err(TSOCK_EARG,
			       "%s is not a folder: the data set's root should "
			       "hold one folder per class",
			       root);
	return tsi_err_sys("open the data set's root %s", root);
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

/*
 * What both say of themselves.  No word for the layout, so that scans kept
 * before there were other layouts are still found.
 */
#define CLASS_FOLDERS \
	.layout = "", .has_class_folders = true, .has_file_each = true, \
	.open = open_root, .scan = tsi_imagefolder_scan, \
	.locate = tsi_table_locate, .label = tsi_table_label, \
	.fields = fields, .nfields = sizeof(fields) / sizeof(fields[0])

const struct tsi_format tsi_format_imagenet = {
	CLASS_FOLDERS,
	.name = "imagenet",
	.has_splits = true,
	.names_stream = true,
};

const struct tsi_format tsi_format_imagefolder = {
	CLASS_FOLDERS,
	.name = "imagefolder",
};

static int open_images(const char *root, struct tsi_root *r)
{
	if (!tsi_root_open(r, root))
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return tsi_err(TSOCK_EARG, "%s is no folder of images", root);
	return tsi_err_sys("open the folder of images %s", root);
}

const struct tsi_format tsi_format_images = {
	.name = "images",
	.layout = "images",
	.has_file_each = true,
	.unlabelled = true,
	.open = open_images,
	.scan = tsi_imagefolder_scan_images,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
