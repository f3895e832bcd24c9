/* SPDX-License-Identifier: MIT */
/*
 * test_options.c - the command line: what it means, and what it says when it
 * means nothing.
 */
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/help.h"
#include "cli/option_table.h"
#include "tsock/tsock.h"

#define ARGS_MAX 24

/* Parse words separated by spaces. */
static int parse(struct tsi_options *o, const char *words)
{
	static char text[1024];
	char *argv[ARGS_MAX + 1] = { (char *)"tsock-producer" };
	int argc = 1;

	snprintf(text, sizeof(text), "%s", words);
	for (char *w = strtok(text, " "); w; w = strtok(NULL, " ")) {
		assert_true(argc < ARGS_MAX);
		argv[argc++] = w;
	}
	return tsi_options_parse(o, argc, argv);
}

static struct tsi_options good(const char *words)
{
	struct tsi_options o;

	if (parse(&o, words))
		fail_msg("\"%s\": %s", words, tsock_errmsg());
	return o;
}

/* The words are refused, in one sentence that has one and two in it. */
static void refused(const char *words, const char *one, const char *two)
{
	struct tsi_options o;
	const char *said;

	if (parse(&o, words) != TSOCK_EARG)
		fail_msg("\"%s\" was taken", words);
	said = tsock_errmsg();
	if (!strstr(said, one) || !strstr(said, two) || strchr(said, '\n'))
		fail_msg("\"%s\" says: %s", words, said);
}

#define BASE "--dataset imagenet --root /data "

static void the_data_path_is_told_what_to_make(void **state)
{
	struct tsi_pipeline_opts p;
	struct tsi_options o =
		good(BASE "--seed 7 --order sequential --segments 9 "
			  "--shard 2/5 --preset eval --size 32");

	(void)state;
	tsi_options_pipeline(&o, &p);
	assert_string_equal(p.folder, "/data/train");
	assert_string_equal(p.name, "imagenet");
	assert_int_equal(p.seed, 7);
	assert_int_equal(p.order, TSOCK_ORDER_SEQUENTIAL);
	assert_int_equal(p.segments, 9);
	assert_int_equal(p.part.ranks, 1);
	assert_int_equal(p.part.first, 2);
	assert_int_equal(p.part.world, 5);
	assert_ptr_equal(p.recipe, o.recipe);
	assert_int_equal(p.recipe->view[0].width, 32);
	assert_non_null(strstr(p.recipe->text, "Resize(size=256, "));
	assert_int_equal(p.threads, 0);
	assert_true(p.allow_bad.share == 0.01 && !p.allow_bad.given);
	tsi_options_fini(&o);

	o = good(BASE "--allow-bad .25");
	tsi_options_pipeline(&o, &p);
	assert_true(p.allow_bad.share == 0.25 && p.allow_bad.given);
	tsi_options_fini(&o);

	o = good("--dataset=imagefolder --root=/d --resize=48 --pillow=12 "
		 "--on-error=raise --image-memory=3M --no-cache --rescan "
		 "--index-memory=2M "
		 "--cache=9M "
		 "--threads=4 --io=pread --direct "
		 "--slow=kill:5000000 "
		 "--memory=5M "
		 "--gpu-memory=6M --fanout=host");
	tsi_options_pipeline(&o, &p);
	assert_string_equal(p.folder, "/d");
	assert_int_equal(o.resize, 48);
	assert_int_equal(p.pillow, 12);
	assert_false(p.fast);
	assert_false(p.keys);
	assert_int_equal(p.on_error, TSI_RAISE);
	assert_int_equal(p.image_memory, 3 << 20);
	assert_int_equal(p.index_memory, 2 << 20);
	assert_int_equal(p.image_cache, 9 << 20);
	assert_string_equal(p.cache, "");
	assert_true(p.rescan);
	assert_int_equal(p.threads, 4);
	assert_int_equal(p.io, TSI_READER_PREAD);
	assert_true(p.direct);
	/* Longer than the ring can count is as long as it can. */
	assert_int_equal(p.slow, TSOCK_SLOW_KILL);
	assert_int_equal(p.slow_ms, UINT32_MAX);
	assert_int_equal(p.memory, 5 << 20);
	assert_int_equal(p.gpu_memory, 6 << 20);
	assert_int_equal(p.fanout, TSOCK_FANOUT_HOST);
	tsi_options_fini(&o);
}

static void the_data_path_is_told_how_to_serve(void **state)
{
	struct tsi_pipeline_opts p;
	struct tsi_options o = good(
		"--dataset=imagefolder --root=/d --ring=77 --join-window=33 "
		"--max-batch=11 --min-consumers=3 --epochs=4 "
		"--gpu-transport=staged --fast --keys");

	(void)state;
	tsi_options_pipeline(&o, &p);
	assert_true(p.fast);
	assert_true(p.keys);
	assert_false(p.direct);
	assert_int_equal(p.ring, 77);
	assert_int_equal(p.join_window, 33);
	assert_int_equal(p.max_batch, 11);
	assert_int_equal(p.min_consumers, 3);
	assert_int_equal(p.epochs, 4);
	assert_int_equal(p.slow, TSOCK_SLOW_BLOCK);
	assert_int_equal(p.slow_ms, 0);
	assert_int_equal(p.gpu_transport, TSOCK_TRANSPORT_STAGED);
	assert_int_equal(p.ring_bytes, 0);
	assert_int_equal(p.least_batch, 0);
	tsi_options_fini(&o);
	o = good("--dataset=imagefolder --root=/d --ring=1.5G --least-batch=9");
	tsi_options_pipeline(&o, &p);
	assert_int_equal(p.ring, 0);
	assert_int_equal(p.ring_bytes, UINT64_C(3) << 29);
	assert_int_equal(p.least_batch, 9);
	tsi_options_fini(&o);
}

static void imagenet_trains_by_default(void **state)
{
	struct tsi_options o = good("--dataset imagenet --root /data");

	(void)state;
	assert_int_equal(o.mode, TSI_RUN_SERVE);
	assert_string_equal(o.data.folder, "/data/train");
	assert_string_equal(o.name, "imagenet");
	assert_string_equal(o.images->name, "train");
	assert_int_equal(o.order, TSOCK_ORDER_PHILOX);
	assert_int_equal(o.seed, 0);
	assert_int_equal(o.size, 224);
	assert_int_equal(o.resize, 256);
	assert_int_equal(o.ring.samples, 0);
	assert_int_equal(o.ring.bytes, 0);
	assert_int_equal(o.segments, 0);
	assert_int_equal(o.min_consumers, 1);
	assert_int_equal(o.epochs, 0);
	assert_int_equal(o.on_error, TSI_SUBSTITUTE);
	assert_true(o.allow_bad.share == 0.01 && !o.allow_bad.given);
	assert_int_equal(o.io, TSI_READER_AUTO);
	assert_false(o.given[TSI_OPTION_exit_when_idle]);
	assert_false(o.given[TSI_OPTION_shard]);
	assert_null(o.cache_dir);
	assert_string_equal(o.warning[0], "");
	tsi_options_fini(&o);
}

static void the_val_split_evaluates(void **state)
{
	struct tsi_options o = good(BASE "--split val");

	(void)state;
	assert_string_equal(o.data.folder, "/data/val");
	assert_string_equal(o.name, "imagenet-val");
	assert_string_equal(o.images->name, "eval");
	assert_int_equal(o.order, TSOCK_ORDER_SEQUENTIAL);
	tsi_options_fini(&o);

	o = good(BASE "--split val --preset train --name x --order torch");
	assert_string_equal(o.name, "x");
	assert_string_equal(o.images->name, "train");
	assert_int_equal(o.order, TSOCK_ORDER_TORCH);
	tsi_options_fini(&o);
}

static void an_imagefolder_is_its_own_root(void **state)
{
	struct tsi_options o = good("-d imagefolder -r /data");

	(void)state;
	assert_string_equal(o.data.folder, "/data");
	assert_string_equal(o.name, "data");
	assert_string_equal(o.images->name, "train");
	tsi_options_fini(&o);

	o = good("-d imagefolder -r /data --split val");
	assert_string_equal(o.data.folder, "/data/val");
	assert_string_equal(o.name, "data-val");
	tsi_options_fini(&o);
}

static void an_imagefolder_is_called_as_its_folder(void **state)
{
	static const char *const name[][2] = {
		{ "/data/flowers", "flowers" },
		{ "flowers///", "flowers" },
		{ "/data/Fine_Art.v2-b", "Fine_Art.v2-b" },
		{ "/data/a+b\xc3\xa9!", "a-b" },
		{ "/data/.hidden", "hidden" },
		{ "/", "imagefolder" },
		{ ".", "imagefolder" },
		{ "/data/\xc3\xa9", "imagefolder" },
		{ "/0123456789012345678901234567890123456789012345678901234567"
		  "890123456789",
		  "012345678901234567890123456789012345678901234567890123456789"
		  "012" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		char line[256];
		struct tsi_options o;

		snprintf(line, sizeof(line), "-d imagefolder -r %s",
			 name[i][0]);
		o = good(line);
		assert_string_equal(o.name, name[i][1]);
		tsi_options_fini(&o);
	}
}

static void units_are_understood(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {
		{ "512M", UINT64_C(512) << 20 },
		{ "4G", UINT64_C(4) << 30 },
		{ "4GiB", UINT64_C(4) << 30 },
		{ "2GB", UINT64_C(2) << 30 },
		{ "1.5g", UINT64_C(3) << 29 },
		{ "1048576", 1 << 20 },
		{ "1024K", 1 << 20 },
		{ "1T", UINT64_C(1) << 40 },
	};
	struct tsi_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char words[96];

		snprintf(words, sizeof(words), BASE "--memory %s",
			 sizes[i].text);
		o = good(words);
		assert_int_equal(o.memory, sizes[i].bytes);
		tsi_options_fini(&o);
	}
	o = good(BASE "--slow kill:2.5 --exit-when-idle 0.25");
	assert_int_equal(o.slow.ms, 2500);
	assert_true(o.given[TSI_OPTION_exit_when_idle]);
	assert_int_equal(o.exit_when_idle, 250);
	tsi_options_fini(&o);
	o = good(BASE "--slow detach:1.5");
	assert_int_equal(o.slow.action, TSOCK_SLOW_DETACH);
	assert_int_equal(o.slow.ms, 1500);
	tsi_options_fini(&o);
	o = good(BASE "--slow kill:2 --slow block --shard 3/4");
	assert_int_equal(o.slow.action, TSOCK_SLOW_BLOCK);
	assert_int_equal(o.slow.ms, 0);
	assert_int_equal(o.shard.first, 3);
	assert_int_equal(o.shard.last, 3);
	assert_int_equal(o.shard.world, 4);
	tsi_options_fini(&o);
	o = good(BASE "--seed 18446744073709551615");
	assert_int_equal(o.seed, UINT64_MAX);
	tsi_options_fini(&o);
}

static void wrong_values_are_named(void **state)
{
	(void)state;
	refused("--dataset lmdb", "lmdb", "imagenet|imagefolder");
	refused("--dataset imagnet", "imagnet", "did you mean imagenet?");
	refused("--order sequental", "sequental", "did you mean sequential?");
	refused("--split vla", "vla", "did you mean val?");
	refused("--on-error rasie", "rasie", "did you mean raise?");
	refused("--jion-window 3", "--jion-window",
		"did you mean --join-window");
	refused("--seeds 3", "--seeds", "did you mean --seed?");
	refused("--tread=3", "--tread", "did you mean --threads?");
	refused("--split test", "test", "train|val");
	refused("--preset fast", "fast", "train|eval");
	refused("--order random", "random", "philox|torch|sequential");
	refused("--io aio", "aio", "auto|uring|pread");
	refused("--numa-node 1024", "--numa-node 1024", "0 to 1023");
	refused("--numa-node x", "--numa-node x", "whole number");
	refused("--allow-bad 1.1", "--allow-bad 1.1", "from 0 to 1");
	refused("--allow-bad -0.1", "--allow-bad -0.1", "from 0 to 1");
	refused("--allow-bad 5%", "--allow-bad 5%", "from 0 to 1");
	refused("--allow-bad .", "--allow-bad .", "from 0 to 1");
	refused(BASE "--allow-bad 0.5 --on-error raise", "--allow-bad",
		"--on-error raise");
	refused("--on-error stop", "stop", "substitute|raise");
	refused("--log-level all", "all", "error|warn|info|debug");
	refused("--ring 0", "--ring 0", "1 to 16777216");
	refused("--ring -5", "--ring -5", "whole number");
	refused("--ring 1e3", "--ring 1e3", "whole number");
	refused("--ring 99999999999999999999", "--ring", "1 to");
	refused("--threads 0", "--threads 0", "1 to 1024");
	refused("--size 0", "--size 0", "1 to 4096");
	refused("--size 5000", "--size 5000", "1 to 4096");
	refused("--seed -1", "--seed -1", "2^64");
	refused("--seed 18446744073709551616", "--seed", "2^64");
	refused("--memory 4", "--memory 4", "unit");
	refused("--memory 4Q", "--memory 4Q", "512M");
	refused("--ring 4Q", "--ring 4Q", "512M");
	refused("--ring 1K", "--ring 1K", "1M");
	refused("--memory nan", "--memory nan", "512M");
	refused("--memory 4GG", "--memory 4GG", "512M");
	refused("--memory 9999T", "--memory", "1M");
	refused("--slow drop:3", "drop:3", "block|detach:SEC|kill:SEC");
	refused("--slow detach", "detach", "block|detach:SEC|kill:SEC");
	refused("--slow detach:0", "detach:0", "above 0");
	refused("--slow kill:0", "kill:0", "above 0");
	refused("--slow kill:", "kill:", "kill:30");
	refused("--exit-when-idle soon", "soon", "seconds");
	refused("--exit-when-idle 1e99", "1e99", "seconds");
	refused("--shard 4/4", "4/4", "below");
	refused("--shard 1/0", "1/0", "1 to 1048576");
	refused("--shard 0/1048577", "0/1048577", "1 to 1048576");
	refused("--shard 2-1/4", "2-1/4", "comes before");
	refused("--shard 2-4/4", "2-4/4", "below");
	refused("--shard 0-1-2/4", "0-1-2/4", "FIRST-LAST/WORLD");
	refused("--shard 0-/4", "0-/4", "FIRST-LAST/WORLD");
	refused("--shard 0-18446744073709551617/4", "/4", "FIRST-LAST/WORLD");
	refused("--shard 0/2/4", "0/2/4", "FIRST-LAST/WORLD");
	refused("--shard 0/4 --start 3", "--start 3", "EPOCH:POSITION");
	refused("--shard 0/4 --start 3:x", "--start 3:x", "EPOCH:POSITION");
	refused(BASE "--start 3:5", "--start", "--shard");
	refused(BASE "--shard 0/4 --start 3:5 --segments 2", "--start",
		"--segments");
	refused(BASE "--shard 0/4 --start 3:5 --epochs 3", "--start 3:5",
		"--epochs 3");
	refused(BASE "--shard 0-1/4 --grows", "--grows", "--shard");
	refused(BASE "--shard 0/4 --start 3:5 --grows", "--grows", "--start");
	refused("--shard 1", "--shard 1", "RANK/WORLD");
	refused("--shard -1/2", "-1/2", "RANK/WORLD");
	refused("--name a/b", "a/b", "TSOCK_DIR");
	refused("--name .x", ".x", "letter");
	refused("--segments 0", "--segments 0", "1 to");
	refused("--min-consumers 0", "--min-consumers", "1 to 256");
}

static void wrong_words_are_named(void **state)
{
	(void)state;
	refused("--rings 5", "--rings", "--help");
	refused("-Z", "-Z", "--help");
	refused(BASE "extra", "extra", "--root");
	refused("--root", "--root", "DIR");
	refused("-d", "--dataset", "imagenet|imagefolder");
	refused("--quiet=5", "--quiet", "no value");
	refused("--r x", "--r", "several");
}

static void what_is_missing_is_named(void **state)
{
	(void)state;
	refused("", "--root", "folder");
	refused("--dataset imagenet", "--root", "folder");
}

static void contradictions_are_named(void **state)
{
	struct tsi_options o;

	(void)state;
	refused(BASE "--no-index --index-memory 4M", "--no-index",
		"--index-memory");
	refused(BASE "--order torch --segments 4", "--segments 4",
		"--order torch");
	refused(BASE "--no-cache --cache-dir /x", "--cache-dir", "--no-cache");
	refused(BASE "--cache-dir /x --no-cache", "--cache-dir", "--no-cache");
	refused(BASE "--list --dry-run", "--dry-run", "--list");
	refused(BASE "--fast --pillow 13", "--fast", "--pillow");
	o = good(BASE "--order torch --segments 1");
	tsi_options_fini(&o);
}

static void what_is_odd_is_allowed_with_a_warning(void **state)
{
	struct tsi_options o = good(BASE "--split val --size 300");

	(void)state;
	assert_non_null(strstr(o.warning[0], "--size 300"));
	assert_string_equal(o.warning[1], "");
	tsi_options_fini(&o);
	o = good(BASE "--resize 300");
	assert_non_null(strstr(o.warning[0], "--resize"));
	tsi_options_fini(&o);
}

static void help_wins_over_everything(void **state)
{
	struct tsi_options o = good("--dry-run --help --list extra");

	(void)state;
	assert_int_equal(o.mode, TSI_RUN_HELP);
	o = good("-V");
	assert_int_equal(o.mode, TSI_RUN_VERSION);
	o = good("--list");
	assert_int_equal(o.mode, TSI_RUN_LIST);
}

static void help_names_every_option_in_80_columns(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	tsi_help_print(f);
	fclose(f);
	for (size_t i = 0; i < tsi_opts_count; i++) {
		char word[40];

		if (tsi_opts[i].kind == TSI_OPT_GROUP)
			continue;
		snprintf(word, sizeof(word), "--%s", tsi_opts[i].name);
		if (!strstr(text, word))
			fail_msg("%s is not in the help", word);
	}
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") < 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_data_path_is_told_what_to_make),
		cmocka_unit_test(the_data_path_is_told_how_to_serve),
		cmocka_unit_test(imagenet_trains_by_default),
		cmocka_unit_test(the_val_split_evaluates),
		cmocka_unit_test(an_imagefolder_is_its_own_root),
		cmocka_unit_test(an_imagefolder_is_called_as_its_folder),
		cmocka_unit_test(units_are_understood),
		cmocka_unit_test(wrong_values_are_named),
		cmocka_unit_test(wrong_words_are_named),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(contradictions_are_named),
		cmocka_unit_test(what_is_odd_is_allowed_with_a_warning),
		cmocka_unit_test(help_wins_over_everything),
		cmocka_unit_test(help_names_every_option_in_80_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
