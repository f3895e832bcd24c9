/* SPDX-License-Identifier: MIT */
/*
 * lane_turns.h - the codes of several rows, in turns: run(), included by
 * each file that compiles it for a kind of processor.
 *
 * A lane's place is the number of a bit; each turn loads 64 bits from there, so
 * nothing is carried from one turn to the next but that number.  A turn has one
 * branch for each code: a block's end, a code that isn't in the look-up table,
 * and a coefficient too many all advance beyond the 63rd one.
 */
#ifndef TSI_JPEG_LANE_TURNS_H
#define TSI_JPEG_LANE_TURNS_H

#include <string.h>

#include "jpeg/lane.h"
#include "jpeg/zigzag.h"

#define INLINE static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Codes, one by one
 */

INLINE uint64_t be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

/* The 57 bits or more from this one on, uppermost first. */
INLINE uint64_t bits_at(const uint8_t *base, uint64_t at)
{
	return be64(base + (at >> 3)) << (at & 7);
}

/* size bits at the top of v, which is more than 0. */
static int magnitude(uint64_t v, unsigned size)
{
	int m = (int)(v >> (64 - size));

	return v >> 63 ? m : m - (1 << size) + 1;
}

/*
 * A code that the look-up table doesn't know, when k coefficients are there.
 * The new k, TSI_BLOCK_END added if the block has ended; -1: damage.
 */
static __attribute__((noinline)) int read_long(const uint8_t *base,
					       struct tsi_lane *l, int k)
{
	uint64_t v = bits_at(base, l->at);
	unsigned bits, size, next;
	int symbol = tsi_lookup_code(&l->ac->codes, v, &bits);

	if (symbol < 0)
		return -1;
	size = (unsigned)symbol & 15;
	if (!symbol) {
		l->at += bits;
		return k + TSI_BLOCK_END;
	}
	k += (symbol >> 4) + 1;
	if (k > 63 || size > TSI_AC_SIZE_MAX || (!size && symbol != 0xf0))
		return -1;
	l->at += bits + size;
	if (size)
		l->coef[tsi_jpeg_natural[k]] =
			(int16_t)magnitude(v << bits, size);
	else if (k == 63 || !tsi_lookup_code(&l->ac->codes, v << bits, &next))
		return -1;
	return k;
}

/* The DC coefficient of the next block. */
INLINE bool read_dc(const struct tsi_lanes *c, struct tsi_lane *l,
		    unsigned comp)
{
	const struct tsi_dc_table *t = &c->dc[c->dc_of[comp]];
	uint64_t v = bits_at(c->window[0].bytes, l->at);
	uint32_t entry = t->look[v >> (64 - TSI_DC_LOOK)];
	unsigned size = entry >> 16, total = entry & 0xff;
	int32_t dc = l->pred[comp];
	uint32_t sign;

	if (__builtin_expect(!total, 0)) {
		unsigned bits;
		int symbol = tsi_lookup_code(&t->codes, v, &bits);

		if (symbol < 0 || symbol > TSI_DC_SIZE_MAX)
			return false;
		size = (unsigned)symbol;
		total = bits + size;
	}
	v <<= total - size;
	/* No branch on the sign: nobody could foretell which way it goes. */
	sign = (uint32_t)(((int64_t)v >> 63) + 1);
	dc += (int32_t)((uint32_t)(v >> 1 >> (63 - size)) -
			((sign << size) - sign));
	l->at += total;
	l->pred[comp] = dc;
	l->dc = dc;
	return dc >= -2048 && dc <= 2047;
}

/* ------------------------------------------------------------------------
 * Turns
 */

/* By vectors: memset() would be a slow instruction here. */
INLINE void clear(int16_t *block)
{
	typedef int16_t v16 __attribute__((vector_size(32), may_alias));
	v16 *v = (v16 *)(void *)block;

	for (int i = 0; i < 4; i++)
		v[i] = (v16){ 0 };
}

INLINE bool begin_block(const struct tsi_lanes *c, struct tsi_lane *l)
{
	unsigned u = l->unit, comp = c->comp[u];

	l->coef = l->blocks.to[u];
	l->blocks.to[u] += (size_t)64 * l->blocks.step[u];
	clear(l->coef);
	l->ac = &c->ac[c->ac_of[comp]];
	l->k = 0;
	return read_dc(c, l, comp);
}

/*
 * k is beyond 62, or a code takes longer.  1: the lane is to be looked at; 0:
 * it goes on; -1: damage.
 */
INLINE int end_block(const struct tsi_lanes *c, struct tsi_lane *l, uint32_t k)
{
	unsigned u = l->unit;

	if (k >= TSI_LONG_CODE) {
		int now = read_long(c->window[0].bytes, l,
				    (int)k - TSI_LONG_CODE);

		if (now < 63 && now >= 0) {
			l->k = (uint32_t)now;
			return 0;
		}
		k = (uint32_t)now;
	}
	if (k >= TSI_BLOCK_END)
		k -= TSI_BLOCK_END;
	else if (k != 63)
		return -1;
	if (k > 63)
		return -1;
	l->coef[0] = (int16_t)l->dc;
	*l->blocks.last[u] = (uint8_t)k;
	l->blocks.last[u] += l->blocks.step[u];
	if (++u == c->units) {
		u = 0;
		l->mcus--;
	}
	l->unit = u;
	if (!u && (!l->mcus || l->at >= l->stop))
		return 1;
	return begin_block(c, l) ? 0 : -1;
}

INLINE int turn(const struct tsi_lanes *c, struct tsi_lane *l)
{
	const uint32_t *table = l->ac->look;
	uint64_t at = l->at, v = bits_at(c->window[0].bytes, at);
	int16_t *coef = l->coef;
	uint32_t k = l->k;

#pragma GCC unroll 3
	for (int i = 0; i < 3; i++) {
		uint32_t entry = table[v >> (64 - TSI_AC_LOOK)];
		unsigned total = entry & 0xff;
		uint32_t size = entry >> 16 & 0xff;
		uint32_t sign = (uint32_t)((int32_t)entry >> 31);
		uint32_t m = (uint32_t)(v >> (-total & 63)) ^ sign;

		m &= (uint32_t)(UINT64_C(1) << size) - 1;
		k += entry >> 8 & 0xff;
		v <<= total;
		at += total;
		coef[tsi_jpeg_natural[k]] = (int16_t)((m ^ sign) - sign);
		if (__builtin_expect(k >= 63, 0)) {
			l->at = at;
			return end_block(c, l, k);
		}
	}
	l->at = at;
	l->k = k;
	return 0;
}

/*
 * Turns until a lane is to be looked at, or is damaged: returns its number, or
 * -1 - its number.
 */
#define TURN(i) \
	do { \
		int r = turn(c, lane[i]); \
\
		if (__builtin_expect(r, 0)) \
			return r < 0 ? -1 - (i) : (i); \
	} while (0)

INLINE int turns(const struct tsi_lanes *c, struct tsi_lane **lane, int n)
{
	for (;;) {
		TURN(0);
		if (n > 1)
			TURN(1);
		if (n > 2)
			TURN(2);
		if (n > 3)
			TURN(3);
	}
}

INLINE int run(const struct tsi_lanes *c, struct tsi_lane **lane, int n)
{
	switch (n) {
	case 4:
		return turns(c, lane, 4);
	case 3:
		return turns(c, lane, 3);
	case 2:
		return turns(c, lane, 2);
	default:
		return turns(c, lane, 1);
	}
}

#endif
