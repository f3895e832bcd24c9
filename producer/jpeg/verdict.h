/* SPDX-License-Identifier: MIT */
/*
 * verdict.h - does Pillow take a damaged JPEG file?
 *
 * libjpeg goes on, with grey, where a marker stands in the middle of the data,
 * and Pillow lets it.  But behind the last row Pillow has libjpeg read on to
 * the end of the file, and refuses the file if libjpeg can't: because of that
 * same marker, which is no segment's.  So what such a file is can be told only
 * by decoding all of it, in Pillow's way.
 */
#ifndef TSI_JPEG_VERDICT_H
#define TSI_JPEG_VERDICT_H

#include <stddef.h>

/*
 * 0: Pillow takes the file, which has one scan.  TSOCK_EDATA: it doesn't, and
 * the message says why.  Fails with TSOCK_ENOMEM.  Takes the time of a whole
 * decode to an eighth of the size, and less than 16 bytes a column of memory,
 * which it allocates.
 */
int tsi_jpeg_verdict(const void *data, size_t len);

#endif
