/* SPDX-License-Identifier: MIT */
/*
 * fuzz_labels.c - any bytes are a file of --labels, and one of its classes:
 * what is taken in gives each sample a label of its class, or of one dtype and
 * shape, which can be asked for; what isn't is an error with the file's name.
 *
 * An input is a byte of flags, the file, and behind its last zero byte the file
 * of classes.
 */
#include "corpus.h"
#include "data/format.h"
#include "data/labels/labels.h"
#include "tsock/tsock.h"
#include "test/lib/old_file.h"

/* Flags: what labels are said to be, and how else the file is read. */
#define KINDS 7u
#define CLASSES 8u
#define COLUMNS 16u
#define FIELDS 32u
#define MOST 4096
#define ROWS 6

static const char *const file[ROWS] = {
	"a/0.png", "a/1.png", "b/0.png", "cat 2.jpg", "7", "c/\xc3\xa4.x.jpeg",
};
static const char *const kinds[] = { "auto",  "class", "classes", "int",
				     "float", "text",  "auto",    "auto" };

static char folder[256], path[300], classes[300];

static void remove_folder(void)
{
	unlink(path);
	unlink(classes);
	rmdir(folder);
}

/* ---- seeds ---- */

static void seed(const char *in, const char *name, unsigned flags,
		 const char *text, const char *more)
{
	uint8_t bytes[MOST] = { (uint8_t)flags };
	size_t len = strlen(text), rest = strlen(more);

	never(len + rest + 2 > MOST);
	memcpy(bytes + 1, text, len);
	memcpy(bytes + 1 + len + 1, more, rest);
	corpus_put(in, name, bytes, 1 + len + 1 + rest);
}

static void put_seeds(const char *in)
{
	seed(in, "csv", 0,
	     "path,label\na/0.png,x\n1,y\nb/0,x\n\"cat 2\",z\n7,x\n"
	     "c/\xc3\xa4.x.jpeg,y\n",
	     "");
	seed(in, "numbers", CLASSES, "1\n2\n1\n1\n2\n1\n", "b 1 q\na 2 r\n");
	seed(in, "blanks", CLASSES, "a/0.png 1\n1 0\nb/0 0\ncat 2 1\n7 1\n",
	     "one\ntwo\n");
	seed(in, "several", 0,
	     "id\ttags\na/0\tx|y\n1\t\nb/0\tz\ncat 2\ty|z\n7\tx\n"
	     "\xc3\xa4.x\tx|x\n",
	     "");
	seed(in, "vector", 4,
	     "path;label\na/0;1 2\n1;-1e3 .5\nb/0;0 0\ncat 2;3 4\n7;5 6\n"
	     "\xc3\xa4.x;7 8\n",
	     "");
	seed(in, "columns", 4 | COLUMNS | FIELDS,
	     "x,path,y,z\n1,a/0,2,\"say \"\"hi\"\"\n\"\n3,1,4,\n", "");
	seed(in, "jsonl", 0,
	     "{\"id\":\"a/0\",\"label\":[\"x\",\"y\\u00e9\\ud83d\\ude00\"]}\n"
	     "{\"id\":\"1\",\"label\":[],\"m\":{\"x\":[1,{}],\"z\":null}}\n"
	     "{\"id\":\"b/0\",\"label\":[\"z\"]}\n{\"id\":\"cat 2\","
	     "\"label\":[\"x\"]}\n{\"label\":[\"x\"],\"id\":7}\n"
	     "{\"id\":\"\\u00e4.x\",\"label\":[\"y\",\"x\"]}\n",
	     "");
	seed(in, "kaggle", 0, "ImageId,PredictionString\n0,n1 1 2 3 4\n7,n2\n",
	     "");
	seed(in, "synsets", CLASSES | 1, "a/0.png,n1\n1.png,n2\n",
	     "n1 what it is\nn2 another\n");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-max_len=4096" };
	const char *in = corpus_folder(*argc, *argv);
	const char *tmp = getenv("TMPDIR");
	char *real;

	snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	never(!mkdtemp(folder));
	/* As it is called in errors. */
	real = realpath(folder, NULL);
	never(!real);
	snprintf(path, sizeof(path), "%s/labels", real);
	snprintf(classes, sizeof(classes), "%s/classes", real);
	free(real);
	atexit(remove_folder);
	if (in)
		put_seeds(in);
	corpus_limits(argc, argv, flag, 1);
	return 0;
}

/* ---- the data set ---- */

static void fill(struct tsi_table *t)
{
	struct tsi_table_lengths n = { .count = ROWS,
				       .names_len = strlen("/set") + 1 + 2,
				       .classes = 1 };
	struct tsi_table_writer w;

	for (unsigned i = 0; i < ROWS; i++)
		n.paths_len += strlen(file[i]) + 1;
	never(tsi_table_begin(&w, t, &n, "/set"));
	tsi_table_put_class(&w, ".");
	for (unsigned i = 0; i < ROWS; i++)
		tsi_table_put_row(&w, tsi_table_put_path(&w, file[i]), 0, 0, 0);
}

/* ---- an input ---- */

static void ask_column(const struct tsi_columns *c, unsigned k, uint64_t i,
		       const struct tsock_field *f, bool label)
{
	static uint8_t to[1 << 17];
	uint64_t bytes = tsock_dtype_size(f->dtype);

	for (uint32_t d = 0; d < f->ndim; d++)
		bytes *= f->shape[d];
	never(!bytes || bytes > sizeof(to));
	memset(to, 0xa5, sizeof(to));
	if (label)
		tsi_columns_put_label(c, i, to);
	else
		tsi_columns_put(c, k, i, to);
	never(bytes < sizeof(to) && to[bytes] != 0xa5);
	never(f->flags & TSOCK_FIELD_TEXT && to[bytes - 1]);
}

static void ask_all(const struct tsi_labels *x, const struct tsi_table *t)
{
	const struct tsi_columns *c = tsi_table_columns(t);
	const struct tsock_field *label = tsi_columns_label(c);

	never(tsi_table_count(t) != ROWS);
	never(!label && !tsi_columns_count(c));
	for (uint64_t i = 0; i < ROWS; i++) {
		int64_t class = tsi_table_label(t, i);

		never(class < 0 || class >= tsi_table_classes(t));
		if (label)
			ask_column(c, 0, i, label, true);
		if (c->classes) {
			int64_t is;

			tsi_columns_put_label(c, i, &is);
			never(is != class || !tsi_labels_classed(x));
		}
		for (unsigned k = 0; k < tsi_columns_count(c); k++)
			ask_column(c, k, i, tsi_columns_field(c, k), false);
	}
	for (uint32_t k = 0; k < tsi_table_classes(t); k++)
		never(strlen(tsi_table_class(t, k)) >= MOST);
}

static int read_labels(const char *spec, struct tsi_table *t)
{
	struct tsi_labels *x = NULL;
	uint64_t hash;
	int err = tsi_labels_open(spec, "/set", &x);

	never(!err != (x != NULL));
	if (!err) {
		never(tsi_labels_describe(spec, &hash));
		never(hash != tsi_labels_fingerprint(x));
		err = tsi_labels_apply(x, &tsi_format_images, t, 1);
	}
	if (!err)
		err = tsi_labels_finish(x, &tsi_format_images, t);
	if (!err)
		ask_all(x, t);
	tsi_labels_close(x);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_table t = { 0 };
	char spec[900];
	unsigned flags;
	const uint8_t *zero;
	size_t len;
	int lowest = corpus_lowest_fd();

	if (!size || size > MOST)
		return 0;
	flags = *data++;
	size--;
	zero = flags & CLASSES && size ? memrchr(data, 0, size) : NULL;
	len = zero ? (size_t)(zero - data) : size;
	never(!old_file_write(path, data, len));
	never(!old_file_write(classes, zero ? zero + 1 : data,
			      zero ? size - len - 1 : 0));
	snprintf(spec, sizeof(spec), "%s:as=%s%s%s%s", path,
		 kinds[flags & KINDS],
		 flags & CLASSES ? ",classes=classes" : "",
		 flags & COLUMNS ? ",label=x+y" : "",
		 flags & FIELDS ? ",fields=z" : "");
	fill(&t);
	if (read_labels(spec, &t))
		never(!tsock_errmsg()[0]);
	tsi_table_clear(&t);
	never(corpus_lowest_fd() != lowest);
	return 0;
}
