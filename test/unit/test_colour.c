/* SPDX-License-Identifier: MIT */
/*
 * test_colour.c - operations on colours, on all levels of vector instructions.
 * The checksums are those of what torchvision 0.29 made of the same picture
 * with Pillow 13; test/parity compares many more pictures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "ops/colour.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define WIDTH 41
#define HEIGHT 30

static struct tsi_canvas canvas;

static void begin(unsigned channels)
{
	uint32_t x = 7;

	assert_int_equal(tsi_canvas_begin(&canvas, WIDTH, HEIGHT, channels), 0);
	for (uint32_t i = 0; i < tsi_canvas_bytes(&canvas); i++) {
		x = (x * 1103515245u + 12345u) & 0x7fffffff;
		canvas.pixels[i] =
			(uint8_t)((x >> 16 & 255) * (200 + i % 3 * 20) >> 8);
	}
}

static uint32_t sum(void)
{
	return (uint32_t)crc32(0, canvas.pixels,
			       (uInt)tsi_canvas_bytes(&canvas));
}

static void colours_are_pillows(enum tsi_simd level)
{
	static const struct {
		int (*change)(struct tsi_canvas *c, double by);
		double by;
		uint32_t sum;
	} known[] = {
		{ tsi_colour_brightness, 1.9, 0x9fb6298b },
		{ tsi_colour_contrast, 0.3, 0x804f25f7 },
		{ tsi_colour_contrast, 3, 0x5036e84a },
		{ tsi_colour_saturation, 2.5, 0xab236aba },
		{ tsi_colour_saturation, 0.5, 0xa9c6d9c9 },
		{ tsi_colour_sharpness, 1.7, 0x4696bc53 },
		{ tsi_colour_hue, 0, 0xd25916dd },
		{ tsi_colour_hue, -0.3, 0xe30d5f13 },
		{ tsi_colour_hue, 0.5, 0x36593a80 },
		{ tsi_colour_solarize, 99.5, 0xaa9355b9 },
	};
	static const struct {
		int (*change)(struct tsi_canvas *c);
		uint32_t sum;
	} plain[] = {
		{ tsi_colour_grayscale, 0x471d103f },
		{ tsi_colour_invert, 0x055eec86 },
		{ tsi_colour_autocontrast, 0xf76736c6 },
		{ tsi_colour_equalize, 0x4407e76d },
	};

	tsi_canvas_init(&canvas, level);
	for (size_t i = 0; i < COUNT(known); i++) {
		begin(3);
		assert_int_equal(known[i].change(&canvas, known[i].by), 0);
		if (sum() != known[i].sum)
			fail_msg("operation %zu by %g: 0x%08x", i, known[i].by,
				 sum());
	}
	for (size_t i = 0; i < COUNT(plain); i++) {
		begin(3);
		assert_int_equal(plain[i].change(&canvas), 0);
		if (sum() != plain[i].sum)
			fail_msg("plain operation %zu: 0x%08x", i, sum());
	}
	begin(3);
	assert_int_equal(tsi_colour_posterize(&canvas, 3), 0);
	assert_int_equal(sum(), 0xc87183d5);
	tsi_canvas_fini(&canvas);
}

static void colours_are_pillows_on_all_levels(void **state)
{
	(void)state;
	for (unsigned level = 0; level <= (unsigned)tsi_simd_best(); level++)
		colours_are_pillows((enum tsi_simd)level);
}

static void gray_pictures_have_one_channel(void **state)
{
	uint8_t pixel[3];

	(void)state;
	tsi_canvas_init(&canvas, tsi_simd_best());
	begin(3);
	memcpy(pixel, canvas.pixels + 3 * 700, 3);
	assert_int_equal(tsi_colour_to_gray(&canvas), 0);
	assert_int_equal(canvas.channels, 1);
	assert_int_equal(canvas.pixels[700],
			 (19595 * pixel[0] + 38470 * pixel[1] +
			  7471 * pixel[2] + 0x8000) >>
				 16);
	/* What is grey has neither hue nor saturation. */
	pixel[0] = canvas.pixels[3];
	assert_int_equal(tsi_colour_hue(&canvas, 0.4), 0);
	assert_int_equal(tsi_colour_saturation(&canvas, 0), 0);
	assert_int_equal(canvas.pixels[3], pixel[0]);
	assert_int_equal(tsi_colour_invert(&canvas), 0);
	assert_int_equal(canvas.pixels[3], 255 - pixel[0]);
	tsi_canvas_fini(&canvas);
}

static void gray_pictures_become_those_of_three_channels(void **state)
{
	uint8_t gray[WIDTH * HEIGHT];

	(void)state;
	tsi_canvas_init(&canvas, tsi_simd_best());
	begin(1);
	memcpy(gray, canvas.pixels, sizeof(gray));
	assert_int_equal(tsi_colour_to_rgb(&canvas), 0);
	assert_int_equal(canvas.channels, 3);
	for (size_t i = 0; i < tsi_canvas_bytes(&canvas); i++)
		assert_int_equal(canvas.pixels[i], gray[i / 3]);
	tsi_canvas_fini(&canvas);
}

static void equalized_channels_are_counted_to_the_last_pixel(void **state)
{
	enum { PIXELS = 31 * 29 };
	uint8_t gray[PIXELS];

	(void)state;
	tsi_canvas_init(&canvas, tsi_simd_best());
	begin(1);
	canvas.width = 31;
	canvas.height = 29;
	/* Without it the steps of all other values come earlier. */
	canvas.pixels[PIXELS - 1] = 0;
	memcpy(gray, canvas.pixels, PIXELS);
	assert_int_equal(tsi_colour_equalize(&canvas), 0);
	for (unsigned other = 0; other < 3; other++) {
		uint8_t want[PIXELS];

		memcpy(want, canvas.pixels, PIXELS);
		memcpy(canvas.pixels, gray, PIXELS);
		assert_int_equal(tsi_colour_to_rgb(&canvas), 0);
		/* Other channels have histograms of their own. */
		for (size_t i = other; i < 3 * (size_t)PIXELS; i += 3)
			canvas.pixels[i] /= 2;
		assert_int_equal(tsi_colour_equalize(&canvas), 0);
		for (size_t i = 0; i < 3 * (size_t)PIXELS; i++)
			if (i % 3 != other)
				assert_int_equal(canvas.pixels[i], want[i / 3]);
		assert_int_equal(tsi_canvas_begin(&canvas, 31, 29, 1), 0);
		memcpy(canvas.pixels, want, PIXELS);
	}
	tsi_canvas_fini(&canvas);
}

/* What Pillow makes of nine pixels of mode L. */
static void gray_pictures_are_changed_as_pillows(void **state)
{
	static const uint8_t from[9] = { 88,  10, 226, 128, 127,
					 105, 37, 101, 146 };
	static const struct {
		int (*change)(struct tsi_canvas *c, double by);
		double by;
		uint8_t want[9];
	} known[] = {
		{ tsi_colour_contrast,
		  1.9,
		  { 70, 0, 255, 146, 144, 102, 0, 94, 180 } },
		{ tsi_colour_sharpness,
		  10,
		  { 88, 10, 226, 128, 244, 105, 37, 101, 146 } },
	};
	static const uint8_t stretched[9] = { 92,  0,  255, 139, 138,
					      112, 31, 107, 160 };

	(void)state;
	tsi_canvas_init(&canvas, tsi_simd_best());
	assert_int_equal(tsi_canvas_begin(&canvas, 3, 3, 1), 0);
	for (size_t i = 0; i < COUNT(known); i++) {
		memcpy(canvas.pixels, from, 9);
		assert_int_equal(known[i].change(&canvas, known[i].by), 0);
		assert_memory_equal(canvas.pixels, known[i].want, 9);
	}
	memcpy(canvas.pixels, from, 9);
	assert_int_equal(tsi_colour_autocontrast(&canvas), 0);
	assert_memory_equal(canvas.pixels, stretched, 9);
	tsi_canvas_fini(&canvas);
}

/* timm's, of which torchvision has none. */
static void solarize_add_changes_dark_values_alone(void **state)
{
	(void)state;
	tsi_canvas_init(&canvas, tsi_simd_best());
	begin(1);
	canvas.pixels[0] = 127;
	canvas.pixels[1] = 128;
	canvas.pixels[2] = 30;
	assert_int_equal(tsi_colour_solarize_add(&canvas, 110), 0);
	assert_int_equal(canvas.pixels[0], 237);
	assert_int_equal(canvas.pixels[1], 128);
	assert_int_equal(canvas.pixels[2], 140);
	tsi_canvas_fini(&canvas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(colours_are_pillows_on_all_levels),
		cmocka_unit_test(gray_pictures_have_one_channel),
		cmocka_unit_test(gray_pictures_become_those_of_three_channels),
		cmocka_unit_test(
			equalized_channels_are_counted_to_the_last_pixel),
		cmocka_unit_test(gray_pictures_are_changed_as_pillows),
		cmocka_unit_test(solarize_add_changes_dark_values_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
