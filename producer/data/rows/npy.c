/* SPDX-License-Identifier: MIT */
/*
 * npy.c - reading the head of a .npy.
 */
#include "data/rows/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_LEN 6
#define TEXT_MAX 65536
#define HEAD_MAX (12 + TEXT_MAX)

uint32_t tsi_npy_dtype(const char *descr, size_t len)
{
	static const struct {
		char code[3];
		uint32_t dtype;
	} all[] = {
		{ "u1", TSOCK_U8 },  { "i1", TSOCK_I8 },  { "b1", TSOCK_BOOL },
		{ "i2", TSOCK_I16 }, { "u2", TSOCK_U16 }, { "i4", TSOCK_I32 },
		{ "u4", TSOCK_U32 }, { "i8", TSOCK_I64 }, { "u8", TSOCK_U64 },
		{ "f2", TSOCK_F16 }, { "f4", TSOCK_F32 }, { "f8", TSOCK_F64 },
	};
	bool order = len == 3 && strchr("<|=", descr[0]);

	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
		if ((order && !strncmp(descr + 1, all[k].code, 2)) ||
		    (len == 2 && !strncmp(descr, all[k].code, 2)))
			return all[k].dtype;
	return 0;
}

static int fail(const char *name, const char *what)
{
	return tsi_err(TSOCK_EDATA, "%s: %s", name, what);
}

static int fail_as(const char *name, const char *is)
{
	return tsi_err(TSOCK_EDATA, "%s %s", name, is);
}

/* What stands behind 'key': in the dictionary; NULL: it isn't there. */
static const char *value_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at)
		return NULL;
	at += strlen(key);
	at += strspn(at, "'\" ");
	return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static int read_descr(const char *text, const char *name, struct tsi_npy *out)
{
	const char *at = value_of(text, "descr");
	size_t n;

	if (!at || (*at != '\'' && *at != '"'))
		return fail(name, "arrays of records (a descr that is a list) "
				  "are not read: save each field as an array");
	at++;
	n = strcspn(at, "'\"");
	out->dtype = tsi_npy_dtype(at, n);
	if (out->dtype)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s: values of dtype %.*s are not served: convert them "
		       "by astype() to a number of 1 to 8 bytes in this "
		       "machine's byte order",
		       name, (int)n, at);
}

static int read_shape(const char *text, const char *name, struct tsi_npy *out)
{
	const char *at = value_of(text, "shape");
	uint64_t most = (uint64_t)1 << 59; /* of 8 bytes each */

	if (!at || *at++ != '(')
		return fail(name, "its head has no shape");
	while (*(at += strspn(at, " ,")) != ')') {
		char *end = NULL;
		uint64_t n = isdigit((unsigned char)*at)
				     ? strtoull(at, &end, 10)
				     : UINT64_MAX;

		if (!end || n > most || out->ndim == TSI_NPY_DIMS)
			return fail(name, "its shape isn't one of an array");
		out->shape[out->ndim++] = n;
		most /= n ? n : 1;
		at = end + (*end == 'L');
	}
	return 0;
}

static int read_text(const char *text, const char *name, struct tsi_npy *out)
{
	const char *fortran = value_of(text, "fortran_order");
	int err = read_descr(text, name, out);

	if (!err)
		err = read_shape(text, name, out);
	if (err)
		return err;
	if (!fortran || (strncmp(fortran, "False", 5) != 0 && out->ndim > 1))
		return fail(name, "its values lie in Fortran's order: save "
				  "np.ascontiguousarray() of it");
	return 0;
}

/* The values lie within the array's bytes, too. */
static int check_len(uint64_t len, const char *name, const struct tsi_npy *a)
{
	uint64_t bytes = tsi_npy_bytes(a);

	if (a->at <= len && bytes <= len - a->at)
		return 0;
	return tsi_err(TSOCK_EDATA,
		       "%s is truncated: its values are %" PRIu64
		       " bytes, and it ends before",
		       name, bytes);
}

uint64_t tsi_npy_bytes(const struct tsi_npy *a)
{
	uint64_t bytes = tsock_dtype_size(a->dtype);

	for (uint32_t d = 0; d < a->ndim; d++)
		bytes *= a->shape[d];
	return bytes;
}

/* Where the dictionary begins in a head, and its length. */
static int find_text(const uint8_t *head, size_t have, const char *name,
		     uint32_t *first, uint32_t *len)
{
	if (have >= MAGIC_LEN && memcmp(head, MAGIC, MAGIC_LEN) != 0)
		return fail_as(name,
			       "is not an array that NumPy's save() wrote");
	*first = have > MAGIC_LEN && head[MAGIC_LEN] == 1 ? 10 : 12;
	if (have < *first)
		return fail_as(name, "is truncated: it ends within its head");
	*len = (uint32_t)head[8] | (uint32_t)head[9] << 8;
	if (*first == 12)
		*len |= (uint32_t)head[10] << 16 | (uint32_t)head[11] << 24;
	if (head[MAGIC_LEN] < 1 || head[MAGIC_LEN] > 3 || *len > TEXT_MAX)
		return fail_as(name,
			       "is of a version of .npy that isn't known");
	if (*len > have - *first)
		return fail_as(name, "is truncated: it ends within its head");
	return 0;
}

int tsi_npy_parse(const uint8_t *head, size_t have, uint64_t len,
		  const char *name, struct tsi_npy *out)
{
	uint32_t first = 0, text_len = 0;
	char *text;
	int err = find_text(head, have, name, &first, &text_len);

	memset(out, 0, sizeof(*out));
	if (err)
		return err;
	text = calloc(1, (size_t)text_len + 1);
	if (!text)
		return tsi_err(TSOCK_ENOMEM, "no memory for the head of %s",
			       name);
	memcpy(text, head + first, text_len);
	err = read_text(text, name, out);
	free(text);
	out->at = first + text_len;
	return err ? err : check_len(len, name, out);
}

int tsi_npy_read(const struct tsi_rows *rows, const struct tsi_npy_place *p,
		 struct tsi_npy *out)
{
	size_t have = p->len < HEAD_MAX ? (size_t)p->len : HEAD_MAX;
	uint8_t *head = malloc(have + 1);
	int err;

	if (!head)
		return tsi_err(TSOCK_ENOMEM, "no memory for the head of %s",
			       p->name);
	err = tsi_rows_read(rows, p->file, p->at, head, have, "head");
	if (!err)
		err = tsi_npy_parse(head, have, p->len, p->name, out);
	free(head);
	if (!err)
		out->at += p->at;
	return err;
}
