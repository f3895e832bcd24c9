/* SPDX-License-Identifier: MIT */
/*
 * folder.h - which entries of a folder are folders.
 */
#ifndef TSI_DATA_FOLDER_H
#define TSI_DATA_FOLDER_H

#include <dirent.h>
#include <stdbool.h>

/*
 * Entry e of d is a folder, or a symbolic link to one.  Asks the file system
 * only where the entry doesn't say it.
 */
bool tsi_folder_entry(DIR *d, const struct dirent *e);

#endif
