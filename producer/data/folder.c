/* SPDX-License-Identifier: MIT */
/*
 * folder.c - which entries of a folder are folders.
 */
#include "data/folder.h"

#include <sys/stat.h>

bool tsi_folder_entry(DIR *d, const struct dirent *e)
{
	struct stat st;

	if (e->d_type == DT_DIR)
		return true;
	if (e->d_type != DT_LNK && e->d_type != DT_UNKNOWN)
		return false;
	return !fstatat(dirfd(d), e->d_name, &st, 0) && S_ISDIR(st.st_mode);
}
