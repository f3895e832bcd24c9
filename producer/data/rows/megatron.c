/* SPDX-License-Identifier: MIT */
/*
 * megatron.c - Megatron-LM's .idx.
 *
 * Behind its head lie, for each sequence, its tokens (int32) and where it begins
 * in the .bin (int64, in bytes), and for each document its first sequence
 * (int64), with one behind the last one's.
 */
#include "data/rows/megatron.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "tsock/common.h"

#define NAME 4096
#define HEAD 18   /* magic, version as u64, dtype as u8 */
#define COUNTS 16 /* how many sequences and documents, as u64 */

/* "NAME.idx" of "NAME.bin"; false: it has no such name. */
static bool index_of(const char *path, char to[NAME])
{
	size_t len = strlen(path);

	if (len < 4 || len >= NAME || strcmp(path + len - 4, ".bin"))
		return false;
	snprintf(to, NAME, "%.*s.idx", (int)(len - 4), path);
	return true;
}

static int read_head(int fd, const char *idx, uint32_t *dtype)
{
	static const uint32_t dtypes[] = { 0,         TSOCK_U8,  TSOCK_I8,
					   TSOCK_I16, TSOCK_I32, TSOCK_I64,
					   TSOCK_F64, TSOCK_F32, TSOCK_U16 };
	static const uint8_t begin[17] = "MMIDIDX\0\0\1\0\0\0\0\0\0";
	uint8_t head[HEAD];

	if (pread(fd, head, sizeof(head), 0) != HEAD)
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: it ends within its head", idx);
	if (memcmp(head, begin, sizeof(begin)) != 0)
		return tsi_err(TSOCK_EDATA,
			       "%s is no index of Megatron-LM of version 1: "
			       "remove it, if the .bin beside it is another's",
			       idx);
	if (!head[17] || head[17] >= sizeof(dtypes) / sizeof(dtypes[0]))
		return tsi_err(TSOCK_EDATA, "%s: dtype %u isn't known", idx,
			       head[17]);
	*dtype = dtypes[head[17]];
	return 0;
}

int tsi_megatron_dtype(const struct tsi_root *r, const char *path,
		       uint32_t *dtype)
{
	char idx[NAME];
	int fd, err;

	*dtype = 0;
	if (!index_of(path, idx))
		return 0;
	fd = tsi_root_openat(r, idx, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : tsi_err_sys("open %s", idx);
	err = read_head(fd, idx, dtype);
	close(fd);
	return err;
}

/* ---- where documents begin ---- */

/* Numbers of the index, one after the other, little-endian. */
struct numbers {
	const struct tsi_rows *rows;
	unsigned file;
	uint64_t at, left;
	size_t item; /* 4 or 8 bytes */
	const char *what;
	uint8_t block[4096];
	size_t used, have; /* bytes of the block */
};

static int next_number(struct numbers *n, int64_t *out)
{
	int32_t narrow;

	if (n->used == n->have) {
		uint64_t bytes = n->left * n->item;

		n->used = 0;
		n->have = bytes < sizeof(n->block) ? (size_t)bytes
						   : sizeof(n->block);
		if (tsi_rows_read(n->rows, n->file, n->at, n->block, n->have,
				  n->what))
			return TSOCK_EDATA;
		n->at += n->have;
		n->left -= n->have / n->item;
	}
	if (n->item == sizeof(*out)) {
		memcpy(out, n->block + n->used, sizeof(*out));
	} else {
		memcpy(&narrow, n->block + n->used, sizeof(narrow));
		*out = narrow;
	}
	n->used += n->item;
	return 0;
}

struct walk {
	const struct tsi_bounds_file *f;
	const char *bin, *idx;
	size_t item;
	uint64_t sequences, documents; /* entries of the document index */
	uint64_t entry;                /* how many of them were read */
	int64_t first;   /* the sequence that the last one of them names */
	uint64_t tokens; /* of all sequences so far */
	struct numbers lengths, pointers, index;
};

static int begin_walk(const struct tsi_rows *rows, unsigned idx, struct walk *w)
{
	uint64_t len = tsi_rows_len(rows, idx), at = HEAD + COUNTS;
	uint64_t n[2], room;
	int err = tsi_rows_read(rows, idx, HEAD, n, COUNTS, "head");

	if (err)
		return err;
	room = len - at;
	if (n[0] > room / 12 || n[1] > (room - n[0] * 12) / 8)
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: it says that it has %" PRIu64
			       " sequences and %" PRIu64
			       " bounds of documents, "
			       "and it has %" PRIu64 " bytes",
			       w->idx, n[0], n[1], len);
	if (!n[0] || !n[1])
		return tsi_err(TSOCK_EDATA,
			       "%s has no %s, so that it can't be said where "
			       "documents begin: leave out --documents",
			       w->idx, n[0] ? "documents" : "sequences");
	w->sequences = n[0];
	w->documents = n[1];
	w->lengths = (struct numbers){ .rows = rows,
				       .file = idx,
				       .at = at,
				       .left = n[0],
				       .item = 4,
				       .what = "lengths" };
	w->pointers = w->lengths;
	w->pointers.at += n[0] * 4;
	w->pointers.item = 8;
	w->pointers.what = "pointers";
	w->index = w->pointers;
	w->index.at += n[0] * 8;
	w->index.left = n[1];
	w->index.what = "documents";
	return 0;
}

/* The sequence with which the next document begins. */
static int next_document(struct walk *w)
{
	int64_t was = w->first;
	int err = next_number(&w->index, &w->first);

	if (err)
		return err;
	if (w->first < was || (uint64_t)w->first > w->sequences ||
	    (!w->entry && w->first))
		return tsi_err(TSOCK_EDATA,
			       "%s is damaged: document %" PRIu64
			       " begins with sequence %" PRId64
			       "; they are to ascend from 0 to %" PRIu64,
			       w->idx, w->entry, w->first, w->sequences);
	w->entry++;
	return 0;
}

/* Sequences lie one behind the other, and end where the file does. */
static int next_sequence(struct walk *w, uint64_t k)
{
	uint64_t room = w->f->tokens - w->tokens;
	int64_t length, pointer;
	int err = next_number(&w->lengths, &length);

	if (!err)
		err = next_number(&w->pointers, &pointer);
	if (err)
		return err;
	if (length < 0)
		return tsi_err(TSOCK_EDATA,
			       "%s is damaged: sequence %" PRIu64
			       " has %" PRId64 " tokens",
			       w->idx, k, length);
	if (pointer < 0 || (uint64_t)pointer != w->tokens * w->item)
		return tsi_err(TSOCK_EDATA,
			       "%s is damaged: sequence %" PRIu64
			       " begins at byte %" PRId64
			       ", and what is before ends at byte %" PRIu64,
			       w->idx, k, pointer, w->tokens * w->item);
	if ((uint64_t)length > room)
		return tsi_err(TSOCK_EDATA,
			       "%s: sequence %" PRIu64 " ends behind the "
			       "%" PRIu64 " tokens of %s: one of the files is "
			       "truncated, or another's",
			       w->idx, k, w->f->tokens, w->bin);
	w->tokens += (uint64_t)length;
	return 0;
}

/* Each document's first token, and no two that are the same. */
static int walk(struct walk *w, struct tsi_bounds *out)
{
	int err = next_document(w);

	for (uint64_t k = 0; k < w->sequences && !err; k++) {
		while (!err && (uint64_t)w->first == k) {
			if (!out->n || out->start[out->n - 1] < w->tokens)
				out->start[out->n++] = w->tokens;
			if (w->entry == w->documents)
				break;
			err = next_document(w);
		}
		if (!err)
			err = next_sequence(w, k);
	}
	while (!err && w->entry < w->documents)
		err = next_document(w);
	if (err)
		return err;
	if (w->tokens != w->f->tokens)
		return tsi_err(TSOCK_EDATA,
			       "%s has sequences of %" PRIu64 " tokens, and %s "
			       "has %" PRIu64 " tokens: one of the files is "
			       "truncated, or another's",
			       w->idx, w->tokens, w->bin, w->f->tokens);
	if (out->n && out->start[out->n - 1] == w->tokens)
		out->n--;
	return 0;
}

int tsi_megatron_bounds(struct tsi_rows *rows, const struct tsi_bounds_file *f,
			struct tsi_bounds *out)
{
	struct tsi_bounds found = { .told = true };
	struct walk w = { .f = f, .item = tsock_dtype_size(f->dtype) };
	char name[NAME];
	unsigned idx;
	int err;

	index_of(tsi_rows_path(rows, f->file), name);
	err = tsi_rows_map(rows, name, &idx);
	if (err)
		return err;
	w.bin = tsi_rows_path(rows, f->file);
	w.idx = tsi_rows_path(rows, idx);
	err = begin_walk(rows, idx, &w);
	if (err)
		return err;
	found.start = malloc(w.documents * sizeof(*found.start));
	if (!found.start)
		return tsi_err(TSOCK_ENOMEM, "no memory for documents");
	err = walk(&w, &found);
	if (err) {
		free(found.start);
		return err;
	}
	*out = found;
	return 0;
}
