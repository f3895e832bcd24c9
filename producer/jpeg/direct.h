/* SPDX-License-Identifier: MIT */
/*
 * direct.h - the pixels of a rectangle of a JPEG file without libjpeg: by
 * scan.h, entropy.h and pixels.h, from where index.h has an entry.
 *
 * Pixels are libjpeg's, and only those files are taken, and as far down only,
 * that libjpeg reads without a complaint.  Of all others it says TSOCK_ENOTSUP,
 * without a message, and libjpeg is to decode them; that may be after the first
 * rows were given, which are good.
 *
 * All rows of MCUs that libjpeg would read for the rectangle must be undamaged,
 * to their last column, and behind the image's last row must be its end: so a
 * damaged file fails for the same rectangles with and without this decoder,
 * whatever is known of it.
 */
#ifndef TSI_JPEG_DIRECT_H
#define TSI_JPEG_DIRECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/decoder.h"
#include "base/simd.h"

struct tsi_jpeg_direct;

/* Fails with TSOCK_ENOTSUP if this processor lacks simd, TSOCK_ENOMEM. */
int tsi_jpeg_direct_create(enum tsi_simd simd, struct tsi_jpeg_direct **out);
/* NULL is allowed. */
void tsi_jpeg_direct_destroy(struct tsi_jpeg_direct *d);

/*
 * Begin with the file data[0..len), which must stay until close.  False: it is
 * for libjpeg.
 */
bool tsi_jpeg_direct_open(struct tsi_jpeg_direct *d, const uint8_t *data,
			  size_t len, const struct tsi_decoder_hint *hint,
			  uint32_t *width, uint32_t *height);

/* Can strips be in planes? */
bool tsi_jpeg_direct_has_planes(const struct tsi_jpeg_direct *d);

/* As in decoder.h; begin and read may also fail with TSOCK_ENOTSUP. */
uint64_t tsi_jpeg_direct_need(const struct tsi_jpeg_direct *d);
int tsi_jpeg_direct_begin(struct tsi_jpeg_direct *d,
			  const struct tsi_rect *rect, unsigned fast,
			  bool planes);
int tsi_jpeg_direct_read(struct tsi_jpeg_direct *d, struct tsi_strip *strip);

/* Rows of the rectangle that read has given. */
uint32_t tsi_jpeg_direct_rows(const struct tsi_jpeg_direct *d);

/* At any point. */
void tsi_jpeg_direct_close(struct tsi_jpeg_direct *d);

#endif
