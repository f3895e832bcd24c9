/* SPDX-License-Identifier: MIT */
/*
 * test_sized.c - callers of an older and of a newer header than the library's.
 */
#include "base/sized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

/* The struct in three versions; the library's is the second. */
struct v1 {
	uint32_t size;
	uint32_t a;
};
struct v2 {
	uint32_t size;
	uint32_t a;
	uint64_t b;
};
struct v3 {
	uint32_t size;
	uint32_t a;
	uint64_t b;
	uint64_t c;
};

static const struct tsi_sized type = { .name = "opts",
				       .hint = "start from INIT",
				       .least = TSI_SIZED_TO(struct v2, a),
				       .size = sizeof(struct v2) };

static const struct v2 init = { .size = sizeof(init), .a = 1, .b = 2 };

static void an_older_callers_options_leave_the_defaults(void **state)
{
	struct v1 from = { .size = sizeof(from), .a = 7 };
	struct v2 to = init;

	(void)state;
	assert_int_equal(tsi_sized_read("f", &type, &from, &to), 0);
	assert_int_equal(to.size, sizeof(to));
	assert_int_equal(to.a, 7);
	assert_int_equal(to.b, 2);
}

static void the_same_versions_options_are_read_whole(void **state)
{
	struct v2 from = { .size = sizeof(from), .a = 7, .b = 8 }, to = init;

	(void)state;
	assert_int_equal(tsi_sized_read("f", &type, &from, &to), 0);
	assert_memory_equal(&to, &from, sizeof(to));
}

static void a_newer_callers_options_are_read_if_none_is_new(void **state)
{
	struct v3 from = { .size = sizeof(from), .a = 7, .b = 8 };
	struct v2 to = init;

	(void)state;
	assert_int_equal(tsi_sized_read("f", &type, &from, &to), 0);
	assert_int_equal(to.size, sizeof(to));
	assert_int_equal(to.a, 7);
	assert_int_equal(to.b, 8);
	for (unsigned i = 0; i < 64; i += 7) {
		from.c = UINT64_C(1) << i;
		to = init;
		assert_int_equal(tsi_sized_read("f", &type, &from, &to),
				 TSOCK_EARG);
		assert_non_null(strstr(tsock_errmsg(), "f: an option of opts"));
		assert_non_null(strstr(tsock_errmsg(), tsock_version_string()));
		assert_memory_equal(&to, &init, sizeof(to));
	}
}

static void a_wrong_size_is_named(void **state)
{
	static const uint32_t size[] = { 0, 4, 7, 65537, UINT32_MAX };
	struct v2 from = init, to = init;

	(void)state;
	for (unsigned i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
		char want[64];

		from.size = size[i];
		snprintf(want, sizeof(want), "f: opts.size is %u: start",
			 size[i]);
		assert_int_equal(tsi_sized_read("f", &type, &from, &to),
				 TSOCK_EARG);
		assert_non_null(strstr(tsock_errmsg(), want));
		assert_int_equal(tsi_sized_check("f", &type, &from),
				 TSOCK_EARG);
		assert_non_null(strstr(tsock_errmsg(), want));
	}
	assert_memory_equal(&to, &init, sizeof(to));
	assert_int_equal(tsi_sized_read("f", &type, NULL, &to), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(), "f: opts is NULL: start from INIT");
	assert_int_equal(tsi_sized_check("f", &type, NULL), TSOCK_EARG);
}

/* Behind each result stands what must stay as it is. */
static void a_result_fits_the_callers_struct(void **state)
{
	const struct v2 from = { .size = sizeof(from), .a = 7, .b = 8 };
	struct {
		struct v1 out;
		uint64_t behind;
	} one = { .out = { .size = sizeof(one.out) }, .behind = 99 };
	struct v2 two = { .size = sizeof(two) };
	struct {
		struct v3 out;
		uint64_t behind;
	} three = { .out = { .size = sizeof(three.out), .c = 5 },
		    .behind = 99 };

	(void)state;
	assert_int_equal(tsi_sized_check("f", &type, &one.out), 0);
	tsi_sized_write(&type, &from, &one.out);
	assert_int_equal(one.out.size, sizeof(one.out));
	assert_int_equal(one.out.a, 7);
	assert_int_equal(one.behind, 99);
	tsi_sized_write(&type, &from, &two);
	assert_memory_equal(&two, &from, sizeof(two));
	assert_int_equal(tsi_sized_check("f", &type, &three.out), 0);
	tsi_sized_write(&type, &from, &three.out);
	assert_int_equal(three.out.size, sizeof(from));
	assert_int_equal(three.out.b, 8);
	assert_int_equal(three.out.c, 0);
	assert_int_equal(three.behind, 99);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_older_callers_options_leave_the_defaults),
		cmocka_unit_test(the_same_versions_options_are_read_whole),
		cmocka_unit_test(
			a_newer_callers_options_are_read_if_none_is_new),
		cmocka_unit_test(a_wrong_size_is_named),
		cmocka_unit_test(a_result_fits_the_callers_struct),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
