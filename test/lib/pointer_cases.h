/* SPDX-License-Identifier: MIT */
/*
 * pointer_cases.h - one case per public function, for test_pointers.c: what it
 * makes of pointers that are NULL.
 */
#ifndef TEST_LIB_POINTER_CASES_H
#define TEST_LIB_POINTER_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/err.h"
#include "tsock/tsock.h"

struct pointer_case {
	const char *name;
	void (*run)(void);
};

/* Cases of functions that need no stream; ended by a name that is NULL. */
extern const struct pointer_case pointer_cases_alone[];

#define CASE(name) \
	{ \
#name, name##_case \
	}

/* The call failed so, and says why. */
#define wrong(call) \
	do { \
		tsi_err(0, "nothing"); \
		assert_int_equal(call, TSOCK_EARG); \
		assert_string_not_equal(tsock_errmsg(), "nothing"); \
	} while (0)
#define wrong_is(call, value) \
	do { \
		tsi_err(0, "nothing"); \
		assert_true((call) == (value)); \
		assert_string_not_equal(tsock_errmsg(), "nothing"); \
	} while (0)

/* Where one call is the case. */
#define ONLY(name, call) \
	static void name##_case(void) \
	{ \
		call; \
	}

#endif
