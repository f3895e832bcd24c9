/* SPDX-License-Identifier: MIT */
/*
 * decoder_region.c - a rectangle of an image file, as a decoder gives it.
 */
#include "test/lib/decoder_region.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

int decoder_region_read(struct tsi_decoder *p, const struct image_gen_bytes *f,
			const struct tsi_rect *rect, uint8_t *out)
{
	struct tsi_strip s;
	uint32_t w, h;
	int err = p->ops->open(p, f->data, f->len, &w, &h);

	if (!err)
		err = p->ops->begin(p, rect);
	for (uint32_t y = 0; !err && y < rect->height; y += s.rows) {
		err = p->ops->read(p, &s);
		if (err)
			break;
		assert_in_range(s.rows, 1, TSI_STRIP_ROWS);
		for (uint32_t i = 0; i < s.rows; i++)
			memcpy(out + (size_t)(y + i) * rect->width * 4,
			       s.pixels + i * s.stride,
			       (size_t)rect->width * 4);
	}
	p->ops->close(p);
	return err;
}

struct tsi_rect decoder_region_pick(uint32_t w, uint32_t h, int n,
				    uint64_t *state)
{
	struct tsi_rect r = { 0, 0, w, h };

	if (n) {
		r.left = image_gen_random(state) % w;
		r.top = image_gen_random(state) % h;
		r.width = 1 + image_gen_random(state) % (w - r.left);
		r.height = 1 + image_gen_random(state) % (h - r.top);
	}
	return r;
}
