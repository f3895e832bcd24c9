/* SPDX-License-Identifier: MIT */
/*
 * tiff_none.c - in a build without libtiff: TIFF files are known by their
 * heads, and not decoded.
 */
#include "tiff/tiff.h"

const struct tsi_decoder_ops tsi_tiff_ops = {
	.name = "TIFF",
	.extensions = TSI_TIFF_EXTENSIONS,
	.lacks = "libtiff",
	.claims = tsi_tiff_claims,
	.head = tsi_tiff_head,
};

const char *tsi_tiff_version(void)
{
	return NULL;
}
