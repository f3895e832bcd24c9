/* SPDX-License-Identifier: MIT */
/*
 * length.c - how many frames a file has for samples.
 */
#include "audio/length.h"

#include <inttypes.h>
#include <string.h>

#include "audio/wav.h"
#include "base/err.h"

/*
 * For a look at a head: a file so large that one whose head has no length, which
 * is as long as its file, has more frames than any may.
 */
#define ANY ((uint64_t)1 << 56)

bool tsi_audio_length_differs(const struct tsi_audio_opts *o, uint32_t rate)
{
	return o->resamples && rate != o->rate;
}

uint64_t tsi_audio_length(const struct tsi_audio_opts *o, uint32_t rate,
			  uint64_t frames)
{
	if (!tsi_audio_length_differs(o, rate))
		return frames;
	return (uint64_t)((double)frames / ((double)rate / (double)o->rate) +
			  .5);
}

int tsi_audio_length_check(const struct tsi_audio_opts *o, uint32_t rate,
			   uint64_t frames)
{
	uint64_t n = tsi_audio_length(o, rate, frames);

	if (o->clips != TSI_AUDIO_CROP && !n)
		return tsi_err(TSOCK_EDATA, "it has no frames");
	if (o->clips != TSI_AUDIO_WHOLE || n <= o->frames)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "it has %" PRIu64
		       " frames, and samples have %u at most: "
		       "give --schema as many, or --clips cut for a crop of it",
		       n, o->frames);
}

/* ---- by a file's first bytes ---- */

/* False: the head doesn't say, or isn't there. */
static bool read_wav(const uint8_t *p, size_t len, uint32_t *rate,
		     uint64_t *frames)
{
	struct tsi_wav w;

	if (tsi_wav_head(p, len, ANY, &w) || w.coding)
		return false;
	*rate = w.rate;
	*frames = w.frames;
	return true;
}

/* STREAMINFO, which is the first block: 20 bits of rate, 36 of frames. */
static bool read_flac(const uint8_t *p, size_t len, uint32_t *rate,
		      uint64_t *frames)
{
	if (len < 26 || memcmp(p, "fLaC", 4) || p[4] & 0x7f)
		return false;
	*rate = (uint32_t)p[18] << 12 | (uint32_t)p[19] << 4 | p[20] >> 4;
	*frames = (uint64_t)(p[21] & 15) << 32 | (uint64_t)p[22] << 24 |
		  (uint64_t)p[23] << 16 | (uint64_t)p[24] << 8 | p[25];
	return *rate && *frames;
}

int tsi_audio_length_sniff(const struct tsi_audio_opts *o, const void *data,
			   size_t len)
{
	uint64_t frames;
	uint32_t rate;

	if (o->clips != TSI_AUDIO_WHOLE ||
	    !(tsi_wav_claims(data, len) ? read_wav : read_flac)(data, len,
								&rate, &frames))
		return 0;
	return tsi_audio_length_check(o, rate, frames);
}
