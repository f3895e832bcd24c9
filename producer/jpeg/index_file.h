/* SPDX-License-Identifier: MIT */
/*
 * index_file.h - an index of JPEG rows in a file, so that the next
 * producer of the data set enters its files in the middle from the first epoch
 * on.
 *
 * A file whose bytes have changed since is recorded anew: each entry has the
 * check value of the bytes that it was recorded of.
 *
 * The checksums find damage, not malice: a user that may write into the folder
 * could give samples other pixels by entries that were made up, as by changing
 * the data set, but nothing worse.  Every length and number is checked.
 */
#ifndef TSI_JPEG_INDEX_FILE_H
#define TSI_JPEG_INDEX_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "jpeg/index.h"

/*
 * Write the index to fd, from its position on.  key names the data set and the
 * order of its files.  Other threads may use the index meanwhile.  False: it
 * can't be written, errno says why.
 */
bool tsi_jpeg_index_write(const struct tsi_jpeg_index *x, uint64_t key, int fd);

/*
 * Take in what fd has, from its position on, as far as there is memory and up
 * to the first damage.  Returns how many rows, as tsi_jpeg_index_rows() counts:
 * none from another version's file, or another key's.  Other threads may use
 * the index meanwhile.
 */
uint64_t tsi_jpeg_index_read(struct tsi_jpeg_index *x, uint64_t key, int fd);

#endif
