/* SPDX-License-Identifier: MIT */
/*
 * load.h - the bytes of an image file to the pixels of one sample.
 *
 * Decode, and do what a recipe (recipe/recipe.h) says, into memory that the
 * caller owns.  Pixels are u8, RGB (or grey) and row by row.  They equal bit for
 * bit what torchvision makes, with the same draws, of
 * Image.open(file).convert("RGB"): orientation tags, colour profiles and
 * transparency are ignored.  Pillow 13 changed the order of the resize's two
 * passes for crops that shrink more in height than in width: up to one level of
 * difference from Pillow 12, which opts.pillow chooses.
 *
 * A file is also delivered where torchvision would refuse it: damage below the
 * crop's last row (TSI_JPEG_SCAN_NEAR), a missing end, PNG's damage behind the pixels, JPEG's by
 * arithmetic coding that is longer than 64 KiB, and metadata that Pillow looks
 * into and doesn't like (PNG: compressed text or a profile of more than 1 MiB or
 * of an unknown method, frames of animations out of order; JPEG: Photoshop's
 * resources or a colour profile cut short).  One is
 * refused that torchvision accepts: PNG with a chunk before its header; JPEG
 * that is lossless, of 12 bits, or of too much work (scans.h).
 *
 * A progressive JPEG that stops before its last refinement is smoothed by
 * libjpeg-turbo, by 2.1 in another way than by 3.x: its pixels are Pillow's
 * where Pillow has the same one, and else differ by up to 13 levels in some
 * files (7 of 40 that were tried).
 *
 * opts.fast gives other pixels of JPEG files, and sooner: chroma that has fewer
 * samples is repeated, not interpolated, and of a crop that is shrunk to half
 * or less in both directions a half, a quarter or an eighth of the size is
 * decoded, and resized from there, with the crop's edges where they were.  It
 * is the same for every way to decode a file.
 *
 * It never opens a file, never logs, and never keeps a pointer to the caller's
 * bytes after it has returned.
 */
#ifndef TSI_IMAGE_LOAD_H
#define TSI_IMAGE_LOAD_H

#include "image/mask.h"
#include "pixel/image.h"

/* Decoders and scratch memory of one worker thread. */
struct tsi_image;

/* Fails with TSOCK_EARG, TSOCK_ENOMEM. */
int tsi_image_create(const struct tsi_image_opts *opts, struct tsi_image **out);
void tsi_image_destroy(struct tsi_image *img);

/*
 * Decode data[0..len), augment it with the draws of (seed, epoch, index), and
 * write the sample to dst, height * width * channels bytes of the recipe's, and
 * the box to box.  After a failure dst
 * may be half written.  A large image's memory is freed before it
 * returns; ending its claim is left to the caller.
 *
 * TSOCK_EDATA is bad data: no image, one that is not supported, or one whose
 * data can't be decoded down to the last row that the crop needs.  Damage that
 * Pillow tolerates is tolerated and gives Pillow's pixels; what the damage in a
 * JPEG that libjpeg passes over is to Pillow, jpeg/verdict.h finds out.
 * Bad data, too, is an image that needs more memory than the whole budget has,
 * or whose scans are more work than any honest file's (scans.h).  TSOCK_EAGAIN
 * and TSOCK_ESTREAM are tsi_budget_claim_grow()'s.  TSOCK_ENOMEM says nothing
 * about the file.
 */
int tsi_image_load(struct tsi_image *img, const void *data, size_t len,
		   uint32_t epoch, uint64_t index, uint8_t *dst,
		   struct tsi_box *box);

/*
 * Where the further views of samples go, one behind the other, if the recipe has
 * any: to[k] is view k + 1's.  For the samples that are loaded from now on.
 */
void tsi_image_set_more(struct tsi_image *img, uint8_t *const *to);

/*
 * The sample that was loaded last: the size of its image, and its draws, as many
 * numbers as the recipe has.  tsi_image_bottom() draws, too: what it drew is in
 * their place then.
 */
struct tsi_image_drawn tsi_image_last(const struct tsi_image *img);

/* As tsi_image_load(), for a file that has this number in the index. */
int tsi_image_load_file(struct tsi_image *img, uint64_t file, const void *data,
			size_t len, uint32_t epoch, uint64_t index,
			uint8_t *dst, struct tsi_box *box);

/*
 * Load another image of the sample that was loaded last, which has these epoch
 * and index, by the same draws, and leave tsi_image_last() as it is.  The recipe
 * has one view.  EDATA is also an operation that draws by the picture's size,
 * where the images' are different (transforms/op.h); else as tsi_image_load().
 */
int tsi_image_load_other(struct tsi_image *img, const void *data, size_t len,
			 uint32_t epoch, uint64_t index, uint8_t *dst);

/*
 * What is loaded from now on is what this process wrote itself, or not (at
 * first): checksums that a format has for its parts are not looked at.
 */
void tsi_image_trust(struct tsi_image *img, bool trusted);

/* How much of a damaged file can be decoded. */
struct tsi_image_extent {
	uint32_t width;
	uint32_t height;
	uint32_t rows; /* from the first one on; height: all */
};

/*
 * Decode data[0..len) from its first row to its last or to the damage.  A
 * function of the bytes alone: tsi_image_load() of a file that is damaged so
 * fails for a sample just when tsi_image_bottom() of that sample is more than
 * rows.  Fails
 * as tsi_image_load() does, with TSOCK_EDATA when not even the first row
 * comes.  The cost is that of a whole decode.
 */
int tsi_image_measure(struct tsi_image *img, const void *data, size_t len,
		      struct tsi_image_extent *out);

/* Each sample needs the same rows of an image, whatever its draws. */
bool tsi_image_same_rows(const struct tsi_image *img);

/*
 * Where they don't: rows from the first one on that the draws of (seed, epoch,
 * index) need of an image of this size; and no draws need fewer.
 */
uint32_t tsi_image_bottom(const struct tsi_image *img, uint32_t width,
			  uint32_t height, uint32_t epoch, uint64_t index);
uint32_t tsi_image_least_bottom(const struct tsi_image *img, uint32_t width,
				uint32_t height);

#endif
