/* SPDX-License-Identifier: MIT */
/*
 * finished.h - the epochs that this process has read to their end, so that its
 * later handles aren't given them again.
 *
 * A handle keeps what it has read to itself as long as it is open, and leaves
 * it to the process when it closes.  Any thread; a forked child has read
 * nothing.
 */
#ifndef TSI_CONSUMER_FINISHED_H
#define TSI_CONSUMER_FINISHED_H

#include <stdint.h>

/* How far, and whose: all zeros is nothing. */
struct tsi_finished {
	uint64_t end;     /* of the epoch that was read to its end */
	uint64_t lineage; /* of the stream, then */
};

/*
 * A stream is a number: of its place, name and identity, and of the rank that
 * reads it here.  What is returned is how far handles have read that are closed
 * by now.
 */
struct tsi_finished tsi_finished_read(uint64_t stream);

/*
 * A handle closes that has read so far: in one lineage the furthest counts, of
 * several the last.  Where there are too many streams, that of the
 * one whose handle closed the longest ago is forgotten.
 */
void tsi_finished_note(uint64_t stream, struct tsi_finished f);

/* The process goes on in the epoch that begins there: what lies behind that
 * isn't read yet. */
void tsi_finished_go_back(uint64_t stream, uint64_t start);

#endif
