/* SPDX-License-Identifier: MIT */
/*
 * fuzz_select.c - any bytes are a file of --select: what is taken in leaves
 * some of the samples, each once and with a weight, and is the same when it is
 * written down in full; what isn't leaves all of them.
 *
 * An input is a byte of flags and the file.
 */
#include "corpus.h"
#include "data/format.h"
#include "data/select.h"
#include "tsock/tsock.h"

#include <math.h>

/* Flags: the data set is of tar files; its middle rows are bad. */
#define TAR 1u
#define BAD 2u
#define MOST 2048
#define ROWS 8

/* Names with blanks, dots and numbers, some of them in more than one file. */
static const char *const file[ROWS] = {
	"a/0.png", "a/cat 2.png", "a/cat 2.png 5.png", "a/cat", "b/0.png",
	"b/1",     "7",           "c/ä: x.jpeg",
};
static const struct {
	const char *shard, *name;
} member[ROWS] = {
	{ "s0.tar", "x/0.png" },     { "s0.tar", "x/1.png" },
	{ "s0.tar", "x/1.seg.png" }, { "s1.tar", "x/1.png" },
	{ "s1.tar", "2 3.jpg" },     { "d/s.tar", "z/0.png" },
	{ "d/s.tar", "y.z/4" },      { "d/s.tar", "0.5" },
};

static char folder[256], path[300];

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

/* ---- seeds ---- */

static void seed(const char *in, const char *name, unsigned flags,
		 const char *text)
{
	uint8_t bytes[MOST] = { (uint8_t)flags };
	size_t len = strlen(text);

	never(len >= MOST);
	memcpy(bytes + 1, text, len);
	corpus_put(in, name, bytes, len + 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-max_len=2048" };
	const char *in = corpus_folder(*argc, *argv);
	const char *tmp = getenv("TMPDIR");
	char *real;

	snprintf(folder, sizeof(folder), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	never(!mkdtemp(folder));
	/* As it is called in errors. */
	real = realpath(folder, NULL);
	never(!real);
	snprintf(path, sizeof(path), "%s/list", real);
	free(real);
	atexit(remove_folder);
	if (in) {
		seed(in, "one", 0, "b/0.png\n");
		seed(in, "weights", BAD,
		     "\xef\xbb\xbf"
		     "b/1\t0.25\r\n\n./a/0.png\n7 1e-3 \n   \na/cat 2\t \n");
		seed(in, "blanks", 0,
		     "a/cat 2.png 5.png\na/cat 2.png 5\na/cat  2.png\n");
		seed(in, "wrong", 0, "a/0.png\t-1\nb/0.png\tnan\n");
		seed(in, "twice", BAD, "7\nb/1\n./7 3\n");
		seed(in, "tar", TAR,
		     "s1.tar: x/1.png\t3\nx/0.png 2\n2 3\ns0.tar: x/1\n");
		seed(in, "keys", TAR | BAD,
		     "y.z/4\n0.5 0x1p3\n"
		     "d/s.tar: 0\n");
		seed(in, "several", TAR, "x/0\nx/1.png\n");
	}
	corpus_limits(argc, argv, flag, 1);
	return 0;
}

/* ---- the data set ---- */

static const struct tsi_format *fill(struct tsi_table *t, unsigned flags)
{
	bool tar = flags & TAR;
	struct tsi_table_lengths n = { .count = ROWS,
				       .names_len = strlen("/set") + 1 + 2,
				       .classes = 1,
				       .ranged = tar,
				       .named = tar };
	struct tsi_table_writer w;

	for (unsigned i = 0; i < ROWS; i++)
		n.paths_len += tar ? strlen(member[i].shard) +
					       strlen(member[i].name) + 2
				   : strlen(file[i]) + 1;
	never(tsi_table_begin(&w, t, &n, "/set"));
	tsi_table_put_class(&w, "c");
	for (unsigned i = 0; i < ROWS; i++) {
		const char *name = tar ? member[i].shard : file[i];

		tsi_table_put_row(&w, tsi_table_put_path(&w, name), i, i * 512,
				  100);
		if (tar)
			tsi_table_put_member(&w, member[i].name);
		if (flags & BAD && i % 3 == 1)
			never(tsi_table_add_bad(t, i, "it is bad"));
	}
	return tar ? &tsi_format_webdataset : &tsi_format_imagefolder;
}

/* ---- a selection ---- */

static void write_file(const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	never(fd < 0 || write(fd, bytes, len) != (ssize_t)len);
	close(fd);
}

/* What the file names is left in t, or nothing has changed. */
static int choose(unsigned flags, struct tsi_table *t, float **weight)
{
	const struct tsi_format *f = fill(t, flags);
	uint64_t before = tsi_table_fingerprint(t);
	struct tsi_select *s = NULL;
	int err = tsi_select_open(path, &s);

	never(!err != (s != NULL));
	if (!err) {
		err = tsi_select_apply(s, f, t, weight);
		never(strcmp(tsi_select_path(s), path) != 0);
	}
	tsi_select_close(s);
	if (err) {
		never(err != TSOCK_EDATA || !strstr(tsock_errmsg(), path));
		never(tsi_table_fingerprint(t) != before || *weight);
	}
	return err;
}

/* Some of the rows, each as it was: its label is its number. */
static void check_rows(const struct tsi_table *t, unsigned flags,
		       const float *weight)
{
	bool taken[ROWS] = { false };

	never(tsi_table_count(t) < 1 || tsi_table_count(t) > ROWS);
	for (uint64_t i = 0; i < tsi_table_count(t); i++) {
		uint64_t row = (uint64_t)tsi_table_label(t, i);
		struct tsi_location at;

		never(row >= ROWS || taken[row]);
		taken[row] = true;
		tsi_table_locate(t, i, &at);
		never(strcmp(at.file,
			     flags & TAR ? member[row].shard : file[row]) != 0);
		never(!at.member != !(flags & TAR));
		never(at.member && strcmp(at.member, member[row].name) != 0);
		never(!!tsi_table_bad_reason(t, i) !=
		      (flags & BAD && row % 3 == 1));
		never(!isfinite(weight[i]) || !(weight[i] >= 0));
	}
}

static void write_in_full(const struct tsi_table *t, const float *weight)
{
	static char text[ROWS * 128];
	size_t len = 0;

	for (uint64_t i = 0; i < tsi_table_count(t); i++) {
		struct tsi_location at;

		tsi_table_locate(t, i, &at);
		len += (size_t)snprintf(
			text + len, sizeof(text) - len, "%s%s%s\t%.9g\n",
			at.file, at.member ? ": " : "",
			at.member ? at.member : "", (double)weight[i]);
		never(len >= sizeof(text));
	}
	write_file(text, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_table t = { 0 }, again = { 0 };
	float *weight = NULL, *weight_again = NULL;
	int lowest = corpus_lowest_fd();

	if (size < 1)
		return 0;
	write_file(data + 1, size - 1);
	if (!choose(data[0], &t, &weight)) {
		check_rows(&t, data[0], weight);
		write_in_full(&t, weight);
		never(choose(data[0], &again, &weight_again));
		never(tsi_table_fingerprint(&t) !=
		      tsi_table_fingerprint(&again));
		never(memcmp(weight, weight_again,
			     tsi_table_count(&t) * sizeof(*weight)) != 0);
	}
	tsi_table_clear(&t);
	tsi_table_clear(&again);
	free(weight);
	free(weight_again);
	never(corpus_lowest_fd() != lowest);
	return 0;
}
