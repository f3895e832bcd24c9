/* SPDX-License-Identifier: MIT */
/*
 * stored.h - images that lie in the data set's files pixel by pixel: the bytes
 * that their decoder (raw/raw.h) takes.
 *
 * Used by one thread.
 */
#ifndef TSI_RUN_STORED_H
#define TSI_RUN_STORED_H

#include <stddef.h>
#include <stdint.h>

#include "data/index.h"

struct tsi_stored;

/* *out is NULL where images are files.  Fails with ENOMEM. */
int tsi_stored_create(const struct tsi_index *x, struct tsi_stored **out);

/* NULL is allowed. */
void tsi_stored_destroy(struct tsi_stored *s);

/*
 * The image of this file, *len bytes at *data until the next call.  Fails with
 * EDATA: the file was cut short.
 */
int tsi_stored_take(struct tsi_stored *s, uint64_t file, const uint8_t **data,
		    size_t *len);

#endif
