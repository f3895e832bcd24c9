/* SPDX-License-Identifier: MIT */
/*
 * sampling.h - --sampler: which samples an epoch has, and how often.
 */
#ifndef TSI_RUN_SAMPLING_H
#define TSI_RUN_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum tsi_sampling_way {
	TSI_SAMPLING_ORDER,    /* those of the order, each as often */
	TSI_SAMPLING_WEIGHTED, /* drawn with replacement, by weights, */
	TSI_SAMPLING_BALANCED, /* or each class as often as any other */
};

/* All zeros: each sample once. */
struct tsi_sampling {
	uint32_t way;    /* enum tsi_sampling_way */
	uint32_t repeat; /* ORDER: times that a sample comes; 0 means 1 */
	uint64_t limit;  /* samples of an epoch; 0: as many as there are */
};

/*
 * Read "weighted", "balanced", "repeat:K" or "limit:N", or the last behind one
 * of the others and a comma.  Fails with EARG and a sentence.
 */
int tsi_sampling_read(const char *text, struct tsi_sampling *out);

/* Is that other than each sample once? */
bool tsi_sampling_is_any(const struct tsi_sampling *s);

/* Write it as tsi_sampling_read() takes it, always in the same words. */
void tsi_sampling_write(const struct tsi_sampling *s, FILE *to);

#endif
