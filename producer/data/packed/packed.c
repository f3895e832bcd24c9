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
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "data/format.h"
#include "data/packed/columns.h"

const struct tsi_table_kind tsi_pack_kind = {
	.magic = "tsckpack",
	.version = 1,
	.probe = 1,
};

const struct tsi_table_kind tsi_pack_kind_columns = {
	.magic = "tsckpack",
	.version = 2,
	.probe = 1,
};

bool tsi_pack_is_at(const char *folder)
{
	char *path;
	bool yes;

	if (asprintf(&path, "%s/" TSI_PACK_INDEX, folder) < 0)
		return false;
	yes = access(path, F_OK) == 0;
	free(path);
	return yes;
}

bool tsi_pack_is_in(const struct tsi_root *r)
{
	return !tsi_root_pattern(r) &&
	       faccessat(tsi_root_fd(r), TSI_PACK_INDEX, F_OK, 0) == 0;
}

static int open_root(const char *root, struct tsi_root *r)
{
	if (tsi_root_open(r, root))
		return tsi_err(errno == ENOENT || errno == ENOTDIR ? TSOCK_EARG
								   : TSOCK_ESYS,
			       "can't open the folder %s, which should be a "
			       "pack that tsock-pack wrote",
			       root);
	if (!tsi_pack_is_in(r))
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

static int scan(const struct tsi_root *r, const struct tsi_format_opts *o,
		struct tsi_table *t)
{
	int fd = tsi_root_openat(r, TSI_PACK_INDEX,
				 O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	uint64_t *bad = NULL, nbad = 0;
	bool good, more = false;
	int err;

	(void)o;
	if (fd < 0)
		return tsi_err_sys("open %.300s/" TSI_PACK_INDEX,
				   tsi_root_path(r));
	good = tsi_table_file_read(fd, &tsi_pack_kind, NULL, t, &bad, &nbad);
	if (!good && !lseek(fd, 0, SEEK_SET))
		good = more = tsi_table_file_read(fd, &tsi_pack_kind_columns,
						  NULL, t, &bad, &nbad);
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

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_packed = {
	.name = "packed",
	.layout = "-packed",
	.keeps_index = true,
	.open = open_root,
	.scan = scan,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
