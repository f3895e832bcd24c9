/* SPDX-License-Identifier: MIT */
/*
 * root.h - the folder that a data set lies in.
 */
#ifndef TSI_DATA_ROOT_H
#define TSI_DATA_ROOT_H

struct tsi_root {
	char *path; /* absolute */
	int fd;     /* what all other paths are relative to */
};

#endif
