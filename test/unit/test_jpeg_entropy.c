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
#include "image/jpeg_entropy.h"
#include "test/lib/image_gen.h"
#include "test/lib/jpeg_stock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A file, and where its rows and columns begin. */
struct subject {
	struct image_gen_bytes file;
	struct tsi_jpeg_scan scan;
	struct jpeg_stock want;
	uint32_t step;
	uint32_t columns;           /* entries of a row, without the first */
	struct tsi_jpeg_entry *row; /* one more than there are rows */
	struct tsi_jpeg_entry *column;
};

static struct tsi_jpeg_entropy *create(enum tsi_simd simd)
{
	struct tsi_jpeg_entropy *e = NULL;
	int err = tsi_jpeg_entropy_create(simd, &e);

	if (err == TSOCK_ENOTSUP && simd != TSI_SIMD_SCALAR)
		return NULL;
	assert_int_equal(err, 0);
	return e;
}

/* Read all from the top, with part of each row's blocks; false: declined. */
static bool record(struct tsi_jpeg_entropy *e, struct subject *s, uint32_t left,
		   uint32_t across)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;

	s->columns = s->step ? (f->mcus_across - 1) / s->step : 0;
	s->row = calloc(f->mcus_down + 1, sizeof(*s->row));
	s->column = calloc((size_t)f->mcus_down * s->columns + 1,
			   sizeof(*s->column));
	tsi_jpeg_entropy_open(e, &s->scan, s->file.data, s->file.len);
	for (uint32_t y = 0; y < f->mcus_down; y++) {
		struct tsi_jpeg_area a = { left, y, across, 1 };
		struct tsi_jpeg_blocks b;
		bool ok;

		jpeg_stock_alloc(f, &a, &b);
		ok = tsi_jpeg_entropy_record(
			e, &s->row[y], across ? &b : NULL, s->step,
			s->column + (size_t)y * s->columns, &s->row[y + 1]);
		if (ok && across)
			jpeg_stock_check(f, &s->want, &b);
		jpeg_stock_drop(&b);
		if (!ok)
			return false;
	}
	return true;
}

/* MCUs [left, right) of row y of an area, from the entry nearest to the left. */
static void cut(const struct subject *s, const struct tsi_jpeg_area *a,
		uint32_t y, uint32_t left, uint32_t right,
		struct tsi_jpeg_piece *p)
{
	uint32_t n = s->step ? left / s->step : 0, row = a->top + y;

	p->entry =
		n ? s->column[(size_t)row * s->columns + n - 1] : s->row[row];
	p->column = n * s->step;
	p->row = y;
	p->left = left;
	p->right = right;
	p->end = y % 2 ? s->row[row + 1].bit / 8 + 1 : 0;
}

/* Read an area, of each row the same number of pieces at most. */
static bool read_pieces(struct tsi_jpeg_entropy *e, const struct subject *s,
			const struct tsi_jpeg_area *a, uint32_t most)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_piece *piece =
		calloc((size_t)a->down * most, sizeof(*piece));
	uint32_t across = (a->across + most - 1) / most, n = 0;
	struct tsi_jpeg_blocks b;
	bool ok;

	for (uint32_t y = 0; y < a->down; y++)
		for (uint32_t x = 0; x < a->across; x += across, n++)
			cut(s, a, y, a->left + x,
			    a->left + (a->across - x < across ? a->across
							      : x + across),
			    &piece[n]);
	jpeg_stock_alloc(f, a, &b);
	ok = tsi_jpeg_entropy_read(e, piece, n, &b);
	if (ok)
		jpeg_stock_check(f, &s->want, &b);
	jpeg_stock_drop(&b);
	free(piece);
	return ok;
}

static bool read_area(struct tsi_jpeg_entropy *e, const struct subject *s,
		      const struct tsi_jpeg_area *a)
{
	bool ok = read_pieces(e, s, a, 1);

	assert_int_equal(read_pieces(e, s, a, 3), ok);
	return ok;
}

static bool subject_open(struct subject *s, const uint8_t *data, size_t len)
{
	memset(s, 0, sizeof(*s));
	if (!tsi_jpeg_scan_read(data, len, &s->scan))
		return false;
	/* Exactly the bytes, so that a sanitizer sees overreading. */
	s->file = image_gen_copy(data, len);
	assert_true(tsi_jpeg_scan_read(s->file.data, len, &s->scan));
	jpeg_stock_read(data, len, &s->want);
	return true;
}

static void forget_entries(struct subject *s)
{
	free(s->row);
	free(s->column);
	s->row = NULL;
	s->column = NULL;
}

static void subject_close(struct subject *s)
{
	jpeg_stock_free(&s->want);
	forget_entries(s);
	free(s->file.data);
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
static void check_good(struct tsi_jpeg_entropy *e, struct subject *s,
		       size_t steps, int areas, uint64_t seed)
{
	static const uint32_t step[STEPS] = { 8, 1, 0, 3 };
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	uint64_t state = seed;

	assert_false(s->want.refused || s->want.warned);
	for (size_t i = 0; i < steps; i++) {
		struct tsi_jpeg_area a = pick(f, (int)i, &state);

		s->step = step[i];
		assert_true(record(e, s, a.left, i == 2 ? 0 : a.across));
		for (int n = 0; n < areas; n++) {
			a = pick(f, n, &state);
			assert_true(read_area(e, s, &a));
		}
		forget_entries(s);
	}
}

static const int luma[][2] = { { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 } };

static struct image_gen_jpeg any_jpeg(unsigned i)
{
	struct image_gen_jpeg g = {
		.width = 1 + i * 7 % 67,
		.height = 1 + i * 13 % 67,
		.components = i % 5 == 4 ? 1 : 3,
		.optimize = i / 3 % 2,
		.quality = 1 + (int)(i * 11 % 100),
		.seed = i,
	};

	g.factor[0][0] = luma[i % 4][0];
	g.factor[0][1] = luma[i % 4][1];
	if (i % 17 == 16 && g.components == 3)
		g.space = JCS_RGB;
	return g;
}

static void generated(enum tsi_simd simd)
{
	struct tsi_jpeg_entropy *e = create(simd);

	for (unsigned i = 0; e && i < 700; i++) {
		struct image_gen_jpeg g = any_jpeg(i);
		struct image_gen_bytes f = image_gen_jpeg(&g);
		struct subject s;

		assert_true(subject_open(&s, f.data, f.len));
		check_good(e, &s, STEPS, 6, i);
		subject_close(&s);
		free(f.data);
	}
	tsi_jpeg_entropy_destroy(e);
}

static void generated_files_give_libjpegs_coefficients(void **state)
{
	(void)state;
	generated(TSI_SIMD_SCALAR);
	generated(TSI_SIMD_AVX2);
	generated(TSI_SIMD_AVX512);
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
			     const struct subject *s)
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
	struct tsi_jpeg_entropy *e = create(simd);
	struct image_gen_bytes f = wide_jpeg(components, factor);

	for (uint32_t step = 1; e && step <= 8; step += 7) {
		struct subject s;

		assert_true(subject_open(&s, f.data, f.len));
		assert_int_equal(s.scan.frame.mcus_across, 19);
		assert_int_equal(s.scan.frame.mcus_down, 5);
		s.step = step;
		assert_true(record(e, &s, 0, 19));
		enter_everywhere(e, &s);
		subject_close(&s);
	}
	free(f.data);
	tsi_jpeg_entropy_destroy(e);
}

static void every_row_and_column_is_an_entry(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(luma); i++) {
		every_entry(TSI_SIMD_SCALAR, 3, luma[i]);
		every_entry(TSI_SIMD_AVX2, 3, luma[i]);
		every_entry(TSI_SIMD_AVX512, 3, luma[i]);
	}
	every_entry(TSI_SIMD_SCALAR, 1, luma[0]);
	every_entry(TSI_SIMD_AVX2, 1, luma[0]);
	every_entry(TSI_SIMD_AVX512, 1, luma[0]);
}

/* Of a file that may be damaged: what is read is what libjpeg reads. */
static void check_any(struct tsi_jpeg_entropy *e, const uint8_t *data,
		      size_t len, uint64_t seed, unsigned *taken)
{
	uint64_t state = seed;
	struct subject s;

	if (!subject_open(&s, data, len))
		return;
	s.step = 1 + (uint32_t)(seed % 5);
	/* Where libjpeg refuses a file for what is behind, nothing is known. */
	if (!s.want.refused && record(e, &s, 0, s.scan.frame.mcus_across)) {
		for (int n = 0; n < 3; n++) {
			struct tsi_jpeg_area a = pick(&s.scan.frame, n, &state);

			assert_true(read_area(e, &s, &a));
		}
		++*taken;
	}
	subject_close(&s);
}

/* Quality 100 and noise: long codes, full blocks, many stuffed bytes. */
static struct image_gen_bytes noisy(unsigned i)
{
	struct image_gen_jpeg g = any_jpeg(i);

	g.width = 20 + i % 30;
	g.height = 50 - i % 30;
	g.quality = 40 + (int)(i * 7 % 61);
	return image_gen_jpeg(&g);
}

/* The decoder that reads the most pieces at once, of as few as there are. */
static struct tsi_jpeg_entropy *create_widest(void)
{
	struct tsi_jpeg_entropy *e = create(TSI_SIMD_AVX512);

	return e ? e : create(TSI_SIMD_BEST);
}

static void a_file_cut_anywhere_is_read_as_libjpeg_reads_it(void **state)
{
	struct tsi_jpeg_entropy *e = create_widest();
	unsigned taken = 0;

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct image_gen_bytes f = noisy(i);

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
	struct tsi_jpeg_entropy *e = create_widest();
	struct tsi_jpeg_entropy *plain = create(TSI_SIMD_SCALAR);
	unsigned taken = 0, tries = 0;
	uint64_t r = 7;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct image_gen_bytes f = noisy(i);

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

/* All of a file's rows, as two pieces each. */
static bool read_all(struct tsi_jpeg_entropy *e, const struct subject *s,
		     struct tsi_jpeg_blocks *b)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_area a = { 0, 0, f->mcus_across, f->mcus_down };
	struct tsi_jpeg_piece *piece = calloc(2 * a.down, sizeof(*piece));
	uint32_t n = 0;
	bool ok;

	for (uint32_t y = 0; y < a.down; y++)
		for (uint32_t x = 0; x < a.across; n++) {
			uint32_t to = x ? a.across : (a.across + 1) / 2;

			cut(s, &a, y, x, to, &piece[n]);
			x = to;
		}
	jpeg_stock_alloc(f, &a, b);
	tsi_jpeg_entropy_open(e, &s->scan, s->file.data, s->file.len);
	ok = tsi_jpeg_entropy_read(e, piece, n, b);
	free(piece);
	return ok;
}

/* What plain reads e reads, too; returns whether plain does. */
static bool read_alike(struct tsi_jpeg_entropy *e,
		       struct tsi_jpeg_entropy *plain, const struct subject *s,
		       unsigned *more)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_blocks b, want;
	bool ok = read_all(plain, s, &want), too = read_all(e, s, &b);

	assert_true(too || !ok);
	*more += too && !ok;
	for (int c = 0; c < f->comps && ok; c++) {
		size_t n = (size_t)b.stride[c] * f->mcus_down * f->comp[c].v;

		assert_memory_equal(b.coef[c], want.coef[c], n * 128);
		assert_memory_equal(b.last[c], want.last[c], n);
	}
	jpeg_stock_drop(&b);
	jpeg_stock_drop(&want);
	return ok;
}

/*
 * Entries of an undamaged file, and damage behind them, as with an index that
 * somebody forged: neither decoder crashes, and they agree, but for a block that
 * ends with zeros without need: what reads many at once doesn't see that.
 */
static void damage_behind_entries_is_found_by_every_decoder(void **state)
{
	struct tsi_jpeg_entropy *e = create_widest();
	struct tsi_jpeg_entropy *plain = create(TSI_SIMD_SCALAR);
	unsigned taken = 0, more = 0, tries = 0;
	uint64_t r = 3;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct image_gen_bytes f = noisy(i);
		struct subject s;

		assert_true(subject_open(&s, f.data, f.len));
		s.step = 1 + i % 3;
		assert_true(record(e, &s, 0, s.scan.frame.mcus_across));
		assert_true(read_alike(e, plain, &s, &more));
		for (unsigned n = 0; n < 250; n++, tries++) {
			size_t at = s.scan.data + image_gen_random(&r) %
							  (f.len - s.scan.data);

			s.file.data[at] ^=
				(uint8_t)(1 << image_gen_random(&r) % 8);
			taken += read_alike(e, plain, &s, &more);
			s.file.data[at] = f.data[at];
		}
		subject_close(&s);
		free(f.data);
	}
	print_message("%u of %u are read, %u by one alone\n", taken, tries,
		      more);
	assert_in_range(taken, tries / 50, tries * 49 / 50);
	assert_in_range(more, 0, tries / 50);
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
	struct subject s;
	long len;

	if (!in)
		return;
	if (!fseek(in, 0, SEEK_END) && (len = ftell(in)) > 0) {
		f.len = (size_t)len;
		f.data = malloc(f.len);
		rewind(in);
		assert_int_equal(fread(f.data, 1, f.len, in), f.len);
		if (subject_open(&s, f.data, f.len)) {
			check_good(e, &s, steps, 2, f.len);
			subject_close(&s);
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
	for (size_t i = 0; i < found.gl_pathc; i++)
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
	struct tsi_jpeg_entropy *e = create(TSI_SIMD_BEST);
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
		cmocka_unit_test(
			damage_behind_entries_is_found_by_every_decoder),
		cmocka_unit_test(photographs_give_libjpegs_coefficients),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
