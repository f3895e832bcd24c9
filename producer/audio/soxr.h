/* SPDX-License-Identifier: MIT */
/*
 * soxr.h - another sample rate, by libsoxr as its quality HQ has it.
 *
 * soxr_none.c stands in for soxr.c in a build without libsoxr.
 */
#ifndef TSI_AUDIO_SOXR_H
#define TSI_AUDIO_SOXR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tsi_soxr;

/* Was this built with libsoxr? */
bool tsi_soxr_is_there(void);

/*
 * From rate from to rate to, frames of this many channels.  Fails with ENOTSUP
 * (it isn't there), EDATA (no such rates), ENOMEM.
 */
int tsi_soxr_open(uint32_t from, uint32_t to, uint32_t channels,
		  struct tsi_soxr **out);

/* NULL is allowed. */
void tsi_soxr_close(struct tsi_soxr *s);

/*
 * Take *n frames, of which *n become those that were taken, and give up to room;
 * in NULL: there are no more.  Fails with ESYS.
 */
int tsi_soxr_run(struct tsi_soxr *s, const float *in, size_t *n, float *out,
		 size_t room, size_t *given);

#endif
