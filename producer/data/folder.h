/* SPDX-License-Identifier: MIT */
/*
 * folder.h - what the entries of a folder are.
 */
#ifndef TSI_DATA_FOLDER_H
#define TSI_DATA_FOLDER_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Entry e of d is a folder, or a symbolic link to one.  Asks the file system
 * only where the entry doesn't say it.
 */
bool tsi_folder_entry(DIR *d, const struct dirent *e);

/* Does torchvision's ImageFolder take a file of that name for an image? */
bool tsi_folder_is_image(const char *name);

/* Is a file of that name one of audio? */
bool tsi_folder_is_audio(const char *name);

enum tsi_folder_kind {
	TSI_FOLDER_FILE, /* a regular file */
	TSI_FOLDER_FOLDER,
	/*
	 * Neither, or a link that leads nowhere or to another file system:
	 * not to be opened without a look at it.
	 */
	TSI_FOLDER_ODD,
};

/* The kind of entry e of the open folder fd, which is on the device dev. */
enum tsi_folder_kind tsi_folder_kind(int fd, const struct dirent *e,
				     uint64_t dev);

#endif
