/* SPDX-License-Identifier: MIT */
/*
 * test_identity.c - which options decide a stream's samples, as options.def
 * says it, and as --describe does.
 */
#include "run/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/option_table.h"
#include "cli/options.h"

#define ARGS_MAX 16

/* The description of a stream with these options, from malloc(). */
static char *describe(const char *words, const char *more, bool alike)
{
	static char text[512];
	char *argv[ARGS_MAX + 1] = { (char *)"tsock-producer" };
	int argc = 1;
	struct tsi_pipeline_opts p;
	struct tsi_options o;
	char *said = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&said, &len);

	assert_non_null(f);
	snprintf(text, sizeof(text), "%s %s", words, more);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = w;
	}
	if (tsi_options_parse(&o, argc, argv))
		fail_msg("%s %s: %s", words, more, tsock_errmsg());
	tsi_options_pipeline(&o, &p);
	tsi_identity_describe(&p, alike, f);
	tsi_options_fini(&o);
	fclose(f);
	return said;
}

/* Values of an option, others than its default among them; NULL at the end. */
static const char *value(const struct tsi_opt *r, unsigned k, char *to,
			 size_t len)
{
	const char *word = r->arg;

	switch (r->kind) {
	case TSI_OPT_CHOICE:
		for (; k; k--) {
			word += strcspn(word, "|");
			if (!*word++)
				return NULL;
		}
		snprintf(to, len, "%.*s", (int)strcspn(word, "|"), word);
		return to;
	case TSI_OPT_COUNT:
	case TSI_OPT_AUTO:
		snprintf(to, len, "%llu",
			 (unsigned long long)(k ? r->max : r->min));
		return k < 2 ? to : NULL;
	case TSI_OPT_TEXT: /* --transform */
		return k ? NULL : "CenterCrop(9)";
	case TSI_OPT_PATH:
		return k ? NULL : "/other";
	case TSI_OPT_BYTES:
	case TSI_OPT_ROOM:
		return k ? NULL : "3M";
	case TSI_OPT_SHARE:
		return k ? NULL : "0.5";
	case TSI_OPT_SHARD:
		return k ? NULL : "1/3";
	case TSI_OPT_START:
		return k ? NULL : "2:7";
	case TSI_OPT_SAMPLING:
		return k ? NULL : "balanced";
	case TSI_OPT_SLOW:
		return k ? NULL : "kill:3";
	case TSI_OPT_IDLE:
		return k ? NULL : "3";
	case TSI_OPT_NAME:
		return k ? NULL : "other";
	default:
		return k ? NULL : "";
	}
}

#define BASE "--dataset imagefolder --root /no/data"
#define TOKENS "--dataset tokens --root /no/data --schema uint16[8]"
#define PACKED TOKENS " --documents pack"
#define AUDIO "--dataset audio --root /no/data --schema float32[1,9]"

/* What has a meaning to some formats alone: the options to try it with. */
static const char *format_of(const struct tsi_opt *r)
{
	return strstr(r->name, "-token")   ? PACKED
	       : !strcmp(r->name, "clips") ? AUDIO
	       : !strcmp(r->name, "schema") || !strcmp(r->name, "documents")
		       ? TOKENS
		       : NULL;
}

/* Does any value of it change the description? */
static bool decides(const struct tsi_opt *r, const char *base)
{
	char *plain = describe(base, "", false);
	char text[80], option[128];
	const char *v;
	bool differs = false;

	for (unsigned k = 0; (v = value(r, k, text, sizeof(text))); k++) {
		char *with;

		/* A preset's text is another one's. */
		if (!strcmp(r->name, "transform") && strstr(base, "--preset"))
			break;
		/* What its samples are is read from files, which there aren't. */
		if (!strcmp(v, "npy"))
			continue;
		/* It means something to some formats alone. */
		if (format_of(r) && strcmp(base, format_of(r)))
			break;
		if (!strcmp(r->name, "schema"))
			v = "uint16[9]";
		if (strstr(r->name, "-token"))
			v = k ? "9" : "0";
		snprintf(option, sizeof(option), "--%s%s%s%s", r->name,
			 r->arg ? "=" : "", v,
			 !strcmp(v, "tokens") || !strcmp(v, "records")
				 ? " --schema uint16[8]"
			 : !strcmp(v, "audio") ? " --schema float32[1,9]"
			 : !strcmp(r->name, "shard-cache-size")
				 ? " --shard-cache /other"
			 : !strcmp(r->name, "start") ? " --shard 1/3"
						     : "");
		with = describe(base, option, false);
		differs = differs || strcmp(plain, with);
		free(with);
	}
	free(plain);
	return differs;
}

static void the_options_of_the_identity_are_described(void **state)
{
	unsigned count = 0;

	(void)state;
	for (size_t i = 0; i < tsi_opts_count; i++) {
		const struct tsi_opt *r = &tsi_opts[i];
		bool part = r->part == TSI_PART_IDENTITY;

		/* --force goes with --stop alone. */
		if (r->kind == TSI_OPT_GROUP || r->kind == TSI_OPT_ACTION ||
		    !strcmp(r->name, "force"))
			continue;
		if ((decides(r, BASE) || decides(r, BASE " --preset eval") ||
		     (format_of(r) && decides(r, format_of(r)))) != part)
			fail_msg("--%s %s", r->name,
				 part ? "decides nothing" : "decides samples");
		count += part;
	}
	assert_true(count > 10);
}

static void what_is_not_in_an_identity_is_said_to_be_none(void **state)
{
	char *said = describe(BASE, "", false);

	(void)state;
	assert_string_equal(said,
			    "dataset=imagefolder\n"
			    "root=/no/data\n"
			    "held-out=none\n"
			    "schema=none\n"
			    "documents=none\n"
			    "end-token=none\n"
			    "begin-token=none\n"
			    "clips=none\n"
			    "select=none\n"
			    "labels=none\n"
			    "order=philox\n"
			    "seed=0\n"
			    "sampler=none\n"
			    "segments=1\n"
			    "shard=none\n"
			    "start=none\n"
			    "on-error=substitute\n"
			    "grows=none\n"
			    "transform=RandomResizedCrop(size=(224, 224), "
			    "scale=(0.08, 1), "
			    "ratio=(0.75, 1.3333333333333333), "
			    "interpolation=bilinear, antialias=True) "
			    "RandomHorizontalFlip(p=0.5)\n"
			    "masks=none\n"
			    "boxes=none\n"
			    "pillow=13\n"
			    "fast=none\n");
	free(said);
}

static void what_depends_on_the_files_is_not_said(void **state)
{
	char *said = describe(BASE, "--order sequential", false);

	(void)state;
	assert_null(strstr(said, "segments="));
	free(said);
	said = describe(BASE, "--order sequential --segments 7", false);
	assert_non_null(strstr(said, "\nsegments=7\n"));
	free(said);
}

static void
formats_that_read_a_tree_alike_are_told_if_none_was_chosen(void **state)
{
	char *said = describe(BASE, "", true);

	(void)state;
	assert_true(strstr(said, "dataset=imagefolder\ndataset=imagenet\n") ==
		    said);
	free(said);
	said = describe("--dataset webdataset --root /no/data", "", true);
	assert_true(strstr(said, "dataset=webdataset\nroot=") == said);
	free(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_options_of_the_identity_are_described),
		cmocka_unit_test(what_is_not_in_an_identity_is_said_to_be_none),
		cmocka_unit_test(what_depends_on_the_files_is_not_said),
		cmocka_unit_test(
			formats_that_read_a_tree_alike_are_told_if_none_was_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
