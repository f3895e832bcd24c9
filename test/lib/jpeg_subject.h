/* SPDX-License-Identifier: MIT */
/*
 * jpeg_subject.h - a JPEG file that jpeg/entropy.c is to read, what libjpeg
 * reads from it, and where its rows and columns begin.
 */
#ifndef TEST_LIB_JPEG_SUBJECT_H
#define TEST_LIB_JPEG_SUBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg/entropy.h"
#include "test/lib/image_gen.h"
#include "test/lib/jpeg_stock.h"

struct jpeg_subject {
	struct image_gen_bytes file;
	struct tsi_jpeg_scan scan;
	struct jpeg_stock want;
	uint32_t step;
	uint32_t columns;           /* entries of a row, without the first */
	struct tsi_jpeg_entry *row; /* one more than there are rows */
	struct tsi_jpeg_entry *column;
};

/* NULL: this processor lacks simd. */
struct tsi_jpeg_entropy *jpeg_subject_create(enum tsi_simd simd);

/* The decoder that reads the most pieces at once, of as few as there are. */
struct tsi_jpeg_entropy *jpeg_subject_widest(void);

/* False: the file isn't for our decoder, and nothing has to be closed. */
bool jpeg_subject_open(struct jpeg_subject *s, const uint8_t *data, size_t len);
void jpeg_subject_close(struct jpeg_subject *s);

/*
 * Read all from the top, with part of each row's blocks, and remember the
 * entries of each s->step columns, until they are forgotten.  False: declined.
 */
bool jpeg_subject_record(struct tsi_jpeg_entropy *e, struct jpeg_subject *s,
			 uint32_t left, uint32_t across);
void jpeg_subject_forget(struct jpeg_subject *s);

/* MCUs [left, right) of row y of an area, from the nearest entry on. */
void jpeg_subject_cut(const struct jpeg_subject *s,
		      const struct tsi_jpeg_area *a, uint32_t y, uint32_t left,
		      uint32_t right, struct tsi_jpeg_piece *p);

/*
 * Read an area, each row in the same number of pieces at most; what is read is
 * compared with libjpeg's.  False: declined.
 */
bool jpeg_subject_read(struct tsi_jpeg_entropy *e, const struct jpeg_subject *s,
		       const struct tsi_jpeg_area *a, uint32_t most);

/* The i-th of files of all kinds, and of small ones with long codes. */
struct image_gen_jpeg jpeg_subject_any(unsigned i);
struct image_gen_bytes jpeg_subject_noisy(unsigned i);

#endif
