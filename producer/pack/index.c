/* SPDX-License-Identifier: MIT */
/*
 * index.c - the index of a pack, which is written last.
 */
#include "pack/index.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "data/packed/pack.h"
#include "data/format.h"
#include "data/table.h"
#include "pack/fields.h"

static uint64_t shard_name(uint32_t k, char to[32])
{
	return (uint64_t)snprintf(to, 32, TSI_PACK_SHARD, k) + 1;
}

/*
 * What a sample is called in the pack.  One of a table or a pack has a name
 * that its file is no part of.
 */
static const char *name_of(const struct tsi_index *x, uint64_t i,
			   char to[TSI_PATH])
{
	struct tsi_location at;

	tsi_index_locate(x, i, &at);
	if (at.member && tsi_format_keeps_index(tsi_index_format(x)))
		return at.member;
	return tsi_index_sample(x, i, to, TSI_PATH);
}

static struct tsi_table_lengths measure(const struct tsi_index *x,
					const struct tsi_shards *s,
					const struct tsi_pack_planes *p)
{
	struct tsi_table_lengths n = {
		.count = tsi_index_count(x),
		.names_len = strlen(tsi_index_name(x)) + 1 + 1,
		.classes = tsi_index_classes(x),
		.stamps = 1,
		.ranged = true,
		.named = true,
	};
	char name[TSI_PATH];

	/* Shards of masks alone may follow. */
	for (uint32_t k = 0; k <= tsi_shards_at(s, n.count - 1)->shard; k++)
		n.paths_len += shard_name(k, name);
	for (uint64_t i = 0; i < n.count; i++)
		n.paths_len += strlen(name_of(x, i, name)) + 1;
	for (uint32_t i = 0; i < n.classes; i++)
		n.names_len += strlen(tsi_index_class(x, i)) + 1;
	if (tsi_pack_fields_any(x, p)) {
		n.stamps++;
		n.names_len += sizeof(TSI_PACK_COLUMNS);
	}
	return n;
}

/* Samples lie in the order of shards. */
static int put_rows(struct tsi_table_writer *w, const struct tsi_index *x,
		    const struct tsi_shards *s, struct tsi_table *t)
{
	uint32_t shard = UINT32_MAX;
	uint64_t path = 0;
	int err = 0;

	for (uint64_t i = 0; i < tsi_index_count(x) && !err; i++) {
		const struct tsi_shards_entry *e = tsi_shards_at(s, i);
		char name[TSI_PATH];

		if (e->shard != shard) {
			shard = e->shard;
			shard_name(shard, name);
			path = tsi_table_put_path(w, name);
		}
		tsi_table_put_row(w, path, (uint32_t)tsi_index_label(x, i),
				  e->offset, e->length);
		tsi_table_put_member(w, name_of(x, i, name));
		tsi_table_set_size(t, i, e->length);
		if (e->bad)
			err = tsi_table_add_bad(t, i, "");
	}
	return err;
}

static int write_table(int dirfd, const struct tsi_table_kind *kind,
		       const struct tsi_table *t)
{
	int fd = openat(dirfd, TSI_PACK_INDEX,
			O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	bool ok;

	if (fd < 0)
		return tsi_err_sys("write " TSI_PACK_INDEX);
	ok = tsi_table_file_write(fd, kind, t) && !fsync(fd);
	ok = !close(fd) && ok;
	return ok ? 0 : tsi_err_sys("write " TSI_PACK_INDEX);
}

int tsi_pack_index_write(const struct tsi_index *x, const struct tsi_shards *s,
			 const struct tsi_pack_planes *p)
{
	struct tsi_table_lengths n = measure(x, s, p);
	struct tsi_stamp none = { 0 }, columns = { 0 };
	bool more = tsi_pack_fields_any(x, p);
	const struct tsi_table_kind *kind =
		tsi_format_has_audio(tsi_index_format(x)) ? tsi_pack_kind_audio
							  : tsi_pack_kind;
	struct tsi_table t = { .block = NULL };
	struct tsi_table_writer w;
	int err = more ? tsi_pack_fields_write(x, s, p, &columns) : 0;

	if (!err)
		err = tsi_table_begin(&w, &t, &n, tsi_index_name(x));
	if (err)
		return err;
	for (uint32_t i = 0; i < n.classes; i++)
		tsi_table_put_class(&w, tsi_index_class(x, i));
	tsi_table_put_stamp(&w, "", &none);
	if (more)
		tsi_table_put_stamp(&w, TSI_PACK_COLUMNS, &columns);
	err = put_rows(&w, x, s, &t);
	if (!err)
		err = write_table(tsi_shards_dirfd(s), &kind[more], &t);
	tsi_table_clear(&t);
	return err;
}
