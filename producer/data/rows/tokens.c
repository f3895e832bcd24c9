/* SPDX-License-Identifier: MIT */
/*
 * tokens.c - the format tokens: files of token numbers, one behind the other,
 * as nanoGPT, llm.c and Megatron-LM write them.
 *
 * A sample is a window of T + 1 tokens, so that its first T are the input and
 * its last T the targets; windows begin every T tokens, and never reach from a
 * file into the next.  With --documents there are marks of documents beside it,
 * or samples are documents.
 */
#include "data/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/documents.h"
#include "data/rows/bounds.h"
#include "data/rows/files.h"
#include "data/rows/megatron.h"
#include "data/rows/rows.h"
#include "data/rows/schema.h"

#define LLMC_HEAD 1024 /* 256 int32 */

static int open_root(const char *root, struct tsi_root *r)
{
	return tsi_rows_open_root(root,
				  "a .bin file of tokens, or the folder "
				  "of such files",
				  r);
}

/* The numbers of documents are int32, and a token is one of the dtype. */
static int check_length(const struct tsock_field *window,
			const struct tsi_format_opts *o)
{
	if (o->documents.way && window->shape[0] >= INT32_MAX)
		return tsi_err(TSOCK_EARG,
			       "--schema %.100s: with --documents %d tokens "
			       "are the most",
			       o->schema, INT32_MAX - 1);
	return tsi_bounds_check(&o->documents, window->dtype);
}

/* What --schema says: a dtype, and T. */
static int read_schema(const struct tsi_format_opts *o,
		       struct tsock_field *window)
{
	struct tsi_rows_schema s;
	int err;

	if (!o->schema)
		return tsi_err(TSOCK_EARG,
			       "say the tokens' dtype and how many a sample "
			       "has, as --schema uint16[1024]; samples have "
			       "one more, for the targets");
	err = tsi_rows_schema_read(o->schema, &s);
	if (err)
		return err;
	*window = s.field[0];
	if (s.n == 1 && window->ndim == 1 && !strcmp(window->name, ""))
		return check_length(window, o);
	return tsi_err(TSOCK_EARG,
		       "--schema %.100s: of tokens one dtype is wanted, and "
		       "how many a sample has, as uint16[1024]",
		       o->schema);
}

static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	struct tsock_field window;

	(void)root;
	out->imageless = true;
	return read_schema(o, &window);
}

/* Where tokens begin in a file, and how many they are. */
struct extent {
	uint64_t at, tokens;
	uint32_t dtype; /* 0: the file doesn't say */
	bool indexed;   /* Megatron-LM's index does */
};

static uint32_t number(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
	       (uint32_t)p[3] << 24;
}

/* llm.c: 256 numbers first, of which the third is how many tokens follow. */
static int read_llmc(const struct tsi_rows *rows, unsigned file,
		     struct extent *e)
{
	uint8_t head[12];
	uint32_t magic;
	int err;

	if (tsi_rows_len(rows, file) < LLMC_HEAD)
		return 0;
	err = tsi_rows_read(rows, file, 0, head, sizeof(head), "head");
	if (err)
		return err;
	magic = number(head);
	if ((magic != 20240520 || number(head + 4) != 1) &&
	    (magic != 20240801 || number(head + 4) != 7))
		return 0;
	*e = (struct extent){ .at = LLMC_HEAD,
			      .tokens = number(head + 8),
			      .dtype = magic == 20240520 ? TSOCK_U16
							 : TSOCK_U32 };
	return 0;
}

static int measure(const struct tsi_root *r, const struct tsi_rows *rows,
		   unsigned file, const struct tsock_field *f, struct extent *e)
{
	size_t size = tsock_dtype_size(f->dtype);
	const char *path = tsi_rows_path(rows, file);
	uint64_t len = tsi_rows_len(rows, file);
	int err;

	*e = (struct extent){ .tokens = len / size };
	err = tsi_megatron_dtype(r, path, &e->dtype);
	e->indexed = e->dtype != 0;
	if (!err && !e->dtype)
		err = read_llmc(rows, file, e);
	if (err)
		return err;
	if (e->dtype && e->dtype != f->dtype)
		return tsi_err(TSOCK_EARG,
			       "%s holds tokens of %s, as it says itself: say "
			       "--schema %s[%" PRIu64 "]",
			       path, tsi_rows_dtype_name(e->dtype),
			       tsi_rows_dtype_name(e->dtype), f->shape[0]);
	if (!e->at && len % size)
		return tsi_err(TSOCK_EDATA,
			       "%s has %" PRIu64 " bytes, which are no whole "
			       "tokens of %zu: it is truncated, or of another "
			       "dtype",
			       path, len, size);
	if (e->tokens > (len - e->at) / size)
		return tsi_err(TSOCK_EDATA,
			       "%s is truncated: it says that it holds %" PRIu64
			       " tokens, and it holds %" PRIu64,
			       path, e->tokens, (len - e->at) / size);
	return 0;
}

/* A data set while its files are added. */
struct reading {
	const struct tsi_root *root;
	const struct tsi_format_opts *o;
	struct tsi_rows *rows;
	struct tsock_field f; /* dtype, and T */
	unsigned column;      /* of windows; without them documents have all */
	struct tsi_documents *documents; /* NULL: they are ignored */
	bool told;                       /* some file says where they begin */
};

static bool has_windows(const struct tsi_format_opts *o)
{
	return o->documents.way <= TSI_DOCUMENTS_MARK;
}

/* By a token, if one was given, or by the index. */
static int find_bounds(struct reading *g, const struct tsi_bounds_file *f,
		       bool indexed, struct tsi_bounds *out)
{
	const struct tsi_documents_opts *o = &g->o->documents;

	if (o->stands)
		return tsi_bounds_find(g->rows, f, o, g->o->threads, out);
	if (indexed)
		return tsi_megatron_bounds(g->rows, f, out);
	return tsi_err(TSOCK_EARG,
		       "%s has no .idx of Megatron-LM, which says where "
		       "documents begin: say which token is at the end of each "
		       "(--end-token 50256 is GPT-2's), or at the beginning "
		       "(--begin-token)",
		       tsi_rows_path(g->rows, f->file));
}

static int add_bounds(struct reading *g, unsigned file, const struct extent *e)
{
	const struct tsi_bounds_file f = { .file = file,
					   .at = e->at,
					   .tokens = e->tokens,
					   .dtype = g->f.dtype };
	struct tsi_bounds b;
	int err = find_bounds(g, &f, e->indexed, &b);

	if (err)
		return err;
	g->told = g->told || b.told;
	return tsi_documents_add(g->documents,
				 tsi_rows_mem(g->rows, file) + e->at, e->tokens,
				 b.start, b.n);
}

static int add_file(struct reading *g, const char *name)
{
	uint64_t t = g->f.shape[0];
	struct extent e;
	unsigned file;
	int err = tsi_rows_map(g->rows, name, &file);

	if (!err)
		err = measure(g->root, g->rows, file, &g->f, &e);
	if (err || e.tokens <= (has_windows(g->o) ? t : 0))
		return err;
	if (g->documents)
		err = add_bounds(g, file, &e);
	if (err || !has_windows(g->o))
		return err;
	return tsi_rows_part(g->rows, g->column, file, e.at,
			     (e.tokens - 1) / t);
}

static void call(struct tsock_field *f, const char *name)
{
	memcpy(f->name, name, strlen(name) + 1);
}

/* What samples have beside windows, or in their stead. */
static int add_runs(struct reading *g, const struct tsock_field *window)
{
	enum tsi_documents_way way = g->o->documents.way;
	struct tsock_field tokens = *window;
	struct tsock_field more = { .dtype = TSOCK_I32 };
	int err = tsi_documents_create(way, g->f.shape[0],
				       tsock_dtype_size(g->f.dtype),
				       &g->documents);

	if (err)
		return err;
	tsi_rows_documents(g->rows, g->documents);
	if (way == TSI_DOCUMENTS_WHOLE)
		tokens.flags |= TSOCK_FIELD_RAGGED;
	if (!has_windows(g->o))
		err = tsi_rows_run(g->rows, &tokens, TSI_COLUMNS_TOKENS);
	if (err)
		return err;
	if (way == TSI_DOCUMENTS_WHOLE) {
		call(&more, "tokens_length");
		return tsi_rows_run(g->rows, &more, TSI_COLUMNS_LENGTH);
	}
	call(&more, "document");
	more.ndim = 1;
	more.shape[0] = window->shape[0];
	return tsi_rows_run(g->rows, &more, TSI_COLUMNS_MARKS);
}

static int add_fields(struct reading *g)
{
	struct tsock_field window = g->f;
	int err = 0;

	call(&window, "tokens");
	window.shape[0]++;
	if (has_windows(g->o))
		err = tsi_rows_field(g->rows, &window,
				     g->f.shape[0] *
					     tsock_dtype_size(g->f.dtype),
				     &g->column);
	if (!err && g->o->documents.way)
		err = add_runs(g, &window);
	return err;
}

/* Is there a sample, and a bound? */
static int check(const struct reading *g)
{
	const struct tsi_documents_opts *o = &g->o->documents;

	if (has_windows(g->o) && !tsi_rows_count(g->rows, g->column))
		return tsi_err(TSOCK_EDATA,
			       "%.300s holds no %" PRIu64
			       " tokens in one file: make samples shorter "
			       "(--schema)",
			       tsi_root_name(g->root), g->f.shape[0] + 1);
	if (g->documents && !g->told)
		return tsi_err(TSOCK_EDATA,
			       "%.300s has no token %" PRIu64
			       ", which would tell documents apart: give "
			       "another %s",
			       tsi_root_name(g->root), o->token,
			       o->stands == TSI_DOCUMENTS_END
				       ? "--end-token"
				       : "--begin-token");
	return 0;
}

static int add_files(struct reading *g, const struct tsi_rows_files *l)
{
	int err = add_fields(g);

	for (unsigned i = 0; i < l->n && !err; i++)
		err = add_file(g, l->name[i]);
	return err ? err : check(g);
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	struct tsi_rows_files l = { .name = NULL };
	struct reading g = { .root = r, .o = o };
	int err = read_schema(o, &g.f);

	if (!err)
		err = tsi_rows_create(r, &g.rows);
	if (!err)
		err = tsi_rows_list(r, ".bin|", o->held_out, &l);
	if (!err)
		err = add_files(&g, &l);
	if (!err)
		err = tsi_rows_finish(g.rows, t);
	tsi_rows_destroy(g.rows);
	tsi_rows_files_free(&l);
	return err;
}

const struct tsi_format tsi_format_tokens = {
	.name = "tokens",
	.layout = "-tokens",
	.splits_inside = true,
	.has_schema = true,
	.has_documents = true,
	.nameless = true,
	.of_arrays = true,
	.keeps_index = true,
	.open = open_root,
	.look = look,
	.scan = scan,
	.locate = tsi_rows_locate,
	.label = tsi_rows_label,
};
