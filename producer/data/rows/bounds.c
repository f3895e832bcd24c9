/* SPDX-License-Identifier: MIT */
/*
 * bounds.c - documents that a token tells apart.
 *
 * Threads read pieces of the file, and note what they find by its place in the
 * piece; then all places are put together.
 */
#include "data/rows/bounds.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "data/parallel.h"
#include "data/text.h"

#define PIECE (UINT64_C(1) << 20) /* tokens */
#define BLOCK 16384               /* bytes */

struct piece {
	uint32_t *at; /* from the piece's first token on */
	uint64_t n, room;
};

struct search {
	const struct tsi_rows *rows;
	const struct tsi_bounds_file *f;
	size_t item;
	uint64_t token;
	struct piece *piece;
	uint64_t pieces;
};

/* The largest number of a dtype; 0: it is none of integers. */
static uint64_t largest(uint32_t dtype)
{
	switch (dtype) {
	case TSOCK_U8:
		return UINT8_MAX;
	case TSOCK_I8:
		return INT8_MAX;
	case TSOCK_U16:
		return UINT16_MAX;
	case TSOCK_I16:
		return INT16_MAX;
	case TSOCK_U32:
		return UINT32_MAX;
	case TSOCK_I32:
		return INT32_MAX;
	case TSOCK_I64:
		return INT64_MAX;
	default:
		return 0;
	}
}

int tsi_bounds_check(const struct tsi_documents_opts *o, uint32_t dtype)
{
	uint64_t most = largest(dtype);
	const char *option =
		o->stands == TSI_DOCUMENTS_END ? "end-token" : "begin-token";

	if (o->stands == TSI_DOCUMENTS_NO_TOKEN || o->token <= most)
		return 0;
	if (!most)
		return tsi_err(TSOCK_EARG,
			       "--%s: the tokens of --schema are no integers",
			       option);
	return tsi_err(TSOCK_EARG,
		       "--%s %" PRIu64 ": tokens of --schema's dtype are "
		       "%" PRIu64 " at most",
		       option, o->token, most);
}

static int note(struct piece *p, uint64_t at)
{
	int err = tsi_text_grow(&p->at, p->n, &p->room, sizeof(*p->at));

	if (!err)
		p->at[p->n++] = (uint32_t)at;
	return err;
}

#define LOOK(type) \
	for (size_t i = 0; i < n && !err; i++) \
		if (((const type *)block)[i] == (type)s->token) \
			err = note(p, first + i);

/* first: the number of the block's first token in the piece. */
static int look(const struct search *s, const void *block, size_t n,
		uint64_t first, struct piece *p)
{
	int err = 0;

	switch (s->item) {
	case 1:
		LOOK(uint8_t);
		break;
	case 2:
		LOOK(uint16_t);
		break;
	case 4:
		LOOK(uint32_t);
		break;
	default:
		LOOK(uint64_t);
	}
	return err;
}

#undef LOOK

static int search_piece(struct search *s, uint64_t number)
{
	_Alignas(8) uint8_t block[BLOCK];
	uint64_t at = number * PIECE, each = BLOCK / s->item;
	uint64_t end = s->f->tokens - at > PIECE ? at + PIECE : s->f->tokens;
	int err = 0;

	for (uint64_t k = at; k < end && !err; k += each) {
		size_t n = (size_t)(end - k < each ? end - k : each);

		err = tsi_rows_read(s->rows, s->f->file, s->f->at + k * s->item,
				    block, n * s->item, "tokens");
		if (!err)
			err = look(s, block, n, k - at, &s->piece[number]);
	}
	return err;
}

static int search_pieces(void *arg, uint64_t first, uint64_t last)
{
	int err = 0;

	for (uint64_t k = first; k < last && !err; k++)
		err = search_piece(arg, k);
	return err;
}

/* Of what was found, and frees that.  behind: a document begins behind it. */
static int join(struct search *s, bool behind, struct tsi_bounds *out)
{
	uint64_t n = 1;

	for (uint64_t k = 0; k < s->pieces; k++)
		n += s->piece[k].n;
	out->start = malloc(n * sizeof(*out->start));
	if (!out->start)
		return tsi_err(TSOCK_ENOMEM, "no memory for documents");
	out->start[0] = 0;
	out->told = n > 1;
	out->n = 1;
	for (uint64_t k = 0; k < s->pieces; k++) {
		for (uint64_t i = 0; i < s->piece[k].n; i++) {
			uint64_t at = k * PIECE + s->piece[k].at[i] + behind;

			if (at && at < s->f->tokens)
				out->start[out->n++] = at;
		}
		free(s->piece[k].at);
		s->piece[k].at = NULL;
	}
	return 0;
}

int tsi_bounds_find(const struct tsi_rows *rows,
		    const struct tsi_bounds_file *f,
		    const struct tsi_documents_opts *o, unsigned threads,
		    struct tsi_bounds *out)
{
	struct search s = { .rows = rows,
			    .f = f,
			    .item = tsock_dtype_size(f->dtype),
			    .token = o->token,
			    .pieces = (f->tokens - 1) / PIECE + 1 };
	int err;

	s.piece = calloc(s.pieces, sizeof(*s.piece));
	if (!s.piece)
		return tsi_err(TSOCK_ENOMEM, "no memory for documents");
	err = tsi_parallel(threads, s.pieces, 1, search_pieces, &s);
	if (!err)
		err = join(&s, o->stands == TSI_DOCUMENTS_END, out);
	for (uint64_t k = 0; k < s.pieces; k++)
		free(s.piece[k].at);
	free(s.piece);
	return err;
}
