/* SPDX-License-Identifier: MIT */
/*
 * words.c - the random words of one operation, for one sample.
 *
 * Gamma's: Marsaglia and Tsang, A Simple Method for Generating Gamma Variables
 * (2000).
 */
#include "transforms/words.h"

#include <math.h>

void tsi_words_skip(struct tsi_words *w)
{
	w->words = tsi_draw(w->seed, w->epoch, w->index,
			    (uint16_t)(TSI_WORDS_FIRST + w->place), w->block++);
	w->left = 4;
}

uint32_t tsi_words_next(struct tsi_words *w)
{
	if (!w->left)
		tsi_words_skip(w);
	return w->words.v[4 - w->left--];
}

float tsi_words_uniform(struct tsi_words *w, float low, float high)
{
	return tsi_draw_uniform(tsi_words_next(w), low, high);
}

double tsi_words_double(struct tsi_words *w)
{
	uint32_t a = tsi_words_next(w) >> 5, b = tsi_words_next(w) >> 6;

	return (a * 67108864.0 + b) * 0x1p-53;
}

double tsi_words_between(struct tsi_words *w, double low, double high)
{
	return low + (high - low) * tsi_words_double(w);
}

uint32_t tsi_words_below(struct tsi_words *w, uint32_t n)
{
	return tsi_words_next(w) % n;
}

bool tsi_words_chance(struct tsi_words *w, double p)
{
	return (double)tsi_words_uniform(w, 0, 1) < p;
}

double tsi_words_normal(struct tsi_words *w)
{
	double u = 1.0 - tsi_words_double(w);
	double angle = 6.283185307179586 * tsi_words_double(w);

	return sqrt(-2.0 * log(u)) * cos(angle);
}

/*
 * The logarithm of a standard gamma number.  For shapes below 1 it is that of
 * shape + 1 plus the logarithm of a power of a uniform number, which a double
 * can hold however small the number is.
 */
static double log_gamma(struct tsi_words *w, double shape)
{
	const double below =
		shape < 1 ? log(1 - tsi_words_double(w)) / shape : 0;
	const double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;

	for (;;) {
		double x = tsi_words_normal(w);
		double v = 1 + x / sqrt(9 * d);
		double u = 1 - tsi_words_double(w);

		v = v * v * v;
		if (v > 0 && log(u) < x * x / 2 + d - d * v + d * log(v))
			return log(d * v) + below;
	}
}

void tsi_words_shares(struct tsi_words *w, double alpha, unsigned n,
		      double *shares)
{
	double most = -INFINITY, sum = 0;

	for (unsigned k = 0; k < n; k++) {
		shares[k] = log_gamma(w, alpha);
		most = shares[k] > most ? shares[k] : most;
	}
	for (unsigned k = 0; k < n; k++) {
		shares[k] = exp(shares[k] - most);
		sum += shares[k];
	}
	for (unsigned k = 0; k < n; k++)
		shares[k] /= sum;
}

void tsi_words_permute(struct tsi_words *w, unsigned n, unsigned *order)
{
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	for (unsigned i = n; i > 1; i--) {
		unsigned k = tsi_words_below(w, i), last = order[i - 1];

		order[i - 1] = order[k];
		order[k] = last;
	}
}
