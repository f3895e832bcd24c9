/* SPDX-License-Identifier: MIT */
/*
 * avif_none.c - in a build without libavif: AVIF files are known by their
 * heads, and not decoded.
 */
#include "avif/decoder.h"

const struct tsi_decoder_ops tsi_avif_ops = {
	.name = "AVIF",
	.extensions = TSI_AVIF_EXTENSIONS,
	.lacks = "libavif",
	.claims = tsi_avif_claims,
	.head = tsi_avif_head,
};

const char *tsi_avif_version(void)
{
	return NULL;
}
