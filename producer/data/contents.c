/* SPDX-License-Identifier: MIT */
/*
 * contents.c - what lies in a folder, by names and first bytes.
 */
#include "data/contents.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "data/folder.h"
#include "data/name.h"

#define LOOKED_AT 100000 /* entries of a folder */
#define OPENED 16        /* files whose names say nothing */
#define HEAD 24          /* bytes that tell a kind */

#define BY_TABLE(what) \
	"python -m tsock.index DIR train.table" what \
	", and give the table as " \
	"--root: images are served where they lie"
#define WITH(package) \
	"serve the loader that you have for them (" package ") from Python, " \
	"as it is: tsock.serve(loader, \"NAME\")"

/*
 * Names end in one of end, begin with one of begin or are one of these words
 * whole (is); of several words '|' stands between two.  head is what a file
 * begins with at the byte head_at.
 */
static const struct kind {
	const char *what;
	const char *end;
	const char *begin;
	const char *is;
	const char *head;
	uint8_t head_len;
	uint8_t head_at;
	const char *way;
} kinds[] = {
	{ "tar", .end = ".tar", .head = "ustar", .head_len = 5, .way = NULL },
	{ "compressed tar",
	  .end = ".tar.gz|.tgz|.tar.zst|.tar.xz|.tar.bz2|.txz|.tbz2",
	  .way = "unpack each to a .tar first (gunzip, unzstd, unxz or "
		 "bunzip2), so that its samples can be read at random" },
	{ "CIFAR batch", .begin = "data_batch_",
	  .is = "batches.meta|batches.meta.txt|fine_label_names.txt|"
		"test_batch",
	  .way = "give their folder as --root, with --dataset cifar10 or "
		 "cifar100" },
	{ "TFRecord", .end = ".tfrecord|.tfrecords|.tfrec",
	  .way = BY_TABLE(" --image FEATURE (image/encoded)") },
	{ "LMDB", .end = ".lmdb|.mdb", .is = "data.mdb|lock.mdb",
	  .head = "\xde\xc0\xef\xbe", .head_len = 4, .head_at = 16,
	  .way = BY_TABLE("") " (values that are image files)" },
	{ "RecordIO", .end = ".rec", .head = "\x0a\x23\xd7\xce", .head_len = 4,
	  .way = WITH("MXNet's or DALI's") },
	{ "FFCV", .end = ".beton", .way = WITH("ffcv.Loader") },
	{ "MosaicML Streaming (MDS)", .end = ".mds|.mds.zstd|.mds.gz",
	  .way = BY_TABLE("") },
	{ "LitData", .begin = "chunk-",
	  .way = WITH("litdata.StreamingDataLoader") },
	{ "HDF5", .end = ".h5|.hdf5", .head = "\x89HDF\r\n\x1a\n",
	  .head_len = 8, .way = WITH("a Dataset round the package h5py") },
	{ "NumPy", .end = ".npy|.npz", .head = "\x93NUMPY", .head_len = 6,
	  .way = "put their folder alone as --root, with --dataset npy" },
	{ "IDX (MNIST)", .end = "-ubyte|-ubyte.gz",
	  .way = "unpack them (gunzip), and give their folder as --root, with "
		 "--dataset mnist" },
	{ "Parquet", .end = ".parquet", .head = "PAR1", .head_len = 4,
	  .way = BY_TABLE("") },
	{ "Arrow", .end = ".arrow", .head = "ARROW1", .head_len = 6,
	  .way = BY_TABLE("") },
	{ "zip", .end = ".zip", .head = "PK\x03\x04", .head_len = 4,
	  .way = "unpack them first (unzip)" },
	{ "PyTorch or pickle", .end = ".pt|.pth|.pkl|.pickle",
	  .way = "serve what they hold from Python: tsock.serve("
		 "DataLoader(data, 256), \"NAME\")" },
	{ "CSV", .end = ".csv|.tsv",
	  .way = "python -m tsock.index FILE.csv train.table --image COLUMN "
		 "--label COLUMN, and give the table as --root" },
	{ "JSON", .end = ".json|.jsonl",
	  .way = "python -m tsock.index FILE.jsonl train.table (COCO's "
		 "instances_*.json, too), and give the table as --root" },
	{ "binary", .end = ".bin",
	  .way = "say what is in them: of tokens --schema uint16[1024], of "
		 "records --schema label:int32,dense:float32[13], with all "
		 "fields of one" },
	{ "text", .end = ".txt",
	  .way = "labels are read from folders' names alone; boxes and the "
		 "like are served by a Dataset that reads them: "
		 "tsock.serve(loader, \"NAME\")" },
	{ TSI_CONTENTS_AUDIO,
	  .end = ".wav|.flac|.mp3|.ogg|.oga|.opus|.aif|.aiff",
	  .way = "give the folder that holds their classes' folders, or them "
		 "alone, as --root, with --dataset audio --schema "
		 "float32[1,59049], say, for mono of so many frames" },
	{ "video", .end = ".mp4|.avi|.mkv|.webm|.mov",
	  .way = WITH("torchcodec's in a Dataset") },
	{ "image (HEIC, JPEG 2000, JPEG XL)",
	  .end = ".heic|.heif|.jp2|.j2k|.jxl",
	  .way = "convert them to JPEG or PNG first, or serve a Dataset that "
		 "decodes them: tsock.serve(loader, \"NAME\")" },
};

#define KINDS ((int)(sizeof(kinds) / sizeof(kinds[0])))
_Static_assert(sizeof(kinds) / sizeof(kinds[0]) <= TSI_CONTENTS_KINDS,
	       "each kind has its place");

/* ------------------------------------------------------------------------
 * One name
 */

/* Does one of the words between '|' fit?  words may be NULL. */
static bool fits(const char *name, const char *words,
		 bool (*fit)(const char *name, const char *word, size_t n))
{
	while (words && *words) {
		size_t n = strcspn(words, "|");

		if (fit(name, words, n))
			return true;
		words += n + (words[n] == '|');
	}
	return false;
}

static bool ends(const char *name, const char *word, size_t n)
{
	size_t len = strlen(name);

	return len > n && !strncasecmp(name + len - n, word, n);
}

static bool begins(const char *name, const char *word, size_t n)
{
	return !strncmp(name, word, n);
}

static bool is(const char *name, const char *word, size_t n)
{
	return strlen(name) == n && !memcmp(name, word, n);
}

/* "train-00000-of-01024", as TensorFlow's tools name the parts. */
static bool is_part_of_many(const char *name)
{
	const char *of = strstr(name, "-of-");

	return of && of > name && of[-1] >= '0' && of[-1] <= '9' &&
	       of[4] >= '0' && of[4] <= '9' && !strchr(of, '.');
}

static int kind_of_name(const char *name)
{
	for (int k = 0; k < KINDS; k++)
		if (fits(name, kinds[k].end, ends) ||
		    fits(name, kinds[k].begin, begins) ||
		    fits(name, kinds[k].is, is))
			return k;
	return is_part_of_many(name) ? tsi_contents_kind("TFRecord") : -1;
}

static int kind_of_head(DIR *d, const char *name)
{
	uint8_t head[HEAD];
	ssize_t n;
	int fd = openat(dirfd(d), name,
			O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return -1;
	n = tsi_file_pread(fd, head, sizeof(head), 0);
	close(fd);
	for (int k = 0; k < KINDS; k++)
		if (kinds[k].head &&
		    n >= kinds[k].head_at + kinds[k].head_len &&
		    !memcmp(head + kinds[k].head_at, kinds[k].head,
			    kinds[k].head_len))
			return k;
	return -1;
}

/* ------------------------------------------------------------------------
 * A folder
 */

static void keep_first(char *first, const char *name)
{
	if (!*first || tsi_name_cmp(name, first) < 0) {
		tsi_text_printable(first, TSI_CONTENTS_NAME, name);
	}
}

static void note(struct tsi_contents *c, DIR *d, const struct dirent *e,
		 unsigned *opened, char *folder)
{
	const char *name = e->d_name;
	int k;

	if (tsi_folder_entry(d, e)) {
		if (!c->folders++ || tsi_name_cmp(name, folder) < 0)
			strcpy(folder, name);
		return;
	}
	c->files++;
	if (tsi_folder_is_image(name)) {
		c->images++;
		return;
	}
	k = kind_of_name(name);
	if (k < 0 && (*opened)++ < OPENED)
		k = kind_of_head(d, name);
	if (k < 0) {
		keep_first(c->other, name);
		return;
	}
	c->of[k].count++;
	keep_first(c->of[k].first, name);
}

/* As tsi_contents_look(), of one folder whose descriptor this closes. */
static bool look_into(int fd, struct tsi_contents *c, unsigned deep)
{
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char folder[256] = "";
	unsigned opened = 0;
	struct dirent *e;
	bool found = true;

	memset(c, 0, sizeof(*c));
	if (!d) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	for (unsigned i = 0; i < LOOKED_AT && (e = readdir(d)); i++)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			note(c, d, e, &opened, folder);
	if (deep && c->folders && !c->files) {
		struct tsi_contents below;

		found = look_into(openat(dirfd(d), folder,
					 O_RDONLY | O_DIRECTORY | O_CLOEXEC),
				  &below, deep - 1);
		if (found && below.files)
			*c = below;
	}
	closedir(d);
	return true;
}

bool tsi_contents_look(int at, const char *folder, unsigned deep,
		       struct tsi_contents *c)
{
	return look_into(openat(at, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			 c, deep);
}

int tsi_contents_most(const struct tsi_contents *c)
{
	int most = -1;

	for (int k = 0; k < KINDS; k++)
		if (c->of[k].count &&
		    (most < 0 || c->of[k].count > c->of[most].count))
			most = k;
	return most;
}

int tsi_contents_kind(const char *what)
{
	for (int k = 0; k < KINDS; k++)
		if (!strcmp(kinds[k].what, what))
			return k;
	return -1;
}

bool tsi_contents_is_native(int kind)
{
	return kind >= 0 && !kinds[kind].way;
}

/* "12 Parquet files (a.parquet, ...)" */
static const char *say_files(char *to, size_t len, uint32_t n, const char *what,
			     const char *first)
{
	snprintf(to, len, "%u%s%s file%s (%s%s)", n, *what ? " " : "", what,
		 n == 1 ? "" : "s", first, n == 1 ? "" : ", ...");
	return to;
}

const char *tsi_contents_say(const struct tsi_contents *c, char *to, size_t len)
{
	int k = tsi_contents_most(c);

	if (k >= 0)
		return say_files(to, len, c->of[k].count, kinds[k].what,
				 c->of[k].first);
	if (c->images)
		snprintf(to, len, "%u image%s", c->images,
			 c->images == 1 ? "" : "s");
	else if (c->files)
		return say_files(to, len, c->files, "", c->other);
	else
		snprintf(to, len, c->folders ? "folders alone" : "no files");
	return to;
}

const char *tsi_contents_way(int kind)
{
	return kinds[kind].way;
}
