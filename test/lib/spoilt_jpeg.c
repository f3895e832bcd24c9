/* SPDX-License-Identifier: MIT */
/*
 * spoilt_jpeg.c - damaged JPEG files: bytes, sectors, markers, and cuts.
 */
#include "test/lib/spoilt_jpeg.h"

#include <stdlib.h>
#include <string.h>

size_t spoilt_jpeg_data(const struct image_gen_bytes *f)
{
	size_t at = 2;

	while (f->data[at + 1] != 0xda)
		at += 2u + (f->data[at + 2] << 8 | f->data[at + 3]);
	return at + 2u + (f->data[at + 2] << 8 | f->data[at + 3]);
}

/* Bytes at a place of the data, the last ones of which are the file's. */
static void put(struct image_gen_bytes *f, uint64_t *r, size_t n, int value)
{
	size_t first = spoilt_jpeg_data(f), at;

	if (n > f->len - first)
		n = f->len - first;
	at = first + image_gen_random(r) % (f->len - first - n + 1);
	for (size_t i = 0; i < n; i++)
		f->data[at + i] =
			(uint8_t)(value < 0 ? (int)image_gen_random(r) : value);
}

static void exchange(struct image_gen_bytes *f, uint64_t *r, size_t n)
{
	size_t parts = f->len / n;
	uint8_t *a, *b;

	if (parts < 2)
		return;
	a = f->data + n * (image_gen_random(r) % parts);
	b = f->data + n * (image_gen_random(r) % parts);
	for (size_t i = 0; i < n; i++) {
		uint8_t was = a[i];

		a[i] = b[i];
		b[i] = was;
	}
}

/* The place of a restart marker from `at` on, or of the end's. */
static size_t restart_from(const struct image_gen_bytes *f, size_t at)
{
	while (at < f->len - 2 &&
	       !(f->data[at] == 0xff && (f->data[at + 1] & 0xf8) == 0xd0))
		at++;
	return at;
}

struct image_gen_bytes spoilt_jpeg(const struct image_gen_bytes *whole,
				   uint64_t *r)
{
	/* Spare bytes, so that something can be put in. */
	struct image_gen_bytes f = { calloc(1, whole->len + 2002), whole->len };
	size_t at = f.len - 2;

	memcpy(f.data, whole->data, f.len);
	switch (image_gen_random(r) % 9) {
	case 0:
		put(&f, r, 512, 0xff);
		break;
	case 1:
		put(&f, r, 1 + image_gen_random(r) % 512, -1);
		break;
	case 2:
		put(&f, r, 512, 0);
		break;
	case 3:
		exchange(&f, r, 512);
		break;
	case 4:
		f.len -= 1 +
			 image_gen_random(r) % (f.len - spoilt_jpeg_data(&f));
		break;
	case 5: /* behind the last row, or behind rubbish behind that */
		if (image_gen_random(r) % 2) {
			f.data[at] = f.data[at + 1] = 0;
			f.len += 2000;
			at += 2000;
			f.data[at] = 0xff;
		}
		f.data[at + 1] = (uint8_t)(1 + image_gen_random(r) % 254);
		memcpy(f.data + at + 2, "\xff\xd9", 2);
		f.len += 2;
		break;
	case 6: /* instead of a restart, and cut further down or not */
		at = spoilt_jpeg_data(&f);
		at = restart_from(&f,
				  at + image_gen_random(r) % (f.len - 2 - at));
		f.data[at + 1] = (uint8_t)(1 + image_gen_random(r) % 254);
		if (image_gen_random(r) % 2)
			f.len -= image_gen_random(r) % (f.len - at - 1);
		break;
	default: /* any marker, anywhere */
		at = spoilt_jpeg_data(&f);
		at += image_gen_random(r) % (f.len - 2 - at);
		f.data[at] = 0xff;
		f.data[at + 1] = (uint8_t)(1 + image_gen_random(r) % 254);
	}
	return f;
}

/* Behind the marker, what may make Pillow refuse the file. */
static void spoil_end(struct image_gen_bytes *f, unsigned how)
{
	size_t late = f->len - (f->len - spoilt_jpeg_data(f)) / 8;
	size_t restart = restart_from(f, late);

	if (how == 1) /* cut short in one of the last rows, or behind it */
		f->len = restart < f->len - 2 ? restart : late;
	if (how == 2) /* a marker below 0xc0 behind rubbish behind the rows */
		memcpy(f->data + f->len - 2, "\xff\xd1\0\0\xff\x62\xff\xd9", 8);
	f->len += how == 2 ? 6 : 0;
}

struct image_gen_bytes spoilt_jpeg_twice(unsigned place, bool arithmetic,
					 unsigned marker)
{
	struct image_gen_jpeg g = { .width = 40,
				    .height = 96,
				    .components = 1,
				    .arithmetic = arithmetic,
				    .restart_rows = place > 0,
				    .seed = marker };
	struct image_gen_bytes f = image_gen_jpeg(&g), d;
	size_t at = (3 * spoilt_jpeg_data(&f) + f.len) / 4;

	if (place == 2)
		at = restart_from(&f, at);
	d = (struct image_gen_bytes){ calloc(1, f.len + 6), f.len };
	memcpy(d.data, f.data, f.len);
	d.data[at] = 0xff;
	d.data[at + 1] = (uint8_t)marker;
	spoil_end(&d, (marker + place + arithmetic) % 3);
	free(f.data);
	return d;
}
