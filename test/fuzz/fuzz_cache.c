/* SPDX-License-Identifier: MIT */
/*
 * fuzz_cache.c - any cache file is an index whose every path, name and number
 * can be asked for, or as if there were none.
 *
 * The checksum is put right, and usually the root's name and the folders'
 * times too: they only keep what is wrong from being looked at.
 */
#include "corpus.h"
#include "data/cache.h"
#include "data/format.h"
#include "base/hash.h"
#include "data/index.h"
#include "tsock/tsock.h"

/* As cache.c lays it out. */
struct head {
	char magic[8];
	uint32_t version, endian;
	uint64_t checksum, count, paths_len, names_len, nbad;
	uint32_t classes, stamps, probe, columns;
	uint64_t folders; /* if there are any */
};

static char base[256], tree[300], cache[300], file[600];
static char *real_root;

static int sniff(void *arg, const void *data, size_t len, bool whole)
{
	(void)arg, (void)data, (void)whole;
	return len > 1000 ? TSOCK_EDATA : 0;
}

static void make_file(const char *name)
{
	char at[700];
	FILE *f;

	snprintf(at, sizeof(at), "%s/%s", tree, name);
	f = fopen(at, "wb");
	never(!f);
	fputs("not an image", f);
	fclose(f);
}

static void make_tree(void)
{
	static const char *const folder[] = { "", "/cat", "/cat/old", "/dog" };
	const char *tmp = getenv("TMPDIR");
	char at[700];

	snprintf(base, sizeof(base), "%s/fuzz-XXXXXX", tmp ? tmp : "/tmp");
	never(!mkdtemp(base));
	snprintf(tree, sizeof(tree), "%s/root", base);
	snprintf(cache, sizeof(cache), "%s/cache", base);
	for (unsigned i = 0; i < 4; i++) {
		snprintf(at, sizeof(at), "%s%s", tree, folder[i]);
		never(mkdir(at, 0700));
	}
	make_file("cat/a.jpg");
	make_file("cat/b.png");
	make_file("cat/old/c.jpeg");
	make_file("dog/d.JPG");
	real_root = realpath(tree, NULL);
	never(!real_root);
	snprintf(file, sizeof(file), "%s/%016llx.idx", cache,
		 (unsigned long long)tsi_hash(real_root, strlen(real_root), 0));
}

static void remove_tree(void)
{
	char command[400];

	snprintf(command, sizeof(command), "rm -rf '%s'", base);
	if (system(command))
		perror(base);
}

static void seed(const char *folder, const char *name, bool with_probe)
{
	struct tsi_index_opts o = { .format = &tsi_format_imagefolder,
				    .root = tree,
				    .cache_dir = cache,
				    .rescan = true,
				    .threads = 1 };
	static uint8_t bytes[65536];
	struct tsi_index *x;
	uint8_t *at;
	size_t len;
	FILE *f;

	if (with_probe)
		o.sniff = sniff;
	never(tsi_index_open(&o, &x));
	tsi_index_close(x);
	f = fopen(file, "rb");
	never(!f);
	bytes[0] = with_probe ? 2 : 0;
	len = fread(bytes + 1, 1, sizeof(bytes) - 1, f);
	fclose(f);
	corpus_put(folder, name, bytes, len + 1);
	/* And one with a path that leads elsewhere. */
	at = memmem(bytes, len + 1, "a.jpg", 5);
	never(!at);
	memcpy(at, with_probe ? "/.jpg" : "../.a", 5);
	corpus_put(folder, with_probe ? "absolute" : "above", bytes, len + 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);

	make_tree();
	atexit(remove_tree);
	if (folder) {
		seed(folder, "plain", false);
		seed(folder, "probed", true);
	}
	mkdir(cache, 0700);
	return 0;
}

/* Names and times of this run, where the tables are where they say. */
static void mend_columns(const struct tsi_root *root, struct tsi_table *t)
{
	size_t root_len = strlen(real_root) + 1;

	if (t->n.names_len >= root_len)
		memcpy(t->names, real_root, root_len);
	for (uint32_t i = 0; i < t->n.stamps && i < 16; i++) {
		struct tsi_stamp d;
		const char *name;
		struct stat st;

		memcpy(&d, &t->stamp[i], sizeof(d));
		if (d.path >= t->n.names_len || t->names[t->n.names_len - 1])
			continue;
		name = t->names + d.path;
		if (tsi_root_stat(root, name, &st))
			continue;
		d.ino = st.st_ino;
		d.mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
			     st.st_mtim.tv_nsec;
		memcpy(&t->stamp[i], &d, sizeof(d));
	}
}

static void mend(uint8_t *bytes, size_t len, bool columns)
{
	struct head *h = (struct head *)bytes;
	struct tsi_table_lengths n;
	uint64_t block, bad;
	size_t head = sizeof(*h);

	if (len >= sizeof(*h) && !(h->columns & 4))
		head = offsetof(struct head, folders);
	if (len < sizeof(*h) || h->count > len || h->paths_len > len ||
	    h->names_len > len || h->nbad > len / 8 || h->folders > len)
		return;
	n = (struct tsi_table_lengths){ .count = h->count,
					.paths_len = h->paths_len,
					.names_len = h->names_len,
					.classes = h->classes,
					.stamps = h->stamps,
					.folders =
						h->columns & 4 ? h->folders : 0,
					.ranged = h->columns & 1,
					.named = h->columns & 2 };
	block = tsi_table_block_len(&n);
	bad = h->nbad * 8;
	if (block > len || bad > len || block + bad + head != len)
		return;
	if (columns) {
		struct tsi_root root;
		struct tsi_table t;

		never(tsi_root_open(&root, real_root));
		tsi_table_set_block(&t, &n, bytes + head);
		mend_columns(&root, &t);
		tsi_root_close(&root);
	}
	h->checksum = 0;
	h->checksum = tsi_hash(h, head, 0);
	h->checksum = tsi_hash(bytes + head, block, h->checksum);
	h->checksum = tsi_hash(bytes + head + block, bad, h->checksum);
}

static void use(const struct tsi_index *x)
{
	size_t sum = strlen(tsi_index_root(x));

	for (uint64_t i = 0; i < tsi_index_count(x); i++) {
		const char *reason = tsi_index_bad_reason(x, i);
		char text[TSI_PATH];
		const char *path = tsi_index_path(x, i, text);
		struct tsi_location at;

		tsi_index_locate(x, i, &at);
		sum += strlen(path) + at.size + at.length;
		/* None leads out of the tree. */
		never(path[0] == '/' || !strcmp(path, "..") ||
		      !strncmp(path, "../", 3) || strstr(path, "/../"));
		never(tsi_index_label(x, i) < 0 ||
		      tsi_index_label(x, i) >= (int64_t)tsi_index_classes(x));
		never(tsi_index_bad(x, i) != (reason != NULL));
	}
	for (uint32_t i = 0; i < tsi_index_classes(x); i++)
		sum += strlen(tsi_index_class(x, i));
	for (uint64_t k = 0; k < tsi_index_bad_count(x); k++)
		never(tsi_index_bad_at(x, k) >= tsi_index_count(x));
	never(sum == SIZE_MAX);
}

static void write_file(const uint8_t *bytes, size_t len)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	never(fd < 0 || write(fd, bytes, len) != (ssize_t)len);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_index_opts o = { .format = &tsi_format_imagefolder,
				    .root = tree,
				    .cache_dir = cache,
				    .threads = 1 };
	struct tsi_cache_opts c = { .layout = "", .dir = cache, .threads = 1 };
	struct tsi_table t = { .block = NULL };
	struct tsi_root r;
	uint64_t *bad = NULL, nbad = 0;
	uint8_t *copy;
	bool loaded;

	if (size < 1)
		return 0;
	copy = malloc(size);
	never(!copy);
	memcpy(copy, data + 1, size - 1);
	mend(copy, size - 1, !(data[0] & 1));
	write_file(copy, size - 1);
	free(copy);
	o.sniff = data[0] & 2 ? sniff : NULL;
	c.probe = o.sniff ? 1 : 0;

	never(tsi_root_open(&r, real_root));
	loaded = tsi_cache_load(&r, &c, &t, &bad, &nbad);
	for (uint64_t k = 0; loaded && k < nbad; k++)
		never(bad[k] >= tsi_table_count(&t));
	free(bad);
	tsi_table_clear(&t);
	tsi_root_close(&r);
	/* What was loaded once is so again: now with all that follows. */
	if (loaded) {
		struct tsi_index *x;

		never(tsi_index_open(&o, &x));
		never(!tsi_index_cached(x));
		use(x);
		tsi_index_close(x);
	}
	return 0;
}
