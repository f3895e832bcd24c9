/* SPDX-License-Identifier: MIT */
/*
 * rows_gen.c - writing files of arrays.
 */
#include "test/lib/rows_gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rows_gen_put(struct rows_gen *g, const void *bytes, size_t n)
{
	if (n > sizeof(g->bytes) - g->len)
		abort();
	memcpy(g->bytes + g->len, bytes, n);
	g->len += n;
}

void rows_gen_number(struct rows_gen *g, uint64_t value, unsigned bytes)
{
	for (unsigned k = 0; k < bytes; k++) {
		uint8_t one = k < 8 ? (uint8_t)(value >> 8 * k) : 0;

		rows_gen_put(g, &one, 1);
	}
}

static void put_text(struct rows_gen *g, const char *text)
{
	rows_gen_put(g, text, strlen(text));
}

void rows_gen_npy(struct rows_gen *g, unsigned version, const char *descr,
		  const char *shape)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "{'descr': '%s', 'fortran_order': False, "
			 "'shape': %s, }",
			 descr, shape);
	unsigned wide = version == 1 ? 2 : 4;
	size_t head = 8 + wide, all = (head + (size_t)n + 64) / 64 * 64;

	rows_gen_put(g, "\x93NUMPY", 6);
	rows_gen_number(g, version, 2);
	rows_gen_number(g, all - head, wide);
	rows_gen_put(g, text, (size_t)n);
	for (size_t k = head + (size_t)n; k + 1 < all; k++)
		put_text(g, " ");
	put_text(g, "\n");
}

/* ---- zip ---- */

static void put_local(struct rows_gen *g, struct rows_gen_member *m, bool wide)
{
	uint64_t len = m->file->len;

	m->at = g->len;
	rows_gen_number(g, 0x04034b50, 4);
	rows_gen_number(g, 45, 2);
	rows_gen_number(g, 0, 12); /* flags, method, time; */
	rows_gen_number(g, wide ? UINT32_MAX : len, 4);
	rows_gen_number(g, wide ? UINT32_MAX : len, 4);
	rows_gen_number(g, strlen(m->name), 2);
	rows_gen_number(g, wide ? 20 : 0, 2);
	put_text(g, m->name);
	if (wide) {
		rows_gen_number(g, 1, 2);
		rows_gen_number(g, 16, 2);
		rows_gen_number(g, len, 8);
		rows_gen_number(g, len, 8);
	}
	rows_gen_put(g, m->file->bytes, len);
}

static void put_entry(struct rows_gen *g, const struct rows_gen_member *m,
		      bool wide)
{
	uint64_t len = m->file->len;

	rows_gen_number(g, 0x02014b50, 4);
	rows_gen_number(g, 45, 2);
	rows_gen_number(g, 45, 2);
	rows_gen_number(g, 0, 12);
	rows_gen_number(g, wide ? UINT32_MAX : len, 4);
	rows_gen_number(g, wide ? UINT32_MAX : len, 4);
	rows_gen_number(g, strlen(m->name), 2);
	rows_gen_number(g, wide ? 32 : 0, 2);
	rows_gen_number(g, 0, 10); /* comment, disk, attributes */
	rows_gen_number(g, wide ? UINT32_MAX : m->at, 4);
	put_text(g, m->name);
	if (!wide)
		return;
	/* A field that is none of Zip64's comes first. */
	rows_gen_number(g, 0x7875, 2);
	rows_gen_number(g, 0, 2);
	rows_gen_number(g, 1, 2);
	rows_gen_number(g, 24, 2);
	rows_gen_number(g, len, 8);
	rows_gen_number(g, len, 8);
	rows_gen_number(g, m->at, 8);
}

static void put_wide_end(struct rows_gen *g, unsigned n, size_t at)
{
	size_t end = g->len;

	rows_gen_number(g, 0x06064b50, 4);
	rows_gen_number(g, 44, 8);
	rows_gen_number(g, 45, 2);
	rows_gen_number(g, 45, 2);
	rows_gen_number(g, 0, 8); /* disks */
	rows_gen_number(g, n, 8);
	rows_gen_number(g, n, 8);
	rows_gen_number(g, end - at, 8);
	rows_gen_number(g, at, 8);
	rows_gen_number(g, 0x07064b50, 4);
	rows_gen_number(g, 0, 4);
	rows_gen_number(g, end, 8);
	rows_gen_number(g, 1, 4);
}

void rows_gen_zip(struct rows_gen *g, struct rows_gen_member *member,
		  unsigned n, bool wide)
{
	size_t at, bytes;

	for (unsigned k = 0; k < n; k++)
		put_local(g, &member[k], wide);
	at = g->len;
	for (unsigned k = 0; k < n; k++)
		put_entry(g, &member[k], wide);
	bytes = g->len - at;
	if (wide)
		put_wide_end(g, n, at);
	rows_gen_number(g, 0x06054b50, 4);
	rows_gen_number(g, 0, 4);
	rows_gen_number(g, wide ? UINT16_MAX : n, 2);
	rows_gen_number(g, wide ? UINT16_MAX : n, 2);
	rows_gen_number(g, wide ? UINT32_MAX : bytes, 4);
	rows_gen_number(g, wide ? UINT32_MAX : at, 4);
	rows_gen_number(g, 0, 2);
}

/* ---- pickle ---- */

static void put_string(struct rows_gen *g, const char *text)
{
	put_text(g, "U");
	rows_gen_number(g, strlen(text), 1);
	put_text(g, text);
}

static void put_int(struct rows_gen *g, uint32_t value)
{
	put_text(g, "J");
	rows_gen_number(g, value, 4);
}

void rows_gen_pickle_begin(struct rows_gen *g)
{
	put_text(g, "\x80\x02}q\x01(");
}

void rows_gen_pickle_bytes(struct rows_gen *g, const char *key, uint32_t rows,
			   uint32_t each, uint8_t value)
{
	static const char dtype[] =
		"\x86"
		"cnumpy\ndtype\nU\x02u1K\0K\x01\x87R(K\x03U\x01|NNN";

	put_string(g, key);
	put_text(g, "cnumpy.core.multiarray\n_reconstruct\n"
		    "cnumpy\nndarray\n");
	rows_gen_put(g,
		     "K\0\x85U\x01"
		     "b\x87R(K\x01",
		     11);
	put_int(g, rows);
	put_int(g, each);
	rows_gen_put(g, dtype, sizeof(dtype) - 1);
	put_int(g, UINT32_MAX);
	put_int(g, UINT32_MAX);
	rows_gen_put(g, "K\0tb\x89T", 6);
	rows_gen_number(g, (uint64_t)rows * each, 4);
	for (uint64_t k = 0; k < (uint64_t)rows * each; k++)
		rows_gen_number(g, value, 1);
	put_text(g, "tb");
}

void rows_gen_pickle_numbers(struct rows_gen *g, const char *key,
			     const int32_t *value, unsigned n)
{
	put_string(g, key);
	put_text(g, "](");
	for (unsigned k = 0; k < n; k++)
		put_int(g, (uint32_t)value[k]);
	put_text(g, "e");
}

void rows_gen_pickle_names(struct rows_gen *g, const char *key, unsigned n)
{
	char name[16];

	put_string(g, key);
	put_text(g, "](");
	for (unsigned k = 0; k < n; k++) {
		snprintf(name, sizeof(name), "%u", k);
		put_string(g, name);
	}
	put_text(g, "e");
}

void rows_gen_pickle_end(struct rows_gen *g)
{
	put_text(g, "u.");
}
