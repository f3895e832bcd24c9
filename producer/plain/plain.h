/* SPDX-License-Identifier: MIT */
/*
 * plain.h - files whose pixels lie there as they are: PPM, PGM and BMP.
 *
 * A format says by a layout where the pixels are and how to read them; the
 * decoder is the same for all (plain.c).  As Pillow's convert("RGB").  A file
 * without all of its pixels is bad, as it is to Pillow, whatever the crop.
 */
#ifndef TSI_PLAIN_PLAIN_H
#define TSI_PLAIN_PLAIN_H

#include "pixel/decoder.h"

extern const struct tsi_decoder_ops tsi_pnm_ops;
extern const struct tsi_decoder_ops tsi_bmp_ops;

struct tsi_plain_layout {
	uint32_t width;
	uint32_t height;
	uint64_t at;     /* where the rows begin in the file */
	uint64_t stride; /* bytes from one row to the next */
	bool bottom_up;  /* the last row is the first one in the file */
	unsigned bytes;  /* a pixel: 1, 3 or 4 */
	/* Which of several bytes they are. */
	unsigned red, green, blue;
	/* A single byte is looked up here; so is each of several, if tabled. */
	bool tabled;
	uint8_t table[256][3];
};

/*
 * Read the head of a file of which data[0..len) is the beginning.  EAGAIN: it
 * ends behind that.  EDATA, with a message: it is bad, or not supported.
 */
typedef int tsi_plain_parse(const uint8_t *data, size_t len,
			    struct tsi_plain_layout *out);

/* Operations of decoder.h; create is given the format's. */
int tsi_plain_create(const struct tsi_decoder_ops *ops, tsi_plain_parse *parse,
		     struct tsi_decoder **out);
void tsi_plain_destroy(struct tsi_decoder *d);
int tsi_plain_open(struct tsi_decoder *d, const void *data, size_t len,
		   uint32_t *width, uint32_t *height);
uint64_t tsi_plain_need(struct tsi_decoder *d);
int tsi_plain_begin(struct tsi_decoder *d, const struct tsi_rect *rect);
int tsi_plain_read(struct tsi_decoder *d, struct tsi_strip *strip);
uint32_t tsi_plain_rows(const struct tsi_decoder *d);
void tsi_plain_close(struct tsi_decoder *d);

#endif
