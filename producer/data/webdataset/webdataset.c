/* SPDX-License-Identifier: MIT */
/*
 * webdataset.c - the format webdataset: tar files as the webdataset package
 * reads them.
 */
#include "data/format.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "data/webdataset/scan.h"

/* A folder of shards, or names of shards in a folder. */
static int open_root(const char *root, struct tsi_root *r)
{
	const char *slash = strrchr(root, '/');
	struct stat st;
	bool there = !stat(root, &st);

	if (there && S_ISDIR(st.st_mode)) {
		if (!tsi_root_open(r, root))
			return 0;
		return tsi_err_sys("open the data set's root %s", root);
	}
	if (slash && strpbrk(root, "{}") && strpbrk(root, "{}") < slash)
		return tsi_err(TSOCK_EARG,
			       "%s: braces may stand in the shards' names, not "
			       "in their folder's",
			       root);
	if (!there && !strpbrk(root, "{}"))
		return tsi_err(TSOCK_EARG,
			       "there is no %s: the root of a WebDataset is a "
			       "folder of shards (*.tar), or a pattern such as "
			       "DIR/shard-{0000..0146}.tar",
			       root);
	if (!tsi_root_open_pattern(r, root))
		return 0;
	return tsi_err_sys("open the folder of %s", root);
}

static const struct tsock_field fields[] = { TSI_FORMAT_IMAGE_FIELDS };

const struct tsi_format tsi_format_webdataset = {
	.name = "webdataset",
	.layout = "-webdataset-2",
	.open = open_root,
	.scan = tsi_webdataset_scan,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};

const struct tsi_format tsi_format_webdataset_bare = {
	.name = "webdataset",
	.layout = "-shards-2",
	.unlabelled = true,
	.open = open_root,
	.scan = tsi_webdataset_scan_bare,
	.locate = tsi_table_locate,
	.label = tsi_table_label,
	.fields = fields,
	.nfields = sizeof(fields) / sizeof(fields[0]),
};
