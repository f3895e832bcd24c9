/* SPDX-License-Identifier: MIT */
/*
 * lookup.c - tables by which entropy.c reads Huffman codes.
 *
 * Codes ascend, so the entries of one follow those of the last.
 */
#include "jpeg/lookup.h"

#include <string.h>

/* Bits of code and magnitude, so that one load does for three codes. */
#define SHORT_MAX 19

void tsi_lookup_codes(const struct tsi_jpeg_codes *t, struct tsi_codes *c)
{
	uint32_t code = 0;
	int32_t n = 0;

	for (unsigned bits = 1; bits <= 16; bits++) {
		c->symbol_of[bits] = n - (int32_t)code;
		code += t->count[bits - 1];
		n += t->count[bits - 1];
		c->end[bits] = code << (16 - bits);
		code <<= 1;
	}
	memcpy(c->symbol, t->symbol, (size_t)n);
}

static void fill_words(uint32_t *to, size_t n, uint32_t v)
{
	for (size_t i = 0; i < n; i++)
		to[i] = v;
}

static uint32_t lookup_entry(unsigned total, unsigned advance, unsigned size)
{
	return total | advance << 8 | size << 16;
}

void tsi_lookup_dc(const struct tsi_jpeg_codes *t, struct tsi_dc_table *d)
{
	const uint8_t *symbol = t->symbol;
	uint32_t at = 0;

	tsi_lookup_codes(t, &d->codes);
	for (unsigned bits = 1; bits <= TSI_DC_LOOK; bits++)
		for (unsigned i = t->count[bits - 1]; i; i--) {
			unsigned size = *symbol++;
			uint32_t n = UINT32_C(1) << (TSI_DC_LOOK - bits);

			fill_words(
				d->look + at, n,
				size > TSI_DC_SIZE_MAX
					? lookup_entry(0, TSI_LONG_CODE, 0)
					: lookup_entry(bits + size, 0, size));
			at += n;
		}
	fill_words(d->look + at, (1 << TSI_DC_LOOK) - at,
		   lookup_entry(0, TSI_LONG_CODE, 0));
}

/* The entries of one code, whose first magnitude bit is seen too. */
static void make_ac_code(uint32_t *to, unsigned bits, unsigned symbol)
{
	unsigned size = symbol & 15, run = symbol >> 4;
	uint32_t n = UINT32_C(1) << (TSI_AC_LOOK - bits);
	uint32_t v = lookup_entry(bits + size, run + 1, size);

	if (!symbol) {
		fill_words(to, n, lookup_entry(bits, TSI_BLOCK_END, 0));
	} else if (!size || size > TSI_AC_SIZE_MAX || n < 2 ||
		   bits + size > SHORT_MAX) {
		fill_words(to, n, lookup_entry(0, TSI_LONG_CODE, 0));
	} else {
		fill_words(to, n / 2, v | 0xff000000);
		fill_words(to + n / 2, n / 2, v);
	}
}

void tsi_lookup_ac(const struct tsi_jpeg_codes *t, struct tsi_ac_table *a)
{
	const uint8_t *symbol = t->symbol;
	uint32_t at = 0;

	tsi_lookup_codes(t, &a->codes);
	for (unsigned bits = 1; bits <= TSI_AC_LOOK; bits++)
		for (unsigned i = t->count[bits - 1]; i; i--) {
			make_ac_code(a->look + at, bits, *symbol++);
			at += UINT32_C(1) << (TSI_AC_LOOK - bits);
		}
	fill_words(a->look + at, (1 << TSI_AC_LOOK) - at,
		   lookup_entry(0, TSI_LONG_CODE, 0));
}

int tsi_lookup_code(const struct tsi_codes *c, uint64_t v, unsigned *bits)
{
	uint32_t code = (uint32_t)(v >> 48);

	for (unsigned n = 1; n <= 16; n++)
		if (code < c->end[n]) {
			*bits = n;
			return c->symbol[(int32_t)(code >> (16 - n)) +
					 c->symbol_of[n]];
		}
	return -1;
}
