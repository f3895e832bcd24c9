/* SPDX-License-Identifier: MIT */
/*
 * rows_gen.h - files of arrays, written byte by byte: NumPy's, zip files, and
 * pickled batches.
 */
#ifndef TEST_LIB_ROWS_GEN_H
#define TEST_LIB_ROWS_GEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ROWS_GEN_BYTES (1 << 16)

/* A file; what is added comes behind what it has.  len 0: it is empty. */
struct rows_gen {
	uint8_t bytes[ROWS_GEN_BYTES];
	size_t len;
};

void rows_gen_put(struct rows_gen *g, const void *bytes, size_t n);

/* A number of so many bytes, the lowest first. */
void rows_gen_number(struct rows_gen *g, uint64_t value, unsigned bytes);

/*
 * An array as np.save() writes it in this version of the format, e.g. "<i8" and
 * "(3, 2)"; the caller puts its values.
 */
void rows_gen_npy(struct rows_gen *g, unsigned version, const char *descr,
		  const char *shape);

/* A member of a zip file that is stored, and where it was put. */
struct rows_gen_member {
	const char *name;
	const struct rows_gen *file;
	size_t at; /* rows_gen_zip() sets it: of the local head */
};

/*
 * A zip file, as np.savez() writes it.  wide: all sizes and offsets stand in
 * records of Zip64.
 */
void rows_gen_zip(struct rows_gen *g, struct rows_gen_member *member,
		  unsigned n, bool wide);

/* A pickled dictionary; between begin and end stand its keys. */
void rows_gen_pickle_begin(struct rows_gen *g);
void rows_gen_pickle_bytes(struct rows_gen *g, const char *key, uint32_t rows,
			   uint32_t each, uint8_t value);
void rows_gen_pickle_numbers(struct rows_gen *g, const char *key,
			     const int32_t *value, unsigned n);
/* n names: "0", "1", ... */
void rows_gen_pickle_names(struct rows_gen *g, const char *key, unsigned n);
void rows_gen_pickle_end(struct rows_gen *g);

#endif
