/* SPDX-License-Identifier: MIT */
/*
 * pixels.h - the pixels of a rectangle, from the coefficients of the MCUs
 * around it.
 *
 * Bytes are those of libjpeg-turbo with its defaults (JDCT_ISLOW, fancy
 * upsampling) as its whole decode gives them, whatever the rectangle.
 * Formulas: libjpeg-turbo's jidctint.c, jdsample.c and jdcolor.c, restated.
 *
 * Fast pixels are libjpeg-turbo's of scale_num 1, scale_denom 1, 2, 4 or 8 and
 * do_fancy_upsampling FALSE: the image is so much smaller, components that have
 * fewer samples are shrunk less, and what still has too few is repeated.
 * `fast` is that denominator, or 0 for exact pixels, in which a rectangle and
 * the sizes below are counted.
 *
 * Any coefficients and quantisation tables are allowed.  Those of honest files
 * give the same bytes with every build of libjpeg-turbo.  Its vector code
 * computes with words of 16 bits, where its C code has 32: they begin to differ
 * when a coefficient times its quantiser, the sum of two of them that the
 * transform adds (0 and 4, 1 and 5, 3 and 7 of a column), or such a sum of what
 * the first pass made of them (4 times the column's transform) leaves [-32768,
 * 32767], or when a pixel lies beyond [-512, 511].  There the bytes are those
 * of the vector code for x86, SSE2 and AVX2 alike, to the last wrapped sum;
 * versions 2.1 and 3.x have the same.  On other processors, for which
 * libjpeg-turbo has other vector code, bytes are those of x86 all the same.
 *
 * Used by one thread.  A struct's buffers grow with the widest image so far, up
 * to 12 MB for one of 65,535 pixels, and are used again; nothing is allocated
 * once they have grown.
 *
 *	tsi_jpeg_pixels_area(frame, &rect, 0, &area);
 *	tsi_jpeg_pixels_begin(p, frame, &rect, 0, false);
 *	for (row = 0; row < area.down; row++) {
 *		... fill blocks
 *		tsi_jpeg_pixels_push(p, &blocks, row of them);
 *		while (tsi_jpeg_pixels_read(p, &strip))
 *			... use strip
 *	}
 */
#ifndef TSI_JPEG_PIXELS_H
#define TSI_JPEG_PIXELS_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/decoder.h"
#include "jpeg/blocks.h"
#include "base/simd.h"

/* Does libjpeg-turbo give these bytes whatever the coefficients? */
#ifdef __x86_64__
#define TSI_JPEG_PIXELS_ALWAYS_ALIKE true
#else
#define TSI_JPEG_PIXELS_ALWAYS_ALIKE false
#endif

struct tsi_jpeg_pixels;

/* Fails with TSOCK_ENOTSUP if this processor lacks simd, TSOCK_ENOMEM. */
int tsi_jpeg_pixels_create(enum tsi_simd simd, struct tsi_jpeg_pixels **out);

/* NULL is allowed. */
void tsi_jpeg_pixels_destroy(struct tsi_jpeg_pixels *p);

/*
 * Can frames like this one be decoded?  Each component's sampling factors must
 * be the greatest ones or half of them; quantisers don't matter.
 */
bool tsi_jpeg_pixels_can(const struct tsi_jpeg_frame *f);

/*
 * The MCUs whose coefficients the pixels of a rectangle depend on: those that
 * it touches, and their neighbours where chroma is interpolated over the edge.
 * The rectangle lies inside the image and isn't empty.
 */
void tsi_jpeg_pixels_area(const struct tsi_jpeg_frame *f,
			  const struct tsi_rect *rect, unsigned fast,
			  struct tsi_jpeg_area *area);

/* Bytes of memory that begin takes for a frame at most. */
uint64_t tsi_jpeg_pixels_need(const struct tsi_jpeg_frame *f);

/* Can strips be in planes? */
bool tsi_jpeg_pixels_has_planes(const struct tsi_jpeg_pixels *p);

/*
 * Begin with a rectangle, whatever became of the last one.  The frame is one
 * that tsi_jpeg_pixels_can() accepts, and is copied.  planes: strips are to be
 * in planes, only if they can be.  Fails with TSOCK_ENOMEM.
 */
int tsi_jpeg_pixels_begin(struct tsi_jpeg_pixels *p,
			  const struct tsi_jpeg_frame *f,
			  const struct tsi_rect *rect, unsigned fast,
			  bool planes);

/*
 * The next row of MCUs of the area, from its first one on: row `row` of b, in
 * which MCU row b->area.top + row of the image lies.  b may have more columns
 * and rows than the area.  last[] may be too great, never too small.  The
 * blocks are done with when this returns.  To be called when read has nothing
 * more to give: a second push without reading loses rows.
 */
void tsi_jpeg_pixels_push(struct tsi_jpeg_pixels *p,
			  const struct tsi_jpeg_blocks *b, uint32_t row);

/*
 * The rectangle's next rows, all of its columns, at most TSI_STRIP_ROWS of
 * them; false if there are none before another push.  Strips are as decoder.h
 * has them.
 */
bool tsi_jpeg_pixels_read(struct tsi_jpeg_pixels *p, struct tsi_strip *strip);

#endif
