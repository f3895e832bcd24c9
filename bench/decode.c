/* SPDX-License-Identifier: MIT */
/*
 * decode.c - images per second and core, from a file's bytes in memory to a
 * finished sample, beside what libjpeg-turbo takes for the same files.
 *
 *   first  decode, random resized crop, flip: the train preset, 224 x 224 u8;
 *          nothing is known of the files, as in a first epoch
 *   later  the same with an index of the files, as in all epochs after it
 *   full   libjpeg-turbo, every pixel of the file, nothing else
 *   roi    libjpeg-turbo's own crop and skip to the chain's box, no resize
 *
 * One pinned thread.  The four take turns on each image, in another order
 * each pass; of an image's passes the median counts.
 *
 * usage: decode DIR
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/load.h"
#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "bench/files.h"
#include "bench/libjpeg.h"
#include "jpeg/index.h"
#include "recipe/preset.h"

#define SIZE 224
#define RESIZE 256
#define MAX_FILES 240
#define INDEX_MEMORY (UINT64_C(64) << 20)
#define MAX_PASSES 16
#define ARMS 4

struct file {
	unsigned char *data;
	size_t len;
	uint32_t width, height;
};

/* One box of one file. */
struct item {
	struct file *file;
	struct tsi_box box;
	uint32_t epoch;
	uint64_t index;
	double ns[ARMS][MAX_PASSES];
};

static struct file files[MAX_FILES];
static size_t nfiles, nskipped;
static unsigned char *pixels; /* of the largest file */
static struct jpeg_decompress_struct jpeg;
static struct bench_libjpeg errors;

static void begin(const struct file *f)
{
	jpeg_mem_src(&jpeg, f->data, (unsigned long)f->len);
	jpeg_read_header(&jpeg, TRUE);
	jpeg.out_color_space = JCS_RGB;
	jpeg_start_decompress(&jpeg);
}

static void read_rows(JDIMENSION until, size_t stride)
{
	unsigned char *at = pixels;

	while (jpeg.output_scanline < until) {
		JSAMPROW rows[4];
		JDIMENSION n;

		for (size_t i = 0; i < 4; i++)
			rows[i] = at + i * stride;
		n = jpeg_read_scanlines(&jpeg, rows, 4);
		at += n * stride;
	}
}

static bool decode_full(const struct file *f)
{
	if (setjmp(errors.out)) {
		jpeg_abort_decompress(&jpeg);
		return false;
	}
	begin(f);
	read_rows(jpeg.output_height, (size_t)jpeg.output_width * 3);
	jpeg_finish_decompress(&jpeg);
	return true;
}

static bool decode_roi(const struct file *f, const struct tsi_box *box)
{
	JDIMENSION x = (JDIMENSION)box->left, w = (JDIMENSION)box->width;

	if (setjmp(errors.out)) {
		jpeg_abort_decompress(&jpeg);
		return false;
	}
	begin(f);
	jpeg_crop_scanline(&jpeg, &x, &w);
	if (box->top)
		jpeg_skip_scanlines(&jpeg, (JDIMENSION)box->top);
	read_rows((JDIMENSION)(box->top + box->height), (size_t)w * 3);
	jpeg_abort_decompress(&jpeg);
	return true;
}

/* What isn't a JPEG that libjpeg turns into RGB by itself is left out. */
static bool usable(struct file *f)
{
	bool ok;

	if (setjmp(errors.out)) {
		jpeg_abort_decompress(&jpeg);
		return false;
	}
	jpeg_mem_src(&jpeg, f->data, (unsigned long)f->len);
	jpeg_read_header(&jpeg, TRUE);
	f->width = jpeg.image_width;
	f->height = jpeg.image_height;
	ok = jpeg.jpeg_color_space == JCS_YCbCr ||
	     jpeg.jpeg_color_space == JCS_GRAYSCALE;
	jpeg_abort_decompress(&jpeg);
	return ok;
}

static bool take(void *arg, size_t i, uint8_t *data, size_t len)
{
	struct file *f = &files[i];

	(void)arg;
	f->data = data;
	f->len = len;
	return usable(f);
}

/* A file's bytes come from another page each time: let nobody pay for that. */
static void warm(const struct file *f)
{
	volatile unsigned char sink = 0;

	for (size_t i = 0; i < f->len; i += 64)
		sink ^= f->data[i];
	(void)sink;
}

static double timed(int arm, struct tsi_image **im, struct item *it,
		    uint8_t *sample)
{
	struct tsi_box box;
	int64_t from;
	bool ok;

	warm(it->file);
	from = tsi_now_ns();
	if (arm < 2)
		ok = !tsi_image_load_file(im[arm], it->index, it->file->data,
					  it->file->len, it->epoch, it->index,
					  sample, &box);
	else if (arm == 2)
		ok = decode_full(it->file);
	else
		ok = decode_roi(it->file, &it->box);
	if (!ok)
		bench_die("an image that decoded once didn't again");
	return (double)(tsi_now_ns() - from);
}

/* Each file with as many boxes as there are epochs; less the damaged ones. */
static struct item *make_items(struct tsi_image *im, uint32_t epochs,
			       uint8_t *sample, size_t *n)
{
	struct item *items = calloc(nfiles * epochs, sizeof(*items));

	if (!items)
		bench_die("no memory");
	*n = 0;
	for (uint32_t e = 0; e < epochs; e++) {
		for (size_t i = 0; i < nfiles; i++) {
			struct item *it = &items[*n];

			it->file = &files[i];
			it->epoch = e;
			it->index = i;
			if (tsi_image_load_file(im, i, files[i].data,
						files[i].len, e, i, sample,
						&it->box) ||
			    !decode_full(&files[i]))
				continue;
			++*n;
		}
	}
	return items;
}

static void report(struct item *items, size_t n, int passes)
{
	static const char *const names[ARMS] = { "first epoch", "later epochs",
						 "full decode", "roi decode" };
	static const char *const best[2] = { "first, best per image",
					     "later, best per image" };
	static const char *const middle[2] = { "first, median per image",
					       "later, median per image" };
	double sum[ARMS] = { 0 }, least[ARMS] = { 0 };
	double pass[ARMS][MAX_PASSES] = { 0 }, ratio[MAX_PASSES];

	for (size_t i = 0; i < n; i++) {
		for (int arm = 0; arm < ARMS; arm++) {
			double *ns = items[i].ns[arm];

			for (int p = 0; p < passes; p++)
				pass[arm][p] += ns[p];
			sum[arm] += bench_median(ns, (size_t)passes);
			least[arm] += ns[0]; /* sorted by now */
		}
	}
	bench_head("decode: one thread, from bytes in memory");
	for (int arm = 0; arm < ARMS; arm++) {
		struct bench_result r = {
			.bench = "decode",
			.name = names[arm],
			.value = (double)n / sum[arm] * 1e9,
			.unit = "images/s",
			.spread = bench_spread(pass[arm], (size_t)passes),
		};

		bench_print(&r);
	}
	for (int i = 0; i < 4; i++) {
		int arm = 2 + i % 2, own = i / 2;
		struct bench_result r = {
			.bench = "decode",
			.name = middle[own],
			.value = (double)n / sum[own] * 1e9,
			.unit = "images/s",
			.against = names[arm],
			.ratio = sum[arm] / sum[own],
		};

		for (int p = 0; p < passes; p++)
			ratio[p] = pass[arm][p] / pass[own][p];
		r.spread = bench_spread(ratio, (size_t)passes);
		bench_print(&r);
		r.name = best[own];
		r.value = (double)n / least[own] * 1e9;
		r.ratio = least[arm] / least[own];
		bench_print(&r);
	}
}

static void set_up_libjpeg(void)
{
	size_t largest = 0;

	for (size_t i = 0; i < nfiles; i++) {
		/* Four rows more: the reader asks for four at a time. */
		size_t need = (size_t)files[i].width * 3 *
			      ((size_t)files[i].height + 4);

		largest = need > largest ? need : largest;
	}
	pixels = malloc(largest);
	if (!pixels)
		bench_die("no memory for %zu bytes of pixels", largest);
	memset(pixels, 0, largest);
}

int main(int argc, char **argv)
{
	struct tsi_recipe *recipe;
	struct tsi_image_opts opts = { .seed = 1 };
	uint8_t *sample = malloc((size_t)SIZE * SIZE * 3);
	int passes = bench_quick(12, 3);
	struct tsi_image *im[2];
	struct item *items;
	size_t n;

	if (argc != 2)
		bench_die("usage: decode DIR");
	if (tsi_preset_recipe(tsi_preset_at(TSI_PRESET_TRAIN), SIZE, RESIZE,
			      &recipe))
		bench_die("%s", tsock_errmsg());
	opts.recipe = recipe;
	bench_pin(0, 0);
	jpeg.err = bench_libjpeg_errors(&errors);
	jpeg_create_decompress(&jpeg);
	nfiles = bench_files_read(argv[1], MAX_FILES, take, NULL, &nskipped);
	if (!nfiles)
		bench_die("no JPEG in %s", argv[1]);
	set_up_libjpeg();
	if (!sample || tsi_image_create(&opts, &im[0]) ||
	    tsi_jpeg_index_create(nfiles, INDEX_MEMORY, &opts.jpeg_index) ||
	    tsi_image_create(&opts, &im[1]))
		bench_die("%s", tsock_errmsg());
	items = make_items(im[1], (uint32_t)bench_quick(3, 1), sample, &n);
	printf("%zu JPEG files of %s (%zu others left out), %zu boxes, "
	       "%d passes\n",
	       nfiles, argv[1], nskipped, n, passes);
	for (int p = 0; p < passes; p++)
		for (size_t i = 0; i < n; i++)
			for (int a = 0; a < ARMS; a++) {
				int arm = (a + p) % ARMS;

				items[i].ns[arm][p] =
					timed(arm, im, &items[i], sample);
			}
	report(items, n, passes);
	for (size_t i = 0; i < nfiles; i++)
		free(files[i].data);
	free(pixels);
	free(items);
	free(sample);
	tsi_image_destroy(im[0]);
	tsi_image_destroy(im[1]);
	tsi_jpeg_index_destroy(opts.jpeg_index);
	jpeg_destroy_decompress(&jpeg);
	return 0;
}
