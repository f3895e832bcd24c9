/* SPDX-License-Identifier: MIT */
/*
 * jpeg_entropy.c - Huffman-coded data of a JPEG file to coefficients.
 *
 * A lane reads one row of MCUs.  Lanes take turns of three codes each, so that
 * while one waits for a table the others go on.  A lane's place is the number
 * of a bit; each turn loads 64 bits from there, so nothing is carried from one
 * turn to the next but that number.  Lanes read from windows into which the
 * file's bytes are copied without the stuffed zeros.
 *
 * A turn has one branch for each code: a block's end, a code that isn't in the
 * look-up table, and a coefficient too many all advance beyond the 63rd one.
 */
#include "image/jpeg_entropy.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/jpeg_lookup.h"
#include "image/jpeg_window.h"

#define INLINE static inline __attribute__((always_inline))

#define UNITS 6 /* blocks in an MCU at most */
#define LANES TSI_JPEG_LANES

/* Bytes that an MCU takes at most, and what may be loaded behind it. */
#define MCU_MAX (UNITS * (27 + 63 * 26) / 8 + 16)

_Static_assert(MCU_MAX <= TSI_WINDOW_SLACK, "a window's slack holds an MCU");

struct lane {
	uint64_t at; /* bits from the start of all windows */
	uint32_t k;  /* the zigzag position of the last coefficient */
	uint32_t unit;
	uint32_t mcus; /* left to read before the lane is looked at */
	int32_t dc;    /* the current block's */
	int16_t *coef;
	const struct tsi_ac_table *ac;
	uint64_t stop; /* look at the lane when this bit is reached */
	int32_t pred[TSI_JPEG_COMPS];
	/* Where blocks go, and by how many of them that grows with an MCU. */
	int16_t *to[UNITS];
	uint8_t *last[UNITS];
	uint32_t step[UNITS];
	uint32_t row;  /* of the area */
	bool skipping; /* MCUs left of it */
};

struct tsi_jpeg_entropy;
typedef int run_fn(struct tsi_jpeg_entropy *e, struct lane **lane, int n);

struct tsi_jpeg_entropy {
	struct tsi_jpeg_window window[LANES];
	struct tsi_ac_table ac[TSI_JPEG_COMPS];
	struct tsi_dc_table dc[TSI_JPEG_COMPS];
	_Alignas(64) int16_t spare[LANES][64]; /* blocks that nobody wants */
	uint8_t spare_last;
	struct lane lane[LANES];
	bool recording; /* lane 0 stands at this entry */
	struct tsi_jpeg_entry recorded;
	struct tsi_jpeg_frame frame;
	const uint8_t *data;
	size_t len;
	/* The blocks of an MCU. */
	unsigned units;
	uint8_t comp[UNITS];
	uint8_t x[UNITS];
	uint8_t y[UNITS];
	uint8_t ac_of[TSI_JPEG_COMPS]; /* components may share tables */
	uint8_t dc_of[TSI_JPEG_COMPS];
	tsi_unstuff_fn *unstuff;
	run_fn *run;
};

/*
 * Zigzag to natural order.  What lies behind the last coefficient goes to the
 * first one, which is written when the block has ended.
 */
static const uint8_t natural[256] = {
	0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ------------------------------------------------------------------------
 * Codes, one by one
 */

INLINE uint64_t be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

/* The 57 bits or more from this one on, uppermost first. */
INLINE uint64_t bits_at(const uint8_t *base, uint64_t at)
{
	return be64(base + (at >> 3)) << (at & 7);
}

/* size bits at the top of v, which is more than 0. */
static int magnitude(uint64_t v, unsigned size)
{
	int m = (int)(v >> (64 - size));

	return v >> 63 ? m : m - (1 << size) + 1;
}

/*
 * A code that the look-up table doesn't know, when k coefficients are there.
 * The new k, TSI_BLOCK_END added if the block has ended; -1: damage.
 */
static __attribute__((noinline)) int read_long(const uint8_t *base,
					       struct lane *l, int k)
{
	uint64_t v = bits_at(base, l->at);
	unsigned bits, size, next;
	int symbol = tsi_lookup_code(&l->ac->codes, v, &bits);

	if (symbol < 0)
		return -1;
	size = (unsigned)symbol & 15;
	if (!symbol) {
		l->at += bits;
		return k + TSI_BLOCK_END;
	}
	k += (symbol >> 4) + 1;
	if (k > 63 || size > TSI_AC_SIZE_MAX || (!size && symbol != 0xf0))
		return -1;
	l->at += bits + size;
	if (size)
		l->coef[natural[k]] = (int16_t)magnitude(v << bits, size);
	else if (k == 63 || !tsi_lookup_code(&l->ac->codes, v << bits, &next))
		return -1;
	return k;
}

/* The DC coefficient of the next block. */
INLINE bool read_dc(const struct tsi_jpeg_entropy *e, struct lane *l,
		    unsigned comp)
{
	const struct tsi_dc_table *t = &e->dc[e->dc_of[comp]];
	uint64_t v = bits_at(e->window[0].bytes, l->at);
	uint32_t entry = t->look[v >> (64 - TSI_DC_LOOK)];
	unsigned size = entry >> 16, total = entry & 0xff;
	int32_t dc = l->pred[comp];
	uint32_t sign;

	if (__builtin_expect(!total, 0)) {
		unsigned bits;
		int symbol = tsi_lookup_code(&t->codes, v, &bits);

		if (symbol < 0 || symbol > TSI_DC_SIZE_MAX)
			return false;
		size = (unsigned)symbol;
		total = bits + size;
	}
	v <<= total - size;
	/* No branch on the sign: nobody could foretell which way it goes. */
	sign = (uint32_t)(((int64_t)v >> 63) + 1);
	dc += (int32_t)((uint32_t)(v >> 1 >> (63 - size)) -
			((sign << size) - sign));
	l->at += total;
	l->pred[comp] = dc;
	l->dc = dc;
	return dc >= -2048 && dc <= 2047;
}

/* ------------------------------------------------------------------------
 * Turns
 */

/* By vectors: memset() would be a slow instruction here. */
INLINE void clear(int16_t *block)
{
	typedef int16_t v16 __attribute__((vector_size(32), may_alias));
	v16 *v = (v16 *)(void *)block;

	for (int i = 0; i < 4; i++)
		v[i] = (v16){ 0 };
}

/* Begin with block l->unit of an MCU. */
INLINE bool begin_block(const struct tsi_jpeg_entropy *e, struct lane *l)
{
	unsigned u = l->unit, comp = e->comp[u];

	l->coef = l->to[u];
	l->to[u] += (size_t)64 * l->step[u];
	clear(l->coef);
	l->ac = &e->ac[e->ac_of[comp]];
	l->k = 0;
	return read_dc(e, l, comp);
}

/*
 * k is beyond 62, or a code takes longer.  1: the lane is to be looked at; 0:
 * it goes on; -1: damage.
 */
INLINE int end_block(const struct tsi_jpeg_entropy *e, struct lane *l,
		     uint32_t k)
{
	unsigned u = l->unit;

	if (k >= TSI_LONG_CODE) {
		int now = read_long(e->window[0].bytes, l,
				    (int)k - TSI_LONG_CODE);

		if (now < 63 && now >= 0) {
			l->k = (uint32_t)now;
			return 0;
		}
		k = (uint32_t)now;
	}
	if (k >= TSI_BLOCK_END)
		k -= TSI_BLOCK_END;
	else if (k != 63)
		return -1;
	if (k > 63)
		return -1;
	l->coef[0] = (int16_t)l->dc;
	*l->last[u] = (uint8_t)k;
	l->last[u] += l->step[u];
	if (++u == e->units) {
		u = 0;
		l->mcus--;
	}
	l->unit = u;
	if (!u && (!l->mcus || l->at >= l->stop))
		return 1;
	return begin_block(e, l) ? 0 : -1;
}

INLINE int turn(const struct tsi_jpeg_entropy *e, struct lane *l)
{
	const uint32_t *table = l->ac->look;
	uint64_t at = l->at, v = bits_at(e->window[0].bytes, at);
	int16_t *coef = l->coef;
	uint32_t k = l->k;

#pragma GCC unroll 3
	for (int i = 0; i < 3; i++) {
		uint32_t entry = table[v >> (64 - TSI_AC_LOOK)];
		unsigned total = entry & 0xff;
		uint32_t size = entry >> 16 & 0xff;
		uint32_t sign = (uint32_t)((int32_t)entry >> 31);
		uint32_t m = (uint32_t)(v >> (-total & 63)) ^ sign;

		m &= (uint32_t)(UINT64_C(1) << size) - 1;
		k += entry >> 8 & 0xff;
		v <<= total;
		at += total;
		coef[natural[k]] = (int16_t)((m ^ sign) - sign);
		if (__builtin_expect(k >= 63, 0)) {
			l->at = at;
			return end_block(e, l, k);
		}
	}
	l->at = at;
	l->k = k;
	return 0;
}

/*
 * Turns until a lane is to be looked at, or is damaged: returns its number, or
 * -1 - its number.
 */
#define TURN(i) \
	do { \
		int r = turn(e, lane[i]); \
\
		if (__builtin_expect(r, 0)) \
			return r < 0 ? -1 - (i) : (i); \
	} while (0)

INLINE int turns(const struct tsi_jpeg_entropy *e, struct lane **lane, int n)
{
	for (;;) {
		TURN(0);
		if (n > 1)
			TURN(1);
		if (n > 2)
			TURN(2);
		if (n > 3)
			TURN(3);
	}
}

INLINE int run(struct tsi_jpeg_entropy *e, struct lane **lane, int n)
{
	switch (n) {
	case 4:
		return turns(e, lane, 4);
	case 3:
		return turns(e, lane, 3);
	case 2:
		return turns(e, lane, 2);
	default:
		return turns(e, lane, 1);
	}
}

static int run_scalar(struct tsi_jpeg_entropy *e, struct lane **lane, int n)
{
	return run(e, lane, n);
}

__attribute__((target("avx2,bmi,bmi2,movbe"))) static int
run_avx2(struct tsi_jpeg_entropy *e, struct lane **lane, int n)
{
	return run(e, lane, n);
}

/* ------------------------------------------------------------------------
 * Windows
 */

/* The first bit of lane l's window. */
static uint64_t first_bit(const struct tsi_jpeg_entropy *e,
			  const struct lane *l)
{
	return (uint64_t)(l - e->lane) * sizeof(e->window[0]) * 8;
}

/* What the lane may read before it is looked at again. */
static void set_stop(const struct tsi_jpeg_entropy *e, struct lane *l)
{
	const struct tsi_jpeg_window *w = &e->window[l - e->lane];

	l->stop = first_bit(e, l) + (uint64_t)w->filled * 8;
	if (w->ended)
		l->stop++;
	else
		l->stop -= TSI_WINDOW_SLACK * 8;
}

/* The bytes behind `end` aren't needed, or it is 0. */
static void enter(struct tsi_jpeg_entropy *e, struct lane *l,
		  const struct tsi_jpeg_entry *from, uint32_t end)
{
	tsi_jpeg_window_open(&e->window[l - e->lane], e->unstuff, e->data,
			     e->len, from->bit / 8, end);
	l->at = first_bit(e, l) + from->bit % 8;
	l->unit = 0;
	for (unsigned i = 0; i < TSI_JPEG_COMPS; i++)
		l->pred[i] = from->dc[i];
	set_stop(e, l);
}

/* Where lane l stands. */
static void leave(struct tsi_jpeg_entropy *e, struct lane *l,
		  struct tsi_jpeg_entry *out)
{
	uint64_t bit = l->at - first_bit(e, l);
	size_t byte = tsi_jpeg_window_offset(&e->window[l - e->lane],
					     (size_t)bit / 8);

	out->bit = (uint32_t)(byte * 8 + bit % 8);
	for (unsigned i = 0; i < TSI_JPEG_COMPS; i++)
		out->dc[i] = (int16_t)l->pred[i];
}

/* The next blocks are not wanted. */
static void to_spare(struct tsi_jpeg_entropy *e, struct lane *l)
{
	for (unsigned u = 0; u < e->units; u++) {
		l->to[u] = e->spare[l - e->lane];
		l->last[u] = &e->spare_last;
		l->step[u] = 0;
	}
}

/* The next blocks are those of row y of the area, from its first column on. */
static void to_blocks(struct tsi_jpeg_entropy *e, struct lane *l,
		      const struct tsi_jpeg_blocks *b, uint32_t y)
{
	for (unsigned u = 0; u < e->units; u++) {
		unsigned c = e->comp[u];
		const struct tsi_jpeg_comp *comp = &e->frame.comp[c];
		size_t at = ((size_t)y * comp->v + e->y[u]) * b->stride[c] +
			    e->x[u];

		l->to[u] = b->coef[c][at];
		l->last[u] = b->last[c] + at;
		l->step[u] = comp->h;
	}
}

/*
 * A lane is to be looked at: fill its window if need be.  False: it has read
 * beyond the data's end.
 */
static bool look_after(struct tsi_jpeg_entropy *e, struct lane *l)
{
	struct tsi_jpeg_window *w = &e->window[l - e->lane];
	size_t used = (size_t)(l->at - first_bit(e, l)) / 8;

	if (l->at < l->stop)
		return true;
	if (w->ended)
		return false;
	tsi_jpeg_window_fill(w, e->unstuff, used);
	l->at -= (uint64_t)used * 8;
	set_stop(e, l);
	return l->at < l->stop;
}

/* ------------------------------------------------------------------------
 * Rows
 */

/* Begin with row y of b. */
static bool begin_row(struct tsi_jpeg_entropy *e, struct lane *l,
		      const struct tsi_jpeg_start *start,
		      const struct tsi_jpeg_blocks *b, uint32_t y)
{
	enter(e, l, &start->entry, start->end);
	l->row = y;
	l->mcus = b->area.left - start->column;
	l->skipping = l->mcus > 0;
	if (l->skipping) {
		to_spare(e, l);
	} else {
		to_blocks(e, l, b, y);
		l->mcus = b->area.across;
	}
	return look_after(e, l) && begin_block(e, l);
}

/* Lane l has come to the end of a piece; sets *done behind its last row. */
static bool go_on(struct tsi_jpeg_entropy *e, struct lane *l,
		  const struct tsi_jpeg_start *start,
		  const struct tsi_jpeg_blocks *b, uint32_t *next, bool *done)
{
	uint32_t y;

	if (!look_after(e, l))
		return false;
	if (!l->mcus && l->skipping) {
		l->skipping = false;
		to_blocks(e, l, b, l->row);
		l->mcus = b->area.across;
	} else if (!l->mcus) {
		*done = *next == b->area.down;
		if (*done)
			return true;
		y = (*next)++;
		return begin_row(e, l, &start[y], b, y);
	}
	return begin_block(e, l);
}

bool tsi_jpeg_entropy_read(struct tsi_jpeg_entropy *e,
			   const struct tsi_jpeg_start *start,
			   const struct tsi_jpeg_blocks *b)
{
	struct lane *lane[LANES];
	uint32_t next = 0;
	int n = 0;

	e->recording = false;
	for (; n < LANES && next < b->area.down; n++, next++) {
		lane[n] = &e->lane[n];
		if (!begin_row(e, lane[n], &start[next], b, next))
			return false;
	}
	while (n) {
		int r = e->run(e, lane, n);
		bool done = false;

		if (r < 0 || !go_on(e, lane[r], start, b, &next, &done))
			return false;
		if (done)
			lane[r] = lane[--n];
	}
	return true;
}

/* The first column right of x where something is to be done. */
static uint32_t next_stop(const struct tsi_jpeg_entropy *e,
			  const struct tsi_jpeg_blocks *b, uint32_t step,
			  uint32_t x)
{
	uint32_t to = e->frame.mcus_across;
	uint32_t at[3] = { to, to, to };

	if (step)
		at[0] = x - x % step + step;
	if (b) {
		at[1] = b->area.left;
		at[2] = b->area.left + b->area.across;
	}
	for (int i = 0; i < 3; i++)
		if (at[i] > x && at[i] < to)
			to = at[i];
	return to;
}

/* Read lane 0 from column x on to the next place to stop. */
static bool record_piece(struct tsi_jpeg_entropy *e,
			 const struct tsi_jpeg_blocks *b, uint32_t x,
			 uint32_t to)
{
	struct lane *l = &e->lane[0];

	l->mcus = to - x;
	if (b && x >= b->area.left && x < b->area.left + b->area.across) {
		if (x == b->area.left)
			to_blocks(e, l, b, 0);
	} else {
		to_spare(e, l);
	}
	do {
		if (!begin_block(e, l) || e->run(e, &l, 1) < 0 ||
		    !look_after(e, l))
			return false;
	} while (l->mcus);
	return true;
}

bool tsi_jpeg_entropy_record(struct tsi_jpeg_entropy *e,
			     const struct tsi_jpeg_entry *row,
			     const struct tsi_jpeg_blocks *b, uint32_t step,
			     struct tsi_jpeg_entry *column,
			     struct tsi_jpeg_entry *next)
{
	struct lane *l = &e->lane[0];
	uint32_t x = 0, to;

	/* Where the last row ended nothing has to be read again. */
	if (!e->recording || memcmp(row, &e->recorded, sizeof(*row)))
		enter(e, l, row, 0);
	e->recording = false;
	if (!look_after(e, l))
		return false;
	for (; x < e->frame.mcus_across; x = to) {
		if (x && step && x % step == 0)
			leave(e, l, column++);
		to = next_stop(e, b, step, x);
		if (!record_piece(e, b, x, to))
			return false;
	}
	leave(e, l, next);
	e->recorded = *next;
	e->recording = true;
	return true;
}

/* ------------------------------------------------------------------------
 * Files
 */

static bool same_codes(const struct tsi_jpeg_codes *a,
		       const struct tsi_jpeg_codes *b)
{
	return a->count == b->count;
}

void tsi_jpeg_entropy_open(struct tsi_jpeg_entropy *e,
			   const struct tsi_jpeg_scan *scan,
			   const uint8_t *data, size_t len)
{
	const struct tsi_jpeg_frame *f = &scan->frame;

	e->frame = *f;
	e->data = data + scan->data;
	e->len = len - scan->data;
	e->recording = false;
	e->units = 0;
	for (uint8_t c = 0; c < f->comps; c++) {
		uint8_t ac = 0, dc = 0;

		while (!same_codes(&scan->ac[ac], &scan->ac[c]))
			ac++;
		while (!same_codes(&scan->dc[dc], &scan->dc[c]))
			dc++;
		e->ac_of[c] = ac;
		e->dc_of[c] = dc;
		if (ac == c)
			tsi_lookup_ac(&scan->ac[c], &e->ac[c]);
		if (dc == c)
			tsi_lookup_dc(&scan->dc[c], &e->dc[c]);
		for (unsigned i = 0; i < f->comp[c].h * f->comp[c].v; i++) {
			e->comp[e->units] = c;
			e->x[e->units] = (uint8_t)(i % f->comp[c].h);
			e->y[e->units++] = (uint8_t)(i / f->comp[c].h);
		}
	}
}

int tsi_jpeg_entropy_create(enum tsi_simd simd, struct tsi_jpeg_entropy **out)
{
	bool can = tsi_unstuff_avx2() && tsi_simd_has_bits();
	struct tsi_jpeg_entropy *e;

	if (simd == TSI_SIMD_AVX2 && !can)
		return tsi_err(TSOCK_ENOTSUP,
			       "this processor lacks the vector instructions "
			       "that were asked for");
	e = aligned_alloc(64, (sizeof(*e) + 63) / 64 * 64);
	if (!e)
		return tsi_err(TSOCK_ENOMEM, "no memory for a JPEG decoder");
	memset(e, 0, sizeof(*e));
	can = can && simd != TSI_SIMD_SCALAR;
	e->unstuff = can ? tsi_unstuff_avx2() : tsi_unstuff_scalar;
	e->run = can ? run_avx2 : run_scalar;
	*out = e;
	return 0;
}

void tsi_jpeg_entropy_destroy(struct tsi_jpeg_entropy *e)
{
	free(e);
}
