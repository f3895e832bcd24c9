/* SPDX-License-Identifier: MIT */
/*
 * table_gen.h - the file of a table of three rows, with columns of each kind.
 */
#ifndef TEST_LIB_TABLE_GEN_H
#define TEST_LIB_TABLE_GEN_H

#include <stddef.h>
#include <stdint.h>

#include "data/columnar/layout.h"

#define TABLE_GEN_BYTES 4096

struct table_gen {
	_Alignas(64) uint8_t bytes[TABLE_GEN_BYTES];
	size_t len;
	struct tsi_columnar_head *head;
	struct tsi_columnar_entry *next; /* the entry that comes next */
};

/*
 * image: the whole of ".", 9 bytes of a.bin, 1 byte of it; classes cat and dog;
 * keys one, two, three; labels 1, 0, 1; pose, float32 [2], counts from 1; notes
 * "", "ab", "c"; ragged token, int64: 7 8 9, none, 10; and spot, float32 [2]:
 * none, 1 2 and 3 4, 5 6.
 */
void table_gen_make(struct table_gen *t);

/* A column of the table that was made, or NULL; and its bytes. */
struct tsi_columnar_entry *table_gen_find(struct table_gen *t,
					  const char *name);
void *table_gen_data(struct table_gen *t, const char *name);

/* Put the checksum of the head right in bytes[0..len), where there is one. */
void table_gen_sign(uint8_t *bytes, size_t len);

#endif
