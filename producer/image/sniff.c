/* SPDX-License-Identifier: MIT */
/*
 * sniff.c - what kind of file, how large, and is it one that can be decoded?
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "image/decoder.h"
#include "image/image.h"
#include "image/wrapped.h"

static int check_size(uint32_t width, uint32_t height, const char *format)
{
	if (!width || !height)
		return tsi_err(TSOCK_EDATA, "%s is empty: %u x %u pixels",
			       format, width, height);
	if ((uint64_t)width * height > TSI_IMAGE_PIXELS_MAX)
		return tsi_err(TSOCK_EDATA,
			       "%s is too large: %u x %u pixels, the limit is "
			       "%u in all",
			       format, width, height, TSI_IMAGE_PIXELS_MAX);
	return 0;
}

/* The names of what people leave among their photos. */
static const char *guess(const uint8_t *p, size_t len)
{
	if (len >= 6 && !memcmp(p, "GIF8", 4))
		return "a GIF image";
	if (len >= 12 && !memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WEBP", 4))
		return "a WebP image";
	if (len >= 2 && !memcmp(p, "BM", 2))
		return "a BMP image";
	if (len >= 4 && (!memcmp(p, "II*\0", 4) || !memcmp(p, "MM\0*", 4)))
		return "a TIFF image";
	for (size_t i = 0; i < len && i < 64; i++)
		if (p[i] < 9 || p[i] > 126 || (p[i] > 13 && p[i] < 32))
			return "something else";
	return "text";
}

/* "neither JPEG nor PNG but text" */
static int no_format(const uint8_t *data, size_t len)
{
	char names[128] = "neither ";

	for (unsigned i = 0; tsi_decoders[i]; i++) {
		size_t at = strlen(names);

		if (tsi_decoders[i]->internal)
			continue;
		snprintf(names + at, sizeof(names) - at, "%s%s",
			 i ? " nor " : "", tsi_decoders[i]->name);
	}
	return tsi_err(TSOCK_EDATA, "%s but %s", names, guess(data, len));
}

int tsi_image_sniff(const void *data, size_t len, bool whole,
		    struct tsi_image_head *out)
{
	const struct tsi_decoder_ops *f;
	struct tsi_image_head head = { 0 };
	int err = tsi_wrapped_open(&data, &len, whole);

	if (err)
		return err;
	if (!len)
		return whole ? tsi_err(TSOCK_EDATA, "the file is empty")
			     : TSOCK_EAGAIN;
	while ((f = tsi_decoders[head.format]) && !f->claims(data, len))
		head.format++;
	if (!f)
		return len < 16 && !whole ? TSOCK_EAGAIN : no_format(data, len);
	err = f->head(data, len, &head.width, &head.height);
	if (err == TSOCK_EAGAIN && whole)
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: it ends after %zu bytes, "
			       "within its header",
			       f->name, len);
	if (!err)
		err = check_size(head.width, head.height, f->name);
	if (!err)
		*out = head;
	return err;
}
