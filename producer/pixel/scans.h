/* SPDX-License-Identifier: MIT */
/*
 * scans.h - what the scans of a JPEG file cost, known before any is decoded.
 *
 * A progressive file may visit each of its blocks as often as it likes, with a
 * few bytes for a million blocks.  Its markers tell how often: they are walked
 * as a decoder meets them, in time linear in the bytes and with no clock, so
 * what is refused is refused everywhere.
 */
#ifndef TSI_PIXEL_SCANS_H
#define TSI_PIXEL_SCANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Scans may visit TSI_SCANS_FREE blocks, which is many times each in an image
 * of everyday size, and each block TSI_SCANS_EACH times more.  libjpeg's own
 * scripts visit a block 6 times at most, optimizers' hardly more.  Arithmetic
 * coding can spend ten times as long on a block, of next to no bytes, so there
 * the first is all: 130 million pixels by libjpeg's script.
 *
 * Measured: a visit costs 5 to 30 ns, by arithmetic coding up to 160, beside
 * 30 ns for each byte that it reads.  The slowest file of few bytes that
 * passes, 179 million pixels of four components, takes a core 3 s.
 */
#define TSI_SCANS_MAX 500
#define TSI_SCANS_EACH 8
#define TSI_SCANS_FREE ((uint64_t)16 << 20)

/* The components of a frame. */
struct tsi_scan_frame {
	unsigned n; /* at most 4 */
	bool arithmetic;
	uint8_t id[4];
	uint64_t blocks[4];
};

/* What its scans so far come to. */
struct tsi_scan_work {
	unsigned scans;
	uint64_t visits; /* of blocks */
};

bool tsi_scans_too_many(const struct tsi_scan_frame *f,
			const struct tsi_scan_work *w);

/*
 * Count the scans of a whole file, up to its end marker or its end, or until
 * they are too many.
 */
struct tsi_scan_work tsi_scans_count(const struct tsi_scan_frame *f,
				     const void *data, size_t len);

#endif
