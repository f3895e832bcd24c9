/* SPDX-License-Identifier: MIT */
/*
 * lzw.c - GIF's codes.
 *
 * A code that isn't a number itself means the numbers of the code before some
 * place, and the one behind them: as these have been written one after the
 * other, it is a piece of what is there already.
 */
#include "gif/lzw.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "tsock/tsock.h"

#define BITS 12u

/* The codes' bits, out of blocks. */
struct bits {
	const uint8_t *data;
	size_t len, at;
	unsigned block; /* bytes left of this one */
	uint64_t buffer;
	unsigned have;
};

/* Go on to the next block with bytes; false: it isn't there as a whole. */
static bool next_block(struct bits *b)
{
	while (!b->block) {
		if (b->at >= b->len || b->data[b->at] >= b->len - b->at)
			return false;
		b->block = b->data[b->at++];
	}
	return true;
}

/* The next code, of so many bits; -1: there is none. */
static int next_code(struct bits *b, unsigned size)
{
	unsigned code;

	while (b->have < size) {
		if (!b->block && !next_block(b))
			return -1;
		b->buffer |= (uint64_t)b->data[b->at++] << b->have;
		b->have += 8;
		b->block--;
	}
	code = (unsigned)b->buffer & ((1u << size) - 1);
	b->buffer >>= size;
	b->have -= size;
	return (int)code;
}

/* Copy n of the numbers at from, perhaps to where they end and beyond. */
static void copy(uint8_t *to, const uint8_t *from, size_t n)
{
	if (from + n <= to)
		memcpy(to, from, n);
	else
		for (size_t i = 0; i < n; i++)
			to[i] = from[i];
}

static int truncated(void)
{
	return tsi_err(TSOCK_EDATA,
		       "bad GIF: truncated: its first image has fewer pixels "
		       "than its size says");
}

/* The codes so far. */
struct codes {
	unsigned clear, size, next;
	bool fresh; /* there is no code before */
};

static void forget(struct codes *c, unsigned bits)
{
	*c = (struct codes){
		.clear = 1u << bits,
		.size = bits + 1,
		.next = (1u << bits) + 2,
		.fresh = true,
	};
}

/* The next code is for numbers [from, from + count). */
static void add(struct tsi_lzw *z, struct codes *c, size_t from, size_t count)
{
	if (c->next >= TSI_LZW_CODES)
		return;
	z->from[c->next] = (uint32_t)from;
	z->count[c->next] = (uint32_t)count;
}

/* Once the code that may be the next one itself is read. */
static void grow(struct codes *c)
{
	if (c->next >= TSI_LZW_CODES)
		return;
	if (c->next == (1u << c->size) - 1 && c->size < BITS)
		c->size++;
	c->next++;
}

/* Write what a code means to place at; how many numbers, at most. */
static size_t put(const struct tsi_lzw *z, unsigned clear, unsigned code,
		  uint8_t *to, size_t at, size_t most)
{
	size_t n;

	if (code < clear) {
		to[at] = (uint8_t)code;
		return 1;
	}
	n = z->count[code] < most ? z->count[code] : most;
	copy(to + at, to + z->from[code], n);
	return n;
}

int tsi_lzw_decode(struct tsi_lzw *z, const uint8_t *data, size_t len,
		   unsigned bits, uint8_t *to, size_t n)
{
	struct bits b = { .data = data, .len = len };
	struct codes c;
	size_t at = 0, last = 0; /* where the code before begins */

	if (bits > 8)
		return tsi_err(TSOCK_EDATA, "bad GIF: codes of %u bits", bits);
	forget(&c, bits);
	while (at < n) {
		int next = next_code(&b, c.size);
		unsigned code = (unsigned)next;

		if (next < 0 || code == c.clear + 1)
			return truncated();
		if (code == c.clear) {
			forget(&c, bits);
			continue;
		}
		if (code > (c.fresh ? c.clear : c.next))
			return tsi_err(TSOCK_EDATA,
				       "bad GIF: its image is damaged");
		if (!c.fresh)
			add(z, &c, last, at - last + 1);
		last = at;
		at += put(z, c.clear, code, to, at, n - at);
		if (!c.fresh)
			grow(&c);
		c.fresh = false;
	}
	return 0;
}
