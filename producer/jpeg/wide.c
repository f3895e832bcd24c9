/* SPDX-License-Identifier: MIT */
/*
 * wide.c - the codes of sixteen pieces at once: which lane reads what.
 */
#include "jpeg/wide.h"

#include <stdlib.h>
#include <string.h>

#include "jpeg/entropy_kernel.h"

#define LANES TSI_WIDE_LANES

_Static_assert(64 + TSI_WIDE_LANES * TSI_WIDE_ROOM <= 65536,
	       "a coefficient's place has 16 bits");
_Static_assert(TSI_WIDE_BLOCKS >= TSI_JPEG_UNITS_MAX, "an MCU fits");

/* ------------------------------------------------------------------------
 * Windows
 */

/* The first bit of lane i's window. */
static uint32_t first_bit(unsigned i)
{
	return i * (uint32_t)sizeof(struct tsi_jpeg_window) * 8;
}

/* What the lane may read before it is looked at again. */
static void set_stop(struct tsi_wide *w, unsigned i)
{
	w->stop[i] =
		first_bit(i) + (uint32_t)tsi_jpeg_window_stop(&w->window[i]);
}

/* Fill the window if need be.  False: lane i is beyond the data's end. */
static bool look_after(struct tsi_wide *w, unsigned i)
{
	struct tsi_jpeg_window *win = &w->window[i];
	uint32_t used = (w->at[i] - first_bit(i)) / 8;

	if (w->at[i] < w->stop[i])
		return true;
	if (tsi_jpeg_window_ended(win))
		return false;
	tsi_jpeg_window_fill(win, w->kernel->unstuff, used);
	w->at[i] -= used * 8;
	set_stop(w, i);
	return w->at[i] < w->stop[i];
}

/* ------------------------------------------------------------------------
 * Pieces
 */

static int16_t *room(struct tsi_wide *w, unsigned i)
{
	return w->coef + 64 + (size_t)i * TSI_WIDE_ROOM;
}

/* Lane i stands in front of an MCU, and is to read as many as have room. */
static void begin_mcus(struct tsi_wide *w, unsigned i)
{
	const struct tsi_wide_lane *l = &w->lane[i];
	uint32_t mcus = TSI_WIDE_BLOCKS / w->units;

	if (mcus > l->mcus)
		mcus = l->mcus;
	w->place[i] = (uint32_t)(room(w, i) - w->coef) - 1;
	w->end[i] = w->place[i] + mcus * w->units * 64;
	w->unit[i] = 0;
	w->table[i] = w->next_dc[w->units - 1];
}

/* The blocks that the lane is to read of its piece. */
static void to_piece(struct tsi_wide *w, struct tsi_wide_lane *l,
		     const struct tsi_jpeg_blocks *b)
{
	const struct tsi_jpeg_piece *p = l->piece;

	l->skipping = false;
	l->mcus = p->right - p->left;
	tsi_jpeg_cursor_set(&l->blocks, b, &w->frame, w->units_of, w->units,
			    p->left - b->area.left, p->row);
}

static bool begin_piece(struct tsi_wide *w, unsigned i,
			const struct tsi_jpeg_piece *p,
			const struct tsi_jpeg_blocks *b)
{
	struct tsi_wide_lane *l = &w->lane[i];

	tsi_jpeg_window_open(&w->window[i], w->kernel->unstuff, w->data, w->len,
			     p->entry.bit / 8, p->end);
	w->at[i] = first_bit(i) + p->entry.bit % 8;
	for (unsigned c = 0; c < TSI_JPEG_COMPS; c++)
		l->pred[c] = p->entry.dc[c];
	l->piece = p;
	l->mcus = p->left - p->column;
	l->skipping = l->mcus > 0;
	if (l->skipping)
		tsi_jpeg_cursor_set_spare(&l->blocks, w->spare, &w->spare_last,
					  w->units);
	else
		to_piece(w, l, b);
	set_stop(w, i);
	begin_mcus(w, i);
	return look_after(w, i);
}

/* Lane i has nothing to read: it reads zeros, which mean nothing to it. */
static void idle(struct tsi_wide *w, unsigned i)
{
	w->lane[i].piece = NULL;
	w->at[i] = (uint32_t)(offsetof(struct tsi_wide, zeros) -
			      offsetof(struct tsi_wide, window)) *
		   8;
	w->place[i] = 0;
	w->unit[i] = 7;
	w->table[i] = TSI_WIDE_IDLE;
	w->end[i] = UINT32_MAX;
	w->stop[i] = UINT32_MAX;
}

/* What the lanes have still to read. */
struct work {
	const struct tsi_jpeg_piece *next;
	const struct tsi_jpeg_piece *end;
	const struct tsi_jpeg_blocks *b;
	unsigned busy; /* lanes */
};

/* Give lane i the next piece, if there is one. */
static bool begin_next(struct tsi_wide *w, unsigned i, struct work *todo)
{
	if (todo->next < todo->end)
		return begin_piece(w, i, todo->next++, todo->b);
	idle(w, i);
	todo->busy--;
	return true;
}

/* Lane i is at its end, or its stop. */
static bool move_lane(struct tsi_wide *w, unsigned i, struct work *todo)
{
	struct tsi_wide_lane *l = &w->lane[i];
	uint32_t mcus;

	if (!look_after(w, i))
		return false;
	if (w->place[i] < w->end[i])
		return true;
	mcus = (uint32_t)(w->end[i] + 1 - (room(w, i) - w->coef)) /
	       (64 * w->units);
	if (!w->kernel->wide_settle(w, l, room(w, i), mcus))
		return false;
	l->mcus -= mcus;
	if (!l->mcus && l->skipping)
		to_piece(w, l, todo->b);
	else if (!l->mcus)
		return begin_next(w, i, todo);
	begin_mcus(w, i);
	return true;
}

/* ------------------------------------------------------------------------
 * Codes that the tables don't have
 */

/* The block's last coefficient is read. */
static void end_block(struct tsi_wide *w, unsigned i)
{
	w->table[i] = w->next_dc[w->unit[i]];
	if (++w->unit[i] == w->units)
		w->unit[i] = 0;
}

/* One code of lane i.  False: damage. */
static bool read_slow(struct tsi_wide *w, unsigned i)
{
	bool dc = w->place[i] % 64 == 63;
	unsigned most = dc ? TSI_DC_SIZE_MAX : TSI_AC_SIZE_MAX, bits, size;
	const uint8_t *p = (const uint8_t *)w->window + w->at[i] / 8;
	uint32_t place = w->place[i];
	int symbol, m;
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	v = __builtin_bswap64(v) << w->at[i] % 8;
	symbol = tsi_lookup_code(&w->tables.codes[w->table[i] >> TSI_WIDE_LOOK],
				 v, &bits);
	if (symbol < 0)
		return false;
	size = dc ? (unsigned)symbol : (unsigned)symbol & 15;
	if (size > most)
		return false;
	if (!dc && !symbol)
		place |= 63;
	else
		place += dc ? 1 : (unsigned)(symbol >> 4) + 1;
	if (!dc && place / 64 != w->place[i] / 64)
		return false;
	if (size) {
		v <<= bits;
		m = (int)(v >> (64 - size));
		w->coef[place] = (int16_t)(v >> 63 ? m : m - (1 << size) + 1);
	} else if (!dc && symbol && symbol != 0xf0) {
		return false;
	}
	w->place[i] = place;
	w->at[i] += bits + size;
	w->table[i] = w->ac[w->unit[i]];
	if (place % 64 == 63)
		end_block(w, i);
	return true;
}

/* ------------------------------------------------------------------------
 * Files
 */

/* Look at the lanes that were found. */
static bool attend(struct tsi_wide *w, struct tsi_wide_found found,
		   struct work *todo)
{
	if (found.damaged)
		return false;
	for (uint32_t m = found.slow; m; m &= m - 1) {
		unsigned i = (unsigned)__builtin_ctz(m);

		if (!read_slow(w, i))
			return false;
		found.look_at |= UINT32_C(1) << i;
	}
	for (uint32_t m = found.look_at; m; m &= m - 1)
		if (!move_lane(w, (unsigned)__builtin_ctz(m), todo))
			return false;
	return true;
}

bool tsi_wide_read(struct tsi_wide *w, const struct tsi_jpeg_piece *piece,
		   uint32_t n, const struct tsi_jpeg_blocks *b)
{
	struct work todo = { piece, piece + n, b, LANES };

	if (w->dirty)
		memset(w->coef, 0, sizeof(w->coef));
	w->dirty = true;
	for (unsigned i = 0; i < LANES; i++)
		if (!begin_next(w, i, &todo))
			return false;
	while (todo.busy)
		if (!attend(w, w->kernel->wide_run(w), &todo))
			return false;
	w->dirty = false;
	return true;
}

void tsi_wide_open(struct tsi_wide *w, const struct tsi_jpeg_scan *scan,
		   const uint8_t *data, size_t len)
{
	uint32_t ac[TSI_JPEG_COMPS], dc[TSI_JPEG_COMPS];

	w->frame = scan->frame;
	w->data = data;
	w->len = len;
	w->units = tsi_jpeg_units(&w->frame, w->units_of);
	for (unsigned c = 0; c < w->frame.comps; c++) {
		unsigned a = tsi_jpeg_same_codes(scan->ac, c);
		unsigned d = tsi_jpeg_same_codes(scan->dc, c);

		ac[c] = TSI_WIDE_TABLE(a);
		dc[c] = TSI_WIDE_TABLE(TSI_JPEG_COMPS + d);
		if (a == c)
			tsi_wide_lookup(&w->tables, c, &scan->ac[c]);
		if (d == c)
			tsi_wide_lookup(&w->tables, TSI_JPEG_COMPS + c,
					&scan->dc[c]);
	}
	for (unsigned u = 0; u < w->units; u++) {
		unsigned next = u + 1 < w->units ? u + 1 : 0;

		w->ac[u] = ac[w->units_of[u].comp];
		w->next_dc[u] = dc[w->units_of[next].comp];
	}
	w->ac[7] = TSI_WIDE_IDLE;
}

struct tsi_wide *tsi_wide_create(const struct tsi_entropy_kernel *kernel)
{
	struct tsi_wide *w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);

	if (!w)
		return NULL;
	memset(w, 0, sizeof(*w));
	w->kernel = kernel;
	return w;
}

void tsi_wide_destroy(struct tsi_wide *w)
{
	free(w);
}
