/* SPDX-License-Identifier: MIT */
/*
 * fuzz_image.c - any bytes are a sample or an error, within bounds of memory
 * and time; and a sample is the same from a decoder that has seen a thousand
 * files as from a fresh one.
 *
 * An input is a file with TRAILER bytes behind it that say what to make of it.
 * Large images cost a second each, so they are tried now and then only, and
 * always when an input is the first of its run.
 */
#include <time.h>

#include "image/load.h"
#include "image/sniff.h"
#include "base/err.h"
#include "corpus.h"
#include "pixel/wrapped.h"
#include "test/lib/made_image.h"
#include "test/lib/recipes.h"
#include "tsock/tsock.h"

#define TRAILER 8
#define LARGE (UINT64_C(1) << 21) /* pixels */
#define LARGE_EVERY_S 10
#define SIZE_MAX_HERE 224u
/* Every option has a decoder of its own, which is never made anew. */
static struct tsi_image *veteran[64];

static struct tsi_image_opts options(unsigned how)
{
	static const uint32_t size[4] = { 1, 17, 64, SIZE_MAX_HERE };
	uint32_t edge = size[how >> 1 & 3];

	return (struct tsi_image_opts){
		.recipe = how & 1 ? recipes_eval(how & 8 ? 5 : 73, edge)
				  : recipes_train(edge),
		.seed = 1,
		.pillow = how & 16 ? 12 : 0,
		.fast = how & 32,
	};
}

/* ---- seeds ---- */

static void put(const char *folder, const char *name, const struct made *m,
		unsigned how)
{
	static uint8_t bytes[sizeof(m->bytes) + TRAILER];

	memcpy(bytes, m->bytes, m->len);
	memset(bytes + m->len, 0, TRAILER);
	bytes[m->len] = (uint8_t)how;
	corpus_put(folder, name, bytes, m->len + TRAILER);
}

static void seed_jpegs(const char *folder)
{
	static const unsigned sof[] = { 0xc0, 0xc1, 0xc2, 0xc9, 0xca };
	static const unsigned sampling[] = { 0x11, 0x21, 0x12, 0x22, 0x41 };
	static const unsigned parts[] = { 1, 3, 4 };
	static struct made m;
	char name[64];

	for (unsigned i = 0; i < 5 * 5 * 3; i++) {
		struct made_image_jpeg j = { .sof = sof[i % 5],
					     .sampling = sampling[i / 5 % 5],
					     .parts = parts[i / 25],
					     .width = 20 + i,
					     .height = 90 - i,
					     .scans = 1 + i % 3,
					     .data = 150,
					     .restart = i % 4 };

		made_image_jpeg(&m, &j);
		snprintf(name, sizeof(name), "jpeg-%u", i);
		put(folder, name, &m, i);
	}
}

/* Little bytes, much work. */
static const struct made_image_jpeg bomb[] = {
	{ .sof = 0xc0,
	  .width = 13000,
	  .height = 13000,
	  .parts = 3,
	  .sampling = 0x11,
	  .scans = 1,
	  .data = 20000 },
	{ .sof = 0xc2,
	  .width = 13000,
	  .height = 13000,
	  .parts = 3,
	  .sampling = 0x11,
	  .scans = 120,
	  .data = 3 },
	{ .sof = 0xc2,
	  .width = 13000,
	  .height = 13000,
	  .parts = 4,
	  .sampling = 0x11,
	  .scans = 90,
	  .data = 3 },
	{ .sof = 0xc2,
	  .width = 13000,
	  .height = 13000,
	  .parts = 1,
	  .sampling = 0x11,
	  .scans = 200,
	  .data = 3 },
	{ .sof = 0xc2,
	  .width = 1024,
	  .height = 1024,
	  .parts = 3,
	  .sampling = 0x11,
	  .scans = 120,
	  .data = 3 },
	{ .sof = 0xca,
	  .width = 4096,
	  .height = 4096,
	  .parts = 3,
	  .sampling = 0x22,
	  .scans = 120,
	  .data = 3 },
	{ .sof = 0xc9,
	  .width = 65500,
	  .height = 2700,
	  .parts = 3,
	  .sampling = 0x22,
	  .scans = 1,
	  .data = 3000 },
	{ .sof = 0xc2,
	  .width = 65500,
	  .height = 2700,
	  .parts = 3,
	  .sampling = 0x22,
	  .scans = 1,
	  .data = 3000 },
	{ .sof = 0xc0,
	  .width = 65500,
	  .height = 65500,
	  .parts = 3,
	  .sampling = 0x22,
	  .scans = 1,
	  .data = 30 },
	{ .sof = 0xc0,
	  .width = 1,
	  .height = 65500,
	  .parts = 3,
	  .sampling = 0x22,
	  .scans = 1,
	  .data = 30000 },
};

static void seed_bombs(const char *folder)
{
	static struct made m;
	char name[64];

	for (unsigned i = 0; i < sizeof(bomb) / sizeof(bomb[0]); i++) {
		made_image_jpeg(&m, &bomb[i]);
		snprintf(name, sizeof(name), "bomb-%u", i);
		put(folder, name, &m, 1 | 6);
	}
}

static void seed_pngs(const char *folder)
{
	static const struct {
		unsigned type, depth;
	} kind[] = { { 0, 1 }, { 0, 2 }, { 0, 8 }, { 2, 8 }, { 3, 1 },
		     { 3, 4 }, { 3, 8 }, { 4, 8 }, { 6, 8 } };
	static struct made m;
	char name[64];

	for (unsigned i = 0; i < 18; i++) {
		made_image_png(&m, 9 + i * 3, 30 - i, kind[i / 2].type,
			       kind[i / 2].depth, i & 1);
		snprintf(name, sizeof(name), "png-%u", i);
		put(folder, name, &m, i);
	}
}

static void seed_file(const char *folder, const char *from, const char *name)
{
	static struct made m;
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", from, name);
	f = fopen(path, "rb");
	if (!f)
		return;
	m.len = fread(m.bytes, 1, sizeof(m.bytes), f);
	if (feof(f))
		put(folder, name, &m, (unsigned)m.len);
	fclose(f);
}

static void seed_hostile(const char *folder)
{
	const char *data = getenv("TSOCK_TEST_DATA");
	char from[2048];
	struct dirent *e;
	DIR *d;

	snprintf(from, sizeof(from), "%s/jpeg-hostile",
		 data ? data : "../shared/data");
	d = opendir(from);
	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.')
			seed_file(folder, from, e->d_name);
	if (d)
		closedir(d);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const flag[] = { "-rss_limit_mb=4096",
					    "-malloc_limit_mb=2048",
					    "-timeout=60", "-max_len=16384" };
	const char *folder = corpus_folder(*argc, *argv);

	if (folder) {
		seed_jpegs(folder);
		seed_bombs(folder);
		seed_pngs(folder);
		seed_hostile(folder);
	}
	corpus_limits(argc, argv, flag, 3);
	return 0;
}

/* ---- the test ---- */

/*
 * What the whole is, by all but a checksum in front of it, which a beginning
 * can't be compared with: a wrong one is put right.
 */
static int sniff_file(const uint8_t *data, size_t len,
		      struct tsi_image_head *head)
{
	const void *file = data;
	size_t bytes = len;
	uint8_t *copy;
	int err;

	if (!tsi_wrapped_open(&file, &bytes, true))
		return tsi_image_sniff(data, len, true, head);
	copy = malloc(len);
	never(!copy);
	memcpy(copy, data, len);
	tsi_wrapped_head(copy + TSI_WRAPPED_HEAD, len - TSI_WRAPPED_HEAD, copy);
	err = tsi_image_sniff(copy, len, true, head);
	free(copy);
	return err;
}

/* What a beginning is said to be, the whole is; EAGAIN excepted. */
static void check_beginnings(const uint8_t *data, size_t len)
{
	struct tsi_image_head head = { 0 };
	int err = sniff_file(data, len, &head);

	for (size_t n = 0; n < len; n += n < 64 ? 1 : n / 3) {
		struct tsi_image_head h = { 0 };
		/* Copied: a byte too far is one beyond the heap block. */
		uint8_t *copy = malloc(n ? n : 1);
		int e;

		never(!copy);
		memcpy(copy, data, n);
		e = tsi_image_sniff(copy, n, false, &h);
		free(copy);
		never(e != TSOCK_EAGAIN && e != err);
		never(!e && memcmp(&h, &head, sizeof(h)));
	}
}

static int check_sniff(const uint8_t *data, size_t len,
		       struct tsi_image_head *head)
{
	int err = tsi_image_sniff(data, len, true, head);

	never(err == TSOCK_EAGAIN || err > 0);
	check_beginnings(data, len);
	return err;
}

static bool large(const struct tsi_image_head *head)
{
	return (uint64_t)head->width * head->height >= LARGE;
}

static bool too_large_now(const struct tsi_image_head *head)
{
	static time_t last;
	time_t now = time(NULL);

	if (!large(head))
		return false;
	if (last && now - last < LARGE_EVERY_S)
		return true;
	last = now;
	return false;
}

static void check_box(const struct tsi_box *box,
		      const struct tsi_image_head *head, bool eval)
{
	if (eval)
		return;
	never(box->top < 0 || box->left < 0 || box->height < 1 ||
	      box->width < 1);
	never((uint32_t)box->top + (uint32_t)box->height > head->height ||
	      (uint32_t)box->left + (uint32_t)box->width > head->width);
}

static int load(struct tsi_image *img, const uint8_t *data, size_t len,
		uint64_t index, const struct tsi_image_head *head, bool eval,
		uint8_t *dst)
{
	struct tsi_box box;
	int err = tsi_image_load(img, data, len, 3, index, dst, &box);

	never(err && err != TSOCK_EDATA && err != TSOCK_ENOMEM);
	if (!err)
		check_box(&box, head, eval);
	return err;
}

static void check_load(const uint8_t *data, size_t len, unsigned how,
		       uint64_t index, const struct tsi_image_head *head)
{
	struct tsi_image_opts o = options(how);
	bool eval = how & 1;
	size_t bytes =
		(size_t)o.recipe->view[0].width * o.recipe->view[0].height * 3;
	uint8_t *a = malloc(bytes), *b = malloc(bytes);
	struct tsi_image *fresh;
	int err;

	never(!a || !b);
	if (!veteran[how])
		never(tsi_image_create(&o, &veteran[how]));
	err = load(veteran[how], data, len, index, head, eval, a);
	if (!large(head)) {
		never(tsi_image_create(&o, &fresh));
		never(load(fresh, data, len, index, head, eval, b) != err);
		never(!err && memcmp(a, b, bytes));
		tsi_image_destroy(fresh);
	}
	free(a);
	free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tsi_image_head head = { 0 };
	size_t len;
	uint8_t *copy;
	uint64_t index;
	unsigned how;

	if (size < TRAILER)
		return 0;
	len = size - TRAILER;
	how = data[len] % 64;
	memcpy(&index, data + len, sizeof(index));
	copy = malloc(len ? len : 1);
	never(!copy);
	memcpy(copy, data, len);
	if (!check_sniff(copy, len, &head) && !too_large_now(&head)) {
		check_load(copy, len, how, index, &head);
		if (!large(&head))
			check_load(copy, len, how ^ 1, index, &head);
	}
	free(copy);
	return 0;
}
