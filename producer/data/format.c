/* SPDX-License-Identifier: MIT */
/*
 * format.c - the table of data set formats.
 */
#include "data/format.h"

#define ENTRY(name, help) &tsi_format_##name,

static const struct tsi_format *const formats[] = { TSI_FORMATS(ENTRY) };

const struct tsi_format *tsi_format_at(unsigned k)
{
	return formats[k];
}

const struct tsi_format *tsi_format_classless(const struct tsi_format *f)
{
	if (f->has_class_folders)
		return &tsi_format_images;
	return f == &tsi_format_webdataset ? &tsi_format_webdataset_bare : f;
}
