/* SPDX-License-Identifier: MIT */
/*
 * public_functions.h - the functions that the public headers declare.
 */
#ifndef TEST_LIB_PUBLIC_FUNCTIONS_H
#define TEST_LIB_PUBLIC_FUNCTIONS_H

#include <stddef.h>

/*
 * Calls visit with the name (of len bytes, not terminated) of each function
 * that include/tsock declares, and returns how many there are.  The headers are
 * looked for from the working directory; that they can't be read is a failed
 * assertion.
 */
size_t public_functions(void (*visit)(const char *name, size_t len));

#endif
