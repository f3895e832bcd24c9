/* SPDX-License-Identifier: MIT */
/*
 * source.c - the frames of an audio file of any format.
 */
#include "audio/source.h"

#include <inttypes.h>

#include "audio/parts.h"
#include "base/err.h"

static int open_by(struct tsi_audio_source *s, struct tsi_sndfile *lib,
		   const void *data, size_t len)
{
	struct tsi_sndfile_head h;
	int err = tsi_sndfile_open(lib, data, len, &h);

	if (err)
		return err;
	*s = (struct tsi_audio_source){ .rate = h.rate,
					.channels = h.channels,
					.frames = h.frames,
					.by = lib };
	return 0;
}

static struct tsi_audio_source of_wav(const struct tsi_wav *w, const void *data)
{
	return (struct tsi_audio_source){ .rate = w->rate,
					  .channels = w->channels,
					  .frames = w->frames,
					  .wav = *w,
					  .data = data };
}

int tsi_audio_source_head(struct tsi_audio_source *s, const void *head,
			  size_t len, uint64_t size)
{
	struct tsi_wav w;
	bool claims = tsi_wav_claims(head, len);
	int err = claims ? tsi_wav_head(head, len, size, &w) : 0;

	if (!claims || err || w.coding)
		return TSOCK_EDATA;
	*s = of_wav(&w, NULL);
	return 0;
}

uint64_t tsi_audio_source_place(const struct tsi_audio_source *s,
				uint64_t frame)
{
	return tsi_wav_frame(&s->wav, frame);
}

bool tsi_audio_source_has(const struct tsi_audio_source *s, uint64_t frames)
{
	return frames <= s->wav.there;
}

void tsi_audio_source_parts(struct tsi_audio_source *s, const void *data,
			    const struct tsi_audio_parts *parts)
{
	s->data = data;
	s->parts = parts;
}

int tsi_audio_source_open(struct tsi_audio_source *s, struct tsi_sndfile *lib,
			  const void *data, size_t len)
{
	struct tsi_wav w;
	int err;

	if (!tsi_wav_claims(data, len))
		return open_by(s, lib, data, len);
	err = tsi_wav_head(data, len, len, &w);
	if (err)
		return err;
	if (w.coding)
		return open_by(s, lib, data, len);
	*s = of_wav(&w, data);
	return 0;
}

void tsi_audio_source_close(struct tsi_audio_source *s)
{
	if (s->by)
		tsi_sndfile_close(s->by);
}

static int ends(const struct tsi_audio_source *s, uint64_t there)
{
	return tsi_err(TSOCK_EDATA,
		       "truncated audio file: %" PRIu64 " of %" PRIu64
		       " frames are there",
		       there, s->frames);
}

/* Where the bytes of a WAV file's frame are. */
static const uint8_t *bytes_of(const struct tsi_audio_source *s, uint64_t frame)
{
	uint64_t at = tsi_wav_frame(&s->wav, frame);

	return s->parts ? tsi_audio_parts_find(s->parts, s->data, at)
			: s->data + at;
}

int tsi_audio_source_read(struct tsi_audio_source *s, uint64_t at, size_t n,
			  float *to)
{
	size_t got;
	int err = 0;

	if (!s->by) {
		if (at + n > s->wav.there)
			return ends(s, s->wav.there);
		tsi_wav_read(&s->wav, bytes_of(s, at), n, to);
		return 0;
	}
	if (s->at != at)
		err = tsi_sndfile_seek(s->by, at);
	if (err)
		return err;
	got = tsi_sndfile_read(s->by, n, to);
	s->at = at + got;
	return got == n ? 0 : ends(s, s->at);
}

bool tsi_audio_source_whole(const struct tsi_audio_source *s)
{
	return s->by || s->wav.there == s->frames;
}

uint64_t tsi_audio_source_there(struct tsi_audio_source *s, size_t n,
				float *buffer)
{
	uint64_t there = 0;
	size_t got;

	if (!s->by)
		return s->wav.there;
	do {
		got = tsi_sndfile_read(s->by, n, buffer);
		there += got;
	} while (got == n);
	return there < s->frames ? there : s->frames;
}
