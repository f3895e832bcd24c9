/* SPDX-License-Identifier: MIT */
/*
 * badfiles.c - which files of a data set are bad, and for which samples.
 */
#include "run/badfiles.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "image/load.h"
#include "base/err.h"
#include "base/hash.h"
#include "run/sparse.h"

#define TICK_NS 20000000 /* two of the slowest kernel's clock ticks */

/* An extent in a word: 20 bits each. */
#define BITS 20
#define MASK ((UINT64_C(1) << BITS) - 1)

/* The state of a file that may have changed while it was looked at. */
#define UNSETTLED 0

/* Two bits for each file, 32 files to a word. */
#define WHOLE UINT64_C(1) /* bad for every sample */
#define PART UINT64_C(2)  /* for those that need more than its extent */
#define WORD 32

/* Files to a block are 2 to this power.  One of marks is a page. */
#define MARKS_BITS 14
#define FOUND_BITS 6

/* What a worker found out about a file.  Each word stands for itself. */
struct found {
	_Atomic uint64_t extent; /* if PART */
	_Atomic uint64_t state;  /* what it was when it was bad */
};

struct tsi_badfiles {
	const struct tsi_index *index;
	struct tsi_sparse marks; /* the bits of all files */
	struct tsi_sparse found; /* of those that the scan didn't find */
	_Atomic uint64_t *lost;  /* of each class: files bad for every sample */
};

/* ------------------------------------------------------------------------
 * What is known of a file
 */

int64_t tsi_badfiles_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A file's state on disk: what a change of it changes too. */
static uint64_t state_now(const struct tsi_badfiles *b, uint64_t i,
			  int64_t *changed_ns)
{
	struct tsi_location at;
	struct stat st;
	uint64_t key[5];

	*changed_ns = INT64_MIN;
	tsi_index_locate_bytes(b->index, i, &at);
	if (tsi_index_stat(b->index, &at, &st))
		return 1 + (uint64_t)errno;
	*changed_ns =
		(int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	key[0] = st.st_dev;
	key[1] = st.st_ino;
	key[2] = (uint64_t)st.st_size;
	key[3] = (uint64_t)st.st_mtim.tv_sec * 1000000000 +
		 (uint64_t)st.st_mtim.tv_nsec;
	key[4] = (uint64_t)*changed_ns;
	return tsi_hash(key, sizeof(key), 0) | UINT64_C(1) << 32;
}

/* Found so by the scan, which is not looked at again. */
static bool scanned_bad(const struct tsi_badfiles *b, uint64_t i)
{
	return tsi_index_bad(b->index, i);
}

/* Where the bits of file i are in their block. */
static _Atomic uint64_t *word_of(void *block, uint64_t i)
{
	return (_Atomic uint64_t *)block + (i & ((1 << MARKS_BITS) - 1)) / WORD;
}

static unsigned shift_of(uint64_t i)
{
	return (unsigned)(i % WORD * 2);
}

static uint64_t marks_of(const struct tsi_badfiles *b, uint64_t i)
{
	void *block = tsi_sparse_find(&b->marks, i);

	return block ? atomic_load(word_of(block, i)) >> shift_of(i) &
			       (WHOLE | PART)
		     : 0;
}

static struct found *found_of(struct found *block, uint64_t i)
{
	return block ? &block[i & ((1 << FOUND_BITS) - 1)] : NULL;
}

/* NULL: no worker has found out anything. */
static struct found *find(const struct tsi_badfiles *b, uint64_t i)
{
	return found_of(tsi_sparse_find(&b->found, i), i);
}

bool tsi_badfiles_class_lost(const struct tsi_badfiles *b, uint64_t i)
{
	uint32_t label = (uint32_t)tsi_index_label(b->index, i);
	uint64_t whole = atomic_load(&b->lost[label]);

	return whole && whole == tsi_index_class_files(b->index, label);
}

static void set(struct tsi_badfiles *b, void *block, uint64_t i, uint64_t mark)
{
	uint64_t bit = mark << shift_of(i);

	if (!(atomic_fetch_or(word_of(block, i), bit) & bit) && mark == WHOLE)
		atomic_fetch_add(&b->lost[tsi_index_label(b->index, i)], 1);
}

static void clear(struct tsi_badfiles *b, void *block, uint64_t i)
{
	uint64_t bits = (WHOLE | PART) << shift_of(i);

	if (atomic_fetch_and(word_of(block, i), ~bits) & WHOLE << shift_of(i))
		atomic_fetch_sub(&b->lost[tsi_index_label(b->index, i)], 1);
}

enum tsi_badness tsi_badfiles_look(const struct tsi_badfiles *b, uint64_t i,
				   struct tsi_image_extent *out)
{
	uint64_t marks = marks_of(b, i), word;

	if (!marks)
		return TSI_BAD_NOT;
	if (marks & WHOLE)
		return TSI_BAD_WHOLE;
	/* It was stored before the mark. */
	word = atomic_load(&find(b, i)->extent);
	out->width = (uint32_t)(word & MASK);
	out->height = (uint32_t)(word >> BITS & MASK);
	out->rows = (uint32_t)(word >> 2 * BITS & MASK);
	return TSI_BAD_BELOW;
}

bool tsi_badfiles_changed(const struct tsi_badfiles *b, uint64_t i)
{
	uint64_t before;
	int64_t when;

	if (!marks_of(b, i) || scanned_bad(b, i))
		return false;
	before = atomic_load(&find(b, i)->state);
	return before == UNSETTLED || state_now(b, i, &when) != before;
}

void tsi_badfiles_remember(struct tsi_badfiles *b, uint64_t i,
			   const struct tsi_image_extent *extent,
			   int64_t read_ns)
{
	int64_t changed_ns;
	uint64_t state = state_now(b, i, &changed_ns);
	struct found *f;
	void *marks;

	/* Perhaps these aren't the bytes that were read. */
	if (changed_ns > read_ns - TICK_NS)
		state = UNSETTLED;
	if (extent && (extent->width > MASK || extent->height > MASK))
		return;
	f = found_of(tsi_sparse_make(&b->found, i), i);
	marks = tsi_sparse_make(&b->marks, i);
	if (!f || !marks)
		return; /* no memory for it: the next sample tries the file */
	atomic_store(&f->state, state);
	if (extent)
		atomic_store(&f->extent,
			     (uint64_t)extent->rows << 2 * BITS |
				     (uint64_t)extent->height << BITS |
				     extent->width);
	set(b, marks, i, extent ? PART : WHOLE);
}

void tsi_badfiles_forget(struct tsi_badfiles *b, uint64_t i)
{
	void *block = tsi_sparse_find(&b->marks, i);

	if (block && !scanned_bad(b, i))
		clear(b, block, i);
}

static void forget_block(void *arg, uint64_t first, void *block)
{
	for (uint64_t i = first; i < first + (1 << MARKS_BITS); i += WORD)
		for (uint64_t bits = atomic_load(word_of(block, i)), k = 0;
		     bits; bits >>= 2, k++)
			if (bits & (WHOLE | PART))
				tsi_badfiles_forget(arg, i + k);
}

void tsi_badfiles_forget_all(struct tsi_badfiles *b)
{
	tsi_sparse_each(&b->marks, forget_block, b);
}

/* ------------------------------------------------------------------------
 * All of it
 */

static bool take_scan(struct tsi_badfiles *b)
{
	const struct tsi_index *x = b->index;

	for (uint64_t k = 0; k < tsi_index_bad_count(x); k++) {
		uint64_t i = tsi_index_bad_at(x, k);
		void *block = tsi_sparse_make(&b->marks, i);

		if (!block)
			return false;
		set(b, block, i, WHOLE);
	}
	return true;
}

int tsi_badfiles_create(const struct tsi_index *x, struct tsi_badfiles **out)
{
	struct tsi_badfiles *b = calloc(1, sizeof(*b));

	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	b->index = x;
	tsi_sparse_init(&b->marks, tsi_index_count(x), MARKS_BITS,
			sizeof(uint64_t) * (1 << MARKS_BITS) / WORD);
	tsi_sparse_init(&b->found, tsi_index_count(x), FOUND_BITS,
			sizeof(struct found) * (1 << FOUND_BITS));
	b->lost = calloc(tsi_index_classes(x), sizeof(*b->lost));
	if (!b->lost || !take_scan(b)) {
		tsi_badfiles_destroy(b);
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for the list of bad files");
	}
	*out = b;
	return 0;
}

void tsi_badfiles_destroy(struct tsi_badfiles *b)
{
	if (!b)
		return;
	tsi_sparse_fini(&b->found);
	tsi_sparse_fini(&b->marks);
	free((void *)b->lost);
	free(b);
}
