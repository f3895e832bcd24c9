/* SPDX-License-Identifier: MIT */
/*
 * raw.h - images that are pixels already: 8-bit, row by row, as CIFAR's and
 * NumPy's files have them.
 *
 * Such bytes don't say what they are: whoever reads them from a file puts a
 * head before them, and then they are an image as any other.
 */
#ifndef TSI_RAW_RAW_H
#define TSI_RAW_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pixel/decoder.h"

#define TSI_RAW_HEAD 64 /* bytes; the pixels follow */

/* Bytes that must be readable behind the pixels. */
#define TSI_RAW_SLACK TSI_PLANE_SLACK

struct tsi_raw_shape {
	uint32_t height, width;
	uint32_t channels; /* 1 or 3 */
	bool planar;       /* all of a channel, then the next */
};

/* Bytes of the pixels; 0: there is no such image. */
size_t tsi_raw_bytes(const struct tsi_raw_shape *s);

/* Write the TSI_RAW_HEAD bytes. */
void tsi_raw_put_head(const struct tsi_raw_shape *s, uint8_t *to);

extern const struct tsi_decoder_ops tsi_raw_ops;

#endif
