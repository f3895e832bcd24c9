/* SPDX-License-Identifier: MIT */
/*
 * whole.h - all coefficients of a JPEG file, by libjpeg.
 *
 * Reads any file whose pixels depend on its coefficients, quantisers and
 * sampling alone: baseline and progressive ones, arithmetic coding, several
 * scans.  Left out are files with damage of any kind (where libjpeg warns, or
 * the end is missing), progressive ones that stop before their last refinement
 * (which libjpeg smooths), those of other colours than grey, YCbCr and RGB, and
 * those that pixels.h can't decode.
 */
#ifndef TSI_JPEG_WHOLE_H
#define TSI_JPEG_WHOLE_H

#include <stddef.h>
#include <stdint.h>

#include "jpeg/blocks.h"

struct tsi_jpeg_whole; /* used by one thread for one file after the other */

/* Fails with TSOCK_ENOMEM. */
int tsi_jpeg_whole_create(struct tsi_jpeg_whole **out);
/* NULL is allowed. */
void tsi_jpeg_whole_destroy(struct tsi_jpeg_whole *w);

/*
 * Decode a file.  The frame is filled in; rows are got by the next function,
 * and data must stay until the close.  Fails with TSOCK_ENOTSUP (a file that is
 * left out, a damaged one among them), ENOMEM.
 */
int tsi_jpeg_whole_open(struct tsi_jpeg_whole *w, const void *data, size_t len,
			struct tsi_jpeg_frame *frame);

/*
 * Bytes of memory that decoding a file of this head takes at most, while it is
 * open: known before, from the size of the image.
 */
uint64_t tsi_jpeg_whole_need(uint32_t width, uint32_t height);

/*
 * Row `row` of MCUs, all columns, as row 0 of *out; without last[].  Valid
 * until the next call.
 */
void tsi_jpeg_whole_row(struct tsi_jpeg_whole *w, uint32_t row,
			struct tsi_jpeg_blocks *out);

/* End with this file, also after a failure: give its memory back. */
void tsi_jpeg_whole_close(struct tsi_jpeg_whole *w);

#endif
