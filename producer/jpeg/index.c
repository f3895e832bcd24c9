/* SPDX-License-Identifier: MIT */
/*
 * index.c - where the rows and columns of MCUs begin in the JPEG files of
 * a data set.
 */
#include "jpeg/index.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* What the rows of a file take, as long as no file was seen. */
#define ROWS_GUESS 512
/* MCUs of the longest edge: 65,535 pixels, 8 to an MCU. */
#define MCUS_MAX 8192

struct tsi_jpeg_known {
	struct tsi_jpeg_known *older; /* of the same file, before a change */
	uint64_t check;
	uint32_t across; /* MCUs */
	uint32_t down;
	uint32_t step;
	uint32_t stride; /* entries of a row */
	_Atomic uint32_t rows;
	atomic_bool claimed;
	atomic_bool ends;
	/* Bits 0 to 27 the position, 28 to 63 three DC coefficients. */
	uint64_t entry[];
};

/* Files by what their rows are worth, see worth_of(). */
#define WORTHS 128
/* So many files say something about the others. */
#define ENOUGH 64

struct worth {
	_Atomic uint64_t wanted; /* bytes for rows that were asked for */
	_Atomic uint64_t used;   /* that were granted */
};

struct tsi_jpeg_index {
	uint64_t files;
	uint64_t memory;
	_Atomic uint64_t used;
	_Atomic uint64_t asked; /* how often a file without entries was */
	struct worth worth[WORTHS];
	/* Files that have entries, and what their rows alone take. */
	_Atomic uint64_t seen;
	_Atomic uint64_t rows_used;
	_Atomic(struct tsi_jpeg_known *) file[];
};

int tsi_jpeg_index_create(uint64_t files, uint64_t memory,
			  struct tsi_jpeg_index **out)
{
	struct tsi_jpeg_index *x = NULL;
	size_t each = sizeof(x->file[0]);

	if (files < SIZE_MAX / each / 2)
		x = calloc(1, sizeof(*x) + files * each);
	if (!x)
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for an index of %llu JPEG files",
			       (unsigned long long)files);
	x->files = files;
	x->memory = memory;
	atomic_init(&x->used, files * each);
	*out = x;
	return 0;
}

void tsi_jpeg_index_destroy(struct tsi_jpeg_index *x)
{
	if (!x)
		return;
	for (uint64_t i = 0; i < x->files; i++) {
		struct tsi_jpeg_known *k = atomic_load(&x->file[i]);

		while (k) {
			struct tsi_jpeg_known *older = k->older;

			free(k);
			k = older;
		}
	}
	free(x);
}

uint64_t tsi_jpeg_index_memory(const struct tsi_jpeg_index *x)
{
	return atomic_load(&x->used);
}

/* ------------------------------------------------------------------------
 * Memory
 */

static uint64_t index_bytes(uint32_t down, uint32_t stride)
{
	return sizeof(struct tsi_jpeg_known) +
	       ((uint64_t)down * stride + 1) * sizeof(uint64_t);
}

/* Entries of a row of so many MCUs. */
static uint32_t stride_of(uint32_t across, uint32_t step)
{
	return step ? 1 + (across - 1) / step : 1;
}

/* Take n bytes of the budget, `spare` of which must be left. */
static bool take_memory(struct tsi_jpeg_index *x, uint64_t n, uint64_t spare)
{
	uint64_t used = atomic_fetch_add(&x->used, n) + n;

	if (used <= x->memory && x->memory - used >= spare)
		return true;
	atomic_fetch_sub(&x->used, n);
	return false;
}

/* What the rows of files that weren't seen yet will take. */
static uint64_t expected(const struct tsi_jpeg_index *x)
{
	uint64_t seen = atomic_load(&x->seen);
	uint64_t each = seen ? atomic_load(&x->rows_used) / seen : ROWS_GUESS;

	return seen < x->files ? (x->files - seen) * each : 0;
}

/*
 * What a file's rows are worth: the file's bytes for each byte of them, as
 * every crop skips about the same part of its file; four steps to a factor of
 * two.
 */
static unsigned worth_of(uint64_t len, uint64_t rows)
{
	uint64_t n = len * 16 / rows + 4;
	unsigned top = 63 - (unsigned)__builtin_clzll(n);
	unsigned w = 4 * top + (unsigned)(n >> (top - 2) & 3);

	return w < WORTHS ? w : WORTHS - 1;
}

/* What the rows of files that are worth more will take yet. */
static uint64_t wanted_by_better(const struct tsi_jpeg_index *x, unsigned worth)
{
	uint64_t asked = atomic_load(&x->asked), wanted = 0, used = 0;
	double all;

	if (asked < ENOUGH)
		return 0;
	for (unsigned w = worth + 1; w < WORTHS; w++) {
		wanted += atomic_load(&x->worth[w].wanted);
		used += atomic_load(&x->worth[w].used);
	}
	all = (double)wanted / (double)asked * (double)x->files;
	return all > (double)used ? (uint64_t)all - used : 0;
}

/* With columns, if they are wanted and there is memory for them. */
static struct tsi_jpeg_known *make_known(struct tsi_jpeg_index *x,
					 uint32_t across, uint32_t down,
					 bool columns, uint64_t len)
{
	uint32_t stride = stride_of(across, TSI_JPEG_INDEX_STEP);
	uint64_t rows = index_bytes(down, 1), all = index_bytes(down, stride);
	unsigned worth = worth_of(len, rows);
	struct tsi_jpeg_known *k;

	atomic_fetch_add(&x->worth[worth].wanted, rows);
	atomic_fetch_add(&x->asked, 1);
	if (!columns || !take_memory(x, all, expected(x))) {
		stride = 1;
		all = rows;
		if (!take_memory(x, all, wanted_by_better(x, worth)))
			return NULL;
	}
	k = calloc(1, all);
	if (!k) {
		atomic_fetch_sub(&x->used, all);
		return NULL;
	}
	k->across = across;
	k->down = down;
	k->step = stride > 1 ? TSI_JPEG_INDEX_STEP : 0;
	k->stride = stride;
	atomic_fetch_add(&x->worth[worth].used, rows);
	atomic_fetch_add(&x->rows_used, rows);
	atomic_fetch_add(&x->seen, 1);
	return k;
}

/* False: another thread was quicker, and k is gone. */
static bool put_known(struct tsi_jpeg_index *x, uint64_t file,
		      struct tsi_jpeg_known *old, struct tsi_jpeg_known *k)
{
	/* Another thread may read the old entries still: they stay. */
	k->older = old;
	if (atomic_compare_exchange_strong(&x->file[file], &old, k))
		return true;
	atomic_fetch_sub(&x->used, index_bytes(k->down, k->stride));
	free(k);
	return false;
}

/* ------------------------------------------------------------------------
 * Entries
 */

struct tsi_jpeg_known *tsi_jpeg_index_find(struct tsi_jpeg_index *x,
					   uint64_t file, uint64_t check,
					   const struct tsi_jpeg_frame *f,
					   uint64_t len)
{
	struct tsi_jpeg_known *old, *k;

	if (file >= x->files)
		return NULL;
	old = atomic_load(&x->file[file]);
	if (old && old->check == check && old->across == f->mcus_across &&
	    old->down == f->mcus_down)
		return old;
	k = make_known(x, f->mcus_across, f->mcus_down, true, len);
	if (!k)
		return NULL;
	k->check = check;
	/* Next time the quicker thread's are the file's entries. */
	return put_known(x, file, old, k) ? k : NULL;
}

static uint64_t pack_entry(const struct tsi_jpeg_entry *e)
{
	uint64_t v = e->bit;

	assert(e->bit < TSI_JPEG_SCAN_BITS);
	for (int i = 0; i < TSI_JPEG_COMPS; i++)
		v |= (uint64_t)(e->dc[i] & 0xfff) << (28 + 12 * i);
	return v;
}

static void unpack(uint64_t v, struct tsi_jpeg_entry *e)
{
	e->bit = (uint32_t)(v & (TSI_JPEG_SCAN_BITS - 1));
	for (int i = 0; i < TSI_JPEG_COMPS; i++)
		e->dc[i] = (int16_t)((int64_t)(v << (24 - 12 * i)) >> 52);
}

uint32_t tsi_jpeg_known_rows(const struct tsi_jpeg_known *k)
{
	/* Pairs with append's release: the rows' entries are there. */
	return atomic_load_explicit(&k->rows, memory_order_acquire);
}

bool tsi_jpeg_known_ends(const struct tsi_jpeg_known *k)
{
	return atomic_load(&k->ends);
}

uint32_t tsi_jpeg_known_step(const struct tsi_jpeg_known *k)
{
	return k->step;
}

void tsi_jpeg_known_start(const struct tsi_jpeg_known *k, uint32_t row,
			  uint32_t left, uint32_t right,
			  struct tsi_jpeg_piece *out)
{
	const uint64_t *e = k->entry + (uint64_t)row * k->stride;
	uint32_t at = k->step ? left / k->step : 0;
	uint32_t behind = k->step ? (right + k->step - 1) / k->step : k->stride;
	struct tsi_jpeg_entry end;

	unpack(e[at], &out->entry);
	out->column = at * k->step;
	out->left = left;
	out->right = right;
	out->end = 0;
	if (row < tsi_jpeg_known_rows(k)) {
		/* The next row's entry follows the last column's. */
		unpack(e[behind < k->stride ? behind : k->stride], &end);
		out->end = end.bit / 8 + 1;
	}
}

bool tsi_jpeg_known_claim(struct tsi_jpeg_known *k)
{
	return !atomic_exchange(&k->claimed, true);
}

void tsi_jpeg_known_append(struct tsi_jpeg_known *k,
			   const struct tsi_jpeg_entry *column,
			   const struct tsi_jpeg_entry *next)
{
	uint32_t row = tsi_jpeg_known_rows(k);
	uint64_t *e = k->entry + (uint64_t)row * k->stride;

	for (uint32_t i = 1; i < k->stride; i++)
		e[i] = pack_entry(&column[i - 1]);
	e[k->stride] = pack_entry(next);
	/* Pairs with the acquire in rows. */
	atomic_store_explicit(&k->rows, row + 1, memory_order_release);
}

void tsi_jpeg_known_release(struct tsi_jpeg_known *k, bool ends)
{
	if (ends)
		atomic_store(&k->ends, true);
	atomic_store(&k->claimed, false);
}

/* ------------------------------------------------------------------------
 * Entries that are kept elsewhere
 */

uint64_t tsi_jpeg_index_files(const struct tsi_jpeg_index *x)
{
	return x->files;
}

uint64_t tsi_jpeg_index_rows(const struct tsi_jpeg_index *x)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < x->files; i++)
		for (const struct tsi_jpeg_known *k = atomic_load(&x->file[i]);
		     k; k = k->older)
			n += tsi_jpeg_known_rows(k) + tsi_jpeg_known_ends(k);
	return n;
}

bool tsi_jpeg_index_get(const struct tsi_jpeg_index *x, uint64_t file,
			struct tsi_jpeg_kept *out)
{
	const struct tsi_jpeg_known *k = atomic_load(&x->file[file]);

	if (!k)
		return false;
	/* Before the rows: behind the end nothing is appended. */
	out->ends = tsi_jpeg_known_ends(k);
	out->rows = tsi_jpeg_known_rows(k);
	out->check = k->check;
	out->across = k->across;
	out->down = k->down;
	out->step = k->step;
	out->entry = k->entry + 1;
	return out->rows > 0 || out->ends;
}

uint64_t tsi_jpeg_kept_entries(const struct tsi_jpeg_kept *e)
{
	return (uint64_t)e->rows * stride_of(e->across, e->step);
}

/* Every value is one that make() and append() could have left. */
static bool is_sound(const struct tsi_jpeg_kept *e)
{
	uint64_t bit = 0, n;

	if (e->across == 0 || e->across > MCUS_MAX || e->down == 0 ||
	    e->down > MCUS_MAX || e->rows > e->down ||
	    (e->step && e->step != TSI_JPEG_INDEX_STEP))
		return false;
	n = tsi_jpeg_kept_entries(e);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t next = e->entry[i] & (TSI_JPEG_SCAN_BITS - 1);

		/* No MCU is without bits. */
		if (next <= bit)
			return false;
		bit = next;
	}
	return true;
}

/* About as many bytes as the file has: of its rows all take as many. */
static uint64_t length_of(const struct tsi_jpeg_kept *e)
{
	uint64_t n = tsi_jpeg_kept_entries(e);

	if (!n)
		return 0;
	return (e->entry[n - 1] & (TSI_JPEG_SCAN_BITS - 1)) / 8 * e->down /
	       e->rows;
}

int tsi_jpeg_index_put(struct tsi_jpeg_index *x, uint64_t file,
		       const struct tsi_jpeg_kept *e)
{
	struct tsi_jpeg_known *k;
	uint32_t stride;

	if (file >= x->files || !is_sound(e))
		return TSOCK_EDATA;
	if (atomic_load(&x->file[file]))
		return 0;
	k = make_known(x, e->across, e->down, e->step != 0, length_of(e));
	if (!k)
		return TSOCK_ENOMEM;
	stride = stride_of(e->across, e->step);
	k->check = e->check;
	/* All of a row's entries, or the next row's alone. */
	if (k->stride == stride)
		memcpy(k->entry + 1, e->entry,
		       tsi_jpeg_kept_entries(e) * sizeof(*e->entry));
	else
		for (uint64_t row = 1; row <= e->rows; row++)
			k->entry[row] = e->entry[row * stride - 1];
	atomic_store(&k->ends, e->ends);
	atomic_store(&k->rows, e->rows);
	put_known(x, file, NULL, k);
	return 0;
}
