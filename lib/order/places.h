/* SPDX-License-Identifier: MIT */
/*
 * places.h - which sample of the data set is at a place of an epoch, where the
 * order is not the data set's own.
 *
 * What is shuffled by itself is a piece: the items of an epoch or, where samples
 * are dealt to segments, those of a segment of it.  A piece is either evaluated
 * at a place (permutation.h), which takes no memory, or an array: with torch,
 * and where it has fewer than TSI_PERMUTATION_MIN numbers.
 *
 * So a run of positions becomes indices in three steps: tsi_places_numbers() has
 * each one's number in its piece; tsi_places_evaluate(), or the array, has what
 * comes in its place; tsi_places_indices() has the sample that this stands for.
 *
 * All of it but for init and fini is pure arithmetic.
 */
#ifndef TSI_ORDER_PLACES_H
#define TSI_ORDER_PLACES_H

#include <stdbool.h>
#include <stdint.h>

#include "order/order.h"
#include "order/permutation.h"

struct tsi_places {
	struct tsi_order_opts order;
	uint64_t key; /* of the shuffles of epochs */
	/* Of the data set, and of the two lengths that segments have. */
	struct tsi_permutation all, segment[2];
	uint32_t deal[TSI_PERMUTATION_KEY];
	uint32_t *dealt; /* [count], where there are few; NULL: by `all` */
};

struct tsi_order_piece {
	uint64_t epoch;
	uint32_t segment;
	uint64_t from; /* its first position, if samples are dealt */
	uint64_t len;  /* numbers in it */
};

/* o has passed tsi_order_check(), and is not sequential.  Fails with ENOMEM. */
int tsi_places_init(struct tsi_places *p, const struct tsi_order_opts *o);
void tsi_places_fini(struct tsi_places *p);

/* The longest array of a piece; 0: all pieces are evaluated. */
uint64_t tsi_places_longest(const struct tsi_places *p);

/* The piece in which a position is, and whether it is an array. */
struct tsi_order_piece tsi_places_piece(const struct tsi_places *p,
					uint64_t epoch, uint64_t position);
bool tsi_places_is_array(const struct tsi_places *p,
			 const struct tsi_order_piece *at);

/* Write the array of a piece; not with torch. */
void tsi_places_shuffle(const struct tsi_places *p,
			const struct tsi_order_piece *at, uint32_t *item);

/* The numbers in the piece of n positions or, where it ends before, of some.
 * Returns how many. */
unsigned tsi_places_numbers(const struct tsi_places *p,
			    const struct tsi_order_piece *at,
			    const struct tsi_positions *run, unsigned n,
			    uint64_t *x);
void tsi_places_evaluate(const struct tsi_places *p,
			 const struct tsi_order_piece *at, uint64_t *x,
			 unsigned n);
void tsi_places_indices(const struct tsi_places *p,
			const struct tsi_order_piece *at, uint64_t *x,
			unsigned n);

#endif
