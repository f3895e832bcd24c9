/* SPDX-License-Identifier: MIT */
/*
 * audio.c - the format audio: a tree of audio files, with a folder per class or
 * without classes, each of which has samples of one length.
 */
#include "data/format.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "data/folder.h"
#include "data/imagefolder/scan.h"
#include "data/rows/schema.h"

#define EXAMPLE "float32[1,59049], or float32[1,59049]@22050 for its rate"
#define RATE_MAX 1000000

static int open_root(const char *root, struct tsi_root *r)
{
	if (!tsi_root_open(r, root))
		return 0;
	if (errno == ENOENT || errno == ENOTDIR)
		return tsi_err(TSOCK_EARG, "%s is no folder of audio files",
			       root);
	return tsi_err_sys("open the folder of audio files %s", root);
}

/* ---- --schema ---- */

static int read_rate(const char *text, uint32_t *rate)
{
	char *end = NULL;
	unsigned long n =
		isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

	if (!n || n > RATE_MAX || *end)
		return tsi_err(TSOCK_EARG,
			       "--schema: behind '@' a sample rate of 1 to %d "
			       "Hz is wanted, and not \"%.20s\"; an example "
			       "is " EXAMPLE,
			       RATE_MAX, text);
	*rate = (uint32_t)n;
	return 0;
}

static int check_field(const struct tsi_rows_schema *s)
{
	const struct tsock_field *f = &s->field[0];

	if (s->n == 1 && f->dtype == TSOCK_F32 && f->ndim == 2 &&
	    (!f->name[0] || !strcmp(f->name, "audio")))
		return 0;
	return tsi_err(TSOCK_EARG,
		       "--schema: samples of audio are one field of float32, "
		       "[channels, frames], as " EXAMPLE);
}

static int read_schema(const char *text, struct tsi_sound *to)
{
	const char *at = strchr(text, '@');
	char *shape = strndup(text, at ? (size_t)(at - text) : strlen(text));
	struct tsi_rows_schema s;
	int err = 0;

	if (!shape)
		return tsi_err(TSOCK_ENOMEM, "no memory for --schema");
	if (at)
		err = read_rate(at + 1, &to->rate);
	if (!err)
		err = tsi_rows_schema_read(shape, &s);
	if (!err)
		err = check_field(&s);
	free(shape);
	if (err)
		return err;
	to->channels = (uint32_t)s.field[0].shape[0];
	to->frames = (uint32_t)s.field[0].shape[1];
	return 0;
}

static int look(const char *root, const struct tsi_format_opts *o,
		struct tsi_samples *out)
{
	(void)root;
	out->imageless = true;
	if (!o->schema)
		return tsi_err(TSOCK_EARG,
			       "audio files have any length: say how many "
			       "channels and frames a sample has by --schema, "
			       "as " EXAMPLE);
	return read_schema(o->schema, &out->sound);
}

/* ---- files ---- */

/* What lies in the root itself. */
static int look_into(const struct tsi_root *r, bool *files, bool *folders)
{
	int fd = dup(tsi_root_fd(r));
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	*files = *folders = false;
	if (!d) {
		int err = tsi_err_sys("read the folder %s", tsi_root_path(r));

		if (fd >= 0)
			close(fd);
		return err;
	}
	rewinddir(d);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (tsi_folder_entry(d, e))
			*folders = true;
		else if (tsi_folder_is_audio(e->d_name))
			*files = true;
	}
	closedir(d);
	return 0;
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	static const struct tsi_imagefolder_files audio = { tsi_folder_is_audio,
							    "audio files" };
	bool files, folders;
	int err = look_into(r, &files, &folders);

	if (err)
		return err;
	if (files && folders)
		tsi_log(TSOCK_LOG_WARN,
			"%s holds audio files beside folders: samples have no "
			"classes",
			tsi_root_path(r));
	err = tsi_imagefolder_scan_files(&audio, files || !folders, r, o, t);
	if (!err && !tsi_table_count(t))
		err = tsi_err(TSOCK_EDATA,
			      "no audio files in %s, nor in the folders below "
			      "it",
			      tsi_root_path(r));
	return err;
}

static const struct tsock_field fields[] = {
	{ .name = "audio", .dtype = TSOCK_F32, .ndim = 2 },
	{ .name = "label", .dtype = TSOCK_I64 },
};

const struct tsi_format tsi_format_audio = {
	.name = "audio",
	.layout = "audio",
	.has_schema = true,
	.has_file_each = true,
	.open = open_root,
	.look = look,
	.scan = scan,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
