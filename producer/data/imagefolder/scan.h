/* SPDX-License-Identifier: MIT */
/*
 * scan.h - walk an ImageFolder tree, in the order in which torchvision does; or
 * a tree of other files, in the same order.
 *
 * ROOT/<class>/.../<image>.  Classes are the folders in ROOT (symbolic links
 * to folders too), sorted by code point; the files of a class are those of
 * every folder below it, folders sorted by their whole path, names sorted
 * within a folder, with an image's extension (.jpg .jpeg .png .ppm .bmp .pgm
 * .tif .tiff .webp, any case).  So sample i here is sample i of
 * torchvision.datasets.ImageFolder(ROOT), with the same label.
 */
#ifndef TSI_DATA_IMAGEFOLDER_SCAN_H
#define TSI_DATA_IMAGEFOLDER_SCAN_H

#include "data/format.h"
#include "data/root.h"
#include "data/table.h"

/*
 * Fill the empty table t from the tree, all sizes 0; bad are rows that may not
 * be regular files.  Fails with EDATA (no
 * classes, classes without files), ENOTSUP (too many), ESYS (a folder can't be
 * read), ENOMEM; tsi_table_clear() t then.
 */
int tsi_imagefolder_scan(const struct tsi_root *root,
			 const struct tsi_format_opts *o, struct tsi_table *t);

/*
 * Likewise, of all images in the tree, as if the root were the folder of the
 * only class, which is called ".".
 */
int tsi_imagefolder_scan_images(const struct tsi_root *root,
				const struct tsi_format_opts *o,
				struct tsi_table *t);

/* What files a tree is of. */
struct tsi_imagefolder_files {
	bool (*takes)(const char *name);
	const char *name; /* "images" */
};

/*
 * Likewise, of such files; flat: as if the root were the folder of the only
 * class.
 */
int tsi_imagefolder_scan_files(const struct tsi_imagefolder_files *files,
			       bool flat, const struct tsi_root *root,
			       const struct tsi_format_opts *o,
			       struct tsi_table *t);

#endif
