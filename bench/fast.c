/* SPDX-License-Identifier: MIT */
/*
 * fast.c - what fast pixels save, and how far they are from the exact ones, for
 * samples of several sizes of the train preset.
 *
 *   exact         a file's bytes to a finished sample, with an index of it
 *   fast          the same, fast
 *   packed exact  the bytes of the file's record to the sample
 *   packed fast   the same, fast
 *
 * One pinned thread.  The four take turns on each image, in another order each
 * pass; of an image's passes the least counts.  Errors are over every byte of
 * all samples.
 *
 * usage: fast DIR
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/load.h"
#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "bench/files.h"
#include "jpeg/index.h"
#include "recipe/preset.h"
#include "packed/record.h"

#define MAX_FILES 240
#define MAX_PASSES 16
#define EPOCHS 3
#define MAX_SIZE 224
#define INDEX_MEMORY (UINT64_C(64) << 20)
#define DECODE_MEMORY (UINT64_C(256) << 20)

enum arm { EXACT, FAST, PACKED_EXACT, PACKED_FAST, ARMS };

static const char *const names[ARMS] = { "exact", "fast", "packed exact",
					 "packed fast" };

struct file {
	uint8_t *data, *record;
	size_t len, record_len;
	double ns[EPOCHS][ARMS][MAX_PASSES];
};

static struct file files[MAX_FILES];
static size_t nfiles;
static uint8_t sample[2][MAX_SIZE * MAX_SIZE * 3];
static struct tsi_image *image[2]; /* exact, fast */

/* How many bytes of all samples are off by so much. */
static uint64_t off[256];
/* How many samples are made of 1/1, 1/2, 1/4 and 1/8 of the image. */
static uint64_t scaled[4];

/* A file without a packed form is left out. */
static bool take(void *arg, size_t i, uint8_t *data, size_t len)
{
	struct file *f = &files[i];
	const uint8_t *record;

	*f = (struct file){ .data = data, .len = len };
	if (tsi_record_pack(arg, data, len, &record, &f->record_len))
		return false;
	f->record = malloc(f->record_len);
	if (!f->record)
		bench_die("no memory");
	memcpy(f->record, record, f->record_len);
	return true;
}

static double timed(enum arm arm, size_t i, uint32_t epoch, struct tsi_box *box)
{
	const struct file *f = &files[i];
	bool packed = arm >= PACKED_EXACT;
	int64_t from = tsi_now_ns();

	if (tsi_image_load_file(image[arm % 2], i, packed ? f->record : f->data,
				packed ? f->record_len : f->len, epoch, i,
				sample[arm % 2], box))
		bench_die("%s", tsock_errmsg());
	return (double)(tsi_now_ns() - from);
}

static void compare(uint32_t size, const struct tsi_box *box)
{
	unsigned n = 3;

	while (n && (box->width < (int32_t)(size << n) ||
		     box->height < (int32_t)(size << n)))
		n--;
	scaled[n]++;
	for (size_t i = 0; i < (size_t)size * size * 3; i++)
		off[abs(sample[0][i] - sample[1][i])]++;
}

static void report_errors(uint32_t size)
{
	uint64_t all = 0, sum = 0, at = 0;
	double squares = 0;
	int p99 = 0, most = 0;

	for (int i = 0; i < 256; i++) {
		all += off[i];
		sum += off[i] * (uint64_t)i;
		squares += (double)off[i] * i * i;
		if (off[i])
			most = i;
	}
	while ((at += off[p99]) * 100 < all * 99)
		p99++;
	printf("%u: fast to exact, levels: mean %.2f, 99 %% within %d, most "
	       "%d; PSNR %.1f dB\n",
	       size, (double)sum / (double)all, p99, most,
	       10 * log10(255.0 * 255.0 * (double)all / squares));
	printf("%u: decoded at 1/1 %ju, 1/2 %ju, 1/4 %ju, 1/8 %ju samples\n",
	       size, (uintmax_t)scaled[0], (uintmax_t)scaled[1],
	       (uintmax_t)scaled[2], (uintmax_t)scaled[3]);
}

static void report(uint32_t size, uint32_t epochs, int passes)
{
	double sum[ARMS] = { 0 }, pass[ARMS][MAX_PASSES] = { 0 };
	double ratio[MAX_PASSES];
	char name[64];

	for (size_t i = 0; i < nfiles * epochs * ARMS; i++) {
		double *ns = files[i / ARMS / epochs]
				     .ns[i / ARMS % epochs][i % ARMS];

		for (int p = 0; p < passes; p++)
			pass[i % ARMS][p] += ns[p];
		bench_median(ns, (size_t)passes);
		sum[i % ARMS] += ns[0]; /* sorted by now */
	}
	for (int arm = 0; arm < ARMS; arm++) {
		struct bench_result r = {
			.bench = "fast",
			.name = name,
			.value = (double)nfiles * epochs / sum[arm] * 1e9,
			.unit = "images/s",
		};

		snprintf(name, sizeof(name), "%u, %s", size, names[arm]);
		r.spread = bench_spread(pass[arm], (size_t)passes);
		if (arm % 2) {
			for (int p = 0; p < passes; p++)
				ratio[p] = pass[arm - 1][p] / pass[arm][p];
			r.against = names[arm - 1];
			r.ratio = sum[arm - 1] / sum[arm];
			r.spread = bench_spread(ratio, (size_t)passes);
		}
		bench_print(&r);
	}
	report_errors(size);
}

static void measure_size(uint32_t size, uint32_t epochs, int passes)
{
	struct tsi_recipe *recipe;
	struct tsi_image_opts o = { .seed = 1 };
	struct tsi_box box;

	if (tsi_preset_recipe(tsi_preset_at(TSI_PRESET_TRAIN), size, 256,
			      &recipe))
		bench_die("%s", tsock_errmsg());
	o.recipe = recipe;
	if (tsi_jpeg_index_create(nfiles, INDEX_MEMORY, &o.jpeg_index) ||
	    tsi_image_create(&o, &image[0]))
		bench_die("%s", tsock_errmsg());
	o.fast = true;
	if (tsi_image_create(&o, &image[1]))
		bench_die("%s", tsock_errmsg());
	memset(off, 0, sizeof(off));
	memset(scaled, 0, sizeof(scaled));
	/* The index grows here, and errors are the same each time. */
	for (size_t i = 0; i < nfiles * epochs; i++) {
		timed(EXACT, i / epochs, (uint32_t)(i % epochs), &box);
		timed(FAST, i / epochs, (uint32_t)(i % epochs), &box);
		compare(size, &box);
	}
	for (int p = 0; p < passes; p++)
		for (size_t i = 0; i < nfiles * epochs; i++)
			for (int a = 0; a < ARMS; a++) {
				enum arm arm = (enum arm)((a + p) % ARMS);
				uint32_t epoch = (uint32_t)(i % epochs);

				files[i / epochs].ns[epoch][arm][p] =
					timed(arm, i / epochs, epoch, &box);
			}
	report(size, epochs, passes);
	tsi_image_destroy(image[0]);
	tsi_image_destroy(image[1]);
	tsi_jpeg_index_destroy(o.jpeg_index);
}

int main(int argc, char **argv)
{
	static const uint32_t sizes[] = { 224, 112, 64 };
	int passes = bench_quick(12, 3), epochs = bench_quick(EPOCHS, 1);
	struct tsi_record_maker *maker;

	if (argc != 2)
		bench_die("usage: fast DIR");
	bench_pin(0, 0);
	if (tsi_record_maker_create(DECODE_MEMORY, &maker))
		bench_die("%s", tsock_errmsg());
	nfiles = bench_files_read(argv[1], MAX_FILES, take, maker, NULL);
	if (!nfiles)
		bench_die("no JPEG that can be packed in %s", argv[1]);
	printf("%zu JPEG files of %s, %d boxes each, %d passes\n", nfiles,
	       argv[1], epochs, passes);
	bench_head("fast: one thread, from bytes in memory");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		measure_size(sizes[i], (uint32_t)epochs, passes);
	for (size_t i = 0; i < nfiles; i++) {
		free(files[i].data);
		free(files[i].record);
	}
	tsi_record_maker_destroy(maker);
	return 0;
}
