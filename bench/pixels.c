/* SPDX-License-Identifier: MIT */
/*
 * pixels.c - from a JPEG's coefficients in memory to pixels and to a sample, by
 * each kind of vector code, beside libjpeg-turbo's whole decode of the file.
 *
 *   transform   blocks of coefficients to samples
 *   image       coefficients to pixels: the whole image
 *   crop        the same for the train preset's box, in the planes or pixels
 *               that the resampler takes
 *   sample      the same and the resampler, to 224 x 224
 *
 * One pinned thread; all take turns on each image, and of an image's passes the
 * least counts.  The spread is that of the passes' ratios, of which each is the
 * median of all images.  What resampling costs behind decoding is "sample" less
 * "crop".
 *
 * usage: pixels DIR
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "bench/files.h"
#include "bench/libjpeg.h"
#include "transforms/resized_crop.h"
#include "jpeg/entropy.h"
#include "jpeg/kernel.h"
#include "jpeg/pixels.h"
#include "resample/resample.h"

#define SIZE 224
#define MAX_FILES 120
#define KINDS TSI_SIMD_LEVELS
#define MAX_PASSES 9
#define SCALAR_PASSES 2

enum arm { TRANSFORM, IMAGE, CROP, SAMPLE, ARMS };

struct file {
	unsigned char *data;
	size_t len;
	struct tsi_jpeg_frame frame;
	struct tsi_jpeg_blocks blocks;
	struct tsi_box box;
	double libjpeg_ns;
	double ns[KINDS][ARMS];
};

/* What each pass over a file took. */
struct pass {
	double libjpeg_ns;
	double ns[KINDS][ARMS];
};

struct kind {
	const char *name;
	struct tsi_jpeg_kernel kernel;
	struct tsi_jpeg_pixels *pixels;
	struct tsi_resample *resample;
};

static struct file files[MAX_FILES];
static size_t nfiles, nskipped;
static struct kind kinds[KINDS];
static size_t nkinds;
static struct pass pass_of[MAX_FILES][MAX_PASSES];
static uint8_t *room; /* for a row of blocks, or 16 rows of pixels */
static uint8_t sample[SIZE * SIZE * 3];

static void by_libjpeg(const struct file *f)
{
	struct jpeg_decompress_struct c;
	struct bench_libjpeg e;

	c.err = bench_libjpeg_errors(&e);
	jpeg_create_decompress(&c);
	if (setjmp(e.out))
		bench_die("libjpeg can't decode a file that was read before");
	jpeg_mem_src(&c, f->data, (unsigned long)f->len);
	jpeg_read_header(&c, TRUE);
	jpeg_start_decompress(&c);
	while (c.output_scanline < c.output_height) {
		JSAMPROW rows[16];

		for (size_t i = 0; i < 16; i++)
			rows[i] = room + i * c.output_width * 3;
		jpeg_read_scanlines(&c, rows, 16);
	}
	jpeg_finish_decompress(&c);
	jpeg_destroy_decompress(&c);
}

static void by_transform(const struct kind *k, const struct file *f)
{
	const struct tsi_jpeg_frame *fr = &f->frame;

	for (int c = 0; c < fr->comps; c++) {
		uint32_t across = f->blocks.stride[c];
		uint32_t down = fr->mcus_down * fr->comp[c].v;

		for (uint32_t y = 0; y < down; y++) {
			size_t at = (size_t)y * across;

			k->kernel.idct((const int16_t(*)[64])f->blocks.coef[c] +
					       at,
				       f->blocks.last[c] + at, across,
				       fr->comp[c].quant, room,
				       (size_t)across * 8 + TSI_JPEG_SLACK);
		}
	}
}

static void by_pixels(const struct kind *k, const struct file *f, enum arm arm)
{
	const struct tsi_box *box = &f->box;
	struct tsi_rect r = { 0, 0, f->frame.width, f->frame.height };
	struct tsi_axis x = { .in = (uint32_t)box->width,
			      .out = SIZE,
			      .count = SIZE,
			      .mirror = box->flip };
	struct tsi_axis y = { .in = (uint32_t)box->height,
			      .out = SIZE,
			      .count = SIZE };
	struct tsi_jpeg_area area;
	struct tsi_strip strip;
	int err = 0;

	if (arm != IMAGE) {
		err = tsi_resample_begin(k->resample, &x, &y, TSI_PASSES_13,
					 tsi_jpeg_pixels_has_planes(k->pixels),
					 sample, (size_t)SIZE * 3, &r);
		r.left += (uint32_t)box->left;
		r.top += (uint32_t)box->top;
	}
	tsi_jpeg_pixels_area(&f->frame, &r, 0, &area);
	if (!err)
		err = tsi_jpeg_pixels_begin(
			k->pixels, &f->frame, &r, 0,
			arm != IMAGE && tsi_resample_planes(k->resample));
	if (err)
		bench_die("%s", tsock_errmsg());
	for (uint32_t i = 0; i < area.down; i++) {
		tsi_jpeg_pixels_push(k->pixels, &f->blocks, area.top + i);
		while (tsi_jpeg_pixels_read(k->pixels, &strip))
			if (arm == SAMPLE)
				tsi_resample_push(k->resample, &strip);
	}
}

static bool read_blocks(struct tsi_jpeg_entropy *e, struct file *f)
{
	struct tsi_jpeg_entry next = { 0 };
	struct tsi_jpeg_blocks b = f->blocks;

	b.area.down = 1;
	for (b.area.top = 0; b.area.top < f->frame.mcus_down; b.area.top++) {
		struct tsi_jpeg_entry row = next;

		if (!tsi_jpeg_entropy_record(e, &row, &b, 0, NULL, &next))
			return false;
		for (int c = 0; c < f->frame.comps; c++) {
			size_t n = (size_t)b.stride[c] * f->frame.comp[c].v;

			b.coef[c] += n;
			b.last[c] += n;
		}
	}
	return true;
}

static void free_blocks(struct file *f)
{
	for (int c = 0; c < TSI_JPEG_COMPS; c++) {
		free(f->blocks.coef[c]);
		free(f->blocks.last[c]);
	}
}

/* A box of the train preset. */
static void draw_box(struct file *f, uint64_t i)
{
	static const struct tsi_crop_range usual = { { 0.08, 1 },
						     { 3 / 4.0, 4 / 3.0 } };
	struct tsi_words words = tsi_words_of(1, 0, i, 0);
	struct tsi_crop_box box;

	tsi_crop_draw(&usual, &words, f->frame.width, f->frame.height, &box);
	f->box = (struct tsi_box){ .top = (int32_t)box.top,
				   .left = (int32_t)box.left,
				   .height = (int32_t)box.height,
				   .width = (int32_t)box.width };
}

/* The coefficients of f; false: not a file for our decoder. */
static bool prepare(struct tsi_jpeg_entropy *e, struct file *f, size_t i)
{
	struct tsi_jpeg_scan scan;

	if (!tsi_jpeg_scan_read(f->data, f->len, &scan) ||
	    !tsi_jpeg_pixels_can(&scan.frame))
		return false;
	f->frame = scan.frame;
	f->blocks.area.across = f->frame.mcus_across;
	f->blocks.area.down = f->frame.mcus_down;
	for (int c = 0; c < f->frame.comps; c++) {
		uint32_t across = f->frame.mcus_across * f->frame.comp[c].h;
		size_t n = (size_t)across * f->frame.mcus_down *
			   f->frame.comp[c].v;

		f->blocks.stride[c] = across;
		f->blocks.coef[c] = aligned_alloc(64, n * 128);
		f->blocks.last[c] = malloc(n);
		if (!f->blocks.coef[c] || !f->blocks.last[c])
			bench_die("no memory");
	}
	tsi_jpeg_entropy_open(e, &scan, f->data, f->len);
	draw_box(f, i);
	return read_blocks(e, f);
}

static bool take(void *arg, size_t i, uint8_t *data, size_t len)
{
	struct file *f = &files[i];

	*f = (struct file){ .data = data, .len = len };
	if (prepare(arg, f, i))
		return true;
	free_blocks(f);
	return false;
}

static void make_kinds(void)
{
	for (enum tsi_simd l = TSI_SIMD_SCALAR; l <= tsi_simd_best(); l++) {
		struct kind *k = &kinds[nkinds++];

		if (tsi_jpeg_pixels_create(l, &k->pixels) ||
		    tsi_resample_create(l, &k->resample))
			bench_die("%s", tsock_errmsg());
		tsi_jpeg_kernel_init(&k->kernel, l);
		k->name = tsi_simd_name(l);
	}
}

static void keep_least(double *least, double *of_pass, int64_t from, int pass)
{
	double ns = (double)(tsi_now_ns() - from);

	*of_pass = ns;
	if (!pass || ns < *least)
		*least = ns;
}

static void measure(struct file *f, int passes)
{
	for (int p = 0; p < passes; p++) {
		struct pass *pass = &pass_of[f - files][p];
		int64_t from = tsi_now_ns();

		by_libjpeg(f);
		keep_least(&f->libjpeg_ns, &pass->libjpeg_ns, from, p);
		for (size_t i = 0; i < nkinds; i++) {
			/* The scalar code is slow, and its time is even. */
			if (i == 0 && p >= SCALAR_PASSES)
				continue;
			for (enum arm a = 0; a < ARMS; a++) {
				from = tsi_now_ns();
				if (a == TRANSFORM)
					by_transform(&kinds[i], f);
				else
					by_pixels(&kinds[i], f, a);
				keep_least(&f->ns[i][a], &pass->ns[i][a], from,
					   p);
			}
		}
	}
}

/* The spread of libjpeg's time to an arm's, less another one's if not ARMS. */
static double spread(size_t kind, enum arm arm, enum arm less, int passes)
{
	int n = kind == 0 && passes > SCALAR_PASSES ? SCALAR_PASSES : passes;
	double v[MAX_PASSES], of_file[MAX_FILES];

	for (int p = 0; p < n; p++) {
		for (size_t i = 0; i < nfiles; i++) {
			const struct pass *pass = &pass_of[i][p];
			double ns = pass->ns[kind][arm];

			if (less != ARMS)
				ns -= pass->ns[kind][less];
			of_file[i] = pass->libjpeg_ns / ns;
		}
		v[p] = bench_median(of_file, nfiles);
	}
	return bench_spread(v, (size_t)n);
}

static void print(const char *kind, const char *what, double ns, double count,
		  const char *unit, double libjpeg_ns, double spread_of_ratio)
{
	char name[64];
	struct bench_result r = {
		.bench = "pixels",
		.name = name,
		.value = ns / count,
		.unit = unit,
		.against = "libjpeg, the file",
		.ratio = libjpeg_ns / ns,
		.spread = spread_of_ratio,
	};

	snprintf(name, sizeof(name), "%s, %s", what, kind);
	bench_print(&r);
}

static void report(int passes)
{
	double blocks = 0, image = 0, n = (double)nfiles * 1e3, libjpeg_ns = 0;

	for (size_t i = 0; i < nfiles; i++) {
		const struct tsi_jpeg_frame *fr = &files[i].frame;

		libjpeg_ns += files[i].libjpeg_ns;
		image += (double)fr->width * fr->height;
		for (int c = 0; c < fr->comps; c++)
			blocks += (double)files[i].blocks.stride[c] *
				  fr->mcus_down * fr->comp[c].v;
	}
	bench_head("pixels: one thread, from coefficients in memory");
	for (size_t i = 0; i < nkinds; i++) {
		double sum[ARMS] = { 0 };

		for (size_t k = 0; k < nfiles; k++)
			for (int a = 0; a < ARMS; a++)
				sum[a] += files[k].ns[i][a];
		print(kinds[i].name, "transform", sum[TRANSFORM], blocks,
		      "ns/block", libjpeg_ns,
		      spread(i, TRANSFORM, ARMS, passes));
		print(kinds[i].name, "image", sum[IMAGE], image, "ns/pixel",
		      libjpeg_ns, spread(i, IMAGE, ARMS, passes));
		print(kinds[i].name, "crop", sum[CROP], n, "us/image",
		      libjpeg_ns, spread(i, CROP, ARMS, passes));
		print(kinds[i].name, "resampling behind it",
		      sum[SAMPLE] - sum[CROP], n, "us/image", libjpeg_ns,
		      spread(i, SAMPLE, CROP, passes));
		print(kinds[i].name, "sample", sum[SAMPLE], n, "us/image",
		      libjpeg_ns, spread(i, SAMPLE, ARMS, passes));
	}
}

static void set_up(const char *folder)
{
	struct tsi_jpeg_entropy *e;
	size_t most = 0;

	if (tsi_jpeg_entropy_create(TSI_SIMD_BEST, &e))
		bench_die("%s", tsock_errmsg());
	nfiles = bench_files_read(folder, MAX_FILES, take, e, &nskipped);
	tsi_jpeg_entropy_destroy(e);
	if (!nfiles)
		bench_die("no baseline JPEG in %s", folder);
	for (size_t i = 0; i < nfiles; i++)
		if (files[i].frame.mcus_across > most)
			most = files[i].frame.mcus_across;
	/* Sixteen rows of pixels, or eight of samples with their slack. */
	room = malloc(most * 16 * 16 * 3 + (size_t)8 * TSI_JPEG_SLACK);
	if (!room)
		bench_die("no memory");
	make_kinds();
}

int main(int argc, char **argv)
{
	int passes = bench_quick(MAX_PASSES, 2);

	if (argc != 2)
		bench_die("usage: pixels DIR");
	bench_pin(0, 0);
	set_up(argv[1]);
	printf("%zu JPEG files of %s (%zu others left out), %d passes\n",
	       nfiles, argv[1], nskipped, passes);
	for (size_t i = 0; i < nfiles; i++)
		measure(&files[i], passes);
	report(passes);
	for (size_t i = 0; i < nfiles; i++) {
		free_blocks(&files[i]);
		free(files[i].data);
	}
	for (size_t i = 0; i < nkinds; i++) {
		tsi_jpeg_pixels_destroy(kinds[i].pixels);
		tsi_resample_destroy(kinds[i].resample);
	}
	free(room);
	return 0;
}
