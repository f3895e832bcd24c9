/* SPDX-License-Identifier: MIT */
/*
 * formats.c - the image formats that there are.
 */
#include "image/formats.h"

#include "avif/decoder.h"
#include "gif/gif.h"
#include "jpeg/jpeg.h"
#include "packed/decoder.h"
#include "plain/plain.h"
#include "png/png.h"
#include "raw/raw.h"
#include "tiff/tiff.h"
#include "webp/webp.h"

const struct tsi_decoder_ops *const tsi_decoders[] = {
	&tsi_jpeg_ops,   &tsi_png_ops,  &tsi_webp_ops, &tsi_pnm_ops,
	&tsi_bmp_ops,    &tsi_tiff_ops, &tsi_gif_ops,  &tsi_avif_ops,
	&tsi_packed_ops, &tsi_raw_ops,  NULL,
};
