/*
 * decoder.h - what a decoder gives: the rows of a rectangle, in strips.
 *
 * Shared by the decoders and the resampler; holds no code.
 */
#ifndef TSI_IMAGE_DECODER_H
#define TSI_IMAGE_DECODER_H

#include <stddef.h>
#include <stdint.h>

/* Readable bytes behind a row's last pixel, for wide loads. */
#define TSI_ROW_SLACK 64

/*
 * Most rows in a strip: enough to amortise a call, few enough for the cache.
 */
#define TSI_STRIP_ROWS 16

/* Memory that a decoder may keep from one image to the next. */
#define TSI_SCRATCH_KEEP ((size_t)16 << 20)

struct tsi_rect {
	uint32_t left;
	uint32_t top;
	uint32_t width;
	uint32_t height;
};

/*
 * Consecutive rows, four bytes a pixel: red, green, blue, anything.  Valid
 * until the decoder's next call.
 */
struct tsi_strip {
	const uint8_t *pixels;
	size_t stride; /* bytes */
	uint32_t rows;
};

#endif
