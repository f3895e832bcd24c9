/* SPDX-License-Identifier: MIT */
/*
 * masks.h - the folder of masks beside a data set's images.
 *
 * The mask of image a/b/NAME.jpg is a/b/NAME.png in the folder of masks, and that
 * of Cityscapes' a/NAME_leftImg8bit.png is a/NAME_gtFine_labelIds.png.
 * That of KEY.jpg in a tar file is KEY.seg.png in the file of the same name
 * in the folder of masks, which may be the images' own.  Where it can't be used its image is a bad file, as if the image itself couldn't be
 * decoded.  Immutable: any thread may ask.
 */
#ifndef TSI_RUN_MASKS_H
#define TSI_RUN_MASKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/index.h"
#include "run/badlist.h"

struct tsi_masks;

/*
 * The masks of x, which must outlive it.  Fails with EARG (the data set is
 * made neither of a file for each image nor of tar files), ESYS (the folder can't
 * be opened), EDATA (tar files), ENOMEM.
 */
int tsi_masks_open(const char *folder, const struct tsi_index *x,
		   struct tsi_masks **out);

/* NULL is allowed. */
void tsi_masks_close(struct tsi_masks *m);

/*
 * Look at the masks of up to 1,024 images, evenly spread, or of all of them:
 * are they there, and PNG files of one number a pixel?  Images without one are
 * reported, and passed to bad(), which may be NULL.  EDATA if none of those
 * that were looked at has a mask.
 */
int tsi_masks_look(const struct tsi_masks *m, bool all, struct tsi_badlist *l,
		   void (*bad)(void *arg, uint64_t file), void *arg);

/* EDATA if none of those images has a mask. */
int tsi_masks_any(const struct tsi_masks *m);

/* The path of image i's mask, in to[0..len); its end where it is long. */
const char *tsi_masks_name(const struct tsi_masks *m, uint64_t i, char *to,
			   size_t len);
#define TSI_MASKS_NAME 140 /* bytes of it for messages */

/*
 * Read image i's mask into a new block, which is the caller's to free; max
 * bytes at most.  Returns what tsi_io_read() does.
 */
int tsi_masks_read(const struct tsi_masks *m, uint64_t i, size_t max,
		   uint8_t **data, size_t *len);

#endif
