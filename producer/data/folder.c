/* SPDX-License-Identifier: MIT */
/*
 * folder.c - what the entries of a folder are.
 */
#include "data/folder.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

bool tsi_folder_is_image(const char *name)
{
	static const char *const ext[] = { ".jpg", ".jpeg", ".png",
					   ".ppm", ".bmp",  ".pgm",
					   ".tif", ".tiff", ".webp" };
	size_t len = strlen(name);

	for (unsigned i = 0; i < sizeof(ext) / sizeof(ext[0]); i++) {
		size_t n = strlen(ext[i]);

		if (len >= n && !strcasecmp(name + len - n, ext[i]))
			return true;
	}
	return false;
}

bool tsi_folder_entry(DIR *d, const struct dirent *e)
{
	return tsi_folder_kind(d, e, 0) == TSI_FOLDER_FOLDER;
}

enum tsi_folder_kind tsi_folder_kind(DIR *d, const struct dirent *e,
				     uint64_t dev)
{
	struct stat st;

	if (e->d_type == DT_DIR)
		return TSI_FOLDER_FOLDER;
	if (e->d_type == DT_REG)
		return TSI_FOLDER_FILE;
	if ((e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) ||
	    fstatat(dirfd(d), e->d_name, &st, 0))
		return TSI_FOLDER_ODD;
	if (S_ISDIR(st.st_mode))
		return TSI_FOLDER_FOLDER;
	return S_ISREG(st.st_mode) && st.st_dev == dev ? TSI_FOLDER_FILE
						       : TSI_FOLDER_ODD;
}
