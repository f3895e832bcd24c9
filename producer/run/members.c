/* SPDX-License-Identifier: MIT */
/*
 * members.c - the samples of a data set by their classes.
 */
#include "run/members.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/reserve.h"

struct tsi_members {
	const struct tsi_index *index;
	uint64_t *first; /* [classes + 1], where a class begins */
	/* Samples by class, either of the two; unused if they lie so anyway.
	 * No page of it is touched before it is filled. */
	uint32_t *row;
	uint64_t *wide_row; /* of more than 2^32 samples */
	bool by_class;
	atomic_bool listed;
	pthread_mutex_t lock; /* of listing */
};

/* Count the samples of each class; true: samples lie by class. */
static bool count_classes(struct tsi_members *m, const struct tsi_index *x)
{
	uint32_t classes = tsi_index_classes(x);
	bool by_class = true;
	int64_t label[TSI_INDEX_RUN], before = 0;

	if (classes == 1) {
		m->first[1] = tsi_index_count(x);
		return true;
	}
	for (uint64_t i = 0; i < tsi_index_count(x); i += TSI_INDEX_RUN) {
		unsigned n = tsi_index_label_run(x, i, label);

		for (unsigned k = 0; k < n; k++) {
			m->first[label[k] + 1]++;
			by_class &= before <= label[k];
			before = label[k];
		}
	}
	for (uint32_t c = 0; c < classes; c++)
		m->first[c + 1] += m->first[c];
	return by_class;
}

/*
 * first[c] is where the next sample of class c goes, so that behind the last one
 * it is where class c + 1 begins.
 */
static void sort_rows(struct tsi_members *m, const struct tsi_index *x)
{
	uint64_t n = tsi_index_count(x);
	int64_t label[TSI_INDEX_RUN];

	for (uint64_t i = 0; i < n; i += TSI_INDEX_RUN) {
		unsigned some = tsi_index_label_run(x, i, label);

		for (unsigned k = 0; k < some; k++) {
			uint64_t at = m->first[label[k]]++;

			if (m->row)
				m->row[at] = (uint32_t)(i + k);
			else
				m->wide_row[at] = i + k;
		}
	}
	for (uint32_t c = tsi_index_classes(x); c; c--)
		m->first[c] = m->first[c - 1];
	m->first[0] = 0;
}

/* Made when it is first asked for: few streams ever ask. */
static void list(const struct tsi_members *is)
{
	struct tsi_members *m = (struct tsi_members *)(uintptr_t)is;

	if (atomic_load_explicit(&m->listed, memory_order_acquire))
		return;
	pthread_mutex_lock(&m->lock);
	if (!atomic_load_explicit(&m->listed, memory_order_relaxed)) {
		m->by_class = count_classes(m, m->index);
		if (!m->by_class)
			sort_rows(m, m->index);
		atomic_store_explicit(&m->listed, true, memory_order_release);
	}
	pthread_mutex_unlock(&m->lock);
}

int tsi_members_create(const struct tsi_index *x, struct tsi_members **out)
{
	struct tsi_members *m = calloc(1, sizeof(*m));
	uint64_t n = tsi_index_count(x);
	/* Those of one class lie by class anyway. */
	bool several = tsi_index_classes(x) > 1;

	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	pthread_mutex_init(&m->lock, NULL);
	m->index = x;
	m->first = calloc((size_t)tsi_index_classes(x) + 1, sizeof(*m->first));
	if (several && n <= UINT32_MAX)
		m->row = tsi_reserve(n, sizeof(*m->row));
	else if (several)
		m->wide_row = tsi_reserve(n, sizeof(*m->wide_row));
	if (!m->first || (several && !m->row && !m->wide_row)) {
		tsi_members_destroy(m);
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for %" PRIu64 " files of %u classes",
			       n, tsi_index_classes(x));
	}
	*out = m;
	return 0;
}

void tsi_members_destroy(struct tsi_members *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	tsi_reserve_free(m->wide_row, tsi_index_count(m->index),
			 sizeof(*m->wide_row));
	tsi_reserve_free(m->row, tsi_index_count(m->index), sizeof(*m->row));
	free(m->first);
	free(m);
}

uint64_t tsi_members_count(const struct tsi_members *m, uint64_t label)
{
	list(m);
	return m->first[label + 1] - m->first[label];
}

uint64_t tsi_members_at(const struct tsi_members *m, uint64_t label, uint64_t k)
{
	uint64_t i;

	list(m);
	i = m->first[label] + k;
	if (m->by_class)
		return i;
	return m->row ? m->row[i] : m->wide_row[i];
}
