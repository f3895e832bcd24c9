/* SPDX-License-Identifier: MIT */
/*
 * scan.h - the samples of WebDataset's shards, found by their tar headers.
 *
 * A shard is a tar file; those of a data set are all files *.tar of a folder,
 * in the order of their names, or those that a pattern names, in its order.
 * Samples are numbered through the shards, in the order in which they lie
 * there.  As in the webdataset package a sample is a run of files whose names
 * are equal up to the first dot of the last part; what follows that dot, in
 * small letters, says what a file is:
 *
 *   jpg, png, jpeg, webp, gif, tif, tiff, bmp, ppm, pgm, pnm, jpe, jfif, dib,
 *   avif     the image (the first of these that there is)
 *   cls      the label, a number as text
 *   json     an object with a number "label", if there is no cls
 *
 * Names of the form __x__ and what lies below them are passed over, and so are
 * names without a dot and samples without an image.
 *
 * A damaged shard ends where the damage is, with a warning that says where; the
 * samples before it are kept.  A file that isn't a tar file at all, a sample
 * without a label and one with two images of a kind are errors.
 */
#ifndef TSI_DATA_WEBDATASET_SCAN_H
#define TSI_DATA_WEBDATASET_SCAN_H

#include "data/format.h"
#include "data/root.h"
#include "data/table.h"

/*
 * Fill the empty table t: rows are ranges of shards and have names.  Class k is
 * called by its number.  Fails with EDATA, EARG (the pattern), ESYS, ENOMEM.
 */
int tsi_webdataset_scan(const struct tsi_root *root,
			const struct tsi_format_opts *o, struct tsi_table *t);

/* Likewise, of samples that need no label: all are of one class. */
int tsi_webdataset_scan_bare(const struct tsi_root *root,
			     const struct tsi_format_opts *o,
			     struct tsi_table *t);

#endif
