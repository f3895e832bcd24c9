/* SPDX-License-Identifier: MIT */
/*
 * format_list.h - a data set format for tests: ROOT/list.txt names the samples.
 */
#ifndef TEST_FORMAT_LIST_H
#define TEST_FORMAT_LIST_H

#include "data/format.h"

extern const struct tsi_format tsi_format_list;

#endif
