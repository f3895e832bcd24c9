/* SPDX-License-Identifier: MIT */
/*
 * file.c - the file of a table: its head and its entries.
 */
#include "data/columnar/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/mapped.h"
#include "tsock/common.h"

#define ALIGN 64u
#define WRITE_AGAIN "; write the table again"

bool tsi_columnar_is_at(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char magic[8];
	bool is;

	if (fd < 0)
		return false;
	is = tsi_file_pread(fd, magic, sizeof(magic), 0) ==
		     (ssize_t)sizeof(magic) &&
	     !memcmp(magic, TSI_COLUMNAR_MAGIC, sizeof(magic));
	close(fd);
	return is;
}

bool tsi_columnar_peek(const char *path, const char *column,
		       struct tsi_columnar_entry *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct tsi_columnar_entry entry[TSI_COLUMNAR_COLUMNS];
	struct tsi_columnar_head h;
	bool good, found = false;

	if (fd < 0)
		return false;
	good = tsi_file_pread(fd, &h, sizeof(h), 0) == (ssize_t)sizeof(h) &&
	       !memcmp(h.magic, TSI_COLUMNAR_MAGIC, sizeof(h.magic)) &&
	       h.columns <= TSI_COLUMNAR_COLUMNS &&
	       tsi_file_pread(fd, entry, h.columns * sizeof(*entry),
			      sizeof(h)) ==
		       (ssize_t)(h.columns * sizeof(*entry));
	close(fd);
	for (uint32_t i = 0; good && i < h.columns && !found; i++) {
		found = !strncmp(entry[i].name, column, sizeof(entry[i].name));
		*out = entry[i];
	}
	return found;
}

size_t tsi_columnar_peek_data(const char *path,
			      const struct tsi_columnar_entry *e, void *to,
			      size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = tsi_file_pread(fd, to, e->bytes < room ? (size_t)e->bytes : room,
			   e->offset);
	close(fd);
	return n < 0 ? 0 : (size_t)n;
}

static int damaged(const struct tsi_columnar *c, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%s is a damaged table: %s" WRITE_AGAIN,
		       c->path, what);
}

int tsi_columnar_fail(const struct tsi_columnar *c,
		      const struct tsi_columnar_entry *e, const char *what)
{
	return tsi_err(TSOCK_EDATA,
		       "%s is a damaged table: the column %.40s %s" WRITE_AGAIN,
		       c->path, e->name, what);
}

static uint32_t crc_of(const struct tsi_columnar *c)
{
	struct tsi_columnar_head h = c->head;
	uLong crc;

	h.crc = 0;
	crc = crc32(0, (const Bytef *)&h, sizeof(h));
	return (uint32_t)crc32(crc, (const Bytef *)c->entry,
			       (uInt)(h.columns * sizeof(*c->entry)));
}

/* Copy bytes of the file; false: it doesn't have them. */
static bool take(const struct tsi_columnar *c, uint64_t at, void *to, size_t n)
{
	return at <= tsi_mapped_len(c->map) &&
	       n <= tsi_mapped_len(c->map) - at &&
	       tsi_mapped_copy(to, tsi_mapped_at(c->map, at), n);
}

static int check_head(struct tsi_columnar *c)
{
	const struct tsi_columnar_head *h = &c->head;

	if (memcmp(h->magic, TSI_COLUMNAR_MAGIC, sizeof(h->magic)))
		return tsi_err(TSOCK_EDATA,
			       "%s is no table: a table is a file that "
			       "tsock.index() or python -m tsock.index writes",
			       c->path);
	if (h->endian != TSI_COLUMNAR_ENDIAN ||
	    h->version != TSI_COLUMNAR_VERSION)
		return tsi_err(
			TSOCK_EDATA,
			"%s is a table of version %" PRIu32
			", and this producer reads version %u" WRITE_AGAIN,
			c->path, h->version, TSI_COLUMNAR_VERSION);
	if (h->bytes != tsi_mapped_len(c->map))
		return tsi_err(TSOCK_EDATA,
			       "%s is a damaged table: it has %" PRIu64
			       " bytes of %" PRIu64 WRITE_AGAIN,
			       c->path, tsi_mapped_len(c->map), h->bytes);
	if (h->columns > TSI_COLUMNAR_COLUMNS ||
	    !take(c, sizeof(*h), c->entry, h->columns * sizeof(*c->entry)))
		return damaged(c, "its columns are no list");
	if (crc_of(c) != h->crc)
		return damaged(c, "its head's checksum is another one");
	return 0;
}

/* Bytes of a row of values, or of an item of ragged ones; 0: there is no such dtype or shape. */
static uint64_t values_bytes(const struct tsi_columnar_entry *e)
{
	uint64_t bytes = tsock_dtype_size(e->dtype);

	if (e->ndim > TSOCK_MAX_DIMS)
		return 0;
	for (uint32_t i = 0; i < e->ndim; i++) {
		bytes *= e->shape[i];
		if (bytes > UINT32_MAX)
			return 0;
	}
	return bytes;
}

size_t tsi_columnar_item(const struct tsi_columnar_entry *e)
{
	return e->kind == TSI_COLUMNAR_RANGES
		       ? sizeof(struct tsi_columnar_range)
	       : e->kind == TSI_COLUMNAR_TEXT ? 1
					      : (size_t)values_bytes(e);
}

/* Bytes behind the numbers of where rows begin. */
static uint64_t bytes_behind(const struct tsi_columnar_entry *e)
{
	return e->bytes - (e->count + 1) * sizeof(uint64_t);
}

int tsi_columnar_check_ends(const struct tsi_columnar *c,
			    const struct tsi_columnar_entry *e,
			    const void *data)
{
	bool text = e->kind == TSI_COLUMNAR_TEXT;
	const uint64_t *at = data;
	uint64_t first, last;

	if (!tsi_mapped_copy(&first, at, sizeof(first)) ||
	    !tsi_mapped_copy(&last, at + e->count, sizeof(last)))
		return tsi_columnar_fail(c, e,
					 "was cut short while it was "
					 "read");
	if (first != 0 || last != tsi_columnar_item_count(e) ||
	    bytes_behind(e) % tsi_columnar_item(e))
		return tsi_columnar_fail(
			c, e,
			text ? "has texts that are not all of it"
			     : "has rows that are not all of it");
	return 0;
}

/* Texts and ragged values: is there room for where they begin, and do they? */
static int check_starts(const struct tsi_columnar *c,
			const struct tsi_columnar_entry *e)
{
	bool text = e->kind == TSI_COLUMNAR_TEXT;

	if (!text && (!tsi_columnar_item(e) || e->ndim == TSOCK_MAX_DIMS))
		return tsi_columnar_fail(c, e, "has no dtype and shape");
	if (e->count >= e->bytes / sizeof(uint64_t))
		return tsi_columnar_fail(c, e,
					 text ? "has fewer texts than it says"
					      : "has fewer rows than it says");
	return tsi_columnar_check_ends(c, e, tsi_columnar_data(c, e));
}

static int check_entry(const struct tsi_columnar *c,
		       const struct tsi_columnar_entry *e)
{
	uint64_t bytes;

	if (!memchr(e->name, 0, sizeof(e->name)) || !e->name[0])
		return damaged(c, "a column has no name");
	if (e->offset % ALIGN || e->offset > tsi_mapped_len(c->map) ||
	    e->bytes > tsi_mapped_len(c->map) - e->offset)
		return tsi_columnar_fail(c, e, "lies outside of the file");
	if (tsi_columnar_find(c, e->name) != e)
		return tsi_columnar_fail(c, e, "comes twice");
	if (e->kind == TSI_COLUMNAR_TEXT || e->kind == TSI_COLUMNAR_RAGGED)
		return check_starts(c, e);
	if (e->kind != TSI_COLUMNAR_VALUES && e->kind != TSI_COLUMNAR_RANGES)
		return tsi_columnar_fail(c, e,
					 "is of a kind that is not known");
	bytes = tsi_columnar_item(e);
	if (!bytes)
		return tsi_columnar_fail(c, e, "has no dtype and shape");
	if (e->count > e->bytes / bytes || e->count * bytes != e->bytes)
		return tsi_columnar_fail(c, e, "has not the bytes of its rows");
	return 0;
}

int tsi_columnar_open(const struct tsi_mapped *map, const char *path,
		      struct tsi_columnar *out)
{
	int err;

	*out = (struct tsi_columnar){ .path = path, .map = map };
	if (!take(out, 0, &out->head, sizeof(out->head)))
		return tsi_err(TSOCK_EDATA, "%s is no table, but a short file",
			       path);
	err = check_head(out);
	for (uint32_t i = 0; !err && i < out->head.columns; i++)
		err = check_entry(out, &out->entry[i]);
	return err;
}

uint64_t tsi_columnar_hash(const struct tsi_columnar *c)
{
	return tsi_hash(c->entry, c->head.columns * sizeof(*c->entry),
			tsi_hash(&c->head, sizeof(c->head), 0));
}

struct tsi_columnar_longest *tsi_columnar_longests(struct tsi_columnar *c)
{
	return c->longest;
}

const struct tsi_columnar_longest *
tsi_columnar_longest(const struct tsi_columnar *c,
		     const struct tsi_columnar_entry *e)
{
	return &c->longest[e - c->entry];
}

const char *tsi_columnar_path(const struct tsi_columnar *c)
{
	return c->path;
}

uint32_t tsi_columnar_count(const struct tsi_columnar *c)
{
	return c->head.columns;
}

const struct tsi_columnar_entry *tsi_columnar_at(const struct tsi_columnar *c,
						 uint32_t i)
{
	return &c->entry[i];
}

const struct tsi_columnar_entry *tsi_columnar_find(const struct tsi_columnar *c,
						   const char *name)
{
	for (uint32_t i = 0; i < c->head.columns; i++)
		if (!strcmp(c->entry[i].name, name))
			return &c->entry[i];
	return NULL;
}

const void *tsi_columnar_data(const struct tsi_columnar *c,
			      const struct tsi_columnar_entry *e)
{
	return tsi_mapped_at(c->map, e->offset);
}

const uint64_t *tsi_columnar_starts(const struct tsi_columnar *c,
				    const struct tsi_columnar_entry *e)
{
	return tsi_columnar_data(c, e);
}

const uint8_t *tsi_columnar_items(const struct tsi_columnar *c,
				  const struct tsi_columnar_entry *e)
{
	return (const uint8_t *)(tsi_columnar_starts(c, e) + e->count + 1);
}

uint64_t tsi_columnar_item_count(const struct tsi_columnar_entry *e)
{
	return bytes_behind(e) / tsi_columnar_item(e);
}

int tsi_columnar_check_count(const struct tsi_columnar *c,
			     const struct tsi_columnar_entry *e)
{
	if (!e || e->count == c->head.rows)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s: the column %s has %" PRIu64
		       " values, and the table "
		       "%" PRIu64 " rows",
		       c->path, e->name, e->count, c->head.rows);
}
