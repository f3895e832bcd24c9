/* SPDX-License-Identifier: MIT */
/*
 * guess.c - the format of a folder, by what is in it.
 */
#include "cli/guess.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "cli/split.h"
#include "data/columnar/file.h"
#include "data/folder.h"
#include "data/packed/pack.h"

static bool has_split(const char *root, enum tsi_split split)
{
	char *folder = tsi_split_folder(root, split);
	struct stat st;
	bool there = folder && !stat(folder, &st) && S_ISDIR(st.st_mode);

	free(folder);
	return there;
}

static bool is_tar(const char *name)
{
	size_t len = strlen(name);

	return len >= 4 && !strcasecmp(name + len - 4, ".tar");
}

/* Tar files in a folder, and neither folders of classes nor images. */
static bool has_shards(const char *root)
{
	DIR *d = opendir(root);
	bool shards = false;
	struct dirent *e;

	if (!d)
		return false;
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (tsi_folder_is_image(e->d_name) || tsi_folder_entry(d, e)) {
			shards = false;
			break;
		}
		shards = shards || is_tar(e->d_name);
	}
	closedir(d);
	return shards;
}

const struct tsi_format *tsi_guess_format(const char *root)
{
	if (has_split(root, TSI_SPLIT_TRAIN) && has_split(root, TSI_SPLIT_VAL))
		return &tsi_format_imagenet;
	if (tsi_pack_is_at(root))
		return &tsi_format_packed;
	if (tsi_columnar_is_at(root))
		return &tsi_format_table;
	if (is_tar(root) || has_shards(root))
		return &tsi_format_webdataset;
	return &tsi_format_imagefolder;
}
