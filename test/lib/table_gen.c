/* SPDX-License-Identifier: MIT */
/*
 * table_gen.c - the file of a table of three rows, with columns of each kind.
 */
#include "test/lib/table_gen.h"

#include <string.h>

#include <zlib.h>

#include "tsock/common.h"

#define COLUMNS 9u

static void put(struct table_gen *t, const char *name, unsigned kind,
		unsigned dtype, uint32_t n, uint64_t count, const void *data,
		size_t len)
{
	struct tsi_columnar_entry *e = t->next++;

	strcpy(e->name, name);
	e->kind = kind;
	e->dtype = dtype;
	e->ndim = n > 0;
	e->shape[0] = n;
	e->count = count;
	e->offset = t->len;
	e->bytes = len;
	memcpy(t->bytes + t->len, data, len);
	t->len = (t->len + len + 63) / 64 * 64;
	t->head->columns++;
}

static void put_texts(struct table_gen *t, const char *name,
		      const char *const text[], unsigned n)
{
	uint64_t at[8] = { 0 };
	char data[512];

	for (unsigned i = 0; i < n; i++)
		at[i + 1] = at[i] + strlen(text[i]) + 1;
	memcpy(data, at, (n + 1) * sizeof(*at));
	for (unsigned i = 0; i < n; i++)
		strcpy(data + (n + 1) * sizeof(*at) + at[i], text[i]);
	put(t, name, TSI_COLUMNAR_TEXT, 0, 0, n, data,
	    (n + 1) * sizeof(*at) + at[n]);
}

/* An entry's n is the shape of an item. */
static void put_ragged(struct table_gen *t, const char *name, unsigned dtype,
		       uint32_t n, const uint64_t at[4], const void *items,
		       size_t len)
{
	char data[512];

	memcpy(data, at, 4 * sizeof(*at));
	memcpy(data + 4 * sizeof(*at), items, len);
	put(t, name, TSI_COLUMNAR_RAGGED, dtype, n, 3, data,
	    4 * sizeof(*at) + len);
}

void table_gen_make(struct table_gen *t)
{
	static const char *const files[] = { ".", "a.bin" };
	static const char *const classes[] = { "cat", "dog" };
	static const char *const keys[] = { "one", "two", "three" };
	static const char *const notes[] = { "", "ab", "c" };
	static const struct tsi_columnar_range range[] = { { 0, 0, 0 },
							   { 4, 9, 1 },
							   { 13, 1, 1 } };
	static const int64_t label[] = { 1, 0, 1 };
	static const float pose[] = { 1, 2, 3, 4, 5, 6 };
	static const uint64_t token_at[] = { 0, 3, 3, 4 };
	static const int64_t token[] = { 7, 8, 9, 10 };
	static const uint64_t spot_at[] = { 0, 0, 2, 3 };
	static const float spot[] = { 1, 2, 3, 4, 5, 6 };

	memset(t, 0, sizeof(*t));
	t->head = (struct tsi_columnar_head *)t->bytes;
	t->next = (struct tsi_columnar_entry *)(t->head + 1);
	t->len = sizeof(*t->head) + COLUMNS * sizeof(*t->next);
	put(t, "image", TSI_COLUMNAR_RANGES, 0, 0, 3, range, sizeof(range));
	put_texts(t, "files", files, 2);
	put_texts(t, "classes", classes, 2);
	put_texts(t, "key", keys, 3);
	put(t, "label", TSI_COLUMNAR_VALUES, TSOCK_I64, 0, 3, label,
	    sizeof(label));
	put(t, "pose", TSI_COLUMNAR_VALUES, TSOCK_F32, 2, 3, pose,
	    sizeof(pose));
	put_texts(t, "note", notes, 3);
	put_ragged(t, "token", TSOCK_I64, 0, token_at, token, sizeof(token));
	put_ragged(t, "spot", TSOCK_F32, 2, spot_at, spot, sizeof(spot));
	memcpy(t->head->magic, TSI_COLUMNAR_MAGIC, sizeof(t->head->magic));
	t->head->version = TSI_COLUMNAR_VERSION;
	t->head->endian = TSI_COLUMNAR_ENDIAN;
	t->head->rows = 3;
	t->head->bytes = t->len;
	table_gen_sign(t->bytes, t->len);
}

struct tsi_columnar_entry *table_gen_find(struct table_gen *t, const char *name)
{
	struct tsi_columnar_entry *e;

	for (e = (struct tsi_columnar_entry *)(t->head + 1); e < t->next; e++)
		if (!strcmp(e->name, name))
			return e;
	return NULL;
}

void *table_gen_data(struct table_gen *t, const char *name)
{
	return t->bytes + table_gen_find(t, name)->offset;
}

void table_gen_sign(uint8_t *bytes, size_t len)
{
	struct tsi_columnar_head h;
	size_t all;

	if (len < sizeof(h))
		return;
	memcpy(&h, bytes, sizeof(h));
	all = sizeof(h) + h.columns * sizeof(struct tsi_columnar_entry);
	h.crc = 0;
	memcpy(bytes, &h, sizeof(h));
	if (h.columns > TABLE_GEN_BYTES || all > len)
		return;
	h.crc = (uint32_t)crc32(0, bytes, (uInt)all);
	memcpy(bytes, &h, sizeof(h));
}
