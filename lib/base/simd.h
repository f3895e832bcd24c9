/* SPDX-License-Identifier: MIT */
/*
 * simd.h - which vector instructions this processor has, and how the code
 * that uses them is found.
 *
 * Functions that have versions for vector instructions are the slots of a
 * struct, one for each group of them.  tsi_X_init(&x, level) fills it with
 * plain C first; then TSI_SIMD_INIT lets the processor's folder (x86/, arm/)
 * put in its place what it has for this level and for those below.  All
 * versions of a slot give the same bytes (test/unit/test_kernels.c).
 */
#ifndef TSI_BASE_SIMD_H
#define TSI_BASE_SIMD_H

/* Each processor counts its levels from 1 on; a level has those below, too. */
enum tsi_simd {
	TSI_SIMD_SCALAR = 0, /* plain C, for any processor */
	/* x86-64-v3: also BMI, BMI2, F16C, FMA, LZCNT and MOVBE. */
	TSI_SIMD_AVX2 = 1,
	/* F, BW, DQ, VL, VBMI, VBMI2, VNNI: from Ice Lake and Zen 4 on. */
	TSI_SIMD_AVX512 = 2,
	TSI_SIMD_NEON = 1, /* AdvSIMD, which every 64-bit Arm has */
	/* No level, but the wish for the highest one. */
	TSI_SIMD_BEST = 255,
};

#define TSI_SIMD_LEVELS 3 /* that a processor has at most */

/* The highest level that this processor and this build have. */
enum tsi_simd tsi_simd_best(void);

/* "scalar", "avx2", "avx512", "neon": a level up to tsi_simd_best(). */
const char *tsi_simd_name(enum tsi_simd level);

/*
 * The level that is meant: a wish, or a level by name.  Fails with
 * TSOCK_ENOTSUP if this processor or this build lacks it.
 */
int tsi_simd_choose(enum tsi_simd wish, enum tsi_simd *level);

/* What a processor's folder says of its levels. */
struct tsi_simd_levels {
	enum tsi_simd best;
	const char *name[TSI_SIMD_LEVELS];
};

/* Ask the processor about the levels up to this one. */
void tsi_simd_init_x86(struct tsi_simd_levels *l, enum tsi_simd level);
void tsi_simd_init_arm(struct tsi_simd_levels *l, enum tsi_simd level);

/*
 * TSI_SIMD_INIT(tsi_X_init, x, level) is tsi_X_init_x86(x, level) in a build
 * for x86-64, and nothing in one without vector code.  The Makefile defines
 * TSI_SIMD as the folder's name, for those files in lib/ and producer/ alone
 * in which it finds this macro used.
 */
#ifdef TSI_SIMD
#define TSI_SIMD_JOINED(init, folder) init##_##folder
#define TSI_SIMD_OF(init, folder) TSI_SIMD_JOINED(init, folder)
#define TSI_SIMD_INIT(init, x, level) TSI_SIMD_OF(init, TSI_SIMD)(x, level)
#else
#define TSI_SIMD_INIT(init, x, level) ((void)(x), (void)(level))
#endif

#endif
