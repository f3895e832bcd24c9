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
 * A pack of audio files has them as they were, and an index of another magic
 * word.  One of samples that have no file, but lie there as arrays:
 *
 *   pack.table      a table of all that they have (data/columnar/layout.h)
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
#define TSI_PACK_NAME 32 /* bytes of one, with what is behind it */

/* The index of a pack without pack.columns, and of one with it; of audio. */
extern const struct tsi_table_kind tsi_pack_kind[2], tsi_pack_kind_audio[2];

#define TSI_PACK_TABLE "pack.table"
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

struct tsi_format;

/* Is there a pack in this folder? */
bool tsi_pack_is_at(const char *folder);

/* The format of the pack in this folder; NULL: there is none, or a table. */
const struct tsi_format *tsi_pack_format_in(const struct tsi_root *r);

/*
 * Where the folder, or root if that isn't there, is a pack, what its format is;
 * *folder, from malloc(), is replaced by what is opened.  Fails with ENOMEM.
 */
int tsi_pack_resolve(const char *root, char **folder,
		     const struct tsi_format **format);

extern const struct tsi_format tsi_format_packed_audio;

#endif
