/* SPDX-License-Identifier: MIT */
/*
 * fuzz_index_file.c - any bytes are a file of JPEG rows, or the beginning of
 * one: what is taken in is an index that could have been recorded, that comes
 * back from a file of its own, and by which images are entered without harm.
 *
 * The checksums are put right, and so are, usually, the images' check values:
 * they only keep what is wrong from being looked at.
 */
#include "corpus.h"
#include "base/hash.h"
#include "image/load.h"
#include "jpeg/index_file.h"
#include "test/lib/image_gen.h"
#include "test/lib/recipes.h"
#include "tsock/tsock.h"

#include <sys/mman.h>

#define FILES 4
#define KEY 7
#define SIZE 32
#define MEMORY 65536
#define MOST 16384

/* As jpeg/index_file.c lays it out. */
struct head {
	char magic[8];
	uint32_t version, endian;
	uint64_t key, files, checksum;
};

struct block {
	uint64_t len, checksum;
};

struct record {
	uint64_t file, check;
	uint32_t across, down, rows;
	uint16_t step, flags;
};

static struct image_gen_bytes image[FILES];
static uint64_t check[FILES];
static struct tsi_image *plain; /* enters no image in the middle */
static int file, again;

static struct tsi_jpeg_index *new_index(uint64_t memory)
{
	struct tsi_jpeg_index *x;

	never(tsi_jpeg_index_create(FILES, memory, &x));
	return x;
}

static struct tsi_image *new_decoder(struct tsi_jpeg_index *x)
{
	struct tsi_image_opts o = { .recipe = recipes_train(SIZE),
				    .seed = 3,
				    .stock_jpeg = !x,
				    .jpeg_index = x };
	struct tsi_image *img;

	never(tsi_image_create(&o, &img));
	return img;
}

static int load(struct tsi_image *img, unsigned i, uint32_t epoch, uint8_t *out)
{
	struct tsi_box box;

	return tsi_image_load_file(img, i, image[i].data, image[i].len, epoch,
				   i, out, &box);
}

/* ---- seeds ---- */

static void make_images(void)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_jpeg g = { .width = 24 + i * 70,
					    .height = 150 - i * 20,
					    .components = i == 2 ? 1 : 3,
					    .quality = 40,
					    .restart_rows = i == 3,
					    .seed = i };

		g.factor[0][0] = g.factor[0][1] = 1 + (int)i % 2;
		image[i] = image_gen_jpeg(&g);
	}
}

/* What some epochs record; with so little memory none of the columns. */
static struct tsi_jpeg_index *recorded(uint64_t memory, uint32_t epochs)
{
	struct tsi_jpeg_index *x = new_index(memory);
	struct tsi_image *img = new_decoder(x);
	struct tsi_jpeg_kept k;
	uint8_t out[SIZE * SIZE * 3];

	for (unsigned i = 0; i < FILES; i++) {
		for (uint32_t e = 0; e < epochs; e++)
			never(load(img, i, e, out));
		if (tsi_jpeg_index_get(x, i, &k))
			check[i] = k.check;
	}
	tsi_image_destroy(img);
	return x;
}

static void seed(const char *folder, const char *name, uint64_t memory,
		 uint32_t epochs)
{
	struct tsi_jpeg_index *x = recorded(memory, epochs);
	uint8_t bytes[MOST] = { 0 }, *entry;
	char still[32];
	ssize_t len;

	never(ftruncate(file, 0) || lseek(file, 0, SEEK_SET));
	never(!tsi_jpeg_index_write(x, KEY, file));
	len = pread(file, bytes + 1, sizeof(bytes) - 1, 0);
	never(len <= 0);
	if (folder)
		corpus_put(folder, name, bytes, (size_t)len + 1);
	/* And one with a row that has no bits. */
	entry = bytes + 1 + sizeof(struct head) + sizeof(struct block) +
		sizeof(struct record);
	memcpy(entry + 8, entry, 8);
	snprintf(still, sizeof(still), "%s-still", name);
	if (folder)
		corpus_put(folder, still, bytes, (size_t)len + 1);
	tsi_jpeg_index_destroy(x);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-max_len=16384" };
	const char *folder = corpus_folder(*argc, *argv);

	file = memfd_create("fuzz", MFD_CLOEXEC);
	again = memfd_create("fuzz", MFD_CLOEXEC);
	never(file < 0 || again < 0);
	make_images();
	plain = new_decoder(NULL);
	seed(folder, "columns", MEMORY, 4);
	seed(folder, "rows", 2000, 4);
	seed(folder, "begun", MEMORY, 1);
	corpus_limits(argc, argv, flag, 1);
	return 0;
}

/* ---- the test ---- */

static void mend_records(uint8_t *at, uint64_t len)
{
	struct record r;

	while (len >= sizeof(r)) {
		struct tsi_jpeg_kept k;
		uint64_t n;

		memcpy(&r, at, sizeof(r));
		r.check = check[r.file % FILES];
		memcpy(at, &r, sizeof(r));
		k = (struct tsi_jpeg_kept){ .across = r.across,
					    .rows = r.rows,
					    .step = r.step };
		n = tsi_jpeg_kept_entries(&k);
		if (n > (len - sizeof(r)) / 8)
			return;
		at += sizeof(r) + n * 8;
		len -= sizeof(r) + n * 8;
	}
}

static void mend(uint8_t *bytes, size_t len, bool checks)
{
	struct head h = { "tsockrow", 1, 0x01020304, KEY, FILES, 0 };
	struct block b;
	uint64_t chain;
	size_t at = sizeof(h);

	if (len < sizeof(h))
		return;
	h.checksum = tsi_hash(&h, offsetof(struct head, checksum), 0);
	memcpy(bytes, &h, sizeof(h));
	chain = h.checksum;
	while (len - at >= sizeof(b)) {
		memcpy(&b, bytes + at, sizeof(b));
		if (b.len > len - at - sizeof(b))
			return;
		if (checks)
			mend_records(bytes + at + sizeof(b), b.len);
		b.checksum = tsi_hash(bytes + at + sizeof(b), b.len,
				      tsi_hash(&b.len, sizeof(b.len), chain));
		memcpy(bytes + at, &b, sizeof(b));
		chain = b.checksum;
		at += sizeof(b) + b.len;
	}
}

/* What make() and append() of jpeg/index.c could have left. */
static uint64_t check_file(const struct tsi_jpeg_kept *k)
{
	uint64_t n = tsi_jpeg_kept_entries(k), bit = 0;

	never(!k->across || !k->down || k->rows > k->down);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t next = k->entry[i] & (TSI_JPEG_SCAN_BITS - 1);

		never(next <= bit);
		bit = next;
	}
	return (uint64_t)k->rows + k->ends;
}

static void check_equal(const struct tsi_jpeg_index *x,
			const struct tsi_jpeg_index *y)
{
	struct tsi_jpeg_kept a, b;

	for (unsigned i = 0; i < FILES; i++) {
		bool is = tsi_jpeg_index_get(x, i, &a);

		never(is != tsi_jpeg_index_get(y, i, &b));
		if (!is)
			continue;
		never(a.check != b.check || a.across != b.across ||
		      a.down != b.down || a.rows != b.rows ||
		      a.step != b.step || a.ends != b.ends);
		never(memcmp(a.entry, b.entry, tsi_jpeg_kept_entries(&a) * 8));
	}
}

static void write_again(const struct tsi_jpeg_index *x)
{
	struct tsi_jpeg_index *y = new_index(1 << 20);

	never(ftruncate(again, 0) || lseek(again, 0, SEEK_SET));
	never(!tsi_jpeg_index_write(x, KEY, again));
	never(lseek(again, 0, SEEK_SET));
	never(tsi_jpeg_index_read(y, KEY, again) != tsi_jpeg_index_rows(x));
	check_equal(x, y);
	tsi_jpeg_index_destroy(y);
}

/*
 * By entries that are made up the pixels of a file may be others, and no more
 * than that; entries of another file of that name change nothing.
 */
static void use(struct tsi_jpeg_index *x, unsigned i, bool honest)
{
	struct tsi_image *img = new_decoder(x);
	uint8_t a[SIZE * SIZE * 3], b[SIZE * SIZE * 3];

	for (uint32_t epoch = 0; epoch < 3; epoch++) {
		int err = load(img, i, epoch, a);

		never(err && err != TSOCK_EDATA);
		if (!honest)
			continue;
		never(err || load(plain, i, epoch, b));
		never(memcmp(a, b, sizeof(a)));
	}
	tsi_image_destroy(img);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t rows, sum = 0, memory = MEMORY;
	struct tsi_jpeg_index *x;
	struct tsi_jpeg_kept k;
	uint8_t *copy;

	if (size < 1 || size > MOST)
		return 0;
	copy = malloc(size);
	never(!copy);
	memcpy(copy, data + 1, size - 1);
	if (!(data[0] & 1))
		mend(copy, size - 1, !(data[0] & 2));
	if (data[0] & 4)
		memory = 600 + 8 * (data[0] & 0xf0);
	never(ftruncate(file, 0) || lseek(file, 0, SEEK_SET));
	never(pwrite(file, copy, size - 1, 0) != (ssize_t)size - 1);
	free(copy);

	x = new_index(memory);
	rows = tsi_jpeg_index_read(x, KEY, file);
	for (unsigned i = 0; i < FILES; i++)
		if (tsi_jpeg_index_get(x, i, &k))
			sum += check_file(&k);
	/* The first one of two records of one file stays. */
	never(sum > rows || tsi_jpeg_index_rows(x) != sum);
	never(tsi_jpeg_index_memory(x) > memory);
	if (sum)
		write_again(x);
	for (unsigned i = 0; i < FILES; i++)
		if (tsi_jpeg_index_get(x, i, &k))
			use(x, i, k.check != check[i]);
	tsi_jpeg_index_destroy(x);
	return 0;
}
