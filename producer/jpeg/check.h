/* SPDX-License-Identifier: MIT */
/*
 * check.h - is our JPEG decoder libjpeg's equal on this machine?
 */
#ifndef TSI_JPEG_CHECK_H
#define TSI_JPEG_CHECK_H

#include <stdbool.h>

/*
 * Decode small images, made for that, by libjpeg and by our decoder, from their
 * beginning and from an index, and compare the pixels: some milliseconds.
 * fast: compare fast pixels (decoder.h), of every size, and no exact ones.
 * TSOCK_EDATA: they differ, and the message says where; then images are to be
 * decoded with tsi_image_opts.stock_jpeg.  Fails with TSOCK_ENOMEM.
 */
int tsi_jpeg_check(bool fast);

#endif
