/* SPDX-License-Identifier: MIT */
/*
 * formats.h - the image formats that there are.
 */
#ifndef TSI_IMAGE_FORMATS_H
#define TSI_IMAGE_FORMATS_H

#include "pixel/decoder.h"

/* All formats, ended by NULL. */
extern const struct tsi_decoder_ops *const tsi_decoders[];

#endif
