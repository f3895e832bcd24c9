/* SPDX-License-Identifier: MIT */
/*
 * packed.c - the format packed: what tsock-pack wrote.
 *
 * A pack's index says what a scan would find, so no sample is looked at, but
 * for those that were bad when they were packed: they tell why.
 */
#include "data/packed/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file.h"
#include "data/format.h"
#include "data/packed/columns.h"

#define AUDIO "tsckpaud"

const struct tsi_table_kind tsi_pack_kind[2] = {
	{ .magic = "tsckpack", .version = 1, .probe = 1 },
	{ .magic = "tsckpack", .version = 2, .probe = 1 },
};

const struct tsi_table_kind tsi_pack_kind_audio[2] = {
	{ .magic = AUDIO, .version = 1, .probe = 1 },
	{ .magic = AUDIO, .version = 2, .probe = 1 },
};

/* NULL: there is no memory. */
static char *path_of(const char *folder, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static bool has(const char *folder, const char *name)
{
	char *path = path_of(folder, name);
	bool yes = path && access(path, F_OK) == 0;

	free(path);
	return yes;
}

bool tsi_pack_is_at(const char *folder)
{
	return has(folder, TSI_PACK_INDEX) || has(folder, TSI_PACK_TABLE);
}

/* A pack that can't be looked at is opened as one, which says why. */
static const struct tsi_format *format_of(int dirfd, const char *index)
{
	int fd = openat(dirfd, index,
			O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char magic[sizeof(AUDIO) - 1];
	bool audio;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? NULL
							   : &tsi_format_packed;
	audio = tsi_file_pread(fd, magic, sizeof(magic), 0) ==
			(ssize_t)sizeof(magic) &&
		!memcmp(magic, AUDIO, sizeof(magic));
	close(fd);
	return audio ? &tsi_format_packed_audio : &tsi_format_packed;
}

const struct tsi_format *tsi_pack_format_in(const struct tsi_root *r)
{
	return tsi_root_pattern(r) ? NULL
				   : format_of(tsi_root_fd(r), TSI_PACK_INDEX);
}

/* A pack is given where a split of it is asked for: there is one part. */
static int use_root(const char *root, char **folder)
{
	char *is;

	if (!access(*folder, F_OK) || !tsi_pack_is_at(root))
		return 0;
	is = strdup(root);
	if (!is)
		return tsi_err(TSOCK_ENOMEM, "no memory for the options");
	free(*folder);
	*folder = is;
	return 0;
}

int tsi_pack_resolve(const char *root, char **folder,
		     const struct tsi_format **format)
{
	const struct tsi_format *found;
	int err = use_root(root, folder);
	char *path;

	if (err)
		return err;
	path = path_of(*folder, TSI_PACK_INDEX);
	if (!path)
		return tsi_err(TSOCK_ENOMEM, "no memory for the options");
	found = format_of(AT_FDCWD, path);
	free(path);
	if (found) {
		*format = found;
		return 0;
	}
	if (!has(*folder, TSI_PACK_TABLE))
		return 0;
	path = path_of(*folder, TSI_PACK_TABLE);
	if (!path)
		return tsi_err(TSOCK_ENOMEM, "no memory for the options");
	free(*folder);
	*folder = path;
	*format = &tsi_format_table;
	return 0;
}

static int open_root(const char *root, struct tsi_root *r)
{
	if (tsi_root_open(r, root))
		return tsi_err(errno == ENOENT || errno == ENOTDIR ? TSOCK_EARG
								   : TSOCK_ESYS,
			       "can't open the folder %s, which should be a "
			       "pack that tsock-pack wrote",
			       root);
	if (!tsi_pack_format_in(r))
		return tsi_err(TSOCK_EARG,
			       "%s is no pack: it has no file " TSI_PACK_INDEX
			       ", which tsock-pack writes last",
			       root);
	return 0;
}

/* The rows that were bad; why is found out by a look at them. */
static int mark_bad(struct tsi_table *t, const uint64_t *bad, uint64_t nbad)
{
	int err = 0;

	for (uint64_t k = 0; k < nbad && !err; k++)
		err = tsi_table_add_bad(t, bad[k],
					"was bad when it was packed");
	return err;
}

static int scan_kind(const struct tsi_root *r,
		     const struct tsi_table_kind kind[2], struct tsi_table *t)
{
	int fd = tsi_root_openat(r, TSI_PACK_INDEX,
				 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint64_t *bad = NULL, nbad = 0;
	bool good, more = false;
	int err;

	if (fd < 0)
		return tsi_err_sys("open %.300s/" TSI_PACK_INDEX,
				   tsi_root_path(r));
	good = tsi_table_file_read(fd, &kind[0], NULL, t, &bad, &nbad);
	if (!good && !lseek(fd, 0, SEEK_SET))
		good = more =
			tsi_table_file_read(fd, &kind[1], NULL, t, &bad, &nbad);
	close(fd);
	if (!good)
		return tsi_err(TSOCK_EDATA,
			       "%s/" TSI_PACK_INDEX " is damaged or of another "
			       "version: copy the pack again, or make it again "
			       "with tsock-pack",
			       tsi_root_path(r));
	err = mark_bad(t, bad, nbad);
	if (!err && more)
		err = tsi_pack_columns_read(r, t);
	free(bad);
	return err;
}

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	(void)o;
	return scan_kind(r, tsi_pack_kind, t);
}

static int scan_audio(const struct tsi_root *r, const struct tsi_format_opts *o,
		      struct tsi_table *t)
{
	(void)o;
	return scan_kind(r, tsi_pack_kind_audio, t);
}

/* Names of shards: each has so many bytes. */
static void locate_other(const struct tsi_table *t, unsigned k, uint64_t i,
			 struct tsi_location *out)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	struct tsi_columns_mask at = { .length = 0 };

	tsi_columns_other_at(c, k, i, &at);
	*out = (struct tsi_location){
		.file = (const char *)c->texts[0] + at.shard * TSI_PACK_NAME,
		.offset = at.offset,
		.length = at.length,
		.size = at.length,
	};
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_packed = {
	.name = "packed",
	.layout = "-packed",
	.keeps_index = true,
	.open = open_root,
	.scan = scan,
	.locate = tsi_table_locate,
	.locate_other = locate_other,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};

static int look_at_audio(const char *root, const struct tsi_format_opts *o,
			 struct tsi_samples *out)
{
	return tsi_format_look(&tsi_format_audio, root, o, out);
}

static const struct tsock_field audio_fields[] = {
	{ .name = "audio", .dtype = TSOCK_F32, .ndim = 2 },
	{ .name = "label", .dtype = TSOCK_I64 },
};

const struct tsi_format tsi_format_packed_audio = {
	.name = "packed",
	.layout = "-packed",
	.has_schema = true,
	.keeps_index = true,
	.open = open_root,
	.look = look_at_audio,
	.scan = scan_audio,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = audio_fields,
	.nfields = sizeof(audio_fields) / sizeof(audio_fields[0]),
};
