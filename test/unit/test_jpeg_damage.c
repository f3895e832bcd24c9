/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_damage.c - data that were damaged after their entries had been
 * recorded: the decoders of four and of sixteen pieces at once read what a
 * decoder reads that takes bit by bit, and refuse what that one refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/lib/jpeg_subject.h"

/* ------------------------------------------------------------------------
 * A decoder that is slow and plain: only says whether the data are good
 */

struct bits {
	uint8_t bytes[65536]; /* without stuffed zeros; zeros follow */
	size_t len;
	size_t at; /* bits */
};

/* What a decoder sees of the data from a piece's entry on. */
static void see(const struct jpeg_subject *s, const struct tsi_jpeg_piece *p,
		struct bits *b)
{
	const uint8_t *data = s->file.data + s->scan.data;
	size_t end = s->file.len - s->scan.data;

	if (p->end && end > p->end && end - p->end >= 2)
		end = p->end + 2;
	memset(b, 0, sizeof(*b));
	b->at = p->entry.bit % 8;
	for (size_t i = p->entry.bit / 8; i < end; i++) {
		b->bytes[b->len++] = data[i];
		if (data[i] == 0xff && (i + 1 == end || data[++i])) {
			b->len--;
			return;
		}
	}
}

static unsigned take(struct bits *b, unsigned n)
{
	unsigned v = 0;

	for (; n; n--, b->at++)
		v = v << 1 | (b->bytes[b->at / 8] >> (7 - b->at % 8) & 1u);
	return v;
}

/* -1: no code begins like that. */
static int symbol_of(const struct tsi_jpeg_codes *t, struct bits *b)
{
	uint32_t code = 0, first = 0, n = 0;

	for (unsigned bits = 1; bits <= 16; bits++) {
		code = code << 1 | take(b, 1);
		first <<= 1;
		if (code - first < t->count[bits - 1])
			return t->symbol[n + code - first];
		n += t->count[bits - 1];
		first += t->count[bits - 1];
	}
	return -1;
}

static bool good_dc(const struct tsi_jpeg_codes *t, struct bits *b, int *pred)
{
	int size = symbol_of(t, b), v;

	if (size < 0 || size > 11)
		return false;
	v = (int)take(b, (unsigned)size);
	if (size && v < 1 << (size - 1))
		v -= (1 << size) - 1;
	*pred += v;
	return *pred >= -2048 && *pred <= 2047;
}

/* zeros: a block may end with zeros that it has no need of. */
static bool good_ac(const struct tsi_jpeg_codes *t, struct bits *b, bool zeros)
{
	bool after_zeros = false;

	for (int k = 0; k < 63;) {
		int symbol = symbol_of(t, b), size = symbol & 15;

		if (!symbol)
			return zeros || !after_zeros;
		k += (symbol >> 4) + 1;
		after_zeros = symbol == 0xf0;
		if (symbol < 0 || k > 63 || size > 10 ||
		    (!size && (!after_zeros || (k == 63 && !zeros))))
			return false;
		take(b, (unsigned)size);
	}
	return true;
}

static bool good_piece(const struct jpeg_subject *s,
		       const struct tsi_jpeg_piece *p, bool zeros)
{
	struct tsi_jpeg_unit unit[TSI_JPEG_UNITS_MAX];
	unsigned units = tsi_jpeg_units(&s->scan.frame, unit);
	static struct bits b;
	int pred[TSI_JPEG_COMPS];

	see(s, p, &b);
	for (int c = 0; c < TSI_JPEG_COMPS; c++)
		pred[c] = p->entry.dc[c];
	for (uint32_t x = p->column; x < p->right; x++)
		for (unsigned u = 0; u < units; u++) {
			unsigned c = unit[u].comp;

			if (!good_dc(&s->scan.dc[c], &b, &pred[c]) ||
			    !good_ac(&s->scan.ac[c], &b, zeros) ||
			    b.at > b.len * 8)
				return false;
		}
	return true;
}

/* ------------------------------------------------------------------------
 * The decoders
 */

#define PIECES 1000

/* All of a file's rows, as two pieces each. */
static uint32_t cut_all(const struct jpeg_subject *s,
			struct tsi_jpeg_piece piece[PIECES])
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_area a = { 0, 0, f->mcus_across, f->mcus_down };
	uint32_t n = 0;

	for (uint32_t y = 0; y < a.down; y++)
		for (uint32_t x = 0; x < a.across; n++) {
			uint32_t to = x ? a.across : (a.across + 1) / 2;

			assert_in_range(n, 0, PIECES - 1);
			jpeg_subject_cut(s, &a, y, x, to, &piece[n]);
			x = to;
		}
	return n;
}

static bool read_all(struct tsi_jpeg_entropy *e, const struct jpeg_subject *s,
		     struct tsi_jpeg_blocks *b)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_area a = { 0, 0, f->mcus_across, f->mcus_down };
	struct tsi_jpeg_piece piece[PIECES];
	uint32_t n = cut_all(s, piece);

	jpeg_stock_alloc(f, &a, b);
	tsi_jpeg_entropy_open(e, &s->scan, s->file.data, s->file.len);
	return tsi_jpeg_entropy_read(e, piece, n, b);
}

static bool good(const struct jpeg_subject *s, bool zeros)
{
	struct tsi_jpeg_piece piece[PIECES];
	uint32_t n = cut_all(s, piece);

	for (uint32_t i = 0; i < n; i++)
		if (!good_piece(s, &piece[i], zeros))
			return false;
	return true;
}

static struct tsi_jpeg_entropy *widest, *plain;
static bool is_wide; /* widest reads more at once than plain */

/* Both read what they should, and the same; returns whether they read. */
static bool read_alike(const struct jpeg_subject *s)
{
	const struct tsi_jpeg_frame *f = &s->scan.frame;
	struct tsi_jpeg_blocks b, want;
	bool ok = read_all(plain, s, &want), too = read_all(widest, s, &b);

	assert_int_equal(ok, good(s, false));
	assert_int_equal(too, good(s, is_wide));
	for (int c = 0; c < f->comps && ok; c++) {
		size_t n = (size_t)b.stride[c] * f->mcus_down * f->comp[c].v;

		assert_memory_equal(b.coef[c], want.coef[c], n * 128);
		assert_memory_equal(b.last[c], want.last[c], n);
	}
	jpeg_stock_drop(&b);
	jpeg_stock_drop(&want);
	return ok;
}

/* Flip a bit of the data. */
static bool flip(struct jpeg_subject *s, uint64_t *r)
{
	size_t len = s->file.len - s->scan.data;
	size_t at = s->scan.data + image_gen_random(r) % len;
	uint8_t was = s->file.data[at];
	bool ok;

	s->file.data[at] ^= (uint8_t)(1 << image_gen_random(r) % 8);
	ok = read_alike(s);
	s->file.data[at] = was;
	return ok;
}

/* Leave out the end of the data, or as little as a byte. */
static bool shorten(struct jpeg_subject *s, uint64_t *r)
{
	size_t len = s->file.len, n = len - s->scan.data;
	bool ok;

	s->file.len -=
		1 + image_gen_random(r) % (image_gen_random(r) % 2 ? n : 16);
	ok = read_alike(s);
	s->file.len = len;
	return ok;
}

/* Another symbol for an AC code. */
static bool change_symbol(struct jpeg_subject *s, uint64_t *r)
{
	const struct tsi_jpeg_codes *t =
		&s->scan.ac[image_gen_random(r) % s->scan.frame.comps];
	unsigned n = 0;
	uint8_t *symbol, was;
	bool ok;

	for (int i = 0; i < 16; i++)
		n += t->count[i];
	symbol = s->file.data + (t->symbol - s->file.data) +
		 image_gen_random(r) % n;
	was = *symbol;
	*symbol = (uint8_t)image_gen_random(r);
	ok = read_alike(s);
	*symbol = was;
	return ok;
}

/* Other DC coefficients before a row. */
static bool change_dc(struct jpeg_subject *s, uint64_t *r)
{
	struct tsi_jpeg_entry *e =
		&s->row[image_gen_random(r) % s->scan.frame.mcus_down];
	struct tsi_jpeg_entry was = *e;
	int edge = image_gen_random(r) % 2 ? 2047 : -2048;
	bool ok;

	for (int c = 0; c < TSI_JPEG_COMPS; c++)
		e->dc[c] = (int16_t)(edge -
				     edge / 2 * (int)(image_gen_random(r) % 2));
	ok = read_alike(s);
	*e = was;
	return ok;
}

/*
 * Entries of an undamaged file, and damage behind them or of themselves, as
 * with an index that somebody forged.
 */
static void by(bool (*damage)(struct jpeg_subject *s, uint64_t *r))
{
	unsigned taken = 0, tries = 0;
	uint64_t r = 3;

	for (unsigned i = 0; i < 40; i++) {
		struct image_gen_bytes f = jpeg_subject_noisy(i);
		struct jpeg_subject s;

		assert_true(jpeg_subject_open(&s, f.data, f.len));
		s.step = 1 + i % 3;
		assert_true(jpeg_subject_record(plain, &s, 0,
						s.scan.frame.mcus_across));
		assert_true(read_alike(&s));
		for (int n = 0; n < 100; n++, tries++)
			taken += damage(&s, &r);
		jpeg_subject_close(&s);
		free(f.data);
	}
	print_message("%u of %u are read\n", taken, tries);
	assert_in_range(taken, tries / 50, tries * 49 / 50);
}

static void flipped_bits_are_found_by_every_decoder(void **state)
{
	(void)state;
	by(flip);
}

static void a_missing_end_is_found_by_every_decoder(void **state)
{
	(void)state;
	by(shorten);
}

static void symbols_without_a_meaning_are_found_by_every_decoder(void **state)
{
	(void)state;
	by(change_symbol);
}

static void
dc_coefficients_beyond_12_bits_are_found_by_every_decoder(void **state)
{
	(void)state;
	by(change_dc);
}

static int set_up(void **state)
{
	struct tsi_jpeg_entropy *wide = jpeg_subject_create(TSI_SIMD_AVX512);

	(void)state;
	is_wide = wide;
	widest = wide ? wide : jpeg_subject_widest();
	plain = jpeg_subject_create(TSI_SIMD_SCALAR);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tsi_jpeg_entropy_destroy(widest);
	tsi_jpeg_entropy_destroy(plain);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flipped_bits_are_found_by_every_decoder),
		cmocka_unit_test(a_missing_end_is_found_by_every_decoder),
		cmocka_unit_test(
			symbols_without_a_meaning_are_found_by_every_decoder),
		cmocka_unit_test(
			dc_coefficients_beyond_12_bits_are_found_by_every_decoder),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
