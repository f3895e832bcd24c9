/* SPDX-License-Identifier: MIT */
/*
 * fuzz_table.c - any bytes are the file of a table: one that is taken has rows
 * whose files, classes and values can all be asked for, even if the file is
 * written over and cut short meanwhile.
 *
 * The checksum of the head is put right: it only keeps what is wrong from being
 * looked at.
 */
#include "corpus.h"
#include "data/format.h"
#include "test/lib/old_file.h"
#include "test/lib/table_gen.h"
#include "tsock/tsock.h"

#define MOST TABLE_GEN_BYTES

static char folder[256], path[300];

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-max_len=4096" };
	const char *in = corpus_folder(*argc, *argv);
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	never(!mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/table", folder);
	atexit(remove_folder);
	if (in) {
		static struct table_gen all;

		table_gen_make(&all);
		corpus_put(in, "all", all.bytes, all.len);
	}
	corpus_limits(argc, argv, flag, 1);
	return 0;
}

/* ---- an input ---- */

static void write_input(const uint8_t *data, size_t size)
{
	static _Alignas(64) uint8_t copy[MOST];

	if (size > MOST)
		size = MOST;
	memcpy(copy, data, size);
	table_gen_sign(copy, size);
	never(!old_file_write(path, copy, size));
}

/* Other bytes in the same file, and later fewer of them. */
static void write_over(size_t size, bool cut)
{
	static uint8_t copy[MOST];
	FILE *f = fopen(path, "r+");
	size_t n;

	never(!f);
	n = fread(copy, 1, sizeof(copy), f);
	for (size_t i = sizeof(struct tsi_columnar_head); i < n; i++)
		copy[i] = (uint8_t)(copy[i] + (i * 7 % (size % 61 + 2) == 0));
	rewind(f);
	never(fwrite(copy, 1, n, f) != n);
	never(fclose(f));
	never(cut && truncate(path, 0));
}

static void ask_all(const struct tsi_table *t)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	static uint8_t to[1 << 16];

	for (uint64_t i = 0; i < tsi_table_count(t); i++) {
		struct tsi_location at;
		int64_t label = tsi_format_label(&tsi_format_table, t, i);

		tsi_format_locate(&tsi_format_table, t, i, &at);
		never(strlen(at.file) >= MOST);
		never(at.member && strlen(at.member) >= MOST);
		never(label < 0 || label >= tsi_table_classes(t));
		for (unsigned k = 0; k < tsi_columns_count(c); k++)
			if (c->column[k].bytes <= sizeof(to))
				tsi_columns_put(c, k, i, to);
		if (tsi_columns_label(c) && c->label.bytes <= sizeof(to))
			tsi_columns_put_label(c, i, to);
	}
	for (uint32_t k = 0; k < tsi_table_classes(t); k++)
		never(strlen(tsi_table_class(t, k)) >= MOST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct tsi_format_opts o = { .threads = 1 };
	struct tsi_table t = { .block = NULL };
	struct tsi_root root;

	write_input(data, size);
	tsi_root_init(&root);
	never(tsi_format_open(&tsi_format_table, path, &root));
	if (tsi_format_scan(&tsi_format_table, &root, &o, &t) == 0) {
		if (size % 2)
			ask_all(&t);
		write_over(size, false);
		ask_all(&t);
		write_over(size, true);
		ask_all(&t);
	} else {
		never(!tsock_errmsg()[0]);
	}
	tsi_table_clear(&t);
	tsi_root_close(&root);
	return 0;
}
