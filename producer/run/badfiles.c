/* SPDX-License-Identifier: MIT */
/*
 * badfiles.c - which files of a data set are bad, and for which samples.
 */
#include "run/badfiles.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "image/load.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/reserve.h"

#define TICK_NS 20000000 /* two of the slowest kernel's clock ticks */

/* An extent in a word: 20 bits each, and a bit that there is one. */
#define BITS 20
#define MASK ((UINT64_C(1) << BITS) - 1)
#define PART (UINT64_C(1) << 63)

/* The state of a file that may have changed while it was looked at. */
#define UNSETTLED 0

/* For each sample: two words, and a bit. */
#define BYTES 16.125

struct tsi_badfiles {
	const struct tsi_index *index;
	uint64_t count;
	/* Reserved, see tsi_reserve().  Each word stands for itself. */
	_Atomic uint64_t *whole; /* a bit per file: bad for every sample */
	_Atomic uint64_t *part;  /* a file's extent; 0: not partly bad */
	_Atomic uint64_t *state; /* what the file was when it was bad */
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

bool tsi_badfiles_whole(const struct tsi_badfiles *b, uint64_t i)
{
	return atomic_load(&b->whole[i / 64]) >> i % 64 & 1;
}

bool tsi_badfiles_class_lost(const struct tsi_badfiles *b, uint64_t i)
{
	uint32_t label = (uint32_t)tsi_index_label(b->index, i);
	uint64_t whole = atomic_load(&b->lost[label]);

	return whole && whole == tsi_index_class_files(b->index, label);
}

static void set_whole(struct tsi_badfiles *b, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	if (!(atomic_fetch_or(&b->whole[i / 64], bit) & bit))
		atomic_fetch_add(&b->lost[tsi_index_label(b->index, i)], 1);
}

static void clear_whole(struct tsi_badfiles *b, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	if (atomic_fetch_and(&b->whole[i / 64], ~bit) & bit)
		atomic_fetch_sub(&b->lost[tsi_index_label(b->index, i)], 1);
}

bool tsi_badfiles_extent(const struct tsi_badfiles *b, uint64_t i,
			 struct tsi_image_extent *out)
{
	uint64_t word = atomic_load(&b->part[i]);

	if (!word)
		return false;
	out->width = (uint32_t)(word & MASK);
	out->height = (uint32_t)(word >> BITS & MASK);
	out->rows = (uint32_t)(word >> 2 * BITS & MASK);
	return true;
}

bool tsi_badfiles_changed(const struct tsi_badfiles *b, uint64_t i)
{
	uint64_t before;
	int64_t when;

	if (!tsi_badfiles_whole(b, i) && !atomic_load(&b->part[i]))
		return false;
	if (scanned_bad(b, i))
		return false;
	before = atomic_load(&b->state[i]);
	return before == UNSETTLED || state_now(b, i, &when) != before;
}

void tsi_badfiles_remember(struct tsi_badfiles *b, uint64_t i,
			   const struct tsi_image_extent *extent,
			   int64_t read_ns)
{
	int64_t changed_ns;
	uint64_t state = state_now(b, i, &changed_ns);

	/* Perhaps these aren't the bytes that were read. */
	if (changed_ns > read_ns - TICK_NS)
		state = UNSETTLED;
	if (extent && (extent->width > MASK || extent->height > MASK))
		return;
	atomic_store(&b->state[i], state);
	if (extent)
		atomic_store(&b->part[i],
			     PART | (uint64_t)extent->rows << 2 * BITS |
				     (uint64_t)extent->height << BITS |
				     extent->width);
	else
		set_whole(b, i);
}

void tsi_badfiles_forget(struct tsi_badfiles *b, uint64_t i)
{
	if (scanned_bad(b, i))
		return;
	atomic_store(&b->part[i], 0);
	clear_whole(b, i);
}

void tsi_badfiles_forget_all(struct tsi_badfiles *b)
{
	for (uint64_t i = 0; i < b->count; i++)
		if (tsi_badfiles_whole(b, i) || atomic_load(&b->part[i]))
			tsi_badfiles_forget(b, i);
}

/* ------------------------------------------------------------------------
 * All of it
 */

static void take_scan(struct tsi_badfiles *b)
{
	const struct tsi_index *x = b->index;

	for (uint64_t k = 0; k < tsi_index_bad_count(x); k++)
		set_whole(b, tsi_index_bad_at(x, k));
}

int tsi_badfiles_create(const struct tsi_index *x, struct tsi_badfiles **out)
{
	struct tsi_badfiles *b = calloc(1, sizeof(*b));
	uint64_t n = tsi_index_count(x);

	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	b->index = x;
	b->count = n;
	b->whole = tsi_reserve(n / 64 + 1, sizeof(*b->whole));
	b->part = tsi_reserve(n, sizeof(*b->part));
	b->state = tsi_reserve(n, sizeof(*b->state));
	b->lost = calloc(tsi_index_classes(x), sizeof(*b->lost));
	if (!b->whole || !b->part || !b->state || !b->lost) {
		tsi_badfiles_destroy(b);
		return tsi_err(TSOCK_ENOMEM,
			       "notes on %" PRIu64 " samples, of which any may "
			       "be bad, take %.1f GB of address space, more "
			       "than this process can have (ulimit -v; a "
			       "process has 140737 GB at most): serve fewer, "
			       "by --select or by a file for some of them",
			       n, (double)n / 1e9 * BYTES);
	}
	take_scan(b);
	*out = b;
	return 0;
}

void tsi_badfiles_destroy(struct tsi_badfiles *b)
{
	if (!b)
		return;
	free((void *)b->lost);
	tsi_reserve_free((void *)b->state, b->count, sizeof(*b->state));
	tsi_reserve_free((void *)b->part, b->count, sizeof(*b->part));
	tsi_reserve_free((void *)b->whole, b->count / 64 + 1,
			 sizeof(*b->whole));
	free(b);
}
