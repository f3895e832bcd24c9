/* SPDX-License-Identifier: MIT */
/*
 * turbo.h - the pixels of a rectangle of a JPEG file by libjpeg-turbo: of
 * every file that direct.h leaves to it, damaged ones among them.
 *
 * Where libjpeg passes over damage in the rows that it reads, or finds markers
 * behind the last row, it asks what Pillow makes of the file (verdict.h).  What
 * lies further down is not asked about.
 *
 * Only the rectangle's columns are decoded, and no row below the rectangle is
 * read.  A progressive file that ends early is smoothed by blocks from all
 * around, so of such a file all columns are decoded; of a shrunk image too.
 *
 * libjpeg's errors come back by longjmp: open, begin and read each set the jump
 * buffer, and no jump leaves them.  They fail with TSOCK_EDATA (the file is
 * bad, or ends above the last row needed; the message says which) or
 * TSOCK_ENOMEM; after a failure the next call is rows or close.
 *
 * A decoder is used by one thread, for one file after the other.  Nothing is
 * allocated in the steady state (libjpeg.h).
 */
#ifndef TSI_JPEG_TURBO_H
#define TSI_JPEG_TURBO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/decoder.h"

struct tsi_jpeg_turbo;

/* Fails with TSOCK_ENOMEM. */
int tsi_jpeg_turbo_create(struct tsi_jpeg_turbo **out);
/* NULL is allowed. */
void tsi_jpeg_turbo_destroy(struct tsi_jpeg_turbo *t);

/*
 * Begin with the file data[0..len), which must stay until close; the last file
 * has been closed.  Width and height are of the image, in pixels.  A file whose
 * markers promise more work than scans.h allows is refused here, one that hides
 * it from them by begin or read.
 */
int tsi_jpeg_turbo_open(struct tsi_jpeg_turbo *t, const void *data, size_t len,
			uint32_t *width, uint32_t *height);

/* After open: bytes of memory that decoding takes at most. */
uint64_t tsi_jpeg_turbo_need(struct tsi_jpeg_turbo *t);

/* As much as any file of one scan needs that is width pixels wide. */
uint64_t tsi_jpeg_turbo_strip_need(uint32_t width);

/*
 * Choose the rectangle, inside the image and not empty, and decode up to its
 * first row.  fast and planes are as in struct tsi_decoder; of any file the
 * strips can be in planes.
 */
int tsi_jpeg_turbo_begin(struct tsi_jpeg_turbo *t, const struct tsi_rect *rect,
			 unsigned fast, bool planes);

/* The rectangle's next rows, as in decoder.h; the strip is t's memory. */
int tsi_jpeg_turbo_read(struct tsi_jpeg_turbo *t, struct tsi_strip *strip);

/*
 * After begin, also when read has failed: the rows of the image that are
 * decoded, those above the rectangle among them.
 */
uint32_t tsi_jpeg_turbo_rows(const struct tsi_jpeg_turbo *t);

/* End with this file, at any point. */
void tsi_jpeg_turbo_close(struct tsi_jpeg_turbo *t);

/* The version of libjpeg-turbo that this was compiled with, as "2.1.5". */
const char *tsi_jpeg_turbo_version(void);

#endif
