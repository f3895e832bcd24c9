/* SPDX-License-Identifier: MIT */
/*
 * wide_avx512.c - the codes of sixteen pieces at once, with AVX-512: two
 * groups of eight lanes, so that one goes on while the other waits for its
 * tables.  Gathers of eight numbers are several times as fast as those of
 * sixteen where this was measured (Zen 4).
 */
#include "jpeg/x86/init.h"

#include <immintrin.h>

#include "jpeg/zigzag.h"

#define TARGET \
	__attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl," \
			      "avx512vbmi,avx512vbmi2,bmi,bmi2,lzcnt")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* ------------------------------------------------------------------------
 * Codes
 */

struct constants {
	__m256i swap;             /* the bytes of each number */
	__m256i mask_lo, mask_hi; /* of magnitudes of 0 to 7, 8 to 15 bits */
	__m256i c1, c7, c31, c32, c63, negative, end_of_block;
	__m256i ac, next_dc, units;
};

/* Eight lanes; see struct tsi_wide for what isn't described. */
struct group {
	__m256i at, place, unit, table, end, stop;
	__m256i bits, more;  /* the next ones, 32 and 32 */
	__m256i ac, next_dc; /* tables of the lane's unit */
	__m256i to, value;   /* coefficients that were read, but not written */
	__mmask8 dc;         /* the next code is a DC coefficient's */
	__mmask8 look_at, slow, damaged;
};

INLINE __m256i load8(const uint32_t *p)
{
	return _mm256_load_si256((const __m256i *)(const void *)p);
}

INLINE void store8(uint32_t *p, __m256i v)
{
	_mm256_store_si256((__m256i *)(void *)p, v);
}

INLINE void tables_of_unit(const struct constants *c, struct group *g)
{
	g->ac = _mm256_permutexvar_epi32(g->unit, c->ac);
	g->next_dc = _mm256_permutexvar_epi32(g->unit, c->next_dc);
}

INLINE void load_group(const struct tsi_wide *w, const struct constants *c,
		       struct group *g, int i)
{
	g->at = load8(w->at + i);
	g->place = load8(w->place + i);
	g->unit = load8(w->unit + i);
	g->table = load8(w->table + i);
	g->end = load8(w->end + i);
	g->stop = load8(w->stop + i);
	g->dc = _mm256_cmpeq_epi32_mask(_mm256_and_si256(g->place, c->c63),
					c->c63);
	/* Place 0 is nobody's. */
	g->to = _mm256_setzero_si256();
	g->value = _mm256_setzero_si256();
	tables_of_unit(c, g);
}

/* Two coefficients, each with its place in the upper half. */
INLINE void write_two(int16_t *coef, uint64_t v)
{
	coef[(uint16_t)(v >> 16)] = (int16_t)v;
	coef[v >> 48] = (int16_t)(v >> 32);
}

INLINE void write_group(int16_t *coef, const struct group *g)
{
	__m256i v = _mm256_mask_mov_epi16(_mm256_slli_epi32(g->to, 16), 0x5555,
					  g->value);
	__m128i lo = _mm256_castsi256_si128(v);
	__m128i hi = _mm256_extracti128_si256(v, 1);

	write_two(coef, (uint64_t)_mm_cvtsi128_si64(lo));
	write_two(coef, (uint64_t)_mm_extract_epi64(lo, 1));
	write_two(coef, (uint64_t)_mm_cvtsi128_si64(hi));
	write_two(coef, (uint64_t)_mm_extract_epi64(hi, 1));
}

INLINE void store_group(struct tsi_wide *w, const struct group *g, int i)
{
	write_group(w->coef, g);
	store8(w->at + i, g->at);
	store8(w->place + i, g->place);
	store8(w->unit + i, g->unit);
	store8(w->table + i, g->table);
}

/* 57 bits or more, which is enough for three codes of 19. */
INLINE void load_bits(const uint8_t *bytes, const struct constants *c,
		      struct group *g)
{
	__m256i byte = _mm256_srli_epi32(g->at, 3);
	__m256i bit = _mm256_and_si256(g->at, c->c7);
	__m256i hi = _mm256_i32gather_epi32((const int *)(const void *)bytes,
					    byte, 1);
	__m256i lo = _mm256_i32gather_epi32(
		(const int *)(const void *)(bytes + 4), byte, 1);

	hi = _mm256_shuffle_epi8(hi, c->swap);
	lo = _mm256_shuffle_epi8(lo, c->swap);
	g->bits = _mm256_shldv_epi32(hi, lo, bit);
	g->more = _mm256_sllv_epi32(lo, bit);
}

/* The entries of codes that look[] doesn't see whole. */
INLINE __m256i look_up_long(const struct tsi_wide_tables *t,
			    const struct group *g, __mmask8 slow, __m256i entry)
{
	__m256i table = _mm256_srli_epi32(g->table, TSI_WIDE_LOOK);
	__m256i first = _mm256_permutexvar_epi32(table, load8(t->long_first));
	__m256i count = _mm256_permutexvar_epi32(table, load8(t->long_count));
	__m256i at = _mm256_sub_epi32(
		_mm256_srli_epi32(g->bits, 32 - TSI_WIDE_LONG), first);
	__mmask8 has = _mm256_mask_cmplt_epu32_mask(slow, at, count);

	at = _mm256_add_epi32(
		at,
		_mm256_mullo_epi32(table, _mm256_set1_epi32(TSI_WIDE_LONGS)));
	return _mm256_mmask_i32gather_epi32(entry, has, at, t->longs, 2);
}

/* Slow lanes stay where they were. */
INLINE void hold_slow(const struct constants *c, struct group *g, __m256i table,
		      __m256i *place)
{
	g->dc &= (__mmask8)~g->slow;
	g->look_at &= (__mmask8)~g->slow;
	g->damaged &= (__mmask8)~g->slow;
	g->at = _mm256_mask_sub_epi32(g->at, g->slow, g->at, c->c31);
	g->table = _mm256_mask_mov_epi32(g->table, g->slow, table);
	*place = _mm256_mask_mov_epi32(*place, g->slow, g->place);
}

/*
 * A code of each lane.  False: a lane was found.  Coefficients are written in
 * the next step, when the table is being waited for: a gather doesn't begin
 * before the addresses of all earlier stores are known.
 */
INLINE bool step(struct tsi_wide *w, const struct constants *c, struct group *g)
{
	const __m256i table = g->table;
	__m256i entry, total, mask, value, to, place;
	__mmask8 ended;

	entry = _mm256_i32gather_epi32(
		(const int *)(const void *)w->tables.look,
		_mm256_add_epi32(_mm256_srli_epi32(g->bits, 32 - TSI_WIDE_LOOK),
				 table),
		2);
	write_group(w->coef, g);
	total = _mm256_and_si256(entry, c->c31);
	g->slow = _mm256_cmpeq_epi32_mask(total, c->c31);
	if (__builtin_expect(g->slow, 0)) {
		entry = look_up_long(&w->tables, g, g->slow, entry);
		total = _mm256_and_si256(entry, c->c31);
		g->slow = _mm256_cmpeq_epi32_mask(total, c->c31);
	}
	g->at = _mm256_add_epi32(g->at, total);
	/* A size has four bits, and more is not looked at. */
	mask = _mm256_permutex2var_epi32(
		c->mask_lo, _mm256_srli_epi32(entry, TSI_WIDE_SIZE_SHIFT),
		c->mask_hi);
	value = _mm256_and_si256(
		_mm256_srlv_epi32(g->bits, _mm256_sub_epi32(c->c32, total)),
		mask);
	g->value = _mm256_mask_sub_epi32(
		value, _mm256_test_epi32_mask(entry, c->negative), value, mask);
	g->bits = _mm256_shldv_epi32(g->bits, g->more, total);
	g->more = _mm256_sllv_epi32(g->more, total);
	to = _mm256_add_epi32(
		g->place,
		_mm256_and_si256(
			_mm256_srli_epi32(entry, TSI_WIDE_ADVANCE_SHIFT),
			c->c31));
	g->to = to;
	ended = _mm256_test_epi32_mask(entry, c->end_of_block);
	place = _mm256_mask_or_epi32(to, ended, to, c->c63);
	g->damaged = _mm256_mask_cmpgt_epu32_mask(
		(__mmask8)~g->dc, _mm256_xor_si256(place, g->place), c->c63);
	g->look_at = (__mmask8)(_mm256_cmpge_epu32_mask(place, g->end) |
				_mm256_cmpge_epu32_mask(g->at, g->stop));
	g->dc = ended |
		_mm256_cmpeq_epi32_mask(_mm256_and_si256(to, c->c63), c->c63);
	g->table = _mm256_mask_mov_epi32(g->ac, g->dc, g->next_dc);
	if (__builtin_expect(g->slow, 0))
		hold_slow(c, g, table, &place);
	g->unit = _mm256_mask_add_epi32(g->unit, g->dc, g->unit, c->c1);
	g->unit = _mm256_maskz_mov_epi32(
		_mm256_cmpneq_epi32_mask(g->unit, c->units), g->unit);
	tables_of_unit(c, g);
	g->place = place;
	return !(g->look_at | g->slow | g->damaged);
}

TARGET struct tsi_wide_found tsi_wide_run_avx512(struct tsi_wide *w)
{
	const __m128i swap = _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8,
					   15, 14, 13, 12);
	const struct constants c = {
		.swap = _mm256_broadcastsi128_si256(swap),
		.mask_lo = _mm256_setr_epi32(0, 1, 3, 7, 15, 31, 63, 127),
		.mask_hi = _mm256_setr_epi32(255, 511, 1023, 2047, 4095, 8191,
					     16383, 32767),
		.c1 = _mm256_set1_epi32(1),
		.c7 = _mm256_set1_epi32(7),
		.c31 = _mm256_set1_epi32(31),
		.c32 = _mm256_set1_epi32(32),
		.c63 = _mm256_set1_epi32(63),
		.negative = _mm256_set1_epi32(TSI_WIDE_NEGATIVE),
		.end_of_block = _mm256_set1_epi32(TSI_WIDE_END),
		.ac = load8(w->ac),
		.next_dc = load8(w->next_dc),
		.units = _mm256_set1_epi32((int)w->units),
	};
	const uint8_t *bytes = tsi_jpeg_window_bytes(w->window);
	struct group g, h;
	bool found = false;

	load_group(w, &c, &g, 0);
	load_group(w, &c, &h, 8);
	while (!found) {
		load_bits(bytes, &c, &g);
		load_bits(bytes, &c, &h);
#pragma GCC unroll 3
		for (int i = 0; i < 3 && !found; i++) {
			bool a = step(w, &c, &g), b = step(w, &c, &h);

			found = !(a & b);
		}
	}
	store_group(w, &g, 0);
	store_group(w, &h, 8);
	return (struct tsi_wide_found){
		.look_at = g.look_at | (uint32_t)h.look_at << 8,
		.slow = g.slow | (uint32_t)h.slow << 8,
		.damaged = g.damaged | (uint32_t)h.damaged << 8,
	};
}

/* ------------------------------------------------------------------------
 * Blocks
 */

/* One block; returns the position of its last coefficient. */
INLINE uint8_t settle_block(int16_t *zigzag, int16_t *natural,
			    const __m512i order[2])
{
	__m512i lo = _mm512_load_si512(zigzag);
	__m512i hi = _mm512_load_si512(zigzag + 32);
	uint64_t is = _cvtmask32_u32(_mm512_test_epi16_mask(lo, lo)) |
		      (uint64_t)_cvtmask32_u32(_mm512_test_epi16_mask(hi, hi))
			      << 32;

	_mm512_store_si512(natural,
			   _mm512_permutex2var_epi16(lo, order[0], hi));
	_mm512_store_si512(natural + 32,
			   _mm512_permutex2var_epi16(lo, order[1], hi));
	_mm512_store_si512(zigzag, _mm512_setzero_si512());
	_mm512_store_si512(zigzag + 32, _mm512_setzero_si512());
	return (uint8_t)(63 - __builtin_clzll(is | 1));
}

TARGET bool tsi_wide_settle_avx512(const struct tsi_wide *w,
				   struct tsi_wide_lane *l, int16_t *zigzag,
				   uint32_t mcus)
{
	const __m256i *z = (const __m256i *)(const void *)tsi_jpeg_zigzag_of;
	const __m512i order[2] = {
		_mm512_cvtepu8_epi16(_mm256_loadu_si256(z)),
		_mm512_cvtepu8_epi16(_mm256_loadu_si256(z + 1)),
	};
	uint32_t beyond = 0;

	for (; mcus; mcus--)
		for (unsigned u = 0; u < w->units; u++, zigzag += 64) {
			int32_t *dc = &l->pred[w->units_of[u].comp];

			*dc += zigzag[0];
			beyond |= (uint32_t)(*dc + 2048) >> 12;
			*l->blocks.last[u] =
				settle_block(zigzag, l->blocks.to[u], order);
			l->blocks.to[u][0] = (int16_t)*dc;
			l->blocks.to[u] += (size_t)64 * l->blocks.step[u];
			l->blocks.last[u] += l->blocks.step[u];
		}
	return !beyond;
}
