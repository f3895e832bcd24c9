/* SPDX-License-Identifier: MIT */
/*
 * unstuff_neon.c - the bytes of a JPEG scan without the stuffed zeros, with
 * NEON.
 */
#include "jpeg/entropy_kernel.h"

#include <arm_neon.h>

/* Four bits for each of 16 bytes, set where it is 0xff. */
static inline uint64_t find_ff(uint8x16_t v)
{
	uint8x16_t ff = vceqq_u8(v, vdupq_n_u8(0xff));
	uint8x8_t halves = vshrn_n_u16(vreinterpretq_u16_u8(ff), 4);

	return vget_lane_u64(vreinterpret_u64_u8(halves), 0);
}

/* 16 bytes at a time; those behind the first 0xff are written once more. */
static struct tsi_unstuffed unstuff_neon(const uint8_t *src, size_t len,
					 uint8_t *dst, size_t cap)
{
	struct tsi_unstuffed r = { 0 };

	while (len - r.read >= 16 && cap - r.written >= 16) {
		uint8x16_t v = vld1q_u8(src + r.read);
		uint64_t at = find_ff(v);
		unsigned n = at ? (unsigned)__builtin_ctzll(at) / 4 : 16;

		vst1q_u8(dst + r.written, v);
		r.read += n;
		r.written += n;
		if (at && !tsi_unstuff_ff(src, len, dst, &r))
			return r;
	}
	tsi_unstuff_on(src, len, dst, cap, &r);
	return r;
}

/*
 * The lanes use instructions for bits; the compiler already uses all of those
 * that these processors have.
 */
void tsi_entropy_kernel_init_arm(struct tsi_entropy_kernel *k,
				 enum tsi_simd level)
{
	if (level >= TSI_SIMD_NEON)
		k->unstuff = unstuff_neon;
}
