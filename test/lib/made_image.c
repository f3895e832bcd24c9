/* SPDX-License-Identifier: MIT */
/*
 * made_image.c - small image files by hand.
 */
#include "test/lib/made_image.h"

void made_image_8(struct made *m, unsigned v)
{
	if (m->len < sizeof(m->bytes))
		m->bytes[m->len++] = (uint8_t)v;
}

void made_image_16(struct made *m, unsigned v)
{
	made_image_8(m, v >> 8 & 255);
	made_image_8(m, v & 255);
}

void made_image_32(struct made *m, uint32_t v)
{
	made_image_16(m, v >> 16);
	made_image_16(m, v & 0xffff);
}

static unsigned made_image_noise(struct made *m)
{
	m->noise = m->noise * 1664525u + 1013904223u;
	return m->noise >> 24;
}

/* A table of 8 symbols with codes of 3 bits, one of them spare. */
static void made_image_huffman(struct made *m, unsigned id,
			       const uint8_t symbol[7])
{
	made_image_16(m, 0xffc4);
	made_image_16(m, 2 + 1 + 16 + 7);
	made_image_8(m, id);
	for (unsigned i = 1; i <= 16; i++)
		made_image_8(m, i == 3 ? 7 : 0);
	for (unsigned i = 0; i < 7; i++)
		made_image_8(m, symbol[i]);
}

static void made_image_tables(struct made *m)
{
	static const uint8_t dc[7] = { 0, 1, 2, 3, 4, 5, 6 };
	static const uint8_t ac[7] = { 0, 1, 2, 0x11, 0xf0, 0x21, 0x12 };

	made_image_16(m, 0xffdb);
	made_image_16(m, 2 + 65);
	made_image_8(m, 0);
	for (unsigned i = 0; i < 64; i++)
		made_image_8(m, 1 + i / 2);
	made_image_huffman(m, 0x00, dc);
	made_image_huffman(m, 0x10, ac);
}

static void made_image_frame(struct made *m, const struct made_image_jpeg *j)
{
	made_image_16(m, 0xff00 | j->sof);
	made_image_16(m, 8 + 3 * j->parts);
	made_image_8(m, 8);
	made_image_16(m, j->height);
	made_image_16(m, j->width);
	made_image_8(m, j->parts);
	for (unsigned i = 0; i < j->parts; i++) {
		made_image_8(m, i + 1);
		made_image_8(m, i ? 0x11 : j->sampling);
		made_image_8(m, 0);
	}
	if (j->restart) {
		made_image_16(m, 0xffdd);
		made_image_16(m, 4);
		made_image_16(m, j->restart);
	}
}

/* Components first .. first+n-1, coefficients ss..se, bits ah and al. */
static void made_image_scan(struct made *m, const struct made_image_jpeg *j,
			    unsigned first, unsigned n, unsigned ss,
			    unsigned se, unsigned ahl)
{
	made_image_16(m, 0xffda);
	made_image_16(m, 6 + 2 * n);
	made_image_8(m, n);
	for (unsigned i = 0; i < n; i++) {
		made_image_8(m, first + i + 1);
		made_image_8(m, 0);
	}
	made_image_8(m, ss);
	made_image_8(m, se);
	made_image_8(m, ahl);
	for (unsigned i = 0; i < j->data; i++) {
		unsigned v = made_image_noise(m);

		made_image_8(m, v == 255 ? 254 : v);
	}
}

void made_image_jpeg(struct made *m, const struct made_image_jpeg *j)
{
	m->len = 0;
	m->noise = j->width * 31 + j->sof;
	made_image_16(m, 0xffd8);
	made_image_tables(m);
	made_image_frame(m, j);
	if (j->sof == 0xc2 || j->sof == 0xca) {
		for (unsigned k = 0; k < j->scans; k++) {
			unsigned low = k ? 0 : 1;

			/* All but the first refine. */
			made_image_scan(m, j, 0, j->parts, 0, 0,
					k ? 0x10 : low);
			for (unsigned i = 0; i < j->parts; i++)
				made_image_scan(m, j, i, 1, 1, 63,
						k ? 0x10 : low);
		}
	} else if (j->scans > 1) {
		for (unsigned i = 0; i < j->parts; i++)
			made_image_scan(m, j, i, 1, 0, 63, 0);
	} else {
		made_image_scan(m, j, 0, j->parts, 0, 63, 0);
	}
	made_image_16(m, 0xffd9);
}

static uint32_t made_image_crc(const uint8_t *p, size_t len)
{
	uint32_t crc = ~0u;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

size_t made_image_chunk(struct made *m, const char *type, uint32_t len)
{
	made_image_32(m, len);
	for (unsigned i = 0; i < 4; i++)
		made_image_8(m, (uint8_t)type[i]);
	return m->len;
}

void made_image_chunk_end(struct made *m, size_t at)
{
	made_image_32(m, made_image_crc(m->bytes + at - 4, m->len - at + 4));
}

void made_image_png(struct made *m, unsigned width, unsigned height,
		    unsigned type, unsigned depth, unsigned interlaced)
{
	static const unsigned channels[7] = { 1, 0, 3, 1, 2, 0, 4 };
	unsigned row = (width * channels[type] * depth + 7) / 8 + 1;
	unsigned raw = row * height;
	uint32_t a = 1, b = 0;
	size_t at;

	m->len = 0;
	m->noise = width * 7 + type;
	made_image_32(m, 0x89504e47);
	made_image_32(m, 0x0d0a1a0a);
	at = made_image_chunk(m, "IHDR", 13);
	made_image_32(m, width);
	made_image_32(m, height);
	made_image_8(m, depth);
	made_image_8(m, type);
	made_image_8(m, 0);
	made_image_8(m, 0);
	made_image_8(m, interlaced);
	made_image_chunk_end(m, at);
	if (type == 3) {
		at = made_image_chunk(m, "PLTE", 12);
		for (unsigned i = 0; i < 12; i++)
			made_image_8(m, made_image_noise(m));
		made_image_chunk_end(m, at);
	}
	at = made_image_chunk(m, "IDAT", raw + 11);
	made_image_16(m, 0x7801);
	made_image_8(m, 1);
	made_image_8(m, raw & 255);
	made_image_8(m, raw >> 8);
	made_image_8(m, ~raw & 255);
	made_image_8(m, ~raw >> 8 & 255);
	for (unsigned i = 0; i < raw; i++) {
		unsigned v = i % row ? made_image_noise(m) & 3 : i / row % 5;

		made_image_8(m, v);
		a = (a + v) % 65521;
		b = (b + a) % 65521;
	}
	made_image_32(m, b << 16 | a);
	made_image_chunk_end(m, at);
	at = made_image_chunk(m, "IEND", 0);
	made_image_chunk_end(m, at);
}
