/* SPDX-License-Identifier: MIT */
/*
 * badfiles.c - which files of a data set are bad, and for which samples.
 */
#include "run/badfiles.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/log.h"

#define LOGGED_MAX 20    /* bad files that get a line of their own */
#define KEPT_MAX 10000   /* bad files whose reason is kept */
#define TICK_NS 20000000 /* two of the slowest kernel's clock ticks */

/* An extent in a word: 20 bits each, and a bit that there is one. */
#define BITS 20
#define MASK ((UINT64_C(1) << BITS) - 1)
#define PART (UINT64_C(1) << 63)

/* Of a file that may have changed while it was looked at. */
#define UNSETTLED 0

struct bad_file {
	uint64_t index;
	char *reason;
};

struct class_count {
	uint64_t files;
	uint64_t bad;           /* on the list; under the lock */
	_Atomic uint64_t whole; /* bad for every sample */
};

struct tsi_badfiles {
	const struct tsi_index *index;
	uint64_t count;
	/*
	 * Pages that nobody has written cost nothing, so these are as long as
	 * the data set.  Each word stands for itself.
	 */
	_Atomic uint64_t *whole; /* a bit per file: bad for every sample */
	_Atomic uint64_t *part;  /* a file's extent; 0: not partly bad */
	_Atomic uint64_t *state; /* what the file was when it was bad */

	pthread_mutex_t lock;
	uint8_t *seen; /* a bit per file: already counted as bad */
	struct bad_file *bad;
	size_t nkept;
	uint64_t nbad;
	struct class_count *class_; /* how many of a class are bad */
	uint32_t worst;             /* the class that has most */
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
	struct stat st;
	uint64_t key[5];

	*changed_ns = INT64_MIN;
	if (fstatat(tsi_index_dirfd(b->index), tsi_index_path(b->index, i), &st,
		    0))
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
	const struct class_count *c = &b->class_[tsi_index_label(b->index, i)];

	return atomic_load(&c->whole) == c->files;
}

static void set_whole(struct tsi_badfiles *b, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	if (!(atomic_fetch_or(&b->whole[i / 64], bit) & bit))
		atomic_fetch_add(&b->class_[tsi_index_label(b->index, i)].whole,
				 1);
}

static void clear_whole(struct tsi_badfiles *b, uint64_t i)
{
	uint64_t bit = UINT64_C(1) << i % 64;

	if (atomic_fetch_and(&b->whole[i / 64], ~bit) & bit)
		atomic_fetch_sub(&b->class_[tsi_index_label(b->index, i)].whole,
				 1);
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
 * The list of bad files
 */

/* Under the lock.  Returns how many there are now. */
static uint64_t count_bad(struct tsi_badfiles *b, uint64_t i,
			  const char *reason)
{
	uint32_t label = (uint32_t)tsi_index_label(b->index, i);

	b->seen[i / 8] |= (uint8_t)(1u << i % 8);
	if (++b->class_[label].bad > b->class_[b->worst].bad)
		b->worst = label;
	if (b->nkept < KEPT_MAX) {
		b->bad[b->nkept].index = i;
		b->bad[b->nkept++].reason = strdup(reason);
	}
	return ++b->nbad;
}

/* Twice as many as at the last such line: where most of them are. */
static void log_worst(const struct tsi_badfiles *b, uint64_t n, uint32_t label,
		      const struct class_count *c)
{
	tsi_log(TSOCK_LOG_WARN,
		"%" PRIu64 " bad files so far, most of them in class %s "
		"(%" PRIu64 " of its %" PRIu64 "); others take their places",
		n, tsi_index_class(b->index, label), c->bad, c->files);
}

void tsi_badfiles_report(struct tsi_badfiles *b, uint64_t i, const char *reason)
{
	uint64_t found = 0;
	struct class_count worst;
	uint32_t label;
	char name[TSI_INDEX_SAMPLE];
	uint64_t n = 0;

	pthread_mutex_lock(&b->lock);
	if (!(b->seen[i / 8] & 1u << i % 8)) {
		n = count_bad(b, i, reason);
		found = n - tsi_index_bad_count(b->index);
	}
	label = b->worst;
	worst = b->class_[label];
	pthread_mutex_unlock(&b->lock);

	if (found == 0)
		return;
	if (found <= LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "bad file %s: %s",
			tsi_index_sample(b->index, i, name, sizeof(name)),
			reason);
	if (found == LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "more bad files are counted, and "
					"listed at the end");
	if (found > LOGGED_MAX && found % LOGGED_MAX == 0 &&
	    !(found / LOGGED_MAX & (found / LOGGED_MAX - 1)))
		log_worst(b, n, label, &worst);
}

uint64_t tsi_badfiles_count(struct tsi_badfiles *b)
{
	uint64_t n;

	pthread_mutex_lock(&b->lock);
	n = b->nbad;
	pthread_mutex_unlock(&b->lock);
	return n;
}

void tsi_badfiles_list(struct tsi_badfiles *b,
		       void (*fn)(void *arg, const char *path,
				  const char *reason),
		       void *arg)
{
	char name[TSI_INDEX_SAMPLE];

	pthread_mutex_lock(&b->lock);
	for (size_t i = 0; i < b->nkept; i++)
		fn(arg,
		   tsi_index_sample(b->index, b->bad[i].index, name,
				    sizeof(name)),
		   b->bad[i].reason ? b->bad[i].reason : "no memory");
	pthread_mutex_unlock(&b->lock);
}

void tsi_badfiles_classes(struct tsi_badfiles *b,
			  void (*fn)(void *arg, const char *class_name,
				     uint64_t bad, uint64_t files),
			  void *arg)
{
	pthread_mutex_lock(&b->lock);
	for (uint32_t i = 0; i < tsi_index_classes(b->index); i++)
		if (b->class_[i].bad)
			fn(arg, tsi_index_class(b->index, i), b->class_[i].bad,
			   b->class_[i].files);
	pthread_mutex_unlock(&b->lock);
}

/* ------------------------------------------------------------------------
 * All of it
 */

/* What the scan found is said by the summary, not file by file. */
static void take_scan(struct tsi_badfiles *b)
{
	const struct tsi_index *x = b->index;

	for (uint64_t i = 0; i < b->count; i++)
		b->class_[tsi_index_label(x, i)].files++;
	for (uint64_t k = 0; k < tsi_index_bad_count(x); k++) {
		uint64_t i = tsi_index_bad_at(x, k);

		set_whole(b, i);
		count_bad(b, i, tsi_index_bad_reason(x, i));
	}
}

int tsi_badfiles_create(const struct tsi_index *x, struct tsi_badfiles **out)
{
	struct tsi_badfiles *b = calloc(1, sizeof(*b));
	uint64_t n = tsi_index_count(x);

	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	pthread_mutex_init(&b->lock, NULL);
	b->index = x;
	b->count = n;
	b->whole = calloc(n / 64 + 1, sizeof(*b->whole));
	b->part = calloc(n, sizeof(*b->part));
	b->state = calloc(n, sizeof(*b->state));
	b->seen = calloc(n / 8 + 1, 1);
	b->bad = calloc(KEPT_MAX, sizeof(*b->bad));
	b->class_ = calloc(tsi_index_classes(x), sizeof(*b->class_));
	if (!b->whole || !b->part || !b->state || !b->seen || !b->bad ||
	    !b->class_) {
		tsi_badfiles_destroy(b);
		return tsi_err(TSOCK_ENOMEM, "no memory for %" PRIu64 " files",
			       n);
	}
	take_scan(b);
	*out = b;
	return 0;
}

void tsi_badfiles_destroy(struct tsi_badfiles *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->nkept; i++)
		free(b->bad[i].reason);
	free(b->bad);
	free(b->seen);
	free(b->class_);
	free(b->state);
	free(b->part);
	free(b->whole);
	pthread_mutex_destroy(&b->lock);
	free(b);
}
