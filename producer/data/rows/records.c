/* SPDX-License-Identifier: MIT */
/*
 * records.c - the format records: files of binary records of one size, as
 * Criteo's, whose fields --schema says.
 */
#include "data/format.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "data/rows/files.h"
#include "data/rows/rows.h"
#include "data/rows/schema.h"

static int open_root(const char *root, struct tsi_root *r)
{
	return tsi_rows_open_root(root, "a file of records, or their folder",
				  r);
}

static int read_schema(const struct tsi_format_opts *o,
		       struct tsi_rows_schema *s)
{
	if (!o->schema)
		return tsi_err(TSOCK_EARG,
			       "records don't say what they hold: say it by "
			       "--schema, as label:int32,dense:int32[13],"
			       "category:int32[26]");
	return tsi_rows_schema_read(o->schema, s);
}

static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	struct tsi_rows_schema s;

	(void)root;
	out->imageless = true;
	return read_schema(o, &s);
}

static int add_fields(struct tsi_rows *rows, const struct tsi_rows_schema *s,
		      unsigned column[TSI_ROWS_FIELDS])
{
	int err = 0;

	for (unsigned k = 0; k < s->n && !err; k++) {
		struct tsock_field f = s->field[k];

		if (!strcmp(f.name, "_"))
			continue;
		if (!f.name[0])
			memcpy(f.name, "record", sizeof("record"));
		err = tsi_rows_field(rows, &f, s->bytes, &column[k]);
	}
	return err;
}

static int add_file(struct tsi_rows *rows, const char *name,
		    const struct tsi_rows_schema *s,
		    const unsigned column[TSI_ROWS_FIELDS])
{
	unsigned file;
	uint64_t len;
	int err = tsi_rows_map(rows, name, &file);

	if (err)
		return err;
	len = tsi_rows_len(rows, file);
	if (len % s->bytes)
		return tsi_err(TSOCK_EDATA,
			       "%s has %" PRIu64 " bytes, which are no whole "
			       "records of %zu: it is truncated, or --schema "
			       "is another's",
			       name, len, s->bytes);
	for (unsigned k = 0; k < s->n && !err; k++)
		if (strcmp(s->field[k].name, "_") != 0)
			err = tsi_rows_part(rows, column[k], file, s->at[k],
					    len / s->bytes);
	return err;
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	unsigned column[TSI_ROWS_FIELDS] = { 0 };
	struct tsi_rows *rows = NULL;
	struct tsi_rows_schema s;
	struct tsi_rows_files l = { .name = NULL };
	int err = read_schema(o, &s);

	if (!err)
		err = tsi_rows_create(r, &rows);
	if (!err)
		err = tsi_rows_list(r, "", o->held_out, &l);
	if (!err)
		err = add_fields(rows, &s, column);
	for (unsigned i = 0; i < l.n && !err; i++)
		err = add_file(rows, l.name[i], &s, column);
	if (!err)
		err = tsi_rows_finish(rows, t);
	tsi_rows_destroy(rows);
	tsi_rows_files_free(&l);
	return err;
}

const struct tsi_format tsi_format_records = {
	.name = "records",
	.layout = "-records",
	.splits_inside = true,
	.has_schema = true,
	.nameless = true,
	.of_arrays = true,
	.keeps_index = true,
	.open = open_root,
	.look = look,
	.scan = scan,
	.locate = tsi_rows_locate,
	.label = tsi_rows_label,
};
