/* SPDX-License-Identifier: MIT */
/*
 * index_file.c - an index of JPEG rows in a file.
 *
 * A header, then blocks.  A block is a head and records, each of a file's
 * entries, in the order of the files' numbers; the last block has no records.
 * A block's checksum is seeded with that of what stands before it, the header's
 * first, so that none can be taken from elsewhere.  A block is taken in as soon
 * as it was read: the memory that this takes is one block's.
 *
 * Bump VERSION when a record changes, or what the decoder calls undamaged.
 */
#include "jpeg/index_file.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "base/hash.h"

#define MAGIC "tsockrow"
#define VERSION 1
#define ENDIAN 0x01020304
/* Bytes of a block at most; a file whose record is longer isn't kept. */
#define BLOCK ((size_t)1 << 22)
#define ENDS 1u

struct header {
	char magic[8];
	uint32_t version;
	uint32_t endian;
	uint64_t key;
	uint64_t files;
	uint64_t checksum; /* of what stands above */
};

struct block_head {
	uint64_t len; /* of the records */
	uint64_t checksum;
};

/* The entries follow, 8 bytes each. */
struct record {
	uint64_t file;
	uint64_t check;
	uint32_t across;
	uint32_t down;
	uint32_t rows;
	uint16_t step;
	uint16_t flags;
};

struct stream {
	int fd;
	uint64_t chain; /* checksum of the last block */
	uint8_t *block;
	size_t len;
};

static struct header header_of(const struct tsi_jpeg_index *x, uint64_t key)
{
	struct header h = {
		.version = VERSION,
		.endian = ENDIAN,
		.key = key,
		.files = tsi_jpeg_index_files(x),
	};

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.checksum = tsi_hash(&h, offsetof(struct header, checksum), 0);
	return h;
}

static uint64_t checksum(const struct stream *s, uint64_t len)
{
	return tsi_hash(s->block, len, tsi_hash(&len, sizeof(len), s->chain));
}

/* ------------------------------------------------------------------------
 * Writing
 */

static bool write_block(struct stream *s)
{
	struct block_head h = { s->len, checksum(s, s->len) };

	s->chain = h.checksum;
	s->len = 0;
	return tsi_file_write(s->fd, &h, sizeof(h)) &&
	       tsi_file_write(s->fd, s->block, h.len);
}

static bool add_record(struct stream *s, uint64_t file,
		       const struct tsi_jpeg_kept *e)
{
	size_t entries = tsi_jpeg_kept_entries(e) * sizeof(*e->entry);
	struct record r = {
		.file = file,
		.check = e->check,
		.across = e->across,
		.down = e->down,
		.rows = e->rows,
		.step = (uint16_t)e->step,
		.flags = e->ends ? ENDS : 0,
	};

	if (entries > BLOCK - sizeof(r))
		return true;
	if (sizeof(r) + entries > BLOCK - s->len && !write_block(s))
		return false;
	memcpy(s->block + s->len, &r, sizeof(r));
	memcpy(s->block + s->len + sizeof(r), e->entry, entries);
	s->len += sizeof(r) + entries;
	return true;
}

bool tsi_jpeg_index_write(const struct tsi_jpeg_index *x, uint64_t key, int fd)
{
	struct header h = header_of(x, key);
	struct stream s = { .fd = fd,
			    .chain = h.checksum,
			    .block = malloc(BLOCK) };
	bool ok = s.block && tsi_file_write(fd, &h, sizeof(h));
	struct tsi_jpeg_kept e;

	for (uint64_t i = 0; ok && i < h.files; i++)
		if (tsi_jpeg_index_get(x, i, &e))
			ok = add_record(&s, i, &e);
	if (ok && s.len > 0)
		ok = write_block(&s);
	/* The last one: nothing is missing. */
	ok = ok && write_block(&s);
	free(s.block);
	return ok;
}

/* ------------------------------------------------------------------------
 * Reading
 */

/* The next block; false: there is none, or it is damaged. */
static bool read_block(struct stream *s)
{
	struct block_head h;

	if (!tsi_file_read_all(s->fd, &h, sizeof(h)) || h.len == 0 ||
	    h.len > BLOCK || !tsi_file_read_all(s->fd, s->block, h.len) ||
	    checksum(s, h.len) != h.checksum)
		return false;
	s->chain = h.checksum;
	s->len = h.len;
	return true;
}

/* The record at *at, and to behind it; false: there is none that can be. */
static bool next_record(const struct stream *s, size_t *at, uint64_t *file,
			struct tsi_jpeg_kept *e)
{
	struct record r;
	uint64_t entries;

	if (s->len - *at < sizeof(r))
		return false;
	memcpy(&r, s->block + *at, sizeof(r));
	*at += sizeof(r);
	*file = r.file;
	*e = (struct tsi_jpeg_kept){
		.check = r.check,
		.across = r.across,
		.down = r.down,
		.rows = r.rows,
		.step = r.step,
		.ends = r.flags & ENDS,
		/* Records are as long as a multiple of 8 bytes. */
		.entry = (const uint64_t *)(const void *)(s->block + *at),
	};
	/* At most 2^32 rows of 2^32 entries. */
	entries = tsi_jpeg_kept_entries(e);
	if (r.flags & ~ENDS || entries > (s->len - *at) / sizeof(*e->entry))
		return false;
	*at += entries * sizeof(*e->entry);
	return true;
}

/* False: no more is to be read. */
static bool take_block(struct tsi_jpeg_index *x, const struct stream *s,
		       uint64_t *rows)
{
	struct tsi_jpeg_kept e;
	uint64_t file;

	for (size_t at = 0; at < s->len;) {
		if (!next_record(s, &at, &file, &e) ||
		    tsi_jpeg_index_put(x, file, &e))
			return false;
		*rows += (uint64_t)e.rows + e.ends;
	}
	return true;
}

uint64_t tsi_jpeg_index_read(struct tsi_jpeg_index *x, uint64_t key, int fd)
{
	struct header want = header_of(x, key), h;
	struct stream s = { .fd = fd, .chain = want.checksum };
	uint64_t rows = 0;

	if (!tsi_file_read_all(fd, &h, sizeof(h)) ||
	    memcmp(&h, &want, sizeof(h)) != 0)
		return 0;
	s.block = malloc(BLOCK);
	while (s.block && read_block(&s) && take_block(x, &s, &rows))
		;
	free(s.block);
	return rows;
}
