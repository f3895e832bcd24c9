/* SPDX-License-Identifier: MIT */
/*
 * made_image.h - small image files by hand: JPEGs of every process, sampling
 * and number of scans with noise for data, and PNGs with stored blocks.
 *
 * They are seeds: whether a decoder likes them is its own affair.
 */
#ifndef TEST_LIB_MADE_IMAGE_H
#define TEST_LIB_MADE_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct made {
	uint8_t bytes[65536];
	size_t len;
	uint32_t noise;
};

struct made_jpeg {
	unsigned sof; /* 0xc0, 0xc1, 0xc2, 0xc9, 0xca */
	unsigned width, height, parts;
	unsigned sampling; /* of the first component: 0x11, 0x21, 0x22, ... */
	unsigned scans;    /* progressive: how often all is scanned */
	unsigned data;     /* bytes of each scan */
	unsigned restart;
};

static inline void made_8(struct made *m, unsigned v)
{
	if (m->len < sizeof(m->bytes))
		m->bytes[m->len++] = (uint8_t)v;
}

static inline void made_16(struct made *m, unsigned v)
{
	made_8(m, v >> 8 & 255);
	made_8(m, v & 255);
}

static inline void made_32(struct made *m, uint32_t v)
{
	made_16(m, v >> 16);
	made_16(m, v & 0xffff);
}

static inline unsigned made_noise(struct made *m)
{
	m->noise = m->noise * 1664525u + 1013904223u;
	return m->noise >> 24;
}

/* A table of 8 symbols with codes of 3 bits, one of them spare. */
static inline void made_huffman(struct made *m, unsigned id,
				const uint8_t symbol[7])
{
	made_16(m, 0xffc4);
	made_16(m, 2 + 1 + 16 + 7);
	made_8(m, id);
	for (unsigned i = 1; i <= 16; i++)
		made_8(m, i == 3 ? 7 : 0);
	for (unsigned i = 0; i < 7; i++)
		made_8(m, symbol[i]);
}

static inline void made_tables(struct made *m)
{
	static const uint8_t dc[7] = { 0, 1, 2, 3, 4, 5, 6 };
	static const uint8_t ac[7] = { 0, 1, 2, 0x11, 0xf0, 0x21, 0x12 };

	made_16(m, 0xffdb);
	made_16(m, 2 + 65);
	made_8(m, 0);
	for (unsigned i = 0; i < 64; i++)
		made_8(m, 1 + i / 2);
	made_huffman(m, 0x00, dc);
	made_huffman(m, 0x10, ac);
}

static inline void made_frame(struct made *m, const struct made_jpeg *j)
{
	made_16(m, 0xff00 | j->sof);
	made_16(m, 8 + 3 * j->parts);
	made_8(m, 8);
	made_16(m, j->height);
	made_16(m, j->width);
	made_8(m, j->parts);
	for (unsigned i = 0; i < j->parts; i++) {
		made_8(m, i + 1);
		made_8(m, i ? 0x11 : j->sampling);
		made_8(m, 0);
	}
	if (j->restart) {
		made_16(m, 0xffdd);
		made_16(m, 4);
		made_16(m, j->restart);
	}
}

/* Components first .. first+n-1, coefficients ss..se, bits ah and al. */
static inline void made_scan(struct made *m, const struct made_jpeg *j,
			     unsigned first, unsigned n, unsigned ss,
			     unsigned se, unsigned ahl)
{
	made_16(m, 0xffda);
	made_16(m, 6 + 2 * n);
	made_8(m, n);
	for (unsigned i = 0; i < n; i++) {
		made_8(m, first + i + 1);
		made_8(m, 0);
	}
	made_8(m, ss);
	made_8(m, se);
	made_8(m, ahl);
	for (unsigned i = 0; i < j->data; i++) {
		unsigned v = made_noise(m);

		made_8(m, v == 255 ? 254 : v);
	}
}

static inline void made_jpeg(struct made *m, const struct made_jpeg *j)
{
	m->len = 0;
	m->noise = j->width * 31 + j->sof;
	made_16(m, 0xffd8);
	made_tables(m);
	made_frame(m, j);
	if (j->sof == 0xc2 || j->sof == 0xca) {
		for (unsigned k = 0; k < j->scans; k++) {
			unsigned low = k ? 0 : 1;

			/* All but the first refine. */
			made_scan(m, j, 0, j->parts, 0, 0, k ? 0x10 : low);
			for (unsigned i = 0; i < j->parts; i++)
				made_scan(m, j, i, 1, 1, 63, k ? 0x10 : low);
		}
	} else if (j->scans > 1) {
		for (unsigned i = 0; i < j->parts; i++)
			made_scan(m, j, i, 1, 0, 63, 0);
	} else {
		made_scan(m, j, 0, j->parts, 0, 63, 0);
	}
	made_16(m, 0xffd9);
}

static inline uint32_t made_crc(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static inline size_t made_chunk(struct made *m, const char *type, uint32_t len)
{
	made_32(m, len);
	for (unsigned i = 0; i < 4; i++)
		made_8(m, (uint8_t)type[i]);
	return m->len;
}

static inline void made_chunk_end(struct made *m, size_t at)
{
	made_32(m, made_crc(m->bytes + at - 4, m->len - at + 4));
}

/* At most 60000 bytes of rows; type and depth as in its header. */
static inline void made_png(struct made *m, unsigned width, unsigned height,
			    unsigned type, unsigned depth, unsigned interlaced)
{
	static const unsigned channels[7] = { 1, 0, 3, 1, 2, 0, 4 };
	unsigned row = (width * channels[type] * depth + 7) / 8 + 1;
	unsigned raw = row * height;
	uint32_t a = 1, b = 0;
	size_t at;

	m->len = 0;
	m->noise = width * 7 + type;
	made_32(m, 0x89504e47);
	made_32(m, 0x0d0a1a0a);
	at = made_chunk(m, "IHDR", 13);
	made_32(m, width);
	made_32(m, height);
	made_8(m, depth);
	made_8(m, type);
	made_8(m, 0);
	made_8(m, 0);
	made_8(m, interlaced);
	made_chunk_end(m, at);
	if (type == 3) {
		at = made_chunk(m, "PLTE", 12);
		for (unsigned i = 0; i < 12; i++)
			made_8(m, made_noise(m));
		made_chunk_end(m, at);
	}
	at = made_chunk(m, "IDAT", raw + 11);
	made_16(m, 0x7801);
	made_8(m, 1);
	made_8(m, raw & 255);
	made_8(m, raw >> 8);
	made_8(m, ~raw & 255);
	made_8(m, ~raw >> 8 & 255);
	for (unsigned i = 0; i < raw; i++) {
		unsigned v = i % row ? made_noise(m) & 3 : i / row % 5;

		made_8(m, v);
		a = (a + v) % 65521;
		b = (b + a) % 65521;
	}
	made_32(m, b << 16 | a);
	made_chunk_end(m, at);
	at = made_chunk(m, "IEND", 0);
	made_chunk_end(m, at);
}

#endif
