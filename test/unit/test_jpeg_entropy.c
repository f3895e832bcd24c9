/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_entropy.c - the coefficients of every file that our decoder takes
 * are libjpeg's, wherever it enters the data; and of damaged data it either
 * reads what libjpeg reads without a warning, or nothing.
 */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "jpeg/entropy.h"
#include "test/lib/image_gen.h"
#include "test/lib/jpeg_subject.h"
#include "test/lib/sanitized.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool read_area(struct tsi_jpeg_entropy *e, const struct jpeg_subject *s,
		      const struct tsi_jpeg_area *a)
{
	bool ok = jpeg_subject_read(e, s, a, 1);

	assert_int_equal(jpeg_subject_read(e, s, a, 3), ok);
	return ok;
}

#define STEPS 4

/* Any area of the file, the whole first. */
static struct tsi_jpeg_area pick(const struct tsi_jpeg_frame *f, int n,
				 uint64_t *state)
{
	struct tsi_jpeg_area a = { 0, 0, f->mcus_across, f->mcus_down };

	if (!n)
		return a;
	a.left = image_gen_random(state) % f->mcus_across;
	a.top = image_gen_random(state) % f->mcus_down;
	a.across = 1 + image_gen_random(state) % (f->mcus_across - a.left);
	a.down = 1 + image_gen_random(state) % (f->mcus_down - a.top);
	return a;
}

/* An undamaged file: all of it, and areas of it, with these steps. */
static void check_good(struct tsi_jpeg_entropy *e, struct jpeg_subject *s,
		       size_t steps, int areas, uint64_t seed)
{
	static const uint32_t step[STEPS] = { 8, 1, 0, 3 };
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	uint64_t state = seed;

	assert_false(s->want.refused || s->want.warned);
	for (size_t i = 0; i < steps; i++) {
		struct tsi_jpeg_area a = pick(f, (int)i, &state);

		s->step = step[i];
		assert_true(jpeg_subject_record(e, s, a.left,
						i == 2 ? 0 : a.across));
		for (int n = 0; n < areas; n++) {
			a = pick(f, n, &state);
			assert_true(read_area(e, s, &a));
		}
		jpeg_subject_forget(s);
	}
}

static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };

static void generated(enum tsi_simd simd)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_create(simd);

	for (unsigned i = 0; e && i < 700; i++) {
		struct image_gen_jpeg g = jpeg_subject_any(i);
		struct image_gen_bytes f = image_gen_jpeg(&g);
		struct jpeg_subject s;

		assert_true(jpeg_subject_open(&s, f.data, f.len));
		check_good(e, &s, STEPS, 6, i);
		jpeg_subject_close(&s);
		free(f.data);
	}
	tsi_jpeg_entropy_destroy(e);
}

static void generated_files_give_libjpegs_coefficients(void **state)
{
	(void)state;
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++)
		generated(l);
}

/* Columns 0 to 18: with a step of 8, three entries in each of five rows. */
static struct image_gen_bytes wide_jpeg(int components, const int *factor)
{
	struct image_gen_jpeg g = {
		.width = (uint32_t)(19 * 8 * factor[0] - 3),
		.height = (uint32_t)(5 * 8 * factor[1] - 3),
		.components = components,
		.quality = 90,
		.seed = 5,
	};

	g.factor[0][0] = factor[0];
	g.factor[0][1] = factor[1];
	return image_gen_jpeg(&g);
}

/* What is right of and below each MCU: in its row alone, and in all rows. */
static void enter_everywhere(struct tsi_jpeg_entropy *e,
			     const struct jpeg_subject *s)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;

	for (uint32_t y = 0; y < f->mcus_down; y++)
		for (uint32_t x = 0; x < f->mcus_across; x++) {
			struct tsi_jpeg_area a = { x, y, f->mcus_across - x,
						   1 };

			assert_true(read_area(e, s, &a));
			a.down = f->mcus_down - y;
			assert_true(read_area(e, s, &a));
		}
}

static void every_entry(enum tsi_simd simd, int components, const int *factor)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_create(simd);
	struct image_gen_bytes f = wide_jpeg(components, factor);

	for (uint32_t step = 1; e && step <= 8; step += 7) {
		struct jpeg_subject s;

		assert_true(jpeg_subject_open(&s, f.data, f.len));
		assert_int_equal(s.scan.frame.mcus_across, 19);
		assert_int_equal(s.scan.frame.mcus_down, 5);
		s.step = step;
		assert_true(jpeg_subject_record(e, &s, 0, 19));
		enter_everywhere(e, &s);
		jpeg_subject_close(&s);
	}
	free(f.data);
	tsi_jpeg_entropy_destroy(e);
}

static void every_row_and_column_is_an_entry(void **state)
{
	(void)state;
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++) {
		for (size_t i = 0; i < COUNT(luma); i++)
			every_entry(l, 3, luma[i]);
		every_entry(l, 1, luma[0]);
	}
}

/* A file may be damaged: what is read is what libjpeg reads. */
static void check_any(struct tsi_jpeg_entropy *e, const uint8_t *data,
		      size_t len, uint64_t seed, unsigned *taken)
{
	uint64_t state = seed;
	struct jpeg_subject s;

	if (!jpeg_subject_open(&s, data, len))
		return;
	s.step = 1 + (uint32_t)(seed % 5);
	/* Where libjpeg refuses a file for what is behind, nothing is known. */
	if (!s.want.refused &&
	    jpeg_subject_record(e, &s, 0, s.scan.frame.mcus_across)) {
		for (int n = 0; n < 3; n++) {
			struct tsi_jpeg_area a = pick(&s.scan.frame, n, &state);

			assert_true(read_area(e, &s, &a));
		}
		++*taken;
	}
	jpeg_subject_close(&s);
}

static void a_file_cut_anywhere_is_read_as_libjpeg_reads_it(void **state)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_widest();
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct image_gen_bytes f = jpeg_subject_noisy(i);

		for (size_t len = 0; len <= f.len; len++)
			check_any(e, f.data, len, len, &taken);
		free(f.data);
	}
	/* The whole, and without all or half of its end marker. */
	assert_int_equal(taken, 6 * 3);
	tsi_jpeg_entropy_destroy(e);
}

static void flipped_bytes_are_read_as_libjpeg_reads_them(void **state)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_widest();
	struct tsi_jpeg_entropy *plain = jpeg_subject_create(TSI_SIMD_SCALAR);
	unsigned taken = 0, tries = 0;
	uint64_t r = 7;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct image_gen_bytes f = jpeg_subject_noisy(i);

		for (unsigned n = 0; n < 250; n++, tries++) {
			struct image_gen_bytes c =
				image_gen_copy(f.data, f.len);
			unsigned flips = 1 + image_gen_random(&r) % 3;

			for (unsigned k = 0; k < flips; k++)
				c.data[image_gen_random(&r) % c.len] ^=
					(uint8_t)(1
						  << image_gen_random(&r) % 8);
			check_any(n % 4 ? e : plain, c.data, c.len, n, &taken);
			free(c.data);
		}
		free(f.data);
	}
	print_message("%u of %u are read\n", taken, tries);
	/* Some flips make another good file, but not all. */
	assert_in_range(taken, tries / 50, tries * 3 / 4);
	tsi_jpeg_entropy_destroy(plain);
	tsi_jpeg_entropy_destroy(e);
}

static const char *data_folder(void)
{
	const char *data = getenv("TSOCK_TEST_DATA");

	return data ? data : "../shared/data";
}

static void check_path(struct tsi_jpeg_entropy *e, const char *path,
		       size_t steps, unsigned *seen)
{
	struct image_gen_bytes f = { 0 };
	FILE *in = fopen(path, "rb");
	struct jpeg_subject s;
	long len;

	if (!in)
		return;
	if (!fseek(in, 0, SEEK_END) && (len = ftell(in)) > 0) {
		f.len = (size_t)len;
		f.data = malloc(f.len);
		rewind(in);
		assert_int_equal(fread(f.data, 1, f.len, in), f.len);
		if (jpeg_subject_open(&s, f.data, f.len)) {
			check_good(e, &s, steps, 2, f.len);
			jpeg_subject_close(&s);
			++*seen;
		}
	}
	fclose(in);
	free(f.data);
}

/* Number of files that a pattern finds below the data's folder. */
static size_t check_pattern(struct tsi_jpeg_entropy *e, const char *pattern,
			    size_t steps)
{
	unsigned seen = 0;
	char path[4096];
	glob_t found;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", data_folder(), pattern);
	if (glob(path, 0, NULL, &found))
		return 0;
	for (size_t i = 0; i < found.gl_pathc; i += SANITIZED ? 3 : 1)
		check_path(e, found.gl_pathv[i], steps, &seen);
	print_message("%u of %zu files are read\n", seen, found.gl_pathc);
	assert_int_not_equal(seen, 0);
	n = found.gl_pathc;
	globfree(&found);
	return n;
}

/* With every step some, and with the one that the index has all of them. */
static void photographs_give_libjpegs_coefficients(void **state)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_create(TSI_SIMD_BEST);
	size_t n = check_pattern(e, "imagenet-sample/val/*/*", STEPS);

	(void)state;
	n += check_pattern(e, "imagenet-sample/train/*/*", 1);
	tsi_jpeg_entropy_destroy(e);
	if (!n) {
		print_message("no photographs at hand\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generated_files_give_libjpegs_coefficients),
		cmocka_unit_test(every_row_and_column_is_an_entry),
		cmocka_unit_test(
			a_file_cut_anywhere_is_read_as_libjpeg_reads_it),
		cmocka_unit_test(flipped_bytes_are_read_as_libjpeg_reads_them),
		cmocka_unit_test(photographs_give_libjpegs_coefficients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
