/* SPDX-License-Identifier: MIT */
/*
 * substitute.c - which files may stand in for a bad one, and in which order
 * they are tried.
 */
#include "run/substitute.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/philox.h"

/*
 * Drawn before all are tried in turn.  Where half of a class is good the last
 * of these draws is never made; where a hundredth is, it is in every fourth
 * place, and the good file behind the drawn one stands in.
 */
#define DRAWS 128

struct tsi_substitutes {
	const struct tsi_index *index;
	uint64_t key;
	uint64_t *first;  /* [classes + 1], where a class begins */
	uint32_t *member; /* files by class; NULL: they lie so by themselves */
};

/* The files of a class, or of the whole data set. */
struct choice {
	uint64_t first; /* among the files by class */
	uint64_t n;
	uint32_t number; /* of its first draw */
};

static struct choice class_of(const struct tsi_substitutes *s, uint64_t index)
{
	uint64_t label = (uint64_t)tsi_index_label(s->index, index);

	return (struct choice){ .first = s->first[label],
				.n = s->first[label + 1] - s->first[label] };
}

/* Uniform below n, by one draw of 64 bits: off by less than n / 2^64. */
static uint64_t below(const struct tsi_substitutes *s, uint64_t epoch,
		      uint64_t index, uint32_t number, uint64_t n)
{
	struct tsi_philox_ctr ctr = { { (uint32_t)index,
					(uint32_t)(index >> 32),
					(uint32_t)epoch, number } };
	struct tsi_philox_ctr r = tsi_philox(s->key, ctr);
	uint64_t word = (uint64_t)r.v[1] << 32 | r.v[0];

	return (uint64_t)((unsigned __int128)word * n >> 64);
}

uint64_t tsi_substitutes_beyond_class(const struct tsi_substitutes *s,
				      uint64_t index)
{
	return DRAWS + class_of(s, index).n;
}

bool tsi_substitutes_at(const struct tsi_substitutes *s, uint64_t epoch,
			uint64_t index, uint64_t k, uint64_t *file)
{
	struct choice c = class_of(s, index);
	uint64_t i;

	if (k >= DRAWS + c.n) {
		k -= DRAWS + c.n;
		c = (struct choice){ .n = tsi_index_count(s->index),
				     .number = DRAWS + 1 };
	}
	if (k >= DRAWS + c.n)
		return false;
	if (k < DRAWS)
		i = below(s, epoch, index, c.number + (uint32_t)k, c.n);
	else
		i = (below(s, epoch, index, c.number + DRAWS, c.n) + k -
		     DRAWS) %
		    c.n;
	i += c.first;
	*file = s->member ? s->member[i] : i;
	return true;
}

/* Count the files of each class; true: files lie by class. */
static bool count_classes(struct tsi_substitutes *s)
{
	const struct tsi_index *x = s->index;
	uint64_t n = tsi_index_count(x);
	uint32_t classes = tsi_index_classes(x);
	bool by_class = true;
	int64_t before = 0;

	for (uint64_t i = 0; i < n; i++) {
		int64_t label = tsi_index_label(x, i);

		s->first[label + 1]++;
		by_class &= before <= label;
		before = label;
	}
	for (uint32_t c = 0; c < classes; c++)
		s->first[c + 1] += s->first[c];
	return by_class;
}

static int sort_members(struct tsi_substitutes *s)
{
	const struct tsi_index *x = s->index;
	uint64_t n = tsi_index_count(x);
	uint32_t classes = tsi_index_classes(x);
	uint64_t *next;

	if (n > UINT32_MAX)
		return tsi_err(TSOCK_EARG,
			       "%" PRIu64 " samples that don't lie by class: "
			       "%u are the most",
			       n, UINT32_MAX);
	next = calloc(classes, sizeof(*next));
	s->member = malloc(n * sizeof(*s->member));
	if (!next || !s->member) {
		free(next);
		return tsi_err(TSOCK_ENOMEM,
			       "no memory for %" PRIu64 " files by class", n);
	}
	for (uint32_t c = 0; c < classes; c++)
		next[c] = s->first[c];
	for (uint64_t i = 0; i < n; i++)
		s->member[next[tsi_index_label(x, i)]++] = (uint32_t)i;
	free(next);
	return 0;
}

int tsi_substitutes_create(const struct tsi_index *x, uint64_t seed,
			   struct tsi_substitutes **out)
{
	/* The seed is a key elsewhere too: see order/shuffle.c. */
	struct tsi_philox_ctr tag = { { 0x73756273u, 0, 0, 0 } };
	struct tsi_philox_ctr k = tsi_philox(seed, tag);
	struct tsi_substitutes *s = calloc(1, sizeof(*s));
	int err = 0;

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	s->index = x;
	s->key = (uint64_t)k.v[1] << 32 | k.v[0];
	s->first = calloc((size_t)tsi_index_classes(x) + 1, sizeof(*s->first));
	if (!s->first)
		err = tsi_err(TSOCK_ENOMEM, "no memory for %u classes",
			      tsi_index_classes(x));
	else if (!count_classes(s))
		err = sort_members(s);
	if (err) {
		tsi_substitutes_destroy(s);
		return err;
	}
	*out = s;
	return 0;
}

void tsi_substitutes_destroy(struct tsi_substitutes *s)
{
	if (!s)
		return;
	free(s->member);
	free(s->first);
	free(s);
}
