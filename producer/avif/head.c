/* SPDX-License-Identifier: MIT */
/*
 * head.c - the boxes at the beginning of an AVIF file: how large is the image?
 *
 * A file of one image has a box "meta", which says which item is the image and
 * which of the listed properties are that item's; one of these is its size
 * (ISO/IEC 23008-12).  A sequence has a box "moov" with a track, and the track's
 * header has the size (ISO/IEC 14496-12).  A file may have both: its brands say
 * which counts, and libavif chooses by the same rule.
 */
#include "avif/decoder.h"

#include <string.h>

#include "base/err.h"

/* Bytes of a file or of a box that are still to be read. */
struct span {
	const uint8_t *p;
	size_t len;
};

struct box {
	char type[5];
	struct span body;
};

static uint32_t be16(const uint8_t *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const uint8_t *p)
{
	return be16(p) << 16 | be16(p + 2);
}

/* The next box of some, which ends in these bytes; false: there is none. */
static bool next_box(struct span *s, struct box *out)
{
	uint64_t head = 8, size;

	if (s->len < head)
		return false;
	size = be32(s->p);
	if (size == 1) {
		head = 16;
		if (s->len < head)
			return false;
		size = (uint64_t)be32(s->p + 8) << 32 | be32(s->p + 12);
	} else if (!size) {
		size = s->len;
	}
	if (size < head || size > s->len)
		return false;
	memcpy(out->type, s->p + 4, 4);
	out->type[4] = '\0';
	out->body = (struct span){ s->p + head, (size_t)(size - head) };
	s->p += size;
	s->len -= (size_t)size;
	return true;
}

/* The first box of this type among those in a body, behind skip bytes. */
static bool find(struct span s, size_t skip, const char *type,
		 struct span *body)
{
	struct box b;

	if (s.len < skip)
		return false;
	s.p += skip;
	s.len -= skip;
	while (next_box(&s, &b)) {
		if (strcmp(b.type, type) != 0)
			continue;
		*body = b.body;
		return true;
	}
	return false;
}

/* ---- the item that is the image ---- */

/* Properties that an association can name: numbers of 15 bits, from 1. */
#define PROPERTIES 32768u

/* Which of the properties are sizes: a bit for each number. */
static void mark_sizes(struct span ipco, uint8_t *marked)
{
	struct box b;

	memset(marked, 0, PROPERTIES / 8);
	for (uint32_t k = 1; k < PROPERTIES && next_box(&ipco, &b); k++)
		if (!strcmp(b.type, "ispe") && b.body.len >= 12)
			marked[k / 8] |= (uint8_t)(1u << k % 8);
}

static bool is_marked(const uint8_t *marked, uint32_t k)
{
	return marked[k / 8] >> k % 8 & 1;
}

/* The first of an item's n associations, of one or two bytes, with a size. */
static uint32_t first_marked(const uint8_t *p, uint32_t n, size_t bytes,
			     const uint8_t *marked)
{
	for (; n; n--, p += bytes) {
		uint32_t k = bytes == 2 ? be16(p) & 0x7fff : p[0] & 0x7fu;

		if (is_marked(marked, k))
			return k;
	}
	return 0;
}

/* The property that a box "ipma" gives an item as its size; 0: none. */
static uint32_t size_in_ipma(struct span ipma, uint32_t item,
			     const uint8_t *marked)
{
	size_t at = 8, id_len, bytes;

	if (ipma.len < at)
		return 0;
	id_len = ipma.p[0] ? 4 : 2;
	bytes = ipma.p[3] & 1 ? 2 : 1;
	for (uint32_t i = be32(ipma.p + 4); i; i--) {
		const uint8_t *p = ipma.p + at;
		uint32_t n, k = 0;

		if (ipma.len - at <= id_len)
			return 0;
		n = p[id_len];
		at += id_len + 1;
		if (ipma.len - at < n * bytes)
			return 0;
		at += n * bytes;
		if ((id_len == 4 ? be32(p) : be16(p)) == item)
			k = first_marked(p + id_len + 1, n, bytes, marked);
		if (k)
			return k;
	}
	return 0;
}

/* The property of this number, which is a size. */
static void read_size(struct span ipco, uint32_t k, uint32_t *width,
		      uint32_t *height)
{
	struct box b;

	while (next_box(&ipco, &b))
		if (!--k) {
			*width = be32(b.body.p + 4);
			*height = be32(b.body.p + 8);
			return;
		}
}

static int size_of_meta(struct span meta, uint32_t *width, uint32_t *height)
{
	uint8_t marked[PROPERTIES / 8];
	struct span pitm, iprp, ipco;
	struct box b;
	uint32_t item, k = 0;

	if (!find(meta, 4, "pitm", &pitm) ||
	    pitm.len < (pitm.len && pitm.p[0] ? 8u : 6u))
		return tsi_err(TSOCK_EDATA, "bad AVIF: it names no image");
	item = pitm.p[0] ? be32(pitm.p + 4) : be16(pitm.p + 4);
	if (find(meta, 4, "iprp", &iprp) && find(iprp, 0, "ipco", &ipco)) {
		mark_sizes(ipco, marked);
		while (!k && next_box(&iprp, &b))
			if (!strcmp(b.type, "ipma"))
				k = size_in_ipma(b.body, item, marked);
	}
	if (!k)
		return tsi_err(TSOCK_EDATA, "bad AVIF: its image has no size");
	read_size(ipco, k, width, height);
	return 0;
}

/* ---- the track that is a sequence of images ---- */

static bool is_picture(struct span trak)
{
	struct span mdia, hdlr;

	return find(trak, 0, "mdia", &mdia) && find(mdia, 0, "hdlr", &hdlr) &&
	       hdlr.len >= 12 && !memcmp(hdlr.p + 8, "pict", 4);
}

static int size_of_moov(struct span moov, uint32_t *width, uint32_t *height)
{
	struct box b;
	struct span tkhd;

	while (next_box(&moov, &b)) {
		if (strcmp(b.type, "trak") != 0 || !is_picture(b.body) ||
		    !find(b.body, 0, "tkhd", &tkhd) || tkhd.len < 84 ||
		    tkhd.len < (tkhd.p[0] ? 96u : 84u))
			continue;
		/* Numbers with 16 bits behind the point, the last two. */
		*width = be16(tkhd.p + (tkhd.p[0] ? 88 : 76));
		*height = be16(tkhd.p + (tkhd.p[0] ? 92 : 80));
		return 0;
	}
	return tsi_err(TSOCK_EDATA, "bad AVIF: it has no track of images");
}

/* ---- the file ---- */

bool tsi_avif_claims(const uint8_t *data, size_t len)
{
	static const char brand[4][5] = { "avif", "avis", "mif1", "msf1" };

	if (len < 12 || memcmp(data + 4, "ftyp", 4) != 0)
		return false;
	for (unsigned i = 0; i < 4; i++)
		if (!memcmp(data + 8, brand[i], 4))
			return true;
	return false;
}

/* Is this brand the first of a box "ftyp", or one of the others? */
static bool has_brand(struct span ftyp, const char *brand)
{
	if (!memcmp(ftyp.p, brand, 4))
		return true;
	for (size_t at = 8; at + 4 <= ftyp.len; at += 4)
		if (!memcmp(ftyp.p + at, brand, 4))
			return true;
	return false;
}

/* The file's next box, whose end its first bytes say. */
static int file_box(struct span *file, struct box *out)
{
	uint32_t size = file->len >= 4 ? be32(file->p) : 8;

	if (size != 1 && size < 8)
		return tsi_err(TSOCK_EDATA, "bad AVIF: a box has the size %u",
			       size);
	return next_box(file, out) ? 0 : TSOCK_EAGAIN;
}

/* Is the image the first of a track? */
static int read_brands(struct span ftyp, bool *sequence)
{
	bool avif, avis;

	if (ftyp.len < 4)
		return tsi_err(TSOCK_EDATA, "bad AVIF: it has no brand");
	avif = has_brand(ftyp, "avif");
	avis = has_brand(ftyp, "avis");
	if (!avif && !avis)
		return tsi_err(TSOCK_EDATA,
			       "a HEIF image of another kind than AVIF, such "
			       "as HEIC; convert the images");
	*sequence = avis && memcmp(ftyp.p, "avif", 4) != 0;
	return 0;
}

int tsi_avif_head(const uint8_t *data, size_t len, uint32_t *width,
		  uint32_t *height)
{
	struct span file = { data, len };
	struct box b;
	bool sequence = false;
	int err = file_box(&file, &b);

	if (!err)
		err = read_brands(b.body, &sequence);
	while (!err) {
		err = file_box(&file, &b);
		if (err)
			break;
		if (!sequence && !strcmp(b.type, "meta"))
			return size_of_meta(b.body, width, height);
		if (sequence && !strcmp(b.type, "moov"))
			return size_of_moov(b.body, width, height);
	}
	return err;
}
