/* SPDX-License-Identifier: MIT */
/*
 * guess.h - the format of a folder, by what is in it.
 */
#ifndef TSI_CLI_GUESS_H
#define TSI_CLI_GUESS_H

#include "data/format.h"

/*
 * imagenet where both splits have a folder below root; packed where tsock-pack
 * has written; webdataset where root names tar files, or is a folder with tar
 * files and with neither folders nor images; arrow and parquet where such files
 * lie alone; else imagefolder, whether root is there or not.
 */
const struct tsi_format *tsi_guess_format(const char *root);

#endif
