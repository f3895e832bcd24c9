/* SPDX-License-Identifier: MIT */
/*
 * decoder.h - records of packed images, as files: a decoder like those of JPEG
 * and PNG.
 *
 * A record of coefficients (blocks.h) gives the pixels of the file that it
 * was made of.  A record may also stand for a file that could not be read when
 * it was to be packed: it is bad, and says why.
 *
 * Bad is a record whose head is damaged, or one of whose rows of MCUs is, from
 * the first one to the last that the rectangle needs.  Of a record that is
 * trusted (decoder.h) the sums are not looked at.
 */
#ifndef TSI_PACKED_DECODER_H
#define TSI_PACKED_DECODER_H

#include "pixel/decoder.h"
#include "base/simd.h"

#define TSI_PACKED_BAD_MAGIC "\xf5tsckB1\n"
#define TSI_PACKED_BAD_MAGIC_LEN 8

extern const struct tsi_decoder_ops tsi_packed_ops;

/*
 * The decoder with these instructions at most.  Fails with TSOCK_ENOTSUP,
 * ENOMEM.
 */
int tsi_packed_create(enum tsi_simd simd, struct tsi_decoder **out);

#endif
