/* SPDX-License-Identifier: MIT */
/*
 * masks.h - the masks of a data set, for tsock-pack, which reads each once.
 */
#ifndef TSI_CLI_MASKS_H
#define TSI_CLI_MASKS_H

#include <stddef.h>
#include <stdint.h>

struct tsi_index;
struct tsi_masks;

struct tsi_cli_masks {
	const char *folder;
	struct tsi_masks *masks; /* NULL: not open */
};

/*
 * Calls for struct tsi_pack_masks (pack/pack.h), whose arg is a struct
 * tsi_cli_masks; as tsi_masks_open(), tsi_masks_any(), tsi_masks_read().
 */
int tsi_cli_masks_open(void *arg, const struct tsi_index *x);
int tsi_cli_masks_read(void *arg, uint64_t i, size_t max, uint8_t **data,
		       size_t *len);
void tsi_cli_masks_close(void *arg);

#endif
