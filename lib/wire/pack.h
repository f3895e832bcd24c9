/* SPDX-License-Identifier: MIT */
/*
 * pack.h - one walk over a message that packs or unpacks it.
 *
 * A layout is written down once, as calls on a cursor.  The cursor knows
 * whether the calls write or read, so the two directions can't differ.  Numbers
 * are little-endian.  No byte outside the cursor's bounds is touched: the first
 * value that doesn't fit, or isn't allowed, sets why, and after that no call
 * does anything.
 */
#ifndef TSI_WIRE_PACK_H
#define TSI_WIRE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct tsi_pack {
	uint8_t *bytes; /* never written to when unpacking */
	bool packing;
	size_t at, end;
	const char *why; /* what is wrong; NULL: nothing so far */
};

static inline struct tsi_pack tsi_pack_to(uint8_t *bytes, size_t len)
{
	return (struct tsi_pack){ .bytes = bytes, .packing = true, .end = len };
}

static inline struct tsi_pack tsi_unpack_from(const uint8_t *bytes, size_t len)
{
	return (struct tsi_pack){ .bytes = (uint8_t *)(uintptr_t)bytes,
				  .end = len };
}

static inline void tsi_pack_bytes(struct tsi_pack *k, void *v, size_t len)
{
	if (k->why)
		return;
	if (len > k->end - k->at) {
		k->why = "it ends too early";
		return;
	}
	if (k->packing)
		memcpy(k->bytes + k->at, v, len);
	else
		memcpy(v, k->bytes + k->at, len);
	k->at += len;
}

static inline void tsi_pack_uint(struct tsi_pack *k, uint64_t *v,
				 unsigned width)
{
	uint8_t b[8] = { 0 };
	uint64_t got = 0;

	for (unsigned i = 0; i < width; i++)
		b[i] = (uint8_t)(*v >> 8 * i);
	tsi_pack_bytes(k, b, width);
	for (unsigned i = width; i-- > 0;)
		got = got << 8 | b[i];
	*v = got;
}

static inline void tsi_pack_u16(struct tsi_pack *k, uint16_t *v)
{
	uint64_t w = *v;

	tsi_pack_uint(k, &w, 2);
	*v = (uint16_t)w;
}

static inline void tsi_pack_u32(struct tsi_pack *k, uint32_t *v)
{
	uint64_t w = *v;

	tsi_pack_uint(k, &w, 4);
	*v = (uint32_t)w;
}

static inline void tsi_pack_u64(struct tsi_pack *k, uint64_t *v)
{
	tsi_pack_uint(k, v, 8);
}

/* An error code: negative, or 0 where a success may stand. */
static inline void tsi_pack_code(struct tsi_pack *k, int32_t *v, int32_t max)
{
	uint32_t w = (uint32_t)*v;

	tsi_pack_u32(k, &w);
	memcpy(v, &w, sizeof(w));
	if (*v > max && !k->why)
		k->why = "its error code isn't one";
}

/* A number of at most max; a larger one becomes max, so loops are safe. */
static inline void tsi_pack_count(struct tsi_pack *k, uint32_t *v, uint32_t max)
{
	tsi_pack_u32(k, v);
	if (*v <= max)
		return;
	*v = max;
	if (!k->why)
		k->why = "it counts more than there can be";
}

static inline void tsi_pack_f32(struct tsi_pack *k, float *v)
{
	uint32_t w;

	memcpy(&w, v, sizeof(w));
	tsi_pack_u32(k, &w);
	memcpy(v, &w, sizeof(w));
}

/*
 * Text in size bytes, NUL included; packing cuts a longer one.  The bytes after
 * the NUL are zero on the wire and when unpacked, so no stale memory travels.
 */
static inline void tsi_pack_text(struct tsi_pack *k, char *v, size_t size)
{
	size_t at = k->at;
	size_t len;

	if (k->why)
		return;
	tsi_pack_bytes(k, v, size);
	if (k->why) {
		v[0] = 0;
		return;
	}
	len = strnlen(v, size);
	if (len == size) {
		len = size - 1;
		if (!k->packing)
			k->why = "a text in it doesn't end";
	}
	memset(k->packing ? (char *)k->bytes + at + len : v + len, 0,
	       size - len);
}

#endif
