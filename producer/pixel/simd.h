/* SPDX-License-Identifier: MIT */
/*
 * simd.h - which vector instructions the code of this folder may use.
 *
 * Each object with vector code is made for one of these.  Whichever it is, the
 * bytes are the same.
 */
#ifndef TSI_PIXEL_SIMD_H
#define TSI_PIXEL_SIMD_H

#include <stdbool.h>

enum tsi_simd {
	TSI_SIMD_SCALAR = 0,
	TSI_SIMD_AVX2 = 1,
	TSI_SIMD_BEST = 2, /* the best of the others that there is */
	/* F, BW, DQ, VL, VBMI and VNNI: from Ice Lake and Zen 4 on. */
	TSI_SIMD_AVX512 = 3,
	TSI_SIMD_NEON = 4, /* AdvSIMD, which every 64-bit Arm has */
};

/* Has this processor got these instructions? */
bool tsi_simd_has(enum tsi_simd simd);

/* ... and BMI, BMI2 and MOVBE, for the reading of bits? */
bool tsi_simd_has_bits(void);

/*
 * ... and VBMI2, for reading sixteen codes at once?  False also where gathers
 * are slowed down by a mitigation of gather data sampling.
 */
bool tsi_simd_has_wide(void);

/* The best that this processor has: one of the others, not TSI_SIMD_BEST. */
enum tsi_simd tsi_simd_best(void);

#endif
