/* SPDX-License-Identifier: MIT */
/*
 * avx512.c - the conversion to float planes with AVX-512 VBMI.
 *
 * VBMI looks 64 bytes up in 128 at once, so the definition's own table fits
 * into registers, split into one plane for each byte of an element: no
 * arithmetic at all.  Where all planes lie on cache lines, they are written
 * around the cache: a ring is larger than that, and a line that is overwritten
 * whole need not be read first.  The last pixels go by table.
 */
#include "convert/x86/init.h"

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi")))
#define INLINE_AVX512 AVX512 __attribute__((always_inline)) static inline

/* Pixels whose channels are done one after the other: they stay in L1. */
#define BLOCK 2048

/* One byte of all 256 elements. */
struct plane {
	__m512i part[4];
};

/* Where the 64 bytes of a channel are in 192. */
struct route {
	__m512i from_ab, from_d;
	__mmask64 in_d;
};

INLINE_AVX512 __m512i load(const uint8_t *p)
{
	return _mm512_loadu_si512((const void *)p);
}

INLINE_AVX512 void store(char *p, __m512i v, bool stream)
{
	if (stream)
		_mm512_stream_si512((void *)p, v);
	else
		_mm512_storeu_si512((void *)p, v);
}

INLINE_AVX512 struct plane plane_of(const uint8_t *bytes)
{
	struct plane p;

	for (size_t i = 0; i < 4; i++)
		p.part[i] = load(bytes + i * 64);
	return p;
}

/*
 * Unpacking works within 16-byte lanes.  For vectors of elements of width
 * bytes to come out in order, byte i of lane l must be pixel
 * i / run * (4 * run) + l * run + i % run, with run = 16 / width.
 */
AVX512 static void route_of(size_t ch, size_t width, struct route *out)
{
	uint8_t ab[64], d[64];
	struct route r = { .in_d = 0 };
	size_t run = 16 / width;

	for (size_t at = 0; at < 64; at++) {
		size_t l = at / 16, i = at % 16;
		size_t pixel = i / run * (4 * run) + l * run + i % run;
		size_t from = pixel * 3 + ch;

		ab[at] = (uint8_t)(from & 127);
		d[at] = (uint8_t)(from & 63);
		if (from >= 128)
			r.in_d |= (__mmask64)1 << at;
	}
	r.from_ab = load(ab);
	r.from_d = load(d);
	*out = r;
}

/* One channel of the 64 pixels at src. */
INLINE_AVX512 __m512i pick(const uint8_t *src, const struct route *r)
{
	__m512i v =
		_mm512_permutex2var_epi8(load(src), r->from_ab, load(src + 64));

	return _mm512_mask_permutexvar_epi8(v, r->in_d, r->from_d,
					    load(src + 128));
}

INLINE_AVX512 __m512i look_up(const struct plane *p, __m512i v, __mmask64 upper)
{
	__m512i a = _mm512_permutex2var_epi8(p->part[0], v, p->part[1]);
	__m512i b = _mm512_permutex2var_epi8(p->part[2], v, p->part[3]);

	return _mm512_mask_mov_epi8(a, upper, b);
}

INLINE_AVX512 void bytes2(const struct tsi_convert *c, const uint8_t *src,
			  size_t n, size_t ch, const struct route *r, char *dst,
			  bool stream)
{
	const struct plane p0 = plane_of(tsi_convert_plane(c, ch, 0));
	const struct plane p1 = plane_of(tsi_convert_plane(c, ch, 1));

	for (size_t i = 0; i < n; i += 64) {
		__m512i v = pick(src + i * 3, r);
		__mmask64 upper = _mm512_movepi8_mask(v);
		__m512i lo = look_up(&p0, v, upper);
		__m512i hi = look_up(&p1, v, upper);
		char *to = dst + i * 2;

		store(to, _mm512_unpacklo_epi8(lo, hi), stream);
		store(to + 64, _mm512_unpackhi_epi8(lo, hi), stream);
	}
}

INLINE_AVX512 void bytes4(const struct tsi_convert *c, const uint8_t *src,
			  size_t n, size_t ch, const struct route *r, char *dst,
			  bool stream)
{
	const struct plane p0 = plane_of(tsi_convert_plane(c, ch, 0));
	const struct plane p1 = plane_of(tsi_convert_plane(c, ch, 1));
	const struct plane p2 = plane_of(tsi_convert_plane(c, ch, 2));
	const struct plane p3 = plane_of(tsi_convert_plane(c, ch, 3));

	for (size_t i = 0; i < n; i += 64) {
		__m512i v = pick(src + i * 3, r);
		__mmask64 upper = _mm512_movepi8_mask(v);
		__m512i b0 = look_up(&p0, v, upper);
		__m512i b1 = look_up(&p1, v, upper);
		__m512i b2 = look_up(&p2, v, upper);
		__m512i b3 = look_up(&p3, v, upper);
		__m512i w0 = _mm512_unpacklo_epi8(b0, b1);
		__m512i w1 = _mm512_unpackhi_epi8(b0, b1);
		__m512i w2 = _mm512_unpacklo_epi8(b2, b3);
		__m512i w3 = _mm512_unpackhi_epi8(b2, b3);
		char *to = dst + i * 4;

		store(to, _mm512_unpacklo_epi16(w0, w2), stream);
		store(to + 64, _mm512_unpackhi_epi16(w0, w2), stream);
		store(to + 128, _mm512_unpacklo_epi16(w1, w3), stream);
		store(to + 192, _mm512_unpackhi_epi16(w1, w3), stream);
	}
}

INLINE_AVX512 void planes(const struct tsi_convert *c, const uint8_t *src,
			  size_t npixels, char *dst, bool stream)
{
	struct route r[3];
	size_t whole = npixels & ~(size_t)63;
	size_t width = tsi_convert_width(c);

	for (size_t ch = 0; ch < 3; ch++)
		route_of(ch, width, &r[ch]);
	for (size_t i = 0; i < whole; i += BLOCK) {
		size_t n = whole - i < BLOCK ? whole - i : BLOCK;
		const uint8_t *from = src + i * 3;

		for (size_t ch = 0; ch < 3; ch++) {
			char *to = dst + (ch * npixels + i) * width;

			if (width == 2)
				bytes2(c, from, n, ch, &r[ch], to, stream);
			else
				bytes4(c, from, n, ch, &r[ch], to, stream);
		}
	}
	tsi_scalar_rest(c, src, whole, npixels, dst);
}

AVX512 static void to_chw(const struct tsi_convert *c, const uint8_t *src,
			  size_t npixels, void *dst)
{
	if (((uintptr_t)dst | npixels * tsi_convert_width(c)) % 64) {
		planes(c, src, npixels, dst, false);
		return;
	}
	planes(c, src, npixels, dst, true);
	/* Streaming stores obey no release store: the thread that publishes the
	 * image next would publish it unwritten. */
	_mm_sfence();
}

void tsi_convert_kernel_init_avx512(struct tsi_convert_kernel *k)
{
	k->chw = to_chw;
}
