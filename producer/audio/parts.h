/* SPDX-License-Identifier: MIT */
/*
 * parts.h - which bytes of a file samples need: its head, and ranges behind it.
 */
#ifndef TSI_AUDIO_PARTS_H
#define TSI_AUDIO_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "audio/load.h"

/* Ascending, without overlaps; the first one begins with the file. */
struct tsi_audio_parts {
	unsigned n;
	struct tsi_audio_part part[TSI_AUDIO_VIEWS + 1];
};

/* The head alone, so many bytes. */
struct tsi_audio_parts tsi_audio_parts_of(size_t head);

/* And these, up to TSI_AUDIO_VIEWS times: parts that are near become one. */
void tsi_audio_parts_add(struct tsi_audio_parts *p, uint64_t at, size_t len);

/* The bytes of all of them. */
uint64_t tsi_audio_parts_bytes(const struct tsi_audio_parts *p);

/* Those behind a head of so many bytes; how many. */
unsigned tsi_audio_parts_behind(const struct tsi_audio_parts *p, size_t head,
				struct tsi_audio_part *to);

/*
 * Where the file's byte at, which is in one of them, lies, if data has one part
 * behind the other.
 */
const uint8_t *tsi_audio_parts_find(const struct tsi_audio_parts *p,
				    const uint8_t *data, uint64_t at);

#endif
