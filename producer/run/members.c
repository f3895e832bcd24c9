/* SPDX-License-Identifier: MIT */
/*
 * members.c - the samples of a data set by their classes.
 */
#include "run/members.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"

struct tsi_members {
	uint64_t *first; /* [classes + 1], where a class begins */
	uint32_t *row;   /* samples by class; NULL: they lie so by themselves */
};

/* Count the samples of each class; true: samples lie by class. */
static bool count_classes(struct tsi_members *m, const struct tsi_index *x)
{
	uint32_t classes = tsi_index_classes(x);
	bool by_class = true;
	int64_t label[TSI_INDEX_RUN], before = 0;

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

static int sort_rows(struct tsi_members *m, const struct tsi_index *x)
{
	uint64_t n = tsi_index_count(x);
	uint32_t classes = tsi_index_classes(x);
	int64_t label[TSI_INDEX_RUN];
	uint64_t *next;

	if (n > UINT32_MAX)
		return tsi_err(TSOCK_EARG,
			       "%" PRIu64 " samples that don't lie by class: "
			       "%u are the most",
			       n, UINT32_MAX);
	next = calloc(classes, sizeof(*next));
	m->row = malloc(n * sizeof(*m->row));
	if (!next || !m->row) {
		free(next);
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for %" PRIu64 " files by class", n);
	}
	for (uint32_t c = 0; c < classes; c++)
		next[c] = m->first[c];
	for (uint64_t i = 0; i < n; i += TSI_INDEX_RUN) {
		unsigned some = tsi_index_label_run(x, i, label);

		for (unsigned k = 0; k < some; k++)
			m->row[next[label[k]]++] = (uint32_t)(i + k);
	}
	free(next);
	return 0;
}

int tsi_members_create(const struct tsi_index *x, struct tsi_members **out)
{
	struct tsi_members *m = calloc(1, sizeof(*m));
	int err = 0;

	if (!m)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	m->first = calloc((size_t)tsi_index_classes(x) + 1, sizeof(*m->first));
	if (!m->first)
		err = tsi_err(TSOCK_ENOMEM, "no memory for %u classes",
			      tsi_index_classes(x));
	else if (!count_classes(m, x))
		err = sort_rows(m, x);
	if (err) {
		tsi_members_destroy(m);
		return err;
	}
	*out = m;
	return 0;
}

void tsi_members_destroy(struct tsi_members *m)
{
	if (!m)
		return;
	free(m->row);
	free(m->first);
	free(m);
}

uint64_t tsi_members_count(const struct tsi_members *m, uint64_t label)
{
	return m->first[label + 1] - m->first[label];
}

uint64_t tsi_members_at(const struct tsi_members *m, uint64_t label, uint64_t k)
{
	uint64_t i = m->first[label] + k;

	return m->row ? m->row[i] : i;
}
