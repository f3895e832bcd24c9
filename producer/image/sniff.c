/* SPDX-License-Identifier: MIT */
/*
 * sniff.c - what kind of file, how large, and is it one that can be decoded?
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "image/formats.h"
#include "image/sniff.h"
#include "pixel/image.h"
#include "pixel/wrapped.h"

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

/* ---- what isn't read ---- */

/* How a file of a format begins: these bytes, at this place. */
struct magic {
	unsigned at, len;
	const char *bytes;
};

#define MAGICS 8
#define AT(place, text) \
	{ \
		place, sizeof(text) - 1, text \
	}

/*
 * Formats that people have among their images, and that aren't read: one line
 * each, by which messages name them and a scan knows them by their names.
 */
static const struct foreign {
	const char *name;       /* "a HEIC image" */
	const char *extensions; /* in lower case, with a blank on either side */
	struct magic magic[MAGICS], too; /* one of these, and that */
} foreign[] = {
	{ "a BigTIFF image", "", { AT(0, "II+\0"), AT(0, "MM\0+") }, { 0 } },
	{ "a HEIC image",
	  " heic heif ",
	  { AT(8, "heic"), AT(8, "heix"), AT(8, "heim"), AT(8, "heis"),
	    AT(8, "hevc"), AT(8, "hevx") },
	  AT(4, "ftyp") },
	{ "a JPEG 2000 image",
	  " jp2 j2k jpf jpx ",
	  { AT(0, "\0\0\0\x0cjP  \r\n\x87\n"), AT(0, "\xff\x4f\xff\x51") },
	  { 0 } },
	{ "a JPEG XL image",
	  " jxl ",
	  { AT(0, "\0\0\0\x0cJXL \r\n\x87\n"), AT(0, "\xff\x0a") },
	  { 0 } },
	{ "a PBM image", " pbm ", { AT(0, "P1\n"), AT(0, "P4\n") }, { 0 } },
	{ "a PGM or PPM image in text",
	  "",
	  { AT(0, "P2\n"), AT(0, "P3\n"), AT(0, "P2 "), AT(0, "P3 ") },
	  { 0 } },
	{ "an ICO image", " ico ", { AT(0, "\0\0\1\0") }, { 0 } },
};

#define FOREIGN (sizeof(foreign) / sizeof(foreign[0]))

static bool has(const struct magic *m, const uint8_t *p, size_t len)
{
	return len >= m->at + m->len && !memcmp(p + m->at, m->bytes, m->len);
}

static bool begins_as(const struct foreign *f, const uint8_t *p, size_t len)
{
	if (f->too.len && !has(&f->too, p, len))
		return false;
	for (unsigned i = 0; i < MAGICS && f->magic[i].len; i++)
		if (has(&f->magic[i], p, len))
			return true;
	return false;
}

static const char *guess(const uint8_t *p, size_t len)
{
	for (unsigned i = 0; i < FOREIGN; i++)
		if (begins_as(&foreign[i], p, len))
			return foreign[i].name;
	for (size_t i = 0; i < len && i < 64; i++)
		if (p[i] < 9 || p[i] > 126 || (p[i] > 13 && p[i] < 32))
			return "something else";
	return "text";
}

bool tsi_image_foreign(const char *name)
{
	const char *dot = strrchr(name, '.');
	char word[8] = " ";
	size_t n = 1;

	if (!dot || strlen(dot + 1) > sizeof(word) - 3)
		return false;
	while (*++dot)
		word[n++] =
			*dot >= 'A' && *dot <= 'Z' ? (char)(*dot + 32) : *dot;
	word[n] = ' ';
	for (unsigned i = 0; i < FOREIGN; i++)
		if (strstr(foreign[i].extensions, word))
			return true;
	for (unsigned i = 0; tsi_decoders[i]; i++)
		if (tsi_decoders[i]->lacks &&
		    strstr(tsi_decoders[i]->extensions, word))
			return true;
	return false;
}

uint32_t tsi_image_formats_read(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; tsi_decoders[i]; i++)
		if (!tsi_decoders[i]->lacks)
			sum = tsi_hash(tsi_decoders[i]->name,
				       strlen(tsi_decoders[i]->name), sum);
	return (uint32_t)(sum % UINT32_MAX);
}

/* "neither JPEG nor PNG nor WebP but text" */
static int no_format(const uint8_t *data, size_t len)
{
	char names[160] = "neither ";

	for (unsigned i = 0; tsi_decoders[i]; i++) {
		size_t at = strlen(names);

		if (tsi_decoders[i]->internal || tsi_decoders[i]->lacks)
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
	if (f->lacks)
		return tsi_err(TSOCK_EDATA,
			       "this build reads no %s; build one where %s is "
			       "installed, or convert the images",
			       f->name, f->lacks);
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
