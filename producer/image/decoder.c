/* SPDX-License-Identifier: MIT */
/*
 * decoder.c - the image formats that there are.
 */
#include "image/decoder.h"

#include "image/jpeg.h"
#include "image/packed.h"
#include "image/png.h"

const struct tsi_decoder_ops *const tsi_decoders[] = {
	&tsi_jpeg_ops,
	&tsi_png_ops,
	&tsi_packed_ops,
	NULL,
};
