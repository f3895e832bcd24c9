/* SPDX-License-Identifier: MIT */
/*
 * zip.c - a zip file's central directory, with the records of Zip64.
 *
 * APPNOTE.TXT of PKWARE defines the format.
 */
#include "data/rows/zip.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"

#define END 22        /* bytes of the record at the end */
#define END_FAR 65557 /* from the end of the file, with the longest comment */
#define ENTRY 46
#define LOCAL 30
/* Each may be read in full, and all of them may be one. */
#define MEMBERS_MAX 1024

static uint64_t number(const uint8_t *p, unsigned bytes)
{
	uint64_t n = 0;

	while (bytes-- > 0)
		n = n << 8 | p[bytes];
	return n;
}

struct zip {
	const struct tsi_rows *rows;
	unsigned file;
	uint64_t at; /* of the next entry of the directory */
	uint64_t entries;
};

static int read_at(const struct zip *z, uint64_t at, void *to, size_t n)
{
	return tsi_rows_read(z->rows, z->file, at, to, n, "directory");
}

static int fail(const struct zip *z, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%s: %s", tsi_rows_path(z->rows, z->file),
		       what);
}

/* Where more entries or bytes are than 16 or 32 bits can say. */
static int find_wide(struct zip *z, uint64_t end)
{
	uint8_t locator[20], record[56];
	int err;

	if (end < sizeof(locator))
		return 0;
	err = read_at(z, end - sizeof(locator), locator, sizeof(locator));
	if (err || number(locator, 4) != 0x07064b50)
		return err;
	err = read_at(z, number(locator + 8, 8), record, sizeof(record));
	if (err)
		return err;
	if (number(record, 4) != 0x06064b50)
		return fail(z, "its Zip64 directory is damaged");
	z->entries = number(record + 32, 8);
	z->at = number(record + 48, 8);
	return 0;
}

static int find_directory(struct zip *z)
{
	uint64_t len = tsi_rows_len(z->rows, z->file);
	uint8_t record[END];

	for (uint64_t back = END; back <= END_FAR && back <= len; back++) {
		int err = read_at(z, len - back, record, END);

		if (err)
			return err;
		if (number(record, 4) != 0x06054b50 ||
		    number(record + 20, 2) != back - END)
			continue;
		z->entries = number(record + 10, 2);
		z->at = number(record + 16, 4);
		return find_wide(z, len - back);
	}
	return fail(z, "is no zip file, or truncated: it has no directory at "
		       "its end");
}

/* Sizes and offset that stand in the entry's extra field. */
static int widen(const struct zip *z, uint64_t at, uint64_t n,
		 uint64_t *const wide[3])
{
	uint8_t extra[4], value[8];

	while (n >= 4) {
		int err = read_at(z, at, extra, 4);
		uint64_t len, from = at + 4;

		if (err)
			return err;
		len = number(extra + 2, 2);
		for (unsigned k = 0; number(extra, 2) == 1 && k < 3; k++) {
			if (*wide[k] != UINT32_MAX || from + 8 > at + 4 + len)
				continue;
			err = read_at(z, from, value, 8);
			if (err)
				return err;
			*wide[k] = number(value, 8);
			from += 8;
		}
		if (len > n - 4)
			return 0;
		at += 4 + len;
		n -= 4 + len;
	}
	return 0;
}

/* The bytes begin behind the member's own head, whose length isn't the entry's. */
static int find_bytes(const struct zip *z, uint64_t local,
		      struct tsi_zip_member *m)
{
	uint8_t head[LOCAL];
	int err = read_at(z, local, head, LOCAL);

	if (err)
		return err;
	if (number(head, 4) != 0x04034b50)
		return fail(z, "its directory is damaged: no member lies where "
			       "it says");
	m->at = local + LOCAL + number(head + 26, 2) + number(head + 28, 2);
	if (m->at > tsi_rows_len(z->rows, z->file) ||
	    m->len > tsi_rows_len(z->rows, z->file) - m->at)
		return fail(z, "is truncated: a member ends behind it");
	return 0;
}

static int read_entry(struct zip *z, struct tsi_zip_member *m)
{
	uint8_t e[ENTRY];
	int err = read_at(z, z->at, e, ENTRY);
	uint64_t stored, local, name, extra;

	if (err)
		return err;
	if (number(e, 4) != 0x02014b50)
		return fail(z, "its directory is damaged");
	m->len = number(e + 24, 4);
	stored = number(e + 20, 4);
	local = number(e + 42, 4);
	name = number(e + 28, 2);
	extra = number(e + 30, 2);
	if (number(e + 10, 2) != 0)
		return fail(z, "is compressed (savez_compressed): write it by "
			       "savez, so that its rows can be read at random");
	if (name >= sizeof(m->name))
		return fail(z, "a member's name is too long");
	memset(m->name, 0, sizeof(m->name));
	err = read_at(z, z->at + ENTRY, m->name, name);
	if (!err)
		err = widen(z, z->at + ENTRY + name, extra,
			    (uint64_t *const[3]){ &m->len, &stored, &local });
	if (!err)
		err = find_bytes(z, local, m);
	z->at += ENTRY + name + extra + number(e + 32, 2);
	return err;
}

int tsi_zip_each(const struct tsi_rows *rows, unsigned file,
		 int (*each)(void *arg, const struct tsi_zip_member *m),
		 void *arg)
{
	struct zip z = { .rows = rows, .file = file };
	struct tsi_zip_member m;
	int err = find_directory(&z);

	if (!err && z.entries > MEMBERS_MAX)
		err = fail(&z, "has more members than NumPy's files have");
	for (uint64_t i = 0; !err && i < z.entries; i++) {
		err = read_entry(&z, &m);
		if (!err)
			err = each(arg, &m);
	}
	return err;
}
