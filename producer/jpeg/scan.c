/* SPDX-License-Identifier: MIT */
/*
 * scan.c - the markers of a JPEG file up to its pixels' data.
 *
 * Anything out of the ordinary ends the walk.
 */
#include "jpeg/scan.h"

#include <string.h>

#include "jpeg/zigzag.h"

#define TABLES 4
#define EDGE_MAX 65500u /* libjpeg's */
#define RST0 0xd0
#define RST7 0xd7
#define EOI 0xd9

struct walk {
	struct tsi_jpeg_scan *out;
	const uint8_t *quant[TABLES]; /* 64 bytes, in zigzag order */
	struct tsi_jpeg_codes dc[TABLES];
	struct tsi_jpeg_codes ac[TABLES];
	uint8_t id[TSI_JPEG_COMPS];
	uint8_t quant_of[TSI_JPEG_COMPS];
	bool jfif;
	bool adobe;
	uint8_t transform; /* of the Adobe marker */
};

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

/* A DQT segment: tables of 8 bits, none of whose entries is 0. */
static bool read_quant(struct walk *w, const uint8_t *p, size_t n)
{
	for (; n >= 65; p += 65, n -= 65) {
		if (p[0] >= TABLES || memchr(p + 1, 0, 64))
			return false;
		w->quant[p[0]] = p + 1;
	}
	return n == 0;
}

/*
 * The codes fit into their lengths, and none is all ones: else libjpeg refuses
 * the table.
 */
static bool codes_fit(const uint8_t *count)
{
	uint32_t code = 0;

	for (unsigned bits = 1; bits <= 16; bits++) {
		code += count[bits - 1];
		if (count[bits - 1] && code >= UINT32_C(1) << bits)
			return false;
		code <<= 1;
	}
	return true;
}

/* A DHT segment. */
static bool read_codes(struct walk *w, const uint8_t *p, size_t n)
{
	while (n >= 17) {
		unsigned sum = 0, id = p[0] & 15;

		for (unsigned i = 1; i <= 16; i++)
			sum += p[i];
		if (p[0] >> 4 > 1 || id >= TABLES || !sum || sum > 256 ||
		    sum > n - 17 || !codes_fit(p + 1))
			return false;
		*(p[0] >> 4 ? &w->ac[id] : &w->dc[id]) =
			(struct tsi_jpeg_codes){ p + 1, p + 17 };
		/* libjpeg refuses other categories where a table is used. */
		for (unsigned i = 0; !(p[0] >> 4) && i < sum; i++)
			if (p[17 + i] > 15)
				return false;
		p += 17 + sum;
		n -= 17 + sum;
	}
	return n == 0;
}

static void read_app(struct walk *w, unsigned marker, const uint8_t *p,
		     size_t n)
{
	if (marker == 0xe0 && n >= 14 && !memcmp(p, "JFIF", 5))
		w->jfif = true;
	if (marker == 0xee && n >= 12 && !memcmp(p, "Adobe", 5)) {
		w->adobe = true;
		w->transform = p[11];
	}
}

/* A frame header.  Sampling: h and v of each component. */
static bool read_frame(struct walk *w, const uint8_t *p, size_t n)
{
	struct tsi_jpeg_frame *f = &w->out->frame;

	if (f->comps || n < 6 || n != 6 + 3 * (size_t)p[5] || p[0] != 8)
		return false;
	f->height = be16(p + 1);
	f->width = be16(p + 3);
	f->comps = p[5];
	if ((f->comps != 1 && f->comps != 3) || !f->width || !f->height ||
	    f->width > EDGE_MAX || f->height > EDGE_MAX)
		return false;
	for (unsigned i = 0; i < f->comps; i++) {
		const uint8_t *q = p + 6 + 3 * i;
		struct tsi_jpeg_comp *c = &f->comp[i];

		w->id[i] = q[0];
		c->h = q[1] >> 4;
		c->v = q[1] & 15;
		w->quant_of[i] = q[2];
		if (!c->h || c->h > 4 || !c->v || c->v > 4 || q[2] >= TABLES)
			return false;
		for (unsigned k = 0; k < i; k++)
			if (w->id[k] == q[0])
				return false;
	}
	return true;
}

/* A lone component has blocks in rows, whatever its factors are. */
static bool divide(struct tsi_jpeg_scan *s)
{
	struct tsi_jpeg_frame *f = &s->frame;
	struct tsi_jpeg_comp *c = f->comp;

	s->together = 1;
	if (f->comps == 1) {
		s->together = c[0].v;
		c[0].h = 1;
		c[0].v = 1;
	} else if (c[0].h > 2 || c[0].v > 2 || c[1].h * c[1].v != 1 ||
		   c[2].h * c[2].v != 1) {
		return false;
	}
	f->h_max = c[0].h;
	f->v_max = c[0].v;
	f->mcus_across = (f->width + 8u * f->h_max - 1) / (8u * f->h_max);
	f->mcus_down = (f->height + 8u * f->v_max - 1) / (8u * f->v_max);
	return true;
}

static enum tsi_jpeg_color color_of(const struct walk *w)
{
	if (w->out->frame.comps == 1)
		return TSI_JPEG_GRAY;
	if (w->jfif)
		return TSI_JPEG_YCC;
	if (w->adobe)
		return w->transform ? TSI_JPEG_YCC : TSI_JPEG_RGB;
	return memcmp(w->id, "RGB", 3) ? TSI_JPEG_YCC : TSI_JPEG_RGB;
}

/* A scan header: all components, in the frame's order, all coefficients. */
static bool read_scan(struct walk *w, const uint8_t *p, size_t n)
{
	struct tsi_jpeg_scan *s = w->out;
	struct tsi_jpeg_frame *f = &s->frame;

	if (!f->comps || n != 4 + 2 * (size_t)f->comps || p[0] != f->comps ||
	    !divide(s) || memcmp(p + n - 3, "\0\77", 3))
		return false;
	for (unsigned i = 0; i < f->comps; i++) {
		const uint8_t *q = p + 1 + 2 * i;
		const uint8_t *quant = w->quant[w->quant_of[i]];
		unsigned dc = q[1] >> 4, ac = q[1] & 15;

		if (q[0] != w->id[i] || dc >= TABLES || ac >= TABLES ||
		    !w->dc[dc].count || !w->ac[ac].count || !quant)
			return false;
		s->dc[i] = w->dc[dc];
		s->ac[i] = w->ac[ac];
		for (unsigned k = 0; k < 64; k++)
			f->comp[i].quant[tsi_jpeg_natural[k]] = quant[k];
	}
	f->color = color_of(w);
	return true;
}

/* A segment before the scan's.  False: this isn't for us. */
static bool read_segment(struct walk *w, unsigned marker, const uint8_t *p,
			 size_t n)
{
	switch (marker) {
	case 0xc0: /* baseline */
	case 0xc1: /* extended, by Huffman */
		return read_frame(w, p, n);
	case 0xc4:
		return read_codes(w, p, n);
	case 0xdb:
		return read_quant(w, p, n);
	case 0xdd: /* restart interval */
		return n == 2 && !p[0] && !p[1];
	case 0xfe: /* comment */
		return true;
	default:
		read_app(w, marker, p, n);
		return marker >= 0xe0 && marker <= 0xef;
	}
}

bool tsi_jpeg_scan_read(const uint8_t *data, size_t len,
			struct tsi_jpeg_scan *out)
{
	struct walk w = { .out = out };
	size_t at = 2;

	memset(out, 0, sizeof(*out));
	if (len < 2 || len > TSI_JPEG_SCAN_BITS / 8 || data[0] != 0xff ||
	    data[1] != 0xd8)
		return false;
	for (;;) {
		unsigned marker;
		size_t n;

		if (at == len || data[at] != 0xff)
			return false;
		while (at < len && data[at] == 0xff)
			at++;
		if (len - at < 3)
			return false;
		marker = data[at++];
		n = be16(data + at);
		if (n < 2 || n > len - at)
			return false;
		out->data = at + n;
		if (marker == 0xda)
			return read_scan(&w, data + at + 2, n - 2);
		if (!read_segment(&w, marker, data + at + 2, n - 2))
			return false;
		at += n;
	}
}

size_t tsi_jpeg_scan_stray(const uint8_t *data, size_t len)
{
	const uint8_t *p = data, *end = data + len;

	while (p < end && (p = memchr(p, 0xff, (size_t)(end - p)))) {
		while (p < end && *p == 0xff)
			p++;
		if (p == end || *p == EOI)
			break;
		if (*p && (*p < RST0 || *p > RST7))
			return (size_t)(p - data);
	}
	return len;
}
