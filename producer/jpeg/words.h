/* SPDX-License-Identifier: MIT */
/*
 * words.h - arithmetic in the words of libjpeg-turbo's vector code, one
 * value after the other: words of 16 bits wrap or saturate, double words wrap.
 */
#ifndef TSI_JPEG_WORDS_H
#define TSI_JPEG_WORDS_H

#include <stdint.h>

/* A sum or product in a word, which wraps. */
static inline int16_t word(int32_t v)
{
	return (int16_t)(uint16_t)v;
}

static inline int16_t saturated(int32_t v)
{
	return (int16_t)(v > 32767 ? 32767 : v < -32768 ? -32768 : v);
}

/* a * x + b * y in a double word, which wraps. */
static inline uint32_t dot(int32_t a, int32_t x, int32_t b, int32_t y)
{
	return (uint32_t)(a * x) + (uint32_t)(b * y);
}

#endif
