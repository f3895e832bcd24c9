/* SPDX-License-Identifier: MIT */
/*
 * place.c - where a pack goes, and of what.
 */
#include "pack/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/hash.h"
#include "data/columns.h"
#include "data/packed/pack.h"

/* What is packed: a part of another source isn't continued. */
uint64_t tsi_pack_place_source(const struct tsi_index *x, const char *masks)
{
	const char *root = tsi_index_name(x);
	const struct tsi_columns *c = tsi_index_columns(x);
	uint64_t sum = tsi_hash(root, strlen(root), 0);

	if (masks)
		sum = tsi_hash(masks, strlen(masks), ~sum);
	if (c)
		sum = tsi_columns_fingerprint(c, tsi_index_count(x), sum);
	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		struct tsi_location at;
		char text[TSI_PATH];
		const char *path;
		uint64_t number[3];

		tsi_index_locate(x, i, &at);
		number[0] = at.offset;
		number[1] = at.length ? at.length : at.size;
		number[2] = (uint64_t)tsi_index_label(x, i);
		path = tsi_location_path(&at, text);
		sum = tsi_hash(path, strlen(path), sum);
		sum = tsi_hash(number, sizeof(number), sum);
	}
	return sum;
}

/* DST.part, wherever a '/' at the end of DST is. */
int tsi_pack_place_part(const char *dest, char **out)
{
	size_t len = strlen(dest);

	while (len > 1 && dest[len - 1] == '/')
		len--;
	if (asprintf(out, "%.*s.part", (int)len, dest) >= 0)
		return 0;
	*out = NULL;
	return tsi_err(TSOCK_ENOMEM, "no memory for a pack");
}

/* An empty folder may stand where the pack is to go. */
int tsi_pack_place_check(const char *dest)
{
	if (tsi_pack_is_at(dest))
		return tsi_err(TSOCK_EEXIST,
			       "%s is a pack already: remove it, or choose "
			       "another place",
			       dest);
	if (access(dest, F_OK) && errno == ENOENT)
		return 0;
	if (rmdir(dest))
		return tsi_err(TSOCK_EEXIST,
			       "%s is there already, and no empty folder: "
			       "choose another place for the pack",
			       dest);
	return 0;
}
