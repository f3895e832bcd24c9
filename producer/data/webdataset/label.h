/* SPDX-License-Identifier: MIT */
/*
 * label.h - the label of a sample, as WebDataset writes it beside the image.
 */
#ifndef TSI_DATA_WEBDATASET_LABEL_H
#define TSI_DATA_WEBDATASET_LABEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes that are worth reading for a label. */
#define TSI_LABEL_TEXT 64
#define TSI_LABEL_JSON (1 << 20)

/* Labels are below this: they are indices of classes. */
#define TSI_LABEL_END 1000000u

/* The number that a .cls file is, white space around it aside. */
bool tsi_label_text(const char *text, size_t len, uint32_t *out);

enum tsi_label_kind {
	TSI_LABEL_ABSENT, /* or no JSON object */
	TSI_LABEL_NUMBER,
	TSI_LABEL_OTHER, /* a text, say, or a number above the highest label */
};

/*
 * The value "label" of the object that a .json file is, not one of an object
 * within it; the last one if there are several.  *out is set if it is a whole
 * number below TSI_LABEL_END.
 */
enum tsi_label_kind tsi_label_json(const char *text, size_t len, uint32_t *out);

#endif
