/* SPDX-License-Identifier: MIT */
/*
 * wide_lookup.c - tables by which wide.c reads Huffman codes.
 */
#include "jpeg/wide_lookup.h"

#include <stdbool.h>

#define SLOW (1 << TSI_WIDE_ADVANCE_SHIFT | TSI_WIDE_SLOW)

static void fill_entries(uint16_t *to, uint32_t n, unsigned entry)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = (uint16_t)entry;
}

/* The n entries of a code of so many bits; its first magnitude bit is seen. */
static void make_code(uint16_t *to, uint32_t n, unsigned bits, unsigned symbol,
		      bool dc)
{
	unsigned size = dc ? symbol : symbol & 15;
	unsigned run = dc ? 0 : symbol >> 4;
	unsigned most = dc ? TSI_DC_SIZE_MAX : TSI_AC_SIZE_MAX;
	unsigned entry = (bits + size) | size << TSI_WIDE_SIZE_SHIFT |
			 (run + 1) << TSI_WIDE_ADVANCE_SHIFT;

	if (!dc && !symbol) {
		fill_entries(to, n, entry | TSI_WIDE_END);
	} else if (!size && (dc || symbol == 0xf0)) {
		fill_entries(to, n, entry);
	} else if (!size || size > most || n < 2 ||
		   bits + size > TSI_WIDE_BITS_MAX) {
		fill_entries(to, n, SLOW);
	} else {
		fill_entries(to, n / 2, entry | TSI_WIDE_NEGATIVE);
		fill_entries(to + n / 2, n / 2, entry);
	}
}

/* The codes that look[] doesn't see whole; symbol is that of the first one. */
static uint32_t make_longs(uint16_t *to, const uint8_t *count,
			   const uint8_t *symbol)
{
	uint32_t at = 0;

	for (unsigned bits = TSI_WIDE_LOOK + 1; bits <= 16; bits++)
		for (unsigned i = count[bits - 1]; i; i--) {
			uint32_t n = UINT32_C(1) << (TSI_WIDE_LONG - bits);

			if (at + n > TSI_WIDE_LONGS)
				return at;
			make_code(to + at, n, bits, *symbol++, false);
			at += n;
		}
	return at;
}

void tsi_wide_lookup(struct tsi_wide_tables *w, unsigned t,
		     const struct tsi_jpeg_codes *codes)
{
	bool dc = t >= TSI_JPEG_COMPS;
	const uint8_t *symbol = codes->symbol;
	uint16_t *look = w->look + TSI_WIDE_TABLE(t);
	uint32_t at = 0;

	tsi_lookup_codes(codes, &w->codes[t]);
	for (unsigned bits = 1; bits <= TSI_WIDE_LOOK; bits++)
		for (unsigned i = codes->count[bits - 1]; i; i--) {
			uint32_t n = UINT32_C(1) << (TSI_WIDE_LOOK - bits);

			make_code(look + at, n, bits, *symbol++, dc);
			at += n;
		}
	w->long_first[t] = at << (TSI_WIDE_LONG - TSI_WIDE_LOOK);
	fill_entries(look + at, (1 << TSI_WIDE_LOOK) - at, SLOW);
	w->long_count[t] = dc ? 0
			      : make_longs(w->longs + t * TSI_WIDE_LONGS,
					   codes->count, symbol);
}
