/* SPDX-License-Identifier: MIT */
/*
 * badlist.c - the list of bad files: each is counted once, for its class and
 * for the data set, whichever worker finds it.
 */
#include "run/badlist.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "run/sparse.h"

#define LOGGED_MAX 20   /* bad files that get a line of their own */
#define KEPT_MAX 10000  /* bad files whose reason is kept */
#define TOLD_CLASSES 16 /* lost ones that jobs are told of */
#define AGAIN 4         /* jobs are told when there are so many times more */
#define TEXT 1024       /* bytes of what jobs are told */
#define SEEN_BITS 15    /* so many files' bits are a page */
#define SEEN (1u << SEEN_BITS)

struct bad_file {
	uint64_t index;
	char *reason;
};

struct class_count {
	uint64_t bad, looked; /* on the list; and not only presumed to be bad */
	uint64_t first;       /* of the latter, if there are any */
	char *reason;         /* of that one */
	bool told;            /* that it is lost */
};

struct tsi_badlist {
	const struct tsi_index *index;
	uint64_t count;
	/* A bit per file that is presumed to be bad; NULL: none is. */
	_Atomic uint64_t *presumed;

	pthread_mutex_t lock;
	struct tsi_sparse seen; /* a bit per file: already counted as bad */
	struct bad_file *bad;
	size_t nkept;
	uint64_t nbad, at_start;
	uint64_t npresumed;
	struct class_count *class_;
	uint32_t worst; /* the class that has most bad files */
	struct tsi_tolerance tolerance;
	struct tsi_badlist_listener to;
	uint32_t told_classes;
	uint64_t told; /* that so many of all are too many */
};

/* ---- counting ---- */

static struct class_count *class_of(const struct tsi_badlist *l, uint64_t i)
{
	return &l->class_[tsi_index_label(l->index, i)];
}

static uint64_t files_of(const struct tsi_badlist *l,
			 const struct class_count *c)
{
	return tsi_index_class_files(l->index, (uint32_t)(c - l->class_));
}

/* Is none of its files good? */
static bool is_lost(const struct tsi_badlist *l, const struct class_count *c)
{
	return c->bad && c->bad == files_of(l, c);
}

/* Under the lock, and so are the following. */
static bool is_seen(const struct tsi_badlist *l, uint64_t i)
{
	const uint8_t *block = tsi_sparse_find(&l->seen, i);

	return block && block[i % SEEN / 8] >> i % 8 & 1;
}

/* False: there is no memory to mark it as counted, so it isn't counted. */
static bool count_bad(struct tsi_badlist *l, uint64_t i)
{
	struct class_count *c = class_of(l, i);
	uint8_t *block = tsi_sparse_make(&l->seen, i);

	if (!block)
		return false;
	block[i % SEEN / 8] |= (uint8_t)(1u << i % 8);
	if (++c->bad > l->class_[l->worst].bad)
		l->worst = (uint32_t)(c - l->class_);
	l->nbad++;
	return true;
}

/* It was counted. */
static void count_no_more(struct tsi_badlist *l, uint64_t i)
{
	uint8_t *block = tsi_sparse_find(&l->seen, i);

	block[i % SEEN / 8] &= (uint8_t) ~(1u << i % 8);
	class_of(l, i)->bad--;
	l->nbad--;
}

/* It was looked at, and this is what was found. */
static void keep_reason(struct tsi_badlist *l, uint64_t i, const char *reason)
{
	struct class_count *c = class_of(l, i);

	if (!c->looked++) {
		c->first = i;
		c->reason = strdup(reason);
	}
	if (l->nkept == KEPT_MAX)
		return;
	l->bad[l->nkept].index = i;
	l->bad[l->nkept++].reason = strdup(reason);
}

static bool is_presumed(const struct tsi_badlist *l, uint64_t i)
{
	/* Relaxed: exact under the lock, a hint outside of it. */
	return l->presumed && atomic_load_explicit(&l->presumed[i / 64],
						   memory_order_relaxed) >>
					      i % 64 &
				      1;
}

/* False: it wasn't. */
static bool presume_no_more(struct tsi_badlist *l, uint64_t i)
{
	if (!is_presumed(l, i))
		return false;
	/* Relaxed: likewise. */
	atomic_fetch_and_explicit(&l->presumed[i / 64],
				  ~(UINT64_C(1) << i % 64),
				  memory_order_relaxed);
	l->npresumed--;
	return true;
}

static void tell_count(const struct tsi_badlist *l)
{
	if (l->to.count)
		l->to.count(l->to.arg, l->nbad);
}

/* ---- what is said of them ---- */

static struct tsi_bad_files all_of(const struct tsi_badlist *l, char *name)
{
	struct tsi_bad_files f = { .name = tsi_index_root(l->index),
				   .files = l->count,
				   .bad = l->nbad,
				   .looked = l->nbad - l->npresumed };

	if (!l->nkept)
		return f;
	f.first = tsi_index_sample(l->index, l->bad[0].index, name,
				   TSI_INDEX_SAMPLE);
	f.reason = l->bad[0].reason ? l->bad[0].reason : "no memory";
	return f;
}

static struct tsi_bad_files one_of(const struct tsi_badlist *l,
				   const struct class_count *c, char *name)
{
	struct tsi_bad_files f = { .name = tsi_index_class(
					   l->index, (uint32_t)(c - l->class_)),
				   .files = files_of(l, c),
				   .bad = c->bad,
				   .looked = c->looked };

	if (!c->looked)
		return f;
	f.first = tsi_index_sample(l->index, c->first, name, TSI_INDEX_SAMPLE);
	f.reason = c->reason ? c->reason : "no memory";
	return f;
}

/* A class of which nothing is good: what is to be told; false: nothing. */
static bool lose_class(struct tsi_badlist *l, struct class_count *c, char *text)
{
	char name[TSI_INDEX_SAMPLE], first[TSI_INDEX_SAMPLE];
	struct tsi_bad_files class_, all;

	if (c->told || !l->to.warn || l->tolerance.given ||
	    l->told_classes == TOLD_CLASSES)
		return false;
	c->told = true;
	l->told_classes++;
	class_ = one_of(l, c, name);
	all = all_of(l, first);
	tsi_verdict_warn_class(&class_, &all, text, TEXT);
	return true;
}

/* Are there too many in the data set?  What is to be told; false: nothing. */
static bool exceed(struct tsi_badlist *l, char *text)
{
	char first[TSI_INDEX_SAMPLE];
	struct tsi_bad_files all;

	if (l->nbad < AGAIN * l->told || !l->to.warn ||
	    !tsi_verdict_too_many(&l->tolerance, l->nbad, l->count))
		return false;
	l->told = l->nbad;
	all = all_of(l, first);
	tsi_verdict_warn_share(&all, text, TEXT);
	return true;
}

/* Without the lock. */
static void tell(const struct tsi_badlist *l, const char *text)
{
	tsi_log(TSOCK_LOG_WARN, "%s", text);
	l->to.warn(l->to.arg, text);
}

/* Twice as many as at the last such line: where most of them are. */
static void log_worst(const struct tsi_badlist *l, uint64_t n, uint32_t label,
		      const struct class_count *c)
{
	tsi_log(TSOCK_LOG_WARN,
		"%" PRIu64 " bad files so far, most of them in class %s "
		"(%" PRIu64 " of its %" PRIu64 "); others take their places",
		n, tsi_index_class(l->index, label), c->bad,
		tsi_index_class_files(l->index, label));
}

static void log_file(const struct tsi_badlist *l, uint64_t i,
		     const char *reason, uint64_t found)
{
	char name[TSI_INDEX_SAMPLE];

	if (found <= LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "bad file %s: %s",
			tsi_index_sample(l->index, i, name, sizeof(name)),
			reason);
	if (found == LOGGED_MAX)
		tsi_log(TSOCK_LOG_WARN, "more bad files are counted, and "
					"listed at the end");
}

/* ---- what others call ---- */

void tsi_badlist_report(struct tsi_badlist *l, uint64_t i, const char *reason,
			bool class_lost)
{
	char of_class[TEXT], of_all[TEXT];
	bool lost = false, exceeded = false;
	struct class_count worst;
	uint64_t n, found = 0;
	uint32_t label;

	pthread_mutex_lock(&l->lock);
	if (presume_no_more(l, i)) {
		keep_reason(l, i, reason);
	} else if (!is_seen(l, i) && count_bad(l, i)) {
		keep_reason(l, i, reason);
		found = l->nbad - l->at_start;
		tell_count(l);
		exceeded = exceed(l, of_all);
	}
	if (class_lost)
		lost = lose_class(l, class_of(l, i), of_class);
	n = l->nbad;
	label = l->worst;
	worst = l->class_[label];
	pthread_mutex_unlock(&l->lock);

	if (found)
		log_file(l, i, reason, found);
	if (lost)
		tell(l, of_class);
	if (exceeded)
		tell(l, of_all);
	if (found > LOGGED_MAX && found % LOGGED_MAX == 0 &&
	    !(found / LOGGED_MAX & (found / LOGGED_MAX - 1)))
		log_worst(l, n, label, &worst);
}

void tsi_badlist_vouch(struct tsi_badlist *l, uint64_t i)
{
	if (!is_presumed(l, i))
		return;
	pthread_mutex_lock(&l->lock);
	if (presume_no_more(l, i)) {
		count_no_more(l, i);
		l->at_start--;
		tell_count(l);
	}
	pthread_mutex_unlock(&l->lock);
}

uint64_t tsi_badlist_count(struct tsi_badlist *l)
{
	uint64_t n;

	pthread_mutex_lock(&l->lock);
	n = l->nbad;
	pthread_mutex_unlock(&l->lock);
	return n;
}

void tsi_badlist_each(struct tsi_badlist *l,
		      void (*fn)(void *arg, const char *path,
				 const char *reason),
		      void *arg)
{
	char name[TSI_INDEX_SAMPLE];

	pthread_mutex_lock(&l->lock);
	for (size_t i = 0; i < l->nkept; i++)
		fn(arg,
		   tsi_index_sample(l->index, l->bad[i].index, name,
				    sizeof(name)),
		   l->bad[i].reason ? l->bad[i].reason : "no memory");
	pthread_mutex_unlock(&l->lock);
}

void tsi_badlist_classes(struct tsi_badlist *l,
			 void (*fn)(void *arg, const char *class_name,
				    uint64_t bad, uint64_t files),
			 void *arg)
{
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; i < tsi_index_classes(l->index); i++)
		if (l->class_[i].bad)
			fn(arg, tsi_index_class(l->index, i), l->class_[i].bad,
			   files_of(l, &l->class_[i]));
	pthread_mutex_unlock(&l->lock);
}

/* ---- too many ---- */

static struct tsi_lost_classes lost_classes(const struct tsi_badlist *l)
{
	struct tsi_lost_classes lost = { .n = 0 };

	for (uint32_t i = 0; i < tsi_index_classes(l->index); i++) {
		const struct class_count *c = &l->class_[i];

		if (is_lost(l, c) && !lost.n++)
			lost.name = tsi_index_class(l->index, i);
	}
	return lost;
}

static int refuse(const struct tsi_badlist *l,
		  const struct tsi_lost_classes *lost)
{
	char text[TEXT], name[TSI_INDEX_SAMPLE];
	struct tsi_bad_files all = all_of(l, name);

	tsi_verdict_refuse(&all, lost, text, sizeof(text));
	return tsi_err(TSOCK_EDATA, "%s", text);
}

/* What a sample of a large data set tells of all of it. */
static int check_sample(const struct tsi_badlist *l,
			const struct tsi_tolerance *t)
{
	struct tsi_lost_classes none = { .n = 0 };
	char text[TEXT], name[TSI_INDEX_SAMPLE];
	struct tsi_bad_files f = all_of(l, name);
	uint64_t n;

	if (tsi_index_select(l->index))
		return 0;
	f.bad = f.looked = tsi_index_looked(l->index, &n);
	f.files = n;
	if (!n || !tsi_verdict_surely_too_many(t, f.bad, n))
		return 0;
	tsi_verdict_refuse(&f, &none, text, sizeof(text));
	return tsi_err(TSOCK_EDATA, "of those that were looked at in %s", text);
}

int tsi_badlist_check(struct tsi_badlist *l, const struct tsi_tolerance *t)
{
	struct tsi_lost_classes lost;
	int err = 0;

	pthread_mutex_lock(&l->lock);
	if (l->nbad) {
		lost = lost_classes(l);
		if ((lost.n && !t->given) ||
		    tsi_verdict_too_many(t, l->nbad, l->count))
			err = refuse(l, &lost);
		else
			err = check_sample(l, t);
	}
	pthread_mutex_unlock(&l->lock);
	return err;
}

void tsi_badlist_watch(struct tsi_badlist *l, const struct tsi_tolerance *t,
		       const struct tsi_badlist_listener *to)
{
	char text[TEXT];

	pthread_mutex_lock(&l->lock);
	l->tolerance = *t;
	l->to = *to;
	pthread_mutex_unlock(&l->lock);
	/* Nobody reports yet. */
	for (uint32_t i = 0; i < tsi_index_classes(l->index); i++) {
		struct class_count *c = &l->class_[i];

		if (is_lost(l, c) && lose_class(l, c, text))
			tell(l, text);
	}
	if (exceed(l, text))
		tell(l, text);
}

/* ---- all of it ---- */

/* What the scan found is said by the summary, not file by file. */
static bool take_scan(struct tsi_badlist *l)
{
	const struct tsi_index *x = l->index;

	for (uint64_t k = 0; k < tsi_index_bad_count(x); k++) {
		uint64_t i = tsi_index_bad_at(x, k);

		if (!count_bad(l, i))
			return false;
		keep_reason(l, i, tsi_index_bad_reason(x, i));
	}
	return true;
}

static bool take_presumed(struct tsi_badlist *l)
{
	if (!tsi_index_presumes(l->index))
		return true;
	l->presumed = calloc(l->count / 64 + 1, sizeof(*l->presumed));
	if (!l->presumed)
		return false;
	for (uint64_t i = 0; i < l->count; i++) {
		if (!tsi_index_presumed(l->index, i))
			continue;
		l->presumed[i / 64] |= UINT64_C(1) << i % 64;
		l->npresumed++;
		if (!count_bad(l, i))
			return false;
	}
	return true;
}

int tsi_badlist_create(const struct tsi_index *x, struct tsi_badlist **out)
{
	struct tsi_badlist *l = calloc(1, sizeof(*l));
	uint64_t n = tsi_index_count(x);

	if (!l)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	pthread_mutex_init(&l->lock, NULL);
	l->index = x;
	l->count = n;
	tsi_sparse_init(&l->seen, n, SEEN_BITS, SEEN / 8);
	l->bad = calloc(KEPT_MAX, sizeof(*l->bad));
	l->class_ = calloc(tsi_index_classes(x), sizeof(*l->class_));
	if (!l->bad || !l->class_ || !take_scan(l) || !take_presumed(l)) {
		tsi_badlist_destroy(l);
		return tsi_err(TSOCK_ENOMEM, "no memory for %" PRIu64 " files",
			       n);
	}
	l->at_start = l->nbad;
	*out = l;
	return 0;
}

void tsi_badlist_destroy(struct tsi_badlist *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nkept; i++)
		free(l->bad[i].reason);
	for (uint32_t i = 0; l->class_ && i < tsi_index_classes(l->index); i++)
		free(l->class_[i].reason);
	free(l->bad);
	tsi_sparse_fini(&l->seen);
	free(l->class_);
	free((void *)l->presumed);
	pthread_mutex_destroy(&l->lock);
	free(l);
}
