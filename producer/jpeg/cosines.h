/* SPDX-License-Identifier: MIT */
/*
 * cosines.h - cosines of the inverse transform, as libjpeg's jidctint.c
 * has them: 13 fractional bits.
 */
#ifndef TSI_JPEG_COSINES_H
#define TSI_JPEG_COSINES_H

#define F_0_298 2446
#define F_0_390 3196
#define F_0_541 4433
#define F_0_765 6270
#define F_0_899 7373
#define F_1_175 9633
#define F_1_501 12299
#define F_1_847 15137
#define F_1_961 16069
#define F_2_053 16819
#define F_2_562 20995
#define F_3_072 25172

#endif
