/* SPDX-License-Identifier: MIT */
/*
 * webp_none.c - in a build without libwebp: WebP files are known by their
 * heads, and not decoded.
 */
#include "webp/webp.h"

const struct tsi_decoder_ops tsi_webp_ops = {
	.name = "WebP",
	.extensions = TSI_WEBP_EXTENSIONS,
	.lacks = "libwebp",
	.claims = tsi_webp_claims,
	.head = tsi_webp_head,
};

const char *tsi_webp_version(void)
{
	return NULL;
}
