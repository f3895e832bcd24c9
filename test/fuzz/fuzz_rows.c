/* SPDX-License-Identifier: MIT */
/*
 * fuzz_rows.c - any bytes are a file of arrays: NumPy's, a zip file, a pickled
 * batch, tokens, records.  A data set that is taken has rows that can all be
 * asked for.
 *
 * The first byte says which format, and the rest is the file; of tokens the next
 * byte says what documents are to them; of two files a byte says how long the
 * first is, which comes first.
 */
#include "corpus.h"
#include "data/format.h"
#include "test/lib/old_file.h"
#include "test/lib/rows_gen.h"
#include "tsock/tsock.h"

#define MOST (ROWS_GEN_BYTES - 1)
#define KINDS 9

/* What an input is the file of. */
static const struct kind {
	const struct tsi_format *format;
	const char *folder;
	const char *name;   /* the file that the input is */
	const char *first;  /* and the one that its beginning is; NULL: none */
	const char *schema; /* "": the beginning says it */
} kinds[KINDS] = {
	{ &tsi_format_cifar100, "train", "train", NULL, NULL },
	{ &tsi_format_cifar100, "meta", "meta", NULL, NULL },
	{ &tsi_format_imagenet32, "in", "train_data_batch_1", NULL, NULL },
	{ &tsi_format_imagenet32, "inz", "train_data_batch_1.npz", NULL, NULL },
	{ &tsi_format_npy, "npy", "images_1.npy", NULL, NULL },
	{ &tsi_format_npy, "npz", "a.npz", NULL, NULL },
	{ &tsi_format_tokens, "tokens", "a.bin", NULL, "uint16[3]" },
	{ &tsi_format_tokens, "idx", "a.bin", "a.idx", "int32[2]" },
	{ &tsi_format_records, "records", "r", NULL, "" },
};

static char folder[256];

static void path_of(const struct kind *k, const char *name, char to[600])
{
	snprintf(to, 600, "%s/%s%s%s", folder, k->folder, *name ? "/" : "",
		 name);
}

static void write_file(const struct kind *k, const char *name, const void *data,
		       size_t size)
{
	char path[600];

	path_of(k, name, path);
	never(!old_file_write(path, data, size));
}

static void remove_folders(void)
{
	static const char *const also[] = { "train", "test", "meta" };
	char path[600];

	for (unsigned n = 0; n < KINDS; n++) {
		const struct kind *k = &kinds[n];

		path_of(k, k->name, path);
		unlink(path);
		if (k->first) {
			path_of(k, k->first, path);
			unlink(path);
		}
		for (unsigned i = 0; i < 3; i++) {
			path_of(k, also[i], path);
			unlink(path);
		}
		path_of(k, "", path);
		rmdir(path);
	}
	rmdir(folder);
}

/* ---- seeds ---- */

static struct rows_gen seed;

static void begin(unsigned kind)
{
	seed.len = 0;
	rows_gen_number(&seed, kind, 1);
}

static void put_batch(struct rows_gen *g, const char *labels)
{
	static const int32_t label[2] = { 7, 1 };

	rows_gen_pickle_begin(g);
	rows_gen_pickle_bytes(g, "data", 2, 3072, 9);
	rows_gen_pickle_numbers(g, labels, label, 2);
	rows_gen_pickle_numbers(g, "coarse_labels", label, 2);
	rows_gen_pickle_end(g);
}

static void put_names(struct rows_gen *g)
{
	rows_gen_pickle_begin(g);
	rows_gen_pickle_names(g, "fine_label_names", 20);
	rows_gen_pickle_end(g);
}

/* Two members: pixels as images or as rows of bytes, and labels. */
static void put_npz(struct rows_gen *g, const char *pixels, bool wide)
{
	static const char bytes[2 * 3072];
	static struct rows_gen data, labels;
	struct rows_gen_member m[2] = { { "data.npy", &data, 0 },
					{ "labels.npy", &labels, 0 } };

	data.len = labels.len = 0;
	rows_gen_npy(&data, 1, "|u1", pixels);
	rows_gen_put(&data, bytes, sizeof(bytes));
	rows_gen_npy(&labels, 1, "<i8", "(2,)");
	rows_gen_number(&labels, 1, 8);
	rows_gen_number(&labels, 5, 8);
	rows_gen_zip(g, m, 2, wide);
}

/* Six int32 in three sequences and two documents. */
static void put_index(struct rows_gen *g)
{
	static const uint32_t n[] = { 2, 1, 3 };
	uint64_t at = 0;

	rows_gen_put(g, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\4", 18);
	rows_gen_number(g, 3, 8);
	rows_gen_number(g, 3, 8);
	for (unsigned k = 0; k < 3; k++)
		rows_gen_number(g, n[k], 4);
	for (unsigned k = 0; k < 3; k++) {
		rows_gen_number(g, at, 8);
		at += 4 * n[k];
	}
	rows_gen_number(g, 0, 8);
	rows_gen_number(g, 1, 8);
	rows_gen_number(g, 3, 8);
}

/* What a byte says of documents. */
static struct tsi_documents_opts documents_of(uint8_t byte)
{
	return (struct tsi_documents_opts){
		.way = (enum tsi_documents_way)(byte & 3),
		.stands = (enum tsi_documents_token)((byte >> 2 & 3) % 3),
		.token = byte >> 4,
	};
}

static void put_tokens(struct rows_gen *g, uint32_t magic, uint32_t version,
		       uint32_t tokens)
{
	rows_gen_number(g, magic, 4);
	rows_gen_number(g, version, 4);
	rows_gen_number(g, tokens, 4);
	for (unsigned k = 0; k < 253; k++)
		rows_gen_number(g, 0, 4);
	for (unsigned k = 0; k < 9; k++)
		rows_gen_number(g, k, 2);
}

static void make_seeds(const char *in)
{
	static const char records[] = "label:int32,x:float32[2,1],_:uint8[4]\n";

	begin(0);
	put_batch(&seed, "fine_labels");
	corpus_put(in, "train", seed.bytes, seed.len);
	begin(1);
	put_names(&seed);
	corpus_put(in, "meta", seed.bytes, seed.len);
	begin(2);
	put_batch(&seed, "labels");
	corpus_put(in, "batch", seed.bytes, seed.len);
	begin(3);
	put_npz(&seed, "(2, 3072)", false);
	corpus_put(in, "batch-npz", seed.bytes, seed.len);
	for (unsigned v = 1; v <= 3; v++) {
		begin(4);
		rows_gen_npy(&seed, v, "|u1", "(3, 2, 2)");
		rows_gen_put(&seed, "0123456789ab", 12);
		corpus_put(in,
			   v == 1   ? "npy1"
			   : v == 2 ? "npy2"
				    : "npy3",
			   seed.bytes, seed.len);
	}
	for (unsigned wide = 0; wide < 2; wide++) {
		begin(5);
		put_npz(&seed, "(2, 3, 32, 32)", wide);
		corpus_put(in, wide ? "npz64" : "npz", seed.bytes, seed.len);
	}
	for (unsigned way = 0; way < 4; way++) {
		char name[16];

		begin(6);
		rows_gen_number(&seed, way | TSI_DOCUMENTS_END << 2 | 4 << 4,
				1);
		put_tokens(&seed, 20240520, 1, 9);
		snprintf(name, sizeof(name), "llmc%u", way);
		corpus_put(in, name, seed.bytes, seed.len);
		begin(7);
		rows_gen_number(&seed, way, 1);
		rows_gen_number(&seed, 94, 1);
		put_index(&seed);
		rows_gen_put(&seed, "0123456789abcdefghijkl..", 24);
		snprintf(name, sizeof(name), "documents%u", way);
		corpus_put(in, name, seed.bytes, seed.len);
	}
	begin(7);
	rows_gen_number(&seed, 0, 1);
	rows_gen_number(&seed, 18, 1);
	rows_gen_put(&seed, "MMIDIDX\0\0\1\0\0\0\0\0\0\0\4", 18);
	rows_gen_put(&seed, "0123456789abcdefghijkl..", 24);
	corpus_put(in, "idx", seed.bytes, seed.len);
	begin(8);
	rows_gen_number(&seed, sizeof(records) - 2, 1);
	rows_gen_put(&seed, records, sizeof(records) - 2);
	rows_gen_put(&seed, "0123456789abcdef0123456789abcdef", 32);
	corpus_put(in, "records", seed.bytes, seed.len);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-max_len=8192" };
	const char *in = corpus_folder(*argc, *argv);
	const char *tmp = getenv("TMPDIR");
	char path[600];

	snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	never(!mkdtemp(folder));
	for (unsigned n = 0; n < KINDS; n++) {
		path_of(&kinds[n], "", path);
		never(mkdir(path, 0700));
	}
	atexit(remove_folders);
	/* What isn't fuzzed of CIFAR-100's files. */
	for (unsigned n = 0; n < 2; n++) {
		write_file(&kinds[n], "test", "", 0);
		seed.len = 0;
		if (n == 0)
			put_names(&seed);
		else
			put_batch(&seed, "fine_labels");
		write_file(&kinds[n], n == 0 ? "meta" : "train", seed.bytes,
			   seed.len);
	}
	if (in)
		make_seeds(in);
	corpus_limits(argc, argv, flag, 1);
	return 0;
}

/* ---- an input ---- */

static void ask_row(const struct tsi_format *f, const struct tsi_table *t,
		    uint64_t i)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	static uint8_t to[1 << 16];
	struct tsi_location at;

	tsi_format_locate(f, t, i, &at);
	never(!*at.file || at.offset + at.length > MOST);
	if (c->classes)
		never(tsi_format_label(f, t, i) < 0 ||
		      tsi_format_label(f, t, i) >= tsi_table_classes(t));
	for (unsigned k = 0; k < tsi_columns_count(c); k++) {
		never(c->column[k].bytes > sizeof(to));
		never(tsi_columns_put(c, k, i, to));
	}
	if (tsi_columns_label(c))
		never(tsi_columns_put_label(c, i, to));
	if (tsi_columns_pixels(c))
		never(tsi_columns_put_pixels(c, i, to));
}

/* Which documents tokens are of ascends from 0, and -1 is behind them. */
static void ask_marks(const struct tsi_columns *c, const struct tsi_column *k,
		      uint64_t i)
{
	static int32_t mark[1 << 14];
	uint64_t n = k->bytes / sizeof(mark[0]);

	never(tsi_columns_put(c, (unsigned)(k - c->column), i, mark));
	never(mark[0]);
	for (uint64_t j = 1; j < n; j++)
		never(mark[j] != -1 &&
		      (mark[j] < mark[j - 1] || mark[j] > mark[j - 1] + 1 ||
		       mark[j - 1] == -1));
}

/* Each token is in a sample, with no gap between them. */
static void ask_runs(const struct tsi_table *t)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	struct tsi_documents_run run, was = { .at = 0 };

	for (uint64_t i = 0; i < tsi_table_count(t); i++) {
		tsi_documents_find(c->documents, i, &run);
		never(!run.tokens);
		never(run.at + 1 != was.at + was.tokens &&
		      run.at != was.at + was.tokens);
		was = run;
		for (unsigned k = 0; k < tsi_columns_count(c); k++)
			if (c->column[k].run == TSI_COLUMNS_MARKS)
				ask_marks(c, &c->column[k], i);
	}
}

static void ask_all(const struct tsi_format *f, const struct tsi_table *t)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	uint64_t n = tsi_table_count(t);

	never(!n);
	for (unsigned k = 0; k < tsi_columns_count(c); k++) {
		const char *name = tsi_columns_field(c, k)->name;

		never(!*name);
		for (unsigned i = 0; i < k; i++)
			never(!strcmp(name, tsi_columns_field(c, i)->name));
	}
	/* A file of 8,192 bytes has at most as many; the last one is last. */
	for (uint64_t i = 0; i < n; i++)
		ask_row(f, t, i);
	if (c->documents)
		ask_runs(t);
	for (uint32_t k = 0; k < tsi_table_classes(t); k++)
		never(strlen(tsi_table_class(t, k)) >= MOST);
}

static void scan(const struct kind *k, const char *schema,
		 struct tsi_documents_opts documents)
{
	const struct tsi_format_opts o = { .schema = schema,
					   .documents = documents,
					   .threads = 1 };
	struct tsi_table t = { .block = NULL };
	struct tsi_samples samples;
	struct tsi_root root;
	char path[600];
	int err;

	path_of(k, "", path);
	tsi_root_init(&root);
	never(tsi_format_open(k->format, path, &root));
	err = tsi_format_look(k->format, path, &o, &samples);
	if (!err)
		err = tsi_format_scan(k->format, &root, &o, &t);
	if (!err)
		ask_all(k->format, &t);
	else
		never(!tsock_errmsg()[0]);
	tsi_table_clear(&t);
	tsi_root_close(&root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_documents_opts documents = { .token = 0 };
	const struct kind *k;
	char schema[256];
	size_t n = 0;

	if (size < 3 || size > MOST)
		return 0;
	k = &kinds[data[0] % KINDS];
	data++;
	size--;
	if (k->format == &tsi_format_tokens) {
		documents = documents_of(data[0]);
		data++;
		size--;
	}
	if (k->first || (k->schema && !*k->schema)) {
		n = data[0] < size - 1 ? data[0] : size - 1;
		data++;
		size--;
	}
	memcpy(schema, data, n);
	schema[n] = '\0';
	if (k->first)
		write_file(k, k->first, data, n);
	write_file(k, k->name, data + n, size - n);
	scan(k, k->schema && !*k->schema ? schema : k->schema, documents);
	return 0;
}
