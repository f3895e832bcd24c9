/* SPDX-License-Identifier: MIT */
/*
 * wav.c - WAV files: what their head says, and their samples as float32.
 */
#include "audio/wav.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"

#define PCM 1
#define FLOATS 3
#define EXTENSIBLE 0xfffe

#define CHANNELS_MAX 1024
/* A program that wrote to a pipe couldn't know the length of its data. */
#define UNKNOWN 0x7ffff000u

/* Numbers that are converted at once, by vector code where there is some. */
#define LANES 8

typedef int16_t shorts __attribute__((vector_size(2 * LANES)));
typedef int32_t longs __attribute__((vector_size(4 * LANES)));
typedef float floats __attribute__((vector_size(4 * LANES)));

static uint16_t get16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

bool tsi_wav_claims(const uint8_t *data, size_t len)
{
	return len >= 12 &&
	       (!memcmp(data, "RIFF", 4) || !memcmp(data, "RF64", 4)) &&
	       !memcmp(data + 8, "WAVE", 4);
}

/* ---- the head ---- */

struct reader {
	const uint8_t *data;
	size_t len;
	uint64_t size;
	uint64_t large; /* bytes of the data chunk, as ds64 has it; 0: none */
	bool known;     /* what the numbers are */
	struct tsi_wav *to;
};

static int bad(const char *what)
{
	return tsi_err(TSOCK_EDATA, "bad WAV file: %s", what);
}

/* The bytes from at on, of a chunk that has them. */
static int need(const struct reader *r, uint64_t at, uint64_t bytes)
{
	if (at <= r->len && bytes <= r->len - at)
		return 0;
	if (r->len < r->size)
		return TSOCK_EAGAIN;
	return bad("it ends within its head");
}

/* The chunk "fmt ". */
static int read_format(struct reader *r, uint64_t at, uint32_t bytes)
{
	struct tsi_wav *w = r->to;
	const uint8_t *p = r->data + at;
	uint32_t tag, bits;
	int err;

	if (bytes < 16)
		return bad("its format has less than 16 bytes");
	err = need(r, at, bytes < 40 ? bytes : 40);
	if (err)
		return err;
	tag = get16(p);
	if (tag == EXTENSIBLE && bytes >= 40)
		tag = get16(p + 24);
	w->channels = get16(p + 2);
	w->rate = get32(p + 4);
	bits = get16(p + 14);
	if (!w->channels || w->channels > CHANNELS_MAX)
		return tsi_err(TSOCK_EDATA, "bad WAV file: it has %u channels",
			       w->channels);
	if (!w->rate)
		return bad("its sample rate is 0");
	if (!tag)
		return bad("its format is unknown (0)");
	r->known = true;
	if (tag != PCM && tag != FLOATS) {
		w->coding = (uint16_t)tag;
		return 0;
	}
	w->floats = tag == FLOATS;
	w->bytes = (bits + 7) / 8;
	if (w->floats ? w->bytes != 4 && w->bytes != 8
		      : w->bytes < 1 || w->bytes > 4)
		return tsi_err(TSOCK_EDATA,
			       "bad WAV file: it has %s of %u bits",
			       w->floats ? "floats" : "integers", bits);
	if (get16(p + 12) != w->channels * w->bytes)
		return tsi_err(TSOCK_EDATA,
			       "bad WAV file: %u channels of %u bits in %u "
			       "bytes",
			       w->channels, bits, get16(p + 12));
	return 0;
}

/* The chunk "data", which begins at. */
static int find_frames(struct reader *r, uint64_t at, uint32_t bytes)
{
	struct tsi_wav *w = r->to;
	uint64_t rest = r->size - at, all = bytes, frame;

	if (!r->known)
		return bad("its data come before their format");
	if (w->coding)
		return 0;
	if (bytes == UINT32_MAX && r->large)
		all = r->large;
	else if (bytes >= UNKNOWN || !bytes)
		all = rest;
	frame = (uint64_t)w->channels * w->bytes;
	w->at = at;
	w->frames = all / frame;
	w->there = (rest < all ? rest : all) / frame;
	if (w->frames > UINT32_MAX)
		return tsi_err(TSOCK_EDATA,
			       "bad WAV file: it says that it has %" PRIu64
			       " frames",
			       w->frames);
	return 0;
}

static int read_ds64(struct reader *r, uint64_t at, uint32_t bytes)
{
	int err;

	if (bytes < 16)
		return bad("its sizes of 64 bits are missing");
	err = need(r, at, 16);
	if (!err)
		r->large = get64(r->data + at + 8);
	return err;
}

int tsi_wav_head(const uint8_t *data, size_t len, uint64_t size,
		 struct tsi_wav *out)
{
	struct reader r = { .data = data, .len = len, .size = size, .to = out };
	uint64_t at = 12;

	memset(out, 0, sizeof(*out));
	for (;;) {
		uint32_t bytes;
		int err;

		if (at >= size)
			return bad("it has no data");
		err = need(&r, at, 8);
		if (err)
			return err;
		bytes = get32(data + at + 4);
		if (!memcmp(data + at, "data", 4))
			return find_frames(&r, at + 8, bytes);
		if (!memcmp(data + at, "fmt ", 4))
			err = read_format(&r, at + 8, bytes);
		else if (!memcmp(data + at, "ds64", 4))
			err = read_ds64(&r, at + 8, bytes);
		if (err)
			return err;
		/* Chunks begin at even offsets. */
		at += 8 + (uint64_t)bytes + (bytes & 1);
	}
}

/* ---- the numbers ---- */

static void put_bytes(const uint8_t *p, size_t n, float *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (float)(p[i] - 128) * 0x1p-7f;
}

static void put_shorts(const uint8_t *p, size_t n, float *to)
{
	size_t i = 0;

	for (; i + LANES <= n; i += LANES) {
		shorts s;
		floats f;

		memcpy(&s, p + 2 * i, sizeof(s));
		f = __builtin_convertvector(__builtin_convertvector(s, longs),
					    floats);
		f *= 0x1p-15f;
		memcpy(to + i, &f, sizeof(f));
	}
	for (; i < n; i++)
		to[i] = (float)(int16_t)get16(p + 2 * i) * 0x1p-15f;
}

static void put_three(const uint8_t *p, size_t n, float *to)
{
	for (size_t i = 0; i < n; i++, p += 3) {
		uint32_t high = (uint32_t)get16(p) << 8 | (uint32_t)p[2] << 24;

		to[i] = (float)(int32_t)high * 0x1p-31f;
	}
}

static void put_longs(const uint8_t *p, size_t n, float *to)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (float)(int32_t)get32(p + 4 * i) * 0x1p-31f;
}

static void put_floats(const uint8_t *p, size_t n, float *to)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t word = get32(p + 4 * i);

		memcpy(&to[i], &word, sizeof(word));
	}
}

static void put_doubles(const uint8_t *p, size_t n, float *to)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t word = get64(p + 8 * i);
		double d;

		memcpy(&d, &word, sizeof(d));
		to[i] = (float)d;
	}
}

uint64_t tsi_wav_frame(const struct tsi_wav *w, uint64_t i)
{
	return w->at + i * w->channels * w->bytes;
}

void tsi_wav_read(const struct tsi_wav *w, const uint8_t *from, size_t n,
		  float *to)
{
	size_t numbers = n * w->channels;

	switch (w->bytes) {
	case 1:
		put_bytes(from, numbers, to);
		break;
	case 2:
		put_shorts(from, numbers, to);
		break;
	case 3:
		put_three(from, numbers, to);
		break;
	case 4:
		(w->floats ? put_floats : put_longs)(from, numbers, to);
		break;
	default:
		put_doubles(from, numbers, to);
		break;
	}
}
