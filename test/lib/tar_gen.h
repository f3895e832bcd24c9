/* SPDX-License-Identifier: MIT */
/*
 * tar_gen.h - makes tar files in memory, right ones and wrong ones.
 */
#ifndef TEST_LIB_TAR_GEN_H
#define TEST_LIB_TAR_GEN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tar_gen {
	uint8_t *data;
	size_t len;
};

void tar_gen_bytes(struct tar_gen *t, const void *data, size_t len);

/* Put the sum of the header at h right. */
void tar_gen_sum(uint8_t *h);

/* A header alone; prefix NULL: none. */
void tar_gen_header(struct tar_gen *t, const char *prefix, const char *name,
		    char type, uint64_t size);

void tar_gen_file(struct tar_gen *t, const char *name, const void *data,
		  size_t len);

void tar_gen_text(struct tar_gen *t, const char *name, const char *text);

/* The two empty blocks that end a tar file. */
void tar_gen_end(struct tar_gen *t);

#endif
