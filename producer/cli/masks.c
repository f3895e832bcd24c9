/* SPDX-License-Identifier: MIT */
/*
 * masks.c - the masks of a data set, for tsock-pack.
 */
#include "cli/masks.h"

#include "run/masks.h"

int tsi_cli_masks_open(void *arg, const struct tsi_index *x)
{
	struct tsi_cli_masks *m = arg;
	int err = tsi_masks_open(m->folder, x, &m->masks);

	return err ? err : tsi_masks_any(m->masks);
}

int tsi_cli_masks_read(void *arg, uint64_t i, size_t max, uint8_t **data,
		       size_t *len)
{
	struct tsi_cli_masks *m = arg;

	return tsi_masks_read(m->masks, i, max, data, len);
}

void tsi_cli_masks_close(void *arg)
{
	struct tsi_cli_masks *m = arg;

	tsi_masks_close(m->masks);
	m->masks = NULL;
}
