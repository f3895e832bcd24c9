/* SPDX-License-Identifier: MIT */
/*
 * list_read.c - reads a file of labels, as CSV or as lines of JSON.
 */
#include <string.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/labels/list.h"

/* It is text: UTF-8, without control characters. */
static int check_text(const struct tsi_labels_list *l)
{
	const unsigned char *p = (const unsigned char *)l->file.text;
	const unsigned char *end = p + l->file.len;
	uint64_t line = 1;

	while (p < end) {
		uint32_t c;
		unsigned n = tsi_text_utf8(p, &c);

		if (!n || n > (size_t)(end - p))
			return tsi_labels_list_wrong(
				l, line, "it isn't UTF-8: convert the file");
		if (c < 0x20 && c != '\t' && c != '\n' && c != '\r')
			return tsi_labels_list_wrong(
				l, line,
				"it has the byte %u; a text file of labels is "
				"wanted",
				c);
		line += c == '\n';
		p += n;
	}
	return 0;
}

static int read_rows(const struct tsi_labels_spec *spec,
		     struct tsi_labels_list *l)
{
	char *text = tsi_textfile_begin(&l->file);
	char *first = text + strspn(text, " \t\r\n");
	int err;

	if (*first == '[')
		return tsi_err(TSOCK_EDATA,
			       "%s is one JSON list: JSON objects, one a line, "
			       "are wanted; tsock.index() reads COCO's files",
			       l->file.path);
	err = *first == '{' ? tsi_labels_jsonl_read(spec, text, l)
			    : tsi_labels_csv_read(spec, text, l);
	if (!err && !l->rows)
		err = tsi_err(TSOCK_EDATA, "--labels %s has no rows",
			      l->file.path);
	return err;
}

int tsi_labels_list_read(const struct tsi_labels_spec *spec,
			 struct tsi_stamp *stamp, struct tsi_labels_list *out)
{
	int err;

	*out = (struct tsi_labels_list){ .rows = 0 };
	err = tsi_textfile_read("--labels", spec->file, stamp, &out->file);
	if (!err)
		out->hash = tsi_hash(out->file.text, out->file.len, 0);
	if (!err)
		err = check_text(out);
	if (!err)
		err = read_rows(spec, out);
	if (err)
		tsi_labels_list_free(out);
	return err;
}
