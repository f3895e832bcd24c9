/* SPDX-License-Identifier: MIT */
/*
 * folder.c - what the entries of a folder are.
 */
#include "data/folder.h"

#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The name ends in one of these, each with a '|' behind it, in any case. */
static bool has_ending(const char *name, const char *endings)
{
	size_t len = strlen(name);

	while (*endings) {
		size_t n = strcspn(endings, "|");

		if (len >= n && !strncasecmp(name + len - n, endings, n))
			return true;
		endings += n + 1;
	}
	return false;
}

bool tsi_folder_is_image(const char *name)
{
	return has_ending(name, ".jpg|.jpeg|.png|.ppm|.bmp|.pgm|.tif|.tiff|"
				".webp|");
}

bool tsi_folder_is_audio(const char *name)
{
	return has_ending(name, ".wav|.flac|.mp3|.ogg|.oga|.opus|.aif|.aiff|");
}

bool tsi_folder_entry(DIR *d, const struct dirent *e)
{
	return tsi_folder_kind(dirfd(d), e, 0) == TSI_FOLDER_FOLDER;
}

enum tsi_folder_kind tsi_folder_kind(int fd, const struct dirent *e,
				     uint64_t dev)
{
	struct stat st;

	if (e->d_type == DT_DIR)
		return TSI_FOLDER_FOLDER;
	if (e->d_type == DT_REG)
		return TSI_FOLDER_FILE;
	if ((e->d_type != DT_LNK && e->d_type != DT_UNKNOWN) ||
	    fstatat(fd, e->d_name, &st, 0))
		return TSI_FOLDER_ODD;
	if (S_ISDIR(st.st_mode))
		return TSI_FOLDER_FOLDER;
	return S_ISREG(st.st_mode) && st.st_dev == dev ? TSI_FOLDER_FILE
						       : TSI_FOLDER_ODD;
}
