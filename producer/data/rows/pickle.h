/* SPDX-License-Identifier: MIT */
/*
 * pickle.h - what a pickled Python dictionary of arrays and lists holds, as the
 * batches of CIFAR and of downsampled ImageNet are.
 *
 * Nothing is imported or run: a program of pickle's opcodes is followed as far
 * as it builds numbers, strings, lists, tuples, dictionaries and NumPy's arrays,
 * and refused where it does anything else.  An array's values stay in the file.
 * docs.python.org/3/library/pickletools.html describes the opcodes.
 */
#ifndef TSI_DATA_ROWS_PICKLE_H
#define TSI_DATA_ROWS_PICKLE_H

#include <stdint.h>

#include "data/rows/rows.h"

#define TSI_PICKLE_DIMS 4

struct tsi_pickle;

struct tsi_pickle_array {
	uint32_t dtype; /* enum tsock_dtype */
	uint32_t ndim;
	uint64_t shape[TSI_PICKLE_DIMS];
	uint64_t at, len; /* its bytes in the file */
};

/* Fails with EDATA (it isn't such a dictionary, or is damaged), ENOMEM. */
int tsi_pickle_open(const struct tsi_rows *rows, unsigned file,
		    struct tsi_pickle **out);

/* NULL is allowed. */
void tsi_pickle_close(struct tsi_pickle *p);

/* The array of this key.  Fails with EDATA: there is none. */
int tsi_pickle_array(const struct tsi_pickle *p, const char *key,
		     struct tsi_pickle_array *out);

/*
 * The numbers of this key, a list or an array of integers: n of them, from
 * malloc().  Fails with EDATA (there are none), ENOMEM.
 */
int tsi_pickle_numbers(const struct tsi_pickle *p, const char *key,
		       int64_t **out, uint64_t *n);

/* The list of strings of this key: each ended by a NUL, one by one, likewise. */
int tsi_pickle_strings(const struct tsi_pickle *p, const char *key, char **out,
		       uint32_t *n);

#endif
