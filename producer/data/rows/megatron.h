/* SPDX-License-Identifier: MIT */
/*
 * megatron.h - the .idx file that Megatron-LM writes beside a .bin of tokens.
 */
#ifndef TSI_DATA_ROWS_MEGATRON_H
#define TSI_DATA_ROWS_MEGATRON_H

#include <stdint.h>

#include "data/root.h"
#include "data/rows/bounds.h"

/*
 * The dtype of the tokens in the file at path ("NAME.bin"), as NAME.idx says;
 * 0: there is no such file.  Fails with EDATA: it is damaged, or of a version or
 * dtype that isn't known.
 */
int tsi_megatron_dtype(const struct tsi_root *r, const char *path,
		       uint32_t *dtype);

/*
 * Where the documents of f begin that have any tokens, as its .idx says, which is
 * mapped for that.  Fails with EDATA (the index is damaged, or another file's),
 * ENOMEM, and as tsi_rows_map() does.
 */
int tsi_megatron_bounds(struct tsi_rows *rows, const struct tsi_bounds_file *f,
			struct tsi_bounds *out);

#endif
