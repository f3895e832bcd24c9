/* SPDX-License-Identifier: MIT */
/*
 * made_jpeg.c - JPEG files of many kinds, and an index for them.
 */
#include "test/lib/made_jpeg.h"

struct image_gen_bytes made_jpeg(unsigned i, uint32_t width, uint32_t height)
{
	static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };
	struct image_gen_jpeg g = {
		.width = width,
		.height = height,
		.components = i % 5 == 4 ? 1 : 3,
		.optimize = i % 2,
		.quality = 30 + (int)(i * 13 % 71),
		.seed = i,
	};

	g.factor[0][0] = luma[i % 4][0];
	g.factor[0][1] = luma[i % 4][1];
	return image_gen_jpeg(&g);
}

bool made_jpeg_is_indexed(void)
{
	return tsi_simd_best() != TSI_SIMD_SCALAR;
}

struct tsi_jpeg_index *made_jpeg_index(uint64_t files, uint64_t memory)
{
	struct tsi_jpeg_index *x;

	assert_int_equal(tsi_jpeg_index_create(files, memory, &x), 0);
	return x;
}
