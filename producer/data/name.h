/* SPDX-License-Identifier: MIT */
/*
 * name.h - the order in which Python sorts file names.
 */
#ifndef TSI_DATA_NAME_H
#define TSI_DATA_NAME_H

/*
 * Like strcmp(), but in the order in which Python sorts file names: by code
 * point, where a byte that isn't UTF-8 counts as U+DC00 plus the byte.
 */
int tsi_name_cmp(const char *a, const char *b);

#endif
