/* SPDX-License-Identifier: MIT */
/*
 * format_list.c - a data set format for tests: ROOT/list.txt names the samples.
 *
 * Each line is "PATH LABEL" or "PATH LABEL OFFSET LENGTH": a file below ROOT,
 * or a range of one, and the class by its number.  This is all that a new
 * format takes; nothing in producer/ knows of it.
 */
#include "format_list.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

#define NAME "list.txt"

struct line {
	char path[256];
	uint32_t label;
	uint64_t offset;
	uint64_t length;
};

static int open_root(const char *root, struct tsi_root *r)
{
	if (tsi_root_open(r, root) || faccessat(tsi_root_fd(r), NAME, R_OK, 0))
		return tsi_err(TSOCK_EARG, "there is no %s/" NAME ": %s", root,
			       strerror(errno));
	return 0;
}

/* The next line; 1, 0 at the end, or an error. */
static int next_line(FILE *f, const char *root, struct line *l)
{
	char text[400];
	int n;

	if (!fgets(text, sizeof(text), f))
		return 0;
	memset(l, 0, sizeof(*l));
	n = sscanf(text, "%255s %" SCNu32 " %" SCNu64 " %" SCNu64, l->path,
		   &l->label, &l->offset, &l->length);
	if (n != 2 && (n != 4 || l->length == 0))
		return tsi_err(TSOCK_EDATA, "%s/" NAME ": no sample: %.60s",
			       root, text);
	return 1;
}

static int measure(FILE *f, const struct tsi_root *r,
		   struct tsi_table_lengths *n)
{
	struct line l;
	int got;

	while ((got = next_line(f, tsi_root_path(r), &l)) > 0) {
		n->count++;
		n->paths_len += strlen(l.path) + 1;
		if (l.label >= n->classes)
			n->classes = l.label + 1;
	}
	if (got == 0 && n->count == 0)
		return tsi_err(TSOCK_EDATA, "%s/" NAME " is empty",
			       tsi_root_path(r));
	n->ranged = true;
	n->stamps = 1;
	n->names_len = strlen(tsi_root_path(r)) + 1 + sizeof(NAME);
	for (uint32_t i = 0; i < n->classes; i++)
		n->names_len += (uint64_t)snprintf(NULL, 0, "%" PRIu32, i) + 1;
	return got;
}

static int fill(FILE *f, const struct tsi_root *r, struct tsi_table *t)
{
	struct tsi_table_lengths n = { 0 };
	struct tsi_table_writer w;
	struct tsi_stamp stamp;
	struct stat st;
	struct line l;
	int err;

	if (tsi_stamp_take(fileno(f), &st, &stamp))
		return tsi_err_sys("stat " NAME);
	err = measure(f, r, &n);
	if (!err)
		err = tsi_table_begin(&w, t, &n, tsi_root_path(r));
	if (err)
		return err;
	tsi_table_put_stamp(&w, NAME, &stamp);
	for (uint32_t i = 0; i < n.classes; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%" PRIu32, i);
		tsi_table_put_class(&w, name);
	}
	rewind(f);
	while (next_line(f, tsi_root_path(r), &l) > 0)
		tsi_table_put_row(&w, tsi_table_put_path(&w, l.path), l.label,
				  l.offset, l.length);
	return 0;
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	int fd = tsi_root_openat(r, NAME, O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int err;

	(void)o;
	if (!f)
		return tsi_err_sys("open %s/" NAME, tsi_root_path(r));
	err = fill(f, r, t);
	fclose(f);
	return err;
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_list = {
	.name = "list",
	.layout = "-list",
	.open = open_root,
	.scan = scan,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
