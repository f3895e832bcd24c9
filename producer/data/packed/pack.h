/* SPDX-License-Identifier: MIT */
/*
 * pack.h - the files of a pack: what tsock-pack writes and --root finds.
 *
 * A pack is a folder:
 *
 *   pack.index      the table of samples (data/table_file.h): shard, range,
 *                   label, the name that the sample had in the source, and
 *                   which are bad; the source's path, its classes' names
 *   pack.columns    labels that are no classes, and fields: a table without
 *                   images (data/columnar/layout.h), if samples have any
 *   00000.pack ...  shards: TSI_PACK_ALIGN bytes that begin with
 *                   TSI_PACK_MAGIC, then records, each at a multiple of
 *                   TSI_PACK_ALIGN
 *
 * A record is a packed image, with checksums of its own, or a file as it was.
 * Samples have the order, the numbers and the labels of the source.
 */
#ifndef TSI_DATA_PACKED_PACK_H
#define TSI_DATA_PACKED_PACK_H

#include <stdbool.h>

#include "data/columnar/layout.h"
#include "data/root.h"
#include "data/table_file.h"

#define TSI_PACK_INDEX "pack.index"
#define TSI_PACK_MAGIC "\xf5tsckS1\n"
#define TSI_PACK_ALIGN 64u

/* The name of shard k, for printf(). */
#define TSI_PACK_SHARD "%05u.pack"

/* The index of a pack without pack.columns, and of one with it. */
extern const struct tsi_table_kind tsi_pack_kind, tsi_pack_kind_columns;

#define TSI_PACK_COLUMNS "pack.columns"
/*
 * The column there that says that labels are classes: the classes' names, or
 * the numbers of the classes that each sample has.
 */
#define TSI_PACK_CLASSES "classes"
/* And the one that says where masks lie, in shard `file`; length 0: nowhere. */
#define TSI_PACK_MASKS "pack.masks"

/* What the index says of pack.columns, in place of a time: its checksums'. */
struct tsi_stamp tsi_pack_columns_sum(const struct tsi_columnar_head *h);

/* Is there a pack in this folder? */
bool tsi_pack_is_at(const char *folder);
bool tsi_pack_is_in(const struct tsi_root *r);

#endif
