/* SPDX-License-Identifier: MIT */
/*
 * substitute.c - which files may stand in for a bad one, and in which order
 * they are tried.
 */
#include "run/substitute.h"

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
	const struct tsi_members *members;
	uint64_t key;
};

/* The files of a class, or of the whole data set. */
struct choice {
	uint64_t label; /* of the class; the whole data set begins with 0 */
	uint64_t n;
	uint32_t number; /* of its first draw */
};

static struct choice class_of(const struct tsi_substitutes *s, uint64_t index)
{
	uint64_t label = (uint64_t)tsi_index_label(s->index, index);

	return (struct choice){ .label = label,
				.n = tsi_members_count(s->members, label) };
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
	*file = tsi_members_at(s->members, c.label, i);
	return true;
}

int tsi_substitutes_create(const struct tsi_index *x,
			   const struct tsi_members *m, uint64_t seed,
			   struct tsi_substitutes **out)
{
	/* The seed is a key elsewhere too: see order/shuffle.c. */
	struct tsi_philox_ctr tag = { { 0x73756273u, 0, 0, 0 } };
	struct tsi_philox_ctr k = tsi_philox(seed, tag);
	struct tsi_substitutes *s = calloc(1, sizeof(*s));

	if (!s)
		return tsi_err(TSOCK_ENOMEM, "no memory for the data set");
	s->index = x;
	s->members = m;
	s->key = (uint64_t)k.v[1] << 32 | k.v[0];
	*out = s;
	return 0;
}

void tsi_substitutes_destroy(struct tsi_substitutes *s)
{
	free(s);
}
