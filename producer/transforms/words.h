/* SPDX-License-Identifier: MIT */
/*
 * words.h - the random words of one operation of a recipe, for one sample.
 *
 * draw.h's words with the operation's place in the recipe for its number, and
 * the block for the attempt: a function of (seed, epoch, index, place) and of
 * how many words were taken before.
 */
#ifndef TSI_TRANSFORMS_WORDS_H
#define TSI_TRANSFORMS_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "pixel/draw.h"

/* The number of place 0. */
#define TSI_WORDS_FIRST 0xa001
#define TSI_WORDS_PLACES 0xfff

struct tsi_words {
	uint64_t seed;
	uint32_t epoch;
	uint64_t index;
	uint16_t place;
	uint32_t block; /* the next one */
	unsigned left;  /* words of the current one */
	struct tsi_philox_ctr words;
};

static inline struct tsi_words tsi_words_of(uint64_t seed, uint32_t epoch,
					    uint64_t index, uint16_t place)
{
	return (struct tsi_words){
		.seed = seed, .epoch = epoch, .index = index, .place = place
	};
}

/* Go on with the first word of the next block, whatever is left of this one. */
void tsi_words_skip(struct tsi_words *w);

uint32_t tsi_words_next(struct tsi_words *w);

/* torch's uniform_(low, high) of float32: tsi_draw_uniform() of one word. */
float tsi_words_uniform(struct tsi_words *w, float low, float high);

/* Python's random.random(): 53 bits of two words, in [0, 1). */
double tsi_words_double(struct tsi_words *w);

/* Python's random.uniform(low, high). */
double tsi_words_between(struct tsi_words *w, double low, double high);

/* A whole number from 0 to n - 1, n above 0: one word, modulo n. */
uint32_t tsi_words_below(struct tsi_words *w, uint32_t n);

/* torch.rand(1) < p, which is never true for p = 0 and always for p = 1. */
bool tsi_words_chance(struct tsi_words *w, double p);

/* A standard normal number: Box-Muller's of two words' doubles each. */
double tsi_words_normal(struct tsi_words *w);

/*
 * n shares, whose sum is 1, distributed as Dirichlet's with n times this alpha,
 * above 0; the first of two is distributed as Beta's.  Takes as many words as
 * it needs.
 */
void tsi_words_shares(struct tsi_words *w, double alpha, unsigned n,
		      double *shares);

/* A random order of 0 to n - 1, all equally likely. */
void tsi_words_permute(struct tsi_words *w, unsigned n, unsigned *order);

#endif
