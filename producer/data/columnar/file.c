/* SPDX-License-Identifier: MIT */
/*
 * file.c - the file of a table, read and checked.
 */
#include "data/columnar/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"
#include "base/file.h"
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

static int damaged(const struct tsi_columnar *c, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%s is a damaged table: %s" WRITE_AGAIN,
		       c->path, what);
}

static int bad_column(const struct tsi_columnar *c,
		      const struct tsi_columnar_entry *e, const char *what)
{
	return tsi_err(TSOCK_EDATA,
		       "%s is a damaged table: the column %.40s %s" WRITE_AGAIN,
		       c->path, e->name, what);
}

static uint32_t crc_of(const struct tsi_columnar *c)
{
	struct tsi_columnar_head h = *c->head;
	uLong crc;

	h.crc = 0;
	crc = crc32(0, (const Bytef *)&h, sizeof(h));
	return (uint32_t)crc32(crc, (const Bytef *)c->entry,
			       (uInt)(h.columns * sizeof(*c->entry)));
}

static int check_head(const struct tsi_columnar *c)
{
	const struct tsi_columnar_head *h = c->head;

	if (c->len < sizeof(*h) ||
	    memcmp(h->magic, TSI_COLUMNAR_MAGIC, sizeof(h->magic)))
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
	if (h->bytes != c->len)
		return tsi_err(TSOCK_EDATA,
			       "%s is a damaged table: it has %zu bytes of "
			       "%" PRIu64 WRITE_AGAIN,
			       c->path, c->len, h->bytes);
	if (h->columns > TSI_COLUMNAR_COLUMNS ||
	    c->len < sizeof(*h) + h->columns * sizeof(*c->entry))
		return damaged(c, "its columns are no list");
	if (crc_of(c) != h->crc)
		return damaged(c, "its head's checksum is another one");
	return 0;
}

/* Bytes of a row of values; 0: there is no such dtype or shape. */
static uint64_t row_bytes(const struct tsi_columnar_entry *e)
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

static int check_texts(const struct tsi_columnar *c,
		       const struct tsi_columnar_entry *e)
{
	const uint64_t *at = tsi_columnar_starts(c, e);
	const char *text;
	uint64_t len;

	if (e->count >= e->bytes / sizeof(*at))
		return bad_column(c, e, "has fewer texts than it says");
	text = tsi_columnar_texts(c, e);
	len = e->bytes - (e->count + 1) * sizeof(*at);
	if (at[0] != 0 || at[e->count] != len)
		return bad_column(c, e, "has texts that are not all of it");
	for (uint64_t i = 0; i < e->count; i++)
		if (at[i + 1] <= at[i] || at[i + 1] > len ||
		    text[at[i + 1] - 1])
			return bad_column(c, e, "has a text without an end");
	return 0;
}

static int check_entry(const struct tsi_columnar *c,
		       const struct tsi_columnar_entry *e)
{
	uint64_t bytes = e->kind == TSI_COLUMNAR_RANGES
				 ? sizeof(struct tsi_columnar_range)
				 : row_bytes(e);

	if (!memchr(e->name, 0, sizeof(e->name)) || !e->name[0])
		return damaged(c, "a column has no name");
	if (e->offset % ALIGN || e->offset > c->len ||
	    e->bytes > c->len - e->offset)
		return bad_column(c, e, "lies outside of the file");
	if (tsi_columnar_find(c, e->name) != e)
		return bad_column(c, e, "comes twice");
	if (e->kind == TSI_COLUMNAR_TEXT)
		return check_texts(c, e);
	if (e->kind != TSI_COLUMNAR_VALUES && e->kind != TSI_COLUMNAR_RANGES)
		return bad_column(c, e, "is of a kind that is not known");
	if (!bytes)
		return bad_column(c, e, "has no dtype and shape");
	if (e->count > e->bytes / bytes || e->count * bytes != e->bytes)
		return bad_column(c, e, "has not the bytes of its rows");
	return 0;
}

int tsi_columnar_read(int fd, const char *path, struct tsi_columnar *out)
{
	struct stat st;
	int err;

	*out = (struct tsi_columnar){ .path = path };
	if (fstat(fd, &st))
		return tsi_err_sys("stat %.300s", path);
	if (!S_ISREG(st.st_mode) ||
	    st.st_size < (off_t)sizeof(struct tsi_columnar_head))
		return tsi_err(TSOCK_EDATA, "%s is no table, but %s", path,
			       S_ISREG(st.st_mode) ? "a short file"
						   : tsi_file_kind(st.st_mode));
	out->len = (size_t)st.st_size;
	out->mem = aligned_alloc(ALIGN, (out->len + ALIGN - 1) / ALIGN * ALIGN);
	if (!out->mem)
		return tsi_err(TSOCK_ENOMEM, "no memory for the table %s",
			       path);
	if (!tsi_file_read_all(fd, out->mem, out->len)) {
		err = tsi_err_sys("read %.300s", path);
		tsi_columnar_free(out);
		return err;
	}
	out->head = out->mem;
	out->entry = (const struct tsi_columnar_entry *)(out->head + 1);
	err = check_head(out);
	for (uint32_t i = 0; !err && i < out->head->columns; i++)
		err = check_entry(out, &out->entry[i]);
	if (err)
		tsi_columnar_free(out);
	return err;
}

void tsi_columnar_free(struct tsi_columnar *c)
{
	free(c->mem);
	c->mem = NULL;
}

const struct tsi_columnar_entry *tsi_columnar_find(const struct tsi_columnar *c,
						   const char *name)
{
	for (uint32_t i = 0; i < c->head->columns; i++)
		if (!strcmp(c->entry[i].name, name))
			return &c->entry[i];
	return NULL;
}

const void *tsi_columnar_data(const struct tsi_columnar *c,
			      const struct tsi_columnar_entry *e)
{
	return (const char *)c->mem + e->offset;
}

const uint64_t *tsi_columnar_starts(const struct tsi_columnar *c,
				    const struct tsi_columnar_entry *e)
{
	return tsi_columnar_data(c, e);
}

const char *tsi_columnar_texts(const struct tsi_columnar *c,
			       const struct tsi_columnar_entry *e)
{
	return (const char *)(tsi_columnar_starts(c, e) + e->count + 1);
}
