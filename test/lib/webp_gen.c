/* SPDX-License-Identifier: MIT */
/*
 * webp_gen.c - makes WebP files in memory.
 */
#include "test/lib/webp_gen.h"

#include <webp/encode.h>

static void put_le(uint8_t *p, uint32_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static uint8_t *make_pixels(const struct webp_gen *g)
{
	uint8_t *p = malloc((size_t)g->width * g->height * 4);
	uint64_t state = g->seed;

	if (!p)
		abort();
	for (uint32_t y = 0; y < g->height; y++) {
		uint8_t *row = p + (size_t)y * g->width * 4;

		image_gen_row(&state, y, row, g->width, 4);
		for (uint32_t x = 0; !g->alpha && x < g->width; x++)
			row[(size_t)x * 4 + 3] = 255;
	}
	return p;
}

struct image_gen_bytes webp_gen(const struct webp_gen *g)
{
	uint8_t *pixels = make_pixels(g), *file = NULL;
	int w = (int)g->width, h = (int)g->height;
	struct image_gen_bytes b;

	if (g->lossless)
		b.len = WebPEncodeLosslessRGBA(pixels, w, h, w * 4, &file);
	else
		b.len = WebPEncodeRGBA(pixels, w, h, w * 4, g->quality, &file);
	free(pixels);
	if (!b.len)
		abort();
	b = image_gen_copy(file, b.len);
	WebPFree(file);
	return b;
}

static void append(struct image_gen_bytes *f, const void *data, size_t len)
{
	f->data = realloc(f->data, f->len + len);
	if (!f->data)
		abort();
	memcpy(f->data + f->len, data, len);
	f->len += len;
}

static void append_chunk(struct image_gen_bytes *f, const char *name,
			 size_t len)
{
	uint8_t head[8];

	memcpy(head, name, 4);
	put_le(head + 4, (uint32_t)len, 4);
	append(f, head, sizeof(head));
}

/* The chunks of pixels in a file, without VP8X. */
static const uint8_t *chunks_of(const struct image_gen_bytes *f, size_t *len)
{
	size_t at = memcmp(f->data + 12, "VP8X", 4) ? 12 : 30;

	*len = f->len - at;
	return f->data + at;
}

static void append_frame(struct image_gen_bytes *f,
			 const struct image_gen_bytes *image,
			 const struct tsi_rect *at)
{
	uint8_t head[16] = { 0 };
	size_t len;
	const uint8_t *chunks = chunks_of(image, &len);

	put_le(head, at->left / 2, 3);
	put_le(head + 3, at->top / 2, 3);
	put_le(head + 6, at->width - 1, 3);
	put_le(head + 9, at->height - 1, 3);
	put_le(head + 12, 100, 3);
	append_chunk(f, "ANMF", sizeof(head) + len);
	append(f, head, sizeof(head));
	append(f, chunks, len);
}

struct image_gen_bytes webp_gen_animation(const struct tsi_rect *canvas,
					  const struct image_gen_bytes *first,
					  const struct tsi_rect *at,
					  const struct image_gen_bytes *second,
					  const struct tsi_rect *second_at)
{
	static const uint8_t background[6] = { 10, 20, 30, 255 };
	uint8_t size[10] = { 0x12 };
	struct image_gen_bytes f = { 0 };

	append(&f, "RIFF....WEBP", 12);
	put_le(size + 4, canvas->width - 1, 3);
	put_le(size + 7, canvas->height - 1, 3);
	append_chunk(&f, "VP8X", sizeof(size));
	append(&f, size, sizeof(size));
	append_chunk(&f, "ANIM", sizeof(background));
	append(&f, background, sizeof(background));
	append_frame(&f, first, at);
	append_frame(&f, second, second_at);
	put_le(f.data + 4, (uint32_t)f.len - 8, 4);
	return f;
}

void webp_gen_shorten(struct image_gen_bytes *f, size_t len)
{
	struct image_gen_bytes cut;

	len &= ~(size_t)1;
	cut = image_gen_copy(f->data, len);
	free(f->data);
	*f = cut;
	put_le(f->data + 4, (uint32_t)len - 8, 4);
	put_le(f->data + 16, (uint32_t)len - 20, 4);
}
