/* SPDX-License-Identifier: MIT */
/*
 * columns.c - the fields of a pack's samples: the file is read and checked
 * whole, as the index is.
 */
#include "data/packed/columns.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"
#include "base/file.h"
#include "data/columnar/check.h"
#include "data/columnar/fields.h"
#include "data/columnar/file.h"
#include "data/columns.h"
#include "data/mapped.h"
#include "data/packed/pack.h"

#define ALIGN 64u

struct tsi_stamp tsi_pack_columns_sum(const struct tsi_columnar_head *h)
{
	return (struct tsi_stamp){ .mtime_ns = (int64_t)h->bytes,
				   .ino = h->crc };
}

/* Every byte is as it was written, and the index was written with it. */
static bool is_whole(const struct tsi_columnar *f, const struct tsi_table *t)
{
	const struct tsi_stamp *was = tsi_table_stamp(t, TSI_PACK_COLUMNS);
	struct tsi_stamp is = tsi_pack_columns_sum(&f->head);

	if (!was || was->mtime_ns != is.mtime_ns || was->ino != is.ino ||
	    f->head.rows != tsi_table_count(t))
		return false;
	for (uint32_t i = 0; i < f->head.columns; i++) {
		const struct tsi_columnar_entry *e = &f->entry[i];

		if (crc32_z(0, tsi_columnar_data(f, e), e->bytes) != e->crc)
			return false;
	}
	return true;
}

/* Labels are the classes that the index has. */
static bool take_class(const struct tsi_table *t, struct tsi_columns *c)
{
	const int64_t *label = (const void *)c->label.data;

	if (!c->label.bytes || c->label.start || c->label.field.ndim ||
	    c->label.field.dtype != TSOCK_I64)
		return false;
	for (uint64_t i = 0; i < tsi_table_count(t); i++)
		if (label[i] != tsi_table_label(t, i))
			return false;
	c->classes = true;
	return true;
}

/* Labels are several classes of each sample. */
static bool take_hot(const struct tsi_columnar *f,
		     const struct tsi_columnar_entry *e,
		     const struct tsi_table *t, struct tsi_columns *c)
{
	uint32_t classes = tsi_table_classes(t);
	const uint64_t *start = tsi_columnar_starts(f, e);
	const uint32_t *hot = (const void *)tsi_columnar_items(f, e);

	if (c->label.bytes || e->dtype != TSOCK_U32 || e->ndim ||
	    e->count != tsi_table_count(t))
		return false;
	for (uint64_t k = 0; k < start[e->count]; k++)
		if (hot[k] >= classes)
			return false;
	c->label = (struct tsi_column){ .data = (const void *)hot,
					.start = start,
					.hot = true,
					.bytes = classes * sizeof(float) };
	strcpy(c->label.field.name, "label");
	c->label.field.dtype = TSOCK_F32;
	c->label.field.ndim = 1;
	c->label.field.shape[0] = classes;
	return true;
}

static bool take_classes(const struct tsi_columnar *f,
			 const struct tsi_table *t, struct tsi_columns *c)
{
	const struct tsi_columnar_entry *e =
		tsi_columnar_find(f, TSI_PACK_CLASSES);

	if (!e)
		return true;
	return e->kind == TSI_COLUMNAR_RAGGED ? take_hot(f, e, t, c)
					      : take_class(t, c);
}

/* struct tsi_columnar_range, as which the file has them. */
static bool take_masks(const struct tsi_columnar *f, struct tsi_columns *c)
{
	const struct tsi_columnar_entry *e =
		tsi_columnar_find(f, TSI_PACK_MASKS);

	_Static_assert(sizeof(struct tsi_columns_mask) ==
			       sizeof(struct tsi_columnar_range),
		       "a mask's place is a range");
	if (!e)
		return true;
	c->mask = tsi_columnar_data(f, e);
	return e->kind == TSI_COLUMNAR_RANGES && e->count == f->head.rows;
}

/* Names for all shards up to this one; false: there is no memory. */
static bool name_shards(struct tsi_columns *c, uint32_t last)
{
	char *name = malloc(((size_t)last + 1) * TSI_PACK_NAME);

	if (!name)
		return false;
	for (uint32_t k = 0; k <= last; k++)
		snprintf(name + (size_t)k * TSI_PACK_NAME, TSI_PACK_NAME,
			 TSI_PACK_SHARD, k);
	c->texts[0] = name;
	return true;
}

/* The other images of samples; their columns' names are known. */
static bool take_others(const struct tsi_columnar *f, struct tsi_columns *c)
{
	uint32_t last = 0;

	for (unsigned k = 0; k < c->others; k++) {
		const struct tsi_columnar_entry *e =
			tsi_columnar_find(f, c->other[k]);
		const struct tsi_columns_mask *at = tsi_columnar_data(f, e);

		if (e->count != f->head.rows)
			return false;
		for (uint64_t i = 0; i < e->count; i++)
			last = at[i].shard > last ? at[i].shard : last;
		c->other_at[k] = at;
	}
	return !c->others || name_shards(c, last);
}

/* False: it isn't what was written, or there is no memory. */
static bool take(struct tsi_columnar *f, void *mem, struct tsi_table *t)
{
	/* A shard has at least one record: of a sample's images, or its mask. */
	const struct tsi_columnar_limits most = {
		.files = f->head.rows * (2 + TSI_OTHERS),
	};
	struct tsi_columns *c;

	if (!is_whole(f, t))
		return false;
	c = calloc(1, sizeof(*c));
	if (!c)
		return false;
	if (tsi_columnar_check(f, &most, 1, &c->hash) ||
	    tsi_columnar_fields(f, c) || !take_classes(f, t, c) ||
	    !take_masks(f, c) || !take_others(f, c)) {
		free(c->texts[0]);
		free(c);
		return false;
	}
	c->mem = mem;
	tsi_table_set_columns(t, c);
	return true;
}

/* The whole file: free().  Fails with EDATA, ESYS, ENOMEM. */
static int read_file(const struct tsi_root *r, void **mem, uint64_t *len)
{
	int fd = tsi_root_openat(r, TSI_PACK_COLUMNS,
				 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	int err = 0;

	*mem = NULL;
	if (fd < 0 || fstat(fd, &st)) {
		err = tsi_err_sys("open %.300s/" TSI_PACK_COLUMNS,
				  tsi_root_path(r));
	} else if (!S_ISREG(st.st_mode)) {
		err = TSOCK_EDATA;
	} else {
		*len = (uint64_t)st.st_size;
		*mem = aligned_alloc(ALIGN, (*len / ALIGN + 1) * ALIGN);
		if (!*mem)
			err = tsi_err(TSOCK_ENOMEM,
				      "no memory for a pack's fields");
		else if (!tsi_file_read_all(fd, *mem, *len))
			err = tsi_err_sys("read %.300s/" TSI_PACK_COLUMNS,
					  tsi_root_path(r));
	}
	if (fd >= 0)
		close(fd);
	return err;
}

int tsi_pack_columns_read(const struct tsi_root *r, struct tsi_table *t)
{
	struct tsi_mapped all;
	struct tsi_columnar f;
	uint64_t len = 0;
	void *mem;
	int err = read_file(r, &mem, &len);

	all = tsi_mapped_memory(mem, len);
	if (!err)
		err = tsi_columnar_open(&all, TSI_PACK_COLUMNS, &f);
	if (!err && take(&f, mem, t))
		return 0;
	free(mem);
	if (err == TSOCK_ENOMEM || err == TSOCK_ESYS)
		return err;
	return tsi_err(TSOCK_EDATA,
		       "%s/" TSI_PACK_COLUMNS
		       " is damaged, or of another pack: copy the pack again, "
		       "or make it again with tsock-pack",
		       tsi_root_path(r));
}
