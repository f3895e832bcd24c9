/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_damage.c - data that were damaged after their entries had been
 * recorded: the decoders of four and of sixteen pieces at once agree on them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test/lib/jpeg_subject.h"

/* All of a file's rows, as two pieces each. */
static bool read_all(struct tsi_jpeg_entropy *e, const struct jpeg_subject *s,
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

			jpeg_subject_cut(s, &a, y, x, to, &piece[n]);
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
		       struct tsi_jpeg_entropy *plain,
		       const struct jpeg_subject *s, unsigned *more)
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
 * somebody forged: neither decoder crashes, and they agree, but for a block
 * that ends with zeros without need: what reads many at once doesn't see that.
 */
static void damage_behind_entries_is_found_by_every_decoder(void **state)
{
	struct tsi_jpeg_entropy *e = jpeg_subject_widest();
	struct tsi_jpeg_entropy *plain = jpeg_subject_create(TSI_SIMD_SCALAR);
	unsigned taken = 0, more = 0, tries = 0;
	uint64_t r = 3;

	(void)state;
	for (unsigned i = 0; i < 40; i++) {
		struct image_gen_bytes f = jpeg_subject_noisy(i);
		struct jpeg_subject s;

		assert_true(jpeg_subject_open(&s, f.data, f.len));
		s.step = 1 + i % 3;
		assert_true(jpeg_subject_record(e, &s, 0,
						s.scan.frame.mcus_across));
		assert_true(read_alike(e, plain, &s, &more));
		for (unsigned n = 0; n < 250; n++, tries++) {
			size_t at = s.scan.data + image_gen_random(&r) %
							  (f.len - s.scan.data);

			s.file.data[at] ^=
				(uint8_t)(1 << image_gen_random(&r) % 8);
			taken += read_alike(e, plain, &s, &more);
			s.file.data[at] = f.data[at];
		}
		jpeg_subject_close(&s);
		free(f.data);
	}
	print_message("%u of %u are read, %u by one alone\n", taken, tries,
		      more);
	assert_in_range(taken, tries / 50, tries * 49 / 50);
	assert_in_range(more, 0, tries / 50);
	tsi_jpeg_entropy_destroy(plain);
	tsi_jpeg_entropy_destroy(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			damage_behind_entries_is_found_by_every_decoder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
