/* SPDX-License-Identifier: MIT */
/*
 * schema.c - reading --schema.
 */
#include "data/rows/schema.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define BYTES_MAX ((size_t)1 << 31) /* of a sample */

static const struct {
	const char *name;
	uint32_t dtype;
} dtypes[] = {
	{ "uint8", TSOCK_U8 },      { "int8", TSOCK_I8 },
	{ "int16", TSOCK_I16 },     { "uint16", TSOCK_U16 },
	{ "int32", TSOCK_I32 },     { "uint32", TSOCK_U32 },
	{ "int64", TSOCK_I64 },     { "uint64", TSOCK_U64 },
	{ "float16", TSOCK_F16 },   { "float32", TSOCK_F32 },
	{ "float64", TSOCK_F64 },   { "bool", TSOCK_BOOL },
	{ "bfloat16", TSOCK_BF16 },
};
#define DTYPES (sizeof(dtypes) / sizeof(dtypes[0]))

/* The dtype of this name, of len bytes; 0: there is none. */
static uint32_t dtype_of(const char *name, size_t len)
{
	for (size_t k = 0; k < DTYPES; k++)
		if (strlen(dtypes[k].name) == len &&
		    !strncmp(name, dtypes[k].name, len))
			return dtypes[k].dtype;
	return 0;
}

const char *tsi_rows_dtype_name(uint32_t dtype)
{
	for (size_t k = 0; k < DTYPES; k++)
		if (dtypes[k].dtype == dtype)
			return dtypes[k].name;
	return "?";
}

struct reader {
	const char *text;
	const char *at;
	struct tsi_rows_schema *to;
};

static int fail(const struct reader *r, const char *what)
{
	return tsi_err(TSOCK_EARG,
		       "--schema %.200s: at \"%.20s\": %s; an example is "
		       "label:int32,dense:float32[13]",
		       r->text, r->at, what);
}

static void skip_blanks(struct reader *r)
{
	while (isspace((unsigned char)*r->at))
		r->at++;
}

/* A name or a dtype: letters, digits, '_', '.' and '-'. */
static size_t word(const struct reader *r)
{
	size_t n = 0;

	while (isalnum((unsigned char)r->at[n]) ||
	       (r->at[n] && strchr("_.-", r->at[n])))
		n++;
	return n;
}

static int read_shape(struct reader *r, struct tsock_field *f)
{
	if (*r->at != '[')
		return 0;
	do {
		char *end;
		unsigned long n;

		r->at++;
		skip_blanks(r);
		n = isdigit((unsigned char)*r->at) ? strtoul(r->at, &end, 10)
						   : 0;
		if (!n || n > BYTES_MAX)
			return fail(r, "a length, 1 or more, is wanted");
		if (f->ndim == TSOCK_MAX_DIMS)
			return fail(r, "a field has four dimensions at most");
		f->shape[f->ndim++] = n;
		r->at = end;
		skip_blanks(r);
	} while (*r->at == ',');
	if (*r->at != ']')
		return fail(r, "a ']' is missing");
	r->at++;
	return 0;
}

static int read_name(struct reader *r, struct tsock_field *f)
{
	size_t n = word(r);
	const char *behind = r->at + n;

	while (isspace((unsigned char)*behind))
		behind++;
	if (*behind != ':')
		return 0; /* there is a dtype alone */
	if (!n || n >= sizeof(f->name))
		return fail(r, "a name of 1 to 31 letters is wanted");
	memcpy(f->name, r->at, n);
	r->at = behind + 1;
	skip_blanks(r);
	return 0;
}

/* A name that is free, and that the stream doesn't use itself. */
static int check_name(const struct reader *r, const struct tsock_field *f)
{
	static const char *const taken[] = { "image", "index", "box", "key",
					     "draws" };

	if (!strcmp(f->name, "_"))
		return 0;
	for (size_t k = 0; k < sizeof(taken) / sizeof(taken[0]); k++)
		if (!strcmp(f->name, taken[k]))
			return fail(r, "this name is a field of every stream");
	for (unsigned k = 0; k < r->to->n; k++)
		if (!strcmp(f->name, r->to->field[k].name))
			return fail(r, *f->name ? "this name comes twice"
						: "several fields need names");
	return 0;
}

static int read_field(struct reader *r)
{
	struct tsi_rows_schema *to = r->to;
	struct tsock_field f = { .ndim = 0 };
	size_t n, bytes;
	int err;

	if (to->n == TSI_ROWS_FIELDS)
		return fail(r, "there are too many fields");
	err = read_name(r, &f);
	if (!err)
		err = check_name(r, &f);
	if (err)
		return err;
	n = word(r);
	f.dtype = dtype_of(r->at, n);
	if (!f.dtype)
		return fail(r, "a dtype is wanted, as int32 or float32");
	r->at += n;
	err = read_shape(r, &f);
	if (err)
		return err;
	bytes = tsock_dtype_size(f.dtype);
	for (uint32_t d = 0; d < f.ndim; d++) {
		if (f.shape[d] > BYTES_MAX / bytes)
			return fail(r, "a sample has 2 GiB at most");
		bytes *= f.shape[d];
	}
	if (bytes > BYTES_MAX - to->bytes)
		return fail(r, "a sample has 2 GiB at most");
	to->at[to->n] = to->bytes;
	to->bytes += bytes;
	to->field[to->n++] = f;
	return 0;
}

int tsi_rows_schema_read(const char *text, struct tsi_rows_schema *out)
{
	struct reader r = { .text = text, .at = text, .to = out };
	int err;

	memset(out, 0, sizeof(*out));
	for (;;) {
		skip_blanks(&r);
		err = read_field(&r);
		if (err)
			return err;
		skip_blanks(&r);
		if (!*r.at)
			return 0;
		if (*r.at != ',')
			return fail(&r, "a ',' is wanted between fields");
		r.at++;
	}
}
