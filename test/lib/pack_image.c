/* SPDX-License-Identifier: MIT */
/*
 * pack_image.c - the record of an image file.
 */
#include "test/lib/pack_image.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

struct image_gen_bytes pack_image(const struct image_gen_bytes *f)
{
	struct image_gen_bytes out = { NULL, 0 };
	struct tsi_jpeg_packer *packer;
	struct tsi_jpeg_whole *whole;
	struct tsi_jpeg_frame frame;
	struct tsi_jpeg_blocks b;
	const uint8_t *data;
	int err;

	assert_int_equal(tsi_jpeg_packer_create(&packer), 0);
	assert_int_equal(tsi_jpeg_whole_create(&whole), 0);
	err = tsi_jpeg_whole_open(whole, f->data, f->len, &frame);
	if (!err) {
		assert_int_equal(tsi_jpeg_packer_begin(packer, &frame), 0);
		for (uint32_t y = 0; y < frame.mcus_down; y++) {
			tsi_jpeg_whole_row(whole, y, &b);
			assert_int_equal(tsi_jpeg_packer_row(packer, &b, 0), 0);
		}
		data = tsi_jpeg_packer_end(packer, &out.len);
		out = image_gen_copy(data, out.len);
	} else {
		assert_int_equal(err, TSOCK_ENOTSUP);
	}
	tsi_jpeg_whole_close(whole);
	tsi_jpeg_whole_destroy(whole);
	tsi_jpeg_packer_destroy(packer);
	return out;
}
