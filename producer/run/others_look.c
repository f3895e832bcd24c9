/* SPDX-License-Identifier: MIT */
/*
 * others_look.c - can a recipe be done to samples of several images?
 */
#include "run/others_look.h"

#include <stdlib.h>

#include "base/err.h"
#include "image/sniff.h"
#include "io/reader.h"

#define LOOKED 8 /* samples that a start looks at */
#define WHY 200

struct looking {
	const struct tsi_index *index;
	const struct tsi_recipe *recipe;
	uint64_t seed;
	double *draws;
};

/* The size of an image; false: nothing is known of it. */
static bool size_of(const struct looking *l, const struct tsi_location *at,
		    struct tsi_image_head *head)
{
	const struct tsi_read_request q = { .dirfd = tsi_index_dirfd(l->index),
					    .folder = at->folder,
					    .path = at->file,
					    .offset = at->offset,
					    .length = at->length };
	uint8_t *data;
	size_t len;
	bool known;

	if (tsi_io_read(&q, TSI_READER_AHEAD, &data, &len))
		return false;
	known = !tsi_image_sniff(data, len, true, head);
	free(data);
	return known;
}

/* Which of sample i's images the recipe can't be done to; -1: to none. */
static int find_unfit(const struct looking *l, uint64_t i)
{
	const unsigned n = tsi_columns_others(tsi_index_columns(l->index));
	struct tsi_op_sample first = { .seed = l->seed, .index = i }, s;
	struct tsi_image_head head;
	struct tsi_location at;

	tsi_index_locate_bytes(l->index, i, &at);
	if (!size_of(l, &at, &head))
		return -1;
	first.width = head.width;
	first.height = head.height;
	s = first;
	if (tsi_recipe_draw(l->recipe, &s, l->draws))
		return -1;
	first.first_width = first.width;
	first.first_height = first.height;
	for (unsigned k = 0; k < n; k++) {
		tsi_index_locate_other(l->index, k, i, &at);
		if (!size_of(l, &at, &head))
			return -1;
		s = first;
		s.width = head.width;
		s.height = head.height;
		if (tsi_recipe_draw(l->recipe, &s, l->draws))
			return (int)k;
	}
	return -1;
}

/* As the last draw has said. */
static int refuse(const struct tsi_index *x, uint64_t i, int unfit)
{
	char why[WHY], name[TSI_INDEX_SAMPLE];

	tsi_err_copy(why, sizeof(why));
	return tsi_err(
		TSOCK_EDATA,
		"%s: of the samples that were looked at none can be "
		"made: %s: its image %s: %s; begin the recipe with "
		"Resize((HEIGHT, WIDTH)), which makes sizes equal",
		tsi_index_root(x), tsi_index_sample(x, i, name, sizeof(name)),
		tsi_columns_other(tsi_index_columns(x), (unsigned)unfit), why);
}

static int look(const struct looking *l)
{
	const uint64_t all = tsi_index_count(l->index);
	const uint64_t n = all < LOOKED ? all : LOOKED;
	int unfit = -1;

	for (uint64_t k = n; k-- > 0;) {
		unfit = find_unfit(l, k * (all / n));
		if (unfit < 0)
			return 0;
	}
	return n ? refuse(l->index, 0, unfit) : 0;
}

int tsi_others_look(const struct tsi_index *x, const struct tsi_recipe *r,
		    uint64_t seed)
{
	const unsigned n = tsi_columns_others(tsi_index_columns(x));
	struct looking l = { .index = x, .recipe = r, .seed = seed };
	int err;

	if (!n)
		return 0;
	if (r->views > 1)
		return tsi_err(TSOCK_EARG,
			       "%s has %u images a sample, of which no views "
			       "can be made, and the recipe makes %u: leave "
			       "out --views or Views(...)",
			       tsi_index_name(x), n + 1, r->views);
	l.draws = calloc(r->draws + 1, sizeof(*l.draws));
	if (!l.draws)
		return tsi_err(TSOCK_ENOMEM, "no memory for a recipe");
	err = look(&l);
	free(l.draws);
	return err;
}
