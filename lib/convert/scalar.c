/* SPDX-License-Identifier: MIT */
/*
 * scalar.c - the conversion by table, one value at a time: what every
 * other kernel must equal, and what does the last few pixels for them.
 */
#include <string.h>

#include "convert/impl.h"

/*
 * Values are moved by memcpy: dst may come from a mapping at any multiple of
 * the element's size, and its effective type is the reader's affair.
 */
#define LOOPS(type, member) \
	static void hwc_##member(const struct tsi_convert *c, \
				 const uint8_t *src, size_t i, size_t n, \
				 char *dst) \
	{ \
		for (i *= 3, n *= 3; i < n; i += 3) \
			for (size_t ch = 0; ch < 3; ch++) \
				memcpy(dst + (i + ch) * sizeof(type), \
				       &c->table.member[ch][src[i + ch]], \
				       sizeof(type)); \
	} \
	static void chw_##member(const struct tsi_convert *c, \
				 const uint8_t *src, size_t i, size_t n, \
				 char *dst) \
	{ \
		for (; i < n; i++) \
			for (size_t ch = 0; ch < 3; ch++) \
				memcpy(dst + (ch * n + i) * sizeof(type), \
				       &c->table.member[ch][src[i * 3 + ch]], \
				       sizeof(type)); \
	}

LOOPS(uint8_t, u8)
LOOPS(uint16_t, u16)
LOOPS(float, f32)

void tsi_scalar_rest(const struct tsi_convert *c, const uint8_t *src,
		     size_t first, size_t npixels, void *dst)
{
	bool chw = c->spec.layout == TSOCK_CHW;

	switch (c->spec.dtype) {
	case TSOCK_U8:
		(chw ? chw_u8 : hwc_u8)(c, src, first, npixels, dst);
		return;
	case TSOCK_F32:
		(chw ? chw_f32 : hwc_f32)(c, src, first, npixels, dst);
		return;
	default:
		(chw ? chw_u16 : hwc_u16)(c, src, first, npixels, dst);
	}
}

static void whole(const struct tsi_convert *c, const uint8_t *src,
		  size_t npixels, void *dst)
{
	tsi_scalar_rest(c, src, 0, npixels, dst);
}

const struct tsi_convert_kernel tsi_convert_scalar = {
	.hwc = whole,
	.chw = whole,
	.chw_u8 = whole,
};
