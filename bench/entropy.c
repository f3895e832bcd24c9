/* SPDX-License-Identifier: MIT */
/*
 * entropy.c - cycles for a byte of Huffman-coded data, beside libjpeg-turbo's
 * for the same files.
 *
 *   libjpeg    jpeg_read_coefficients()
 *   record     our decoder from the top, recording where rows and columns begin
 *   four       our decoder, entered at each row, four of them at a time
 *   sixteen    with AVX-512, entered at columns too, sixteen pieces at a time
 *
 * Tables and unstuffing are in all of them.  One pinned thread; they take turns
 * on each image; of an image's passes the least counts.  The spread is
 * that of the passes, each of which has the median of its images: of the ratio,
 * and for libjpeg of its time.  A cycle is what one addition takes in a chain
 * of additions.
 *
 * usage: entropy DIR
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "bench/files.h"
#include "bench/libjpeg.h"
#include "jpeg/entropy.h"
#include "jpeg/index.h"

#define MAX_FILES 240
#define MAX_PASSES 16
#define ARMS 4

struct file {
	unsigned char *data;
	size_t len;
	struct tsi_jpeg_scan scan;
	struct tsi_jpeg_piece *row;
	struct tsi_jpeg_piece *piece; /* of all rows */
	uint32_t pieces;
	struct tsi_jpeg_entry *column; /* room for those of a row */
	double ns[ARMS];
};

static struct file files[MAX_FILES];
static size_t nfiles, nskipped;
static double pass_ns[MAX_PASSES][ARMS][MAX_FILES];
static struct tsi_jpeg_entropy *entropy, *wide; /* wide: or NULL */
static struct bench_libjpeg errors;

/* The time of one decode by libjpeg; 0: it can't. */
static double by_libjpeg(const struct file *f)
{
	struct jpeg_decompress_struct c;
	int64_t from;
	double ns;

	c.err = bench_libjpeg_errors(&errors);
	jpeg_create_decompress(&c);
	if (setjmp(errors.out)) {
		jpeg_destroy_decompress(&c);
		return 0;
	}
	jpeg_mem_src(&c, f->data, (unsigned long)f->len);
	jpeg_read_header(&c, TRUE);
	from = tsi_now_ns();
	jpeg_read_coefficients(&c);
	ns = (double)(tsi_now_ns() - from);
	jpeg_destroy_decompress(&c);
	return ns;
}

static struct tsi_jpeg_blocks blocks;

/* Memory for the blocks of any of the files. */
static void make_blocks(void)
{
	size_t most = 0;

	for (size_t i = 0; i < nfiles; i++) {
		const struct tsi_jpeg_frame *f = &files[i].scan.frame;
		size_t n = (size_t)f->mcus_across * f->h_max * f->v_max *
			   f->mcus_down;

		most = n > most ? n : most;
	}
	for (int c = 0; c < TSI_JPEG_COMPS; c++) {
		blocks.coef[c] = aligned_alloc(64, most * 128);
		blocks.last[c] = malloc(most);
		if (!blocks.coef[c] || !blocks.last[c])
			bench_die("no memory");
		memset(blocks.coef[c], 0, most * 128);
		memset(blocks.last[c], 0, most);
	}
}

static void set_area(const struct tsi_jpeg_frame *f, uint32_t top,
		     uint32_t down)
{
	blocks.area = (struct tsi_jpeg_area){ 0, top, f->mcus_across, down };
	for (int c = 0; c < f->comps; c++)
		blocks.stride[c] = f->mcus_across * f->comp[c].h;
}

/* Cut a row that was recorded at its columns. */
static void cut(struct file *f, const struct tsi_jpeg_piece *row)
{
	const uint32_t step = TSI_JPEG_INDEX_STEP;

	for (uint32_t x = 0; x < row->right; x += step) {
		struct tsi_jpeg_piece *p = &f->piece[f->pieces++];
		bool last = row->right - x <= step;

		*p = *row;
		if (x)
			p->entry = f->column[x / step - 1];
		p->column = p->left = x;
		p->right = last ? row->right : x + step;
		p->end = last ? row->end : f->column[x / step].bit / 8 + 1;
	}
}

static bool by_record(struct file *f)
{
	const struct tsi_jpeg_frame *fr = &f->scan.frame;
	struct tsi_jpeg_entry next = { 0 };

	f->pieces = 0;
	tsi_jpeg_entropy_open(entropy, &f->scan, f->data, f->len);
	for (uint32_t y = 0; y < fr->mcus_down; y++) {
		struct tsi_jpeg_piece *p = &f->row[y];

		*p = (struct tsi_jpeg_piece){ .entry = next,
					      .row = y,
					      .right = fr->mcus_across };
		set_area(fr, y, 1);
		if (!tsi_jpeg_entropy_record(entropy, &p->entry, &blocks,
					     TSI_JPEG_INDEX_STEP, f->column,
					     &next))
			return false;
		p->end = next.bit / 8 + 1;
		cut(f, p);
	}
	return true;
}

static bool by_pieces(const struct file *f, struct tsi_jpeg_entropy *e,
		      const struct tsi_jpeg_piece *piece, uint32_t n)
{
	tsi_jpeg_entropy_open(e, &f->scan, f->data, f->len);
	set_area(&f->scan.frame, 0, f->scan.frame.mcus_down);
	return tsi_jpeg_entropy_read(e, piece, n, &blocks);
}

static bool take(void *arg, size_t i, uint8_t *data, size_t len)
{
	struct file *f = &files[i];
	const struct tsi_jpeg_frame *fr = &f->scan.frame;

	(void)arg;
	if (!tsi_jpeg_scan_read(data, len, &f->scan))
		return false;
	f->data = data;
	f->len = len;
	f->row = calloc(fr->mcus_down, sizeof(*f->row));
	f->piece = calloc((size_t)fr->mcus_down *
				  (fr->mcus_across / TSI_JPEG_INDEX_STEP + 1),
			  sizeof(*f->piece));
	f->column = calloc(fr->mcus_across, sizeof(*f->column));
	return true;
}

/* One cycle, if it waits for the last one. */
#ifdef __aarch64__
#define ADD "add %0, %0, #1\n\t"
#else
#define ADD "add $1, %0\n\t"
#endif

static double cycle_ns(void)
{
	double least = 1e9;

	for (int i = 0; i < 40; i++) {
		int64_t from = tsi_now_ns();
		uint64_t x = (uint64_t)from;
		double ns;

		for (int k = 0; k < 10000; k++)
			__asm__ volatile(ADD ADD ADD ADD : "+r"(x));
		ns = (double)(tsi_now_ns() - from) / 40000;
		least = ns < least ? ns : least;
	}
	return least;
}

static double timed(int arm, struct file *f)
{
	int64_t from = tsi_now_ns();

	bool ok;

	if (arm == 0)
		return by_libjpeg(f);
	if (arm == 1)
		ok = by_record(f);
	else if (arm == 2)
		ok = by_pieces(f, entropy, f->row, f->scan.frame.mcus_down);
	else
		ok = wide && by_pieces(f, wide, f->piece, f->pieces);
	return ok ? (double)(tsi_now_ns() - from) : 0;
}

static void measure(int passes)
{
	for (size_t i = 0; i < nfiles; i++) {
		struct file *f = &files[i];

		for (int p = 0; p < passes; p++)
			for (int a = 0; a < ARMS; a++) {
				double ns = timed(a, f);

				pass_ns[p][a][i] = ns;
				if (!p || ns < f->ns[a])
					f->ns[a] = ns;
			}
	}
}

/* The spread of the passes' medians: libjpeg's time, divided by an arm's but
 * 0. */
static double spread(int arm, int passes)
{
	double v[MAX_PASSES], of_file[MAX_FILES];

	for (int p = 0; p < passes; p++) {
		size_t n = 0;

		for (size_t i = 0; i < nfiles; i++) {
			double by_libjpeg = pass_ns[p][0][i];
			double ns = arm ? pass_ns[p][arm][i] : 1;

			if (by_libjpeg > 0 && ns > 0)
				of_file[n++] = by_libjpeg / ns;
		}
		v[p] = n ? bench_median(of_file, n) : 0;
	}
	return bench_spread(v, (size_t)passes);
}

static void report(int passes)
{
	static const char *const names[ARMS] = { "libjpeg", "record", "four",
						 "sixteen" };
	double sum[ARMS] = { 0 }, bytes = 0, cycle = cycle_ns();

	for (size_t i = 0; i < nfiles; i++) {
		const struct file *f = &files[i];

		if (!f->ns[0] || !f->ns[1] || !f->ns[2])
			continue;
		bytes += (double)(f->len - f->scan.data);
		for (int a = 0; a < ARMS; a++)
			sum[a] += f->ns[a];
	}
	bench_head("entropy: one thread, Huffman-coded data in memory");
	for (int a = 0; a < ARMS && sum[a] > 0; a++) {
		struct bench_result r = {
			.bench = "entropy",
			.name = names[a],
			.value = sum[a] / bytes / cycle,
			.unit = "cycles/byte",
			.against = a ? "libjpeg" : NULL,
			.ratio = a ? sum[0] / sum[a] : 0,
			.spread = spread(a, passes),
		};

		bench_print(&r);
	}
}

int main(int argc, char **argv)
{
	int passes = bench_quick(MAX_PASSES, 3);

	if (argc != 2)
		bench_die("usage: entropy DIR");
	bench_pin(0, 0);
	/* libjpeg's coefficients: pages that are there already. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	/* Four rows: those that the first level has, if there is one. */
	if (tsi_jpeg_entropy_create(tsi_simd_best() ? 1 : TSI_SIMD_SCALAR,
				    &entropy))
		bench_die("%s", tsock_errmsg());
	if (tsi_jpeg_entropy_create(TSI_SIMD_AVX512, &wide))
		printf("sixteen pieces at once: not on this processor\n");
	nfiles = bench_files_read(argv[1], MAX_FILES, take, NULL, &nskipped);
	if (!nfiles)
		bench_die("no baseline JPEG in %s", argv[1]);
	make_blocks();
	printf("%zu JPEG files of %s (%zu others left out), %d passes\n",
	       nfiles, argv[1], nskipped, passes);
	measure(passes);
	report(passes);
	for (size_t i = 0; i < nfiles; i++) {
		free(files[i].data);
		free(files[i].row);
		free(files[i].piece);
		free(files[i].column);
	}
	for (int c = 0; c < TSI_JPEG_COMPS; c++) {
		free(blocks.coef[c]);
		free(blocks.last[c]);
	}
	tsi_jpeg_entropy_destroy(wide);
	tsi_jpeg_entropy_destroy(entropy);
	return 0;
}
