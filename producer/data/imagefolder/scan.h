/* SPDX-License-Identifier: MIT */
/*
 * scan.h - walk an ImageFolder tree, in the order in which torchvision does.
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

#include "data/root.h"
#include "data/table.h"

/*
 * Fill the empty table t from the tree, all sizes 0; bad are rows that may not
 * be regular files.  Fails with EDATA (no
 * classes, classes without files), ENOTSUP (too many), ESYS (a folder can't be
 * read), ENOMEM; tsi_table_clear() t then.
 */
int tsi_imagefolder_scan(const struct tsi_root *root, unsigned threads,
			 struct tsi_table *t);

/*
 * Likewise, of all images in the tree, as if the root were the folder of the
 * only class, which is called ".".
 */
int tsi_imagefolder_scan_images(const struct tsi_root *root, unsigned threads,
				struct tsi_table *t);

#endif
