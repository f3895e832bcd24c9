/* SPDX-License-Identifier: MIT */
/*
 * warnings.h - what a producer in another process warns of, by a pipe.
 */
#ifndef TEST_LIB_WARNINGS_H
#define TEST_LIB_WARNINGS_H

#include <stdio.h>

#include "test/lib/stream.h"

/* Before the producer is started, whose source has served = warnings_pass. */
void warnings_begin(void);
void warnings_pass(tsock_server *s, const struct source *src);

/* When it was started: its warnings, each as soon as it is logged. */
FILE *warnings_file(void);

#endif
