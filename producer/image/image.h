/* SPDX-License-Identifier: MIT */
/*
 * image.h - the bytes of an image file to the pixels of one sample.
 *
 * What this folder offers: sniff, decode, crop, resize and flip, into memory
 * that the caller owns.  Pixels are u8, RGB, row by row, and equal bit for bit
 * what Pillow and torchvision give for the same crop box and flip:
 *
 *   train  RandomResizedCrop(size), RandomHorizontalFlip()
 *   eval   Resize(resize), CenterCrop(size)
 *
 * which are presets (preset.h), both bilinear, on
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
 * refused that torchvision accepts: PNG of 16 bits or with a chunk before its
 * header; JPEG that is lossless, of 12 bits, or of too much work (scans.h).
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
#ifndef TSI_IMAGE_IMAGE_H
#define TSI_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An image that needs no more memory than this is decoded in the worker's own;
 * for a larger one memory is claimed first (budget.h).
 */
#define TSI_IMAGE_SMALL ((size_t)16 << 20)
/* What all large images of a process may use together, by default. */
#define TSI_IMAGE_MEMORY (UINT64_C(2) << 30)

/* More pixels than this are bad data, as they are to Pillow. */
#define TSI_IMAGE_PIXELS_MAX 178956970u
/* Widest and highest PNG; libpng's own default. */
#define TSI_IMAGE_EDGE_MAX 1000000u
/* Largest size and resize that can be asked for. */
#define TSI_IMAGE_SIZE_MAX 4096u

struct tsi_preset;

struct tsi_image_opts {
	const struct tsi_preset *preset; /* preset.h */
	uint32_t size;   /* edge of the sample, 1 to TSI_IMAGE_SIZE_MAX */
	uint32_t resize; /* eval: the short edge before the centre crop */
	uint64_t seed;   /* key of the random draws */
	uint32_t pillow; /* major version to equal; 0 is the newest, 13 */
	bool fast;       /* JPEG: fewer computations, other pixels */
	/* For large images; NULL: no limit.  Outlives the decoder. */
	struct tsi_budget_claim *claim;
	/*
	 * JPEG by libjpeg alone; and where parts of the data set's JPEG files
	 * begin (jpeg_index.h), or NULL.  It outlives the decoder, too.
	 */
	bool stock_jpeg;
	struct tsi_jpeg_index *jpeg_index;
};

/*
 * What was cut out.  Train: pixels of the source image, before the resize.
 * Eval: where the centre crop lies in the resized image; top and left are
 * negative where the crop is larger than that image and black surrounds it.
 */
struct tsi_box {
	int32_t top;
	int32_t left;
	int32_t height;
	int32_t width;
	int32_t flip; /* 1: mirrored left to right */
};

struct tsi_image_head {
	unsigned format; /* index in tsi_decoders[] (decoder.h) */
	uint32_t width;
	uint32_t height;
};

struct tsi_budget_claim;
struct tsi_jpeg_index;

/* Decoders and scratch memory of one worker thread. */
struct tsi_image;

/* Fails with TSOCK_EARG, TSOCK_ENOMEM. */
int tsi_image_create(const struct tsi_image_opts *opts, struct tsi_image **out);
void tsi_image_destroy(struct tsi_image *img);

/*
 * Decode data[0..len), augment it with the draws of (seed, epoch, index), and
 * write size * size * 3 bytes to dst and the box to box.  After a failure dst
 * may be half written.  A large image's memory is freed before it
 * returns; ending its claim is left to the caller.
 *
 * TSOCK_EDATA is bad data: no image, one that is not supported, or one whose
 * data can't be decoded down to the last row that the crop needs.  Damage that
 * Pillow tolerates is tolerated and gives Pillow's pixels; what the damage in a
 * JPEG that libjpeg passes over is to Pillow, jpeg_verdict.h finds out.
 * Bad data, too, is an image that needs more memory than the whole budget has,
 * or whose scans are more work than any honest file's (scans.h).  TSOCK_EAGAIN
 * and TSOCK_ESTREAM are tsi_budget_claim_grow()'s.  TSOCK_ENOMEM says nothing
 * about the file.
 */
int tsi_image_load(struct tsi_image *img, const void *data, size_t len,
		   uint32_t epoch, uint64_t index, uint8_t *dst,
		   struct tsi_box *box);

/* The same, of a file that has this number in the index. */
int tsi_image_load_file(struct tsi_image *img, uint64_t file, const void *data,
			size_t len, uint32_t epoch, uint64_t index,
			uint8_t *dst, struct tsi_box *box);

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

/*
 * Look at the head of a file.  data[0..len) is its beginning, or, if whole is
 * set, all of it.  TSOCK_EAGAIN: more bytes are needed to tell (a head may
 * carry any amount of metadata).  TSOCK_EDATA: bad, and the message says why.
 * What passes here may still turn out bad when it is loaded.  Any thread.
 */
int tsi_image_sniff(const void *data, size_t len, bool whole,
		    struct tsi_image_head *out);

/* Does a file of this name hold an image of a format that isn't read? */
bool tsi_image_foreign(const char *name);

#endif
