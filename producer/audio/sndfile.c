/* SPDX-License-Identifier: MIT */
/*
 * sndfile.c - what libsndfile reads.
 */
#include "audio/sndfile.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

struct tsi_sndfile {
	SNDFILE *file; /* NULL: none is open */
	const uint8_t *data;
	sf_count_t len, at;
};

static sf_count_t length(void *arg)
{
	return ((struct tsi_sndfile *)arg)->len;
}

static sf_count_t move(sf_count_t offset, int whence, void *arg)
{
	struct tsi_sndfile *s = arg;
	sf_count_t to = whence == SEEK_CUR   ? s->at + offset
			: whence == SEEK_END ? s->len + offset
					     : offset;

	if (to < 0 || to > s->len)
		return -1;
	s->at = to;
	return to;
}

static sf_count_t take(void *to, sf_count_t bytes, void *arg)
{
	struct tsi_sndfile *s = arg;

	if (bytes > s->len - s->at)
		bytes = s->len - s->at;
	if (bytes <= 0)
		return 0;
	memcpy(to, s->data + s->at, (size_t)bytes);
	s->at += bytes;
	return bytes;
}

static sf_count_t tell(void *arg)
{
	return ((struct tsi_sndfile *)arg)->at;
}

static SF_VIRTUAL_IO memory = {
	.get_filelen = length,
	.seek = move,
	.read = take,
	.tell = tell,
};

bool tsi_sndfile_is_there(void)
{
	return true;
}

int tsi_sndfile_create(struct tsi_sndfile **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for a decoder");
}

void tsi_sndfile_destroy(struct tsi_sndfile *s)
{
	if (!s)
		return;
	tsi_sndfile_close(s);
	free(s);
}

int tsi_sndfile_open(struct tsi_sndfile *s, const void *data, size_t len,
		     struct tsi_sndfile_head *out)
{
	SF_INFO info = { .format = 0 };

	s->data = data;
	s->len = (sf_count_t)len;
	s->at = 0;
	s->file = sf_open_virtual(&memory, SFM_READ, &info, s);
	if (!s->file)
		return tsi_err(TSOCK_EDATA, "libsndfile: %s",
			       sf_strerror(NULL));
	if (info.samplerate <= 0 || info.channels <= 0 || info.frames < 0 ||
	    info.frames > UINT32_MAX) {
		tsi_sndfile_close(s);
		return tsi_err(TSOCK_EDATA, "bad audio file: it says that it "
					    "has no rate or no length");
	}
	out->rate = (uint32_t)info.samplerate;
	out->channels = (uint32_t)info.channels;
	out->frames = (uint64_t)info.frames;
	return 0;
}

void tsi_sndfile_close(struct tsi_sndfile *s)
{
	if (s->file)
		sf_close(s->file);
	s->file = NULL;
}

int tsi_sndfile_seek(struct tsi_sndfile *s, uint64_t at)
{
	if (sf_seek(s->file, (sf_count_t)at, SEEK_SET) == (sf_count_t)at)
		return 0;
	return tsi_err(TSOCK_EDATA, "libsndfile: no frame %llu: %s",
		       (unsigned long long)at, sf_strerror(s->file));
}

size_t tsi_sndfile_read(struct tsi_sndfile *s, size_t n, float *to)
{
	sf_count_t got = sf_readf_float(s->file, to, (sf_count_t)n);

	return got < 0 ? 0 : (size_t)got;
}
