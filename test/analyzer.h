/* SPDX-License-Identifier: MIT */
/*
 * analyzer.h - what clang's static analyser can't see from a caller: an error's
 * code comes back from the function that sets the message, and is not 0.
 */
#ifndef TEST_ANALYZER_H
#define TEST_ANALYZER_H

#include "base/err.h"

#define tsi_err(code, ...) (tsi_err(code, __VA_ARGS__), (code))
#define tsi_err_sys(...) (tsi_err_sys(__VA_ARGS__), TSOCK_ESYS)

#endif
