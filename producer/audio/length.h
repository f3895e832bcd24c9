/* SPDX-License-Identifier: MIT */
/*
 * length.h - how many frames a file has for samples, and whether it is too long
 * to be one.
 */
#ifndef TSI_AUDIO_LENGTH_H
#define TSI_AUDIO_LENGTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audio/load.h"

/* Is a file of this rate resampled? */
bool tsi_audio_length_differs(const struct tsi_audio_opts *o, uint32_t rate);

/* Frames as samples count them: those that libsoxr makes, which it rounds so. */
uint64_t tsi_audio_length(const struct tsi_audio_opts *o, uint32_t rate,
			  uint64_t frames);

/* Fails with EDATA: samples are whole, and the file is too long or empty. */
int tsi_audio_length_check(const struct tsi_audio_opts *o, uint32_t rate,
			   uint64_t frames);

/*
 * Likewise by a WAV or FLAC file's first bytes, as far as they say it, for the
 * sniffing of data/format.h.  o->rate is that of samples, or 0.
 */
int tsi_audio_length_sniff(const struct tsi_audio_opts *o, const void *data,
			   size_t len);

#endif
