/*
 * jpeg.h - JPEG bytes to the pixels of one rectangle.
 *
 * Pixels are exactly those of a full decode with libjpeg-turbo's defaults
 * (accurate inverse DCT, fancy upsampling, block smoothing of unfinished
 * progressive files), CMYK turned to RGB by Pillow's formula; but only what
 * the rectangle needs is transformed, and rows below it are not even read.
 * The file behind jpeg.h is the only one of the producer that knows libjpeg.
 */
#ifndef TSI_IMAGE_JPEG_H
#define TSI_IMAGE_JPEG_H

#include <stddef.h>
#include <stdint.h>

#include "image/decoder.h"

/* A decompressor, used for one image after the other. */
struct tsi_jpeg;

int tsi_jpeg_create(struct tsi_jpeg **out);
void tsi_jpeg_destroy(struct tsi_jpeg *j);

/*
 * Read the header.  The data must stay until the last tsi_jpeg_read().  All
 * of these fail with TSOCK_EDATA (bad, or truncated above the rectangle's last
 * row) or TSOCK_ENOMEM, and after a failure the next call is tsi_jpeg_open().
 */
int tsi_jpeg_open(struct tsi_jpeg *j, const void *data, size_t len,
		  uint32_t *width, uint32_t *height);

/*
 * After tsi_jpeg_open(): bytes of memory that decoding takes at most.  A
 * progressive file's coefficients are in memory all at once.
 */
uint64_t tsi_jpeg_need(struct tsi_jpeg *j);

/* Choose the rectangle, inside the image and not empty; decode up to it. */
int tsi_jpeg_begin(struct tsi_jpeg *j, const struct tsi_rect *rect);

/* Some of the rectangle's next rows, at least one while any are left. */
int tsi_jpeg_read(struct tsi_jpeg *j, struct tsi_strip *strip);

/*
 * Rows decoded since tsi_jpeg_begin() succeeded with a rectangle from the
 * image's first row on, also after tsi_jpeg_read() failed.
 */
uint32_t tsi_jpeg_rows(const struct tsi_jpeg *j);

/* End with this image, at any point: gives back all but TSI_SCRATCH_KEEP. */
void tsi_jpeg_close(struct tsi_jpeg *j);

/* The version of libjpeg-turbo that this was compiled with, as "2.1.5". */
const char *tsi_jpeg_version(void);

#endif
