/* SPDX-License-Identifier: MIT */
/*
 * sniff.c - which files are audio, by their first bytes.
 */
#include "audio/load.h"

#include <string.h>

#include "audio/sndfile.h"
#include "audio/wav.h"
#include "base/err.h"

#define LARGEST ((uint64_t)1 << 30) /* bytes of a file */

/* A header of MPEG layer I to III, or the tag before one. */
static bool is_mpeg(const uint8_t *p, size_t len)
{
	return (len >= 3 && !memcmp(p, "ID3", 3)) ||
	       (len >= 2 && p[0] == 0xff && (p[1] & 0xe0) == 0xe0 &&
		(p[1] & 0x06));
}

static const char *kind_of(const uint8_t *p, size_t len)
{
	static const struct {
		char magic[5];
		const char *kind;
	} known[] = {
		{ "fLaC", "FLAC" }, { "OggS", "Ogg" }, { "FORM", "AIFF" },
		{ "RIFX", "RIFX" }, { ".snd", "AU" },  { "caff", "CAF" }
	};

	for (size_t k = 0; len >= 4 && k < sizeof(known) / sizeof(known[0]);
	     k++)
		if (!memcmp(p, known[k].magic, 4))
			return known[k].kind;
	return is_mpeg(p, len) ? "MP3" : NULL;
}

int tsi_audio_sniff(const void *data, size_t len, bool whole)
{
	struct tsi_wav w;
	const char *kind;
	int err = 0;

	if (tsi_wav_claims(data, len)) {
		/* The rest, whatever it is, isn't looked at. */
		err = tsi_wav_head(data, len, whole ? len : LARGEST, &w);
		if (err)
			return err;
		kind = w.coding ? "compressed WAV" : NULL;
	} else {
		kind = kind_of(data, len);
		if (!kind)
			return tsi_err(TSOCK_EDATA,
				       "it isn't WAV, FLAC, Ogg, MP3 or AIFF");
	}
	if (!kind || tsi_sndfile_is_there())
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "it is a %s file, and this tsock-producer was built "
		       "without libsndfile: install its headers and build it "
		       "again",
		       kind);
}

uint32_t tsi_audio_formats_read(void)
{
	return tsi_sndfile_is_there() ? 2 : 1;
}
