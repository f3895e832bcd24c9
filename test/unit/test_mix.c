/* SPDX-License-Identifier: MIT */
/*
 * test_mix.c - versions of a picture that are mixed, and boxes that are erased:
 * test/parity/test_colour.py compares both with torchvision and timm.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/colour.h"
#include "ops/erase.h"
#include "ops/mix.h"

static struct tsi_canvas canvas;

static void begin(unsigned channels, uint32_t width, uint32_t height, int value)
{
	tsi_canvas_init(&canvas, tsi_simd_best());
	assert_int_equal(tsi_canvas_begin(&canvas, width, height, channels), 0);
	memset(canvas.pixels, value, tsi_canvas_bytes(&canvas));
}

static void holds(const uint8_t *want)
{
	assert_memory_equal(canvas.pixels, want, tsi_canvas_bytes(&canvas));
	tsi_canvas_fini(&canvas);
}

static void all_are(int value)
{
	for (size_t i = 0; i < tsi_canvas_bytes(&canvas); i++)
		assert_int_equal(canvas.pixels[i], value);
}

/* 0.25 * 200 + 0.5 * 55 + 0.25 * 99 = 102.25 */
static void versions_are_added_by_their_weights(void **state)
{
	(void)state;
	begin(3, 33, 5, 200);
	assert_int_equal(tsi_mix_begin(&canvas), 0);
	tsi_mix_add(&canvas, 0.25f);
	assert_int_equal(tsi_colour_invert(&canvas), 0);
	all_are(55);
	tsi_mix_add(&canvas, 0.5f);
	tsi_mix_original(&canvas);
	all_are(200);
	memset(canvas.pixels, 99, tsi_canvas_bytes(&canvas));
	tsi_mix_add(&canvas, 0.25f);
	tsi_mix_sum(&canvas);
	all_are(102);
	/* A mix begins anew. */
	assert_int_equal(tsi_mix_begin(&canvas), 0);
	tsi_mix_add(&canvas, 0.99f);
	tsi_mix_sum(&canvas);
	all_are(100);
	tsi_canvas_fini(&canvas);
}

/* 200, of which a quarter is 55 then: 163.75; and of 163 half is 0. */
static void versions_are_blended_one_after_the_other(void **state)
{
	(void)state;
	begin(1, 50, 3, 200);
	assert_int_equal(tsi_mix_begin(&canvas), 0);
	assert_int_equal(tsi_colour_invert(&canvas), 0);
	tsi_mix_blend(&canvas, 0.25f);
	all_are(163);
	memset(canvas.pixels, 0, tsi_canvas_bytes(&canvas));
	tsi_mix_blend(&canvas, 0.5f);
	all_are(81);
	tsi_canvas_fini(&canvas);
}

static void values_of_a_box_are_truncated_to_bytes(void **state)
{
	static const uint8_t want[] = {
		1, 1, 1, 1, 1,   1,  1, 1, 1, /* a row */
		1, 1, 1, 7, 255, 44, 1, 1, 1, /* and another */
		1, 1, 1, 7, 255, 44, 1, 1, 1,
	};
	static const double value[3] = { 7.9, -1.5, 300 };
	static const struct tsi_rect box = { 1, 1, 1, 2 };

	(void)state;
	begin(3, 3, 3, 1);
	tsi_erase(&canvas, &box, value);
	holds(want);
}

/* Noise over all of a canvas of this size. */
static void make_noise(uint32_t edge, unsigned channels,
		       const struct tsi_erase_noise *noise)
{
	const struct tsi_rect box = { 0, 0, edge, edge };

	tsi_canvas_fini(&canvas);
	begin(channels, edge, edge, 0);
	tsi_erase_with_noise(&canvas, &box, noise);
}

static void noise_has_the_mean_and_deviation_of_each_channel(void **state)
{
	static const struct tsi_erase_noise noise = { .seed = 5,
						      .mean = { 120, 90, 200 },
						      .std = { 20, 1, 60 } };
	enum { EDGE = 200, N = EDGE * EDGE };
	unsigned white = 0;

	(void)state;
	make_noise(EDGE, 3, &noise);
	for (unsigned k = 0; k < 2; k++) {
		double sum = 0, squares = 0;

		for (unsigned i = 0; i < N; i++) {
			double d = canvas.pixels[3 * i + k] - noise.mean[k];

			sum += d;
			squares += d * d;
		}
		assert_true(fabs(sum / N) < 5 * noise.std[k] / EDGE);
		/* Rounding adds a twelfth. */
		assert_true(fabs((squares / N - 1. / 12) / noise.std[k] /
					 noise.std[k] -
				 1) < 0.04);
	}
	/* What is above 254.5 is white: P(x > 0.908) of the third. */
	for (unsigned i = 0; i < N; i++)
		white += canvas.pixels[3 * i + 2] == 255;
	assert_true(fabs((double)white / N - 0.1819) < 0.01);
}

static void noise_is_a_function_of_its_seed(void **state)
{
	struct tsi_erase_noise noise = { .seed = 0xfedcba98,
					 .mean = { 128, 128, 128 },
					 .std = { 50, 50, 50 } };
	uint8_t first[40 * 40 * 3];
	unsigned same = 0;

	(void)state;
	make_noise(40, 3, &noise);
	memcpy(first, canvas.pixels, sizeof(first));
	for (unsigned i = 8; i < sizeof(first); i++)
		same += first[i] == first[i % 8];
	assert_true(same < sizeof(first) / 20);
	make_noise(40, 3, &noise);
	assert_memory_equal(canvas.pixels, first, sizeof(first));
	/* With one channel, noise changes the bytes at the same positions. */
	make_noise(69, 1, &noise);
	assert_memory_equal(canvas.pixels, first, (size_t)69 * 69);
	noise.color = true;
	make_noise(40, 3, &noise);
	for (unsigned i = 0; i < sizeof(first); i++)
		assert_int_equal(canvas.pixels[i], first[i % 3]);
	noise.seed++;
	make_noise(40, 3, &noise);
	assert_memory_not_equal(canvas.pixels, first, 3);
}

static void noise_stays_in_its_box(void **state)
{
	static const struct tsi_rect box = { 1, 2, 2, 1 };
	static const struct tsi_erase_noise noise = { .mean = { 1e6, -1e6, 7 },
						      .std = { 1, 1, 1e-6 } };
	static const uint8_t want[] = {
		9, 9, 9, 9,   9, 9, 9,   9, 9, 9, 9, 9, /* a row */
		9, 9, 9, 9,   9, 9, 9,   9, 9, 9, 9, 9, /* the next one */
		9, 9, 9, 255, 0, 7, 255, 0, 7, 9, 9, 9, /* and the box's */
	};

	(void)state;
	tsi_canvas_fini(&canvas);
	begin(3, 4, 3, 9);
	tsi_erase_with_noise(&canvas, &box, &noise);
	holds(want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_added_by_their_weights),
		cmocka_unit_test(versions_are_blended_one_after_the_other),
		cmocka_unit_test(values_of_a_box_are_truncated_to_bytes),
		cmocka_unit_test(
			noise_has_the_mean_and_deviation_of_each_channel),
		cmocka_unit_test(noise_is_a_function_of_its_seed),
		cmocka_unit_test(noise_stays_in_its_box),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
