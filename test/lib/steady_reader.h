/* SPDX-License-Identifier: MIT */
/*
 * steady_reader.h - a consumer that reads one epoch after the other, whoever
 * serves them: none is left out, none comes twice.
 */
#ifndef TEST_LIB_STEADY_READER_H
#define TEST_LIB_STEADY_READER_H

#include "test/lib/reader.h"

/* Die unless field 3 has the images of these samples, as floats. */
void steady_reader_check_floats(const struct reader *r, const tsock_batch *b);

/*
 * A process that reads r->epochs epochs, each whole, by parts or by all
 * samples, or fewer if it is enough (r->enough), and ends with exit status 0.
 */
pid_t steady_reader_start(const struct reader *r);

#endif
