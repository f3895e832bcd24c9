/* SPDX-License-Identifier: MIT */
/*
 * length.h - how many frames a file has for samples, and whether it is too long
 * to be one.
 */
#ifndef TSI_AUDIO_LENGTH_H
#define TSI_AUDIO_LENGTH_H

#include <stdbool.h>
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

#endif
