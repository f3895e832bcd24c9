/* SPDX-License-Identifier: MIT */
/*
 * npy.h - the head of an array as NumPy's save() writes it.
 *
 * numpy.org/doc/stable/reference/generated/numpy.lib.format.html defines it:
 * a magic, a version, and a Python dictionary with descr, fortran_order and
 * shape.
 */
#ifndef TSI_DATA_ROWS_NPY_H
#define TSI_DATA_ROWS_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "data/rows/rows.h"

#define TSI_NPY_DIMS 8

struct tsi_npy {
	uint32_t dtype; /* enum tsock_dtype */
	uint32_t ndim;
	uint64_t shape[TSI_NPY_DIMS];
	uint64_t at; /* where the values begin in the file */
};

/* Where an array lies in a file, and what messages call it. */
struct tsi_npy_place {
	unsigned file;
	uint64_t at, len;
	const char *name;
};

/*
 * Read the head of the array there.  Fails with EDATA (it is none, damaged, cut
 * short, in Fortran's order, or of no dtype that streams have), ENOMEM.
 */
int tsi_npy_read(const struct tsi_rows *rows, const struct tsi_npy_place *p,
		 struct tsi_npy *out);

/*
 * Likewise of an array of len bytes, the first of which are in memory: all of
 * them, or as many as the longest head has.
 */
int tsi_npy_parse(const uint8_t *head, size_t have, uint64_t len,
		  const char *name, struct tsi_npy *out);

/* Bytes of its values. */
uint64_t tsi_npy_bytes(const struct tsi_npy *a);

/* The dtype of NumPy's word for it, as "<f4" or "|u1"; 0: there is none. */
uint32_t tsi_npy_dtype(const char *descr, size_t len);

#endif
