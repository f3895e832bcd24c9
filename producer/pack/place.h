/* SPDX-License-Identifier: MIT */
/*
 * place.h - where a pack goes, and of what.
 */
#ifndef TSI_PACK_PLACE_H
#define TSI_PACK_PLACE_H

#include <stdint.h>

#include "data/index.h"

/* A number for what is packed, with masks of this folder or NULL. */
uint64_t tsi_pack_place_source(const struct tsi_index *x, const char *masks);

/* The folder until the pack is complete: free().  Fails with ENOMEM. */
int tsi_pack_place_part(const char *dest, char **out);

/* Remove an empty folder from there.  Fails with EEXIST. */
int tsi_pack_place_check(const char *dest);

#endif
