/* SPDX-License-Identifier: MIT */
/*
 * test_webdataset_names.c - what stands for a label in tar shards, and which
 * shards a pattern names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/webdataset/label.h"
#include "data/webdataset/pattern.h"
#include "tsock/tsock.h"

static void check_json(const char *text, int64_t label)
{
	uint32_t got = 77;

	if ((tsi_label_json(text, strlen(text), &got) == TSI_LABEL_NUMBER) !=
	    (label >= 0))
		fail_msg("%s", text);
	assert_int_equal(got, label >= 0 ? label : 77);
	/* Cut anywhere, there is no label or the same. */
	for (size_t n = 0; n < strlen(text); n++) {
		char *cut = malloc(n + 1);

		memcpy(cut, text, n);
		if (tsi_label_json(cut, n, &got) == TSI_LABEL_NUMBER)
			assert_int_equal(got, label);
		free(cut);
	}
}

static void labels_are_whole_numbers(void **state)
{
	uint32_t v;

	(void)state;
	assert_true(tsi_label_text(" 12\r\n", 5, &v));
	assert_int_equal(v, 12);
	assert_true(tsi_label_text("999999", 6, &v));
	assert_false(tsi_label_text("1000000", 7, &v));
	assert_false(tsi_label_text("99999999999999999999999", 23, &v));
	assert_false(tsi_label_text("", 0, &v));
	assert_false(tsi_label_text("-1", 2, &v));
	assert_false(tsi_label_text("1.5", 3, &v));
	assert_false(tsi_label_text("1 2", 3, &v));
	check_json("{\"label\": 3}", 3);
	/* As to every reader of JSON, the last one counts. */
	check_json("{\"label\": 3, \"label\": 4}", 4);
	check_json("{\"label\": 3, \"a\": {}, \"label\": \"4\"}", -1);
	check_json("{\"label\": \"4\", \"label\": 3}", 3);
	check_json("{\"a\":[1,{\"label\":9},\"}\\\"\"],\"label\":4,\"b\":0}",
		   4);
	check_json("{\"xlabel\":1,\"label\" : 0 }", 0);
	check_json("{\"a\":{\"label\":2}}", -1);
	check_json("{\"a\":\"\\\"label\\\":1\"}", -1);
	check_json("{\"label\":\"3\"}", -1);
	check_json("{\"label\":3.5}", -1);
	check_json("{\"label\":-3}", -1);
	check_json("[{\"label\":3}]", -1);
	check_json("{}", -1);
	check_json("{\"label\":[]]", -1);
	check_json("{\"a\":]}", -1);
}

static void check_pattern(const char *pattern, const char *names)
{
	struct tsi_text text = { 0 };
	uint64_t *at = NULL, n = 0, cap = 0;
	char all[400] = "";
	int err = tsi_pattern_expand(pattern, &text, &at, &n, &cap);

	for (uint64_t i = 0; !err && i < n; i++)
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i ? " " : "", text.base + at[i]);
	assert_int_equal(err, names ? 0 : TSOCK_EARG);
	if (names)
		assert_string_equal(all, names);
	free(text.base);
	free(at);
}

static void braces_stand_for_names(void **state)
{
	(void)state;
	check_pattern("a.tar", "a.tar");
	check_pattern("a-{0..3}.tar", "a-0.tar a-1.tar a-2.tar a-3.tar");
	check_pattern("a-{008..011}", "a-008 a-009 a-010 a-011");
	check_pattern("{2..0}", "2 1 0");
	check_pattern("{9..10}", "9 10");
	check_pattern("{00..1}", "00 01");
	check_pattern("{a,bc,}x{1..2}", "ax1 ax2 bcx1 bcx2 x1 x2");
	check_pattern("{a", NULL);
	check_pattern("a}", NULL);
	check_pattern("{a}", NULL);
	check_pattern("{}", NULL);
	check_pattern("{a,{b,c}}", NULL);
	check_pattern("{1..2..3}", NULL);
	check_pattern("{0..1000000}", NULL);
	check_pattern("{0..999}{0..999}{0..999}", NULL);
	check_pattern("{1..99999999999999999999}", NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(labels_are_whole_numbers),
		cmocka_unit_test(braces_stand_for_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
