/* SPDX-License-Identifier: MIT */
/*
 * test_messages.c - texts of a stream that are longer than a message can say.
 */
#include "serve/messages.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)
#define MOST 256 /* MiB */

/* Each class has the same name, of 1 MiB with its end. */
static void texts_of_more_than_256_mib_are_refused(void **state)
{
	static struct tsi_messages t;
	static const char *classes[MOST];
	struct tsock_serve_opts o = { .classes = classes };
	struct tsi_geometry g = { .nfields = 0 };
	char *name = malloc(MIB);

	(void)state;
	assert_non_null(name);
	memset(name, 'x', MIB - 1);
	name[MIB - 1] = 0;
	for (unsigned i = 0; i < MOST; i++)
		classes[i] = name;
	/* The end of the identity, which is empty, is one too many. */
	o.nclasses = MOST;
	assert_int_equal(tsi_messages_init(&t, &o, &g), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(),
			    "the class names and the identity are too long: "
			    "they have 268435457 bytes, and may have "
			    "268435456");
	assert_null(t.meta);
	o.nclasses = 2;
	assert_int_equal(tsi_messages_init(&t, &o, &g), 0);
	assert_int_equal(t.stream.meta_bytes, 2 * MIB + 1);
	tsi_messages_fini(&t);
	free(name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_of_more_than_256_mib_are_refused),
	};

	return cmocka_run_group_tests_name("messages", tests, NULL, NULL);
}
