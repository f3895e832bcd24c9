/* SPDX-License-Identifier: MIT */
/*
 * packed.c - packed images beside the JPEG files that they were made of.
 *
 *   JPEG           a file's bytes to a finished 224 x 224 sample of train
 *   packed         its record's bytes to the same sample
 *   kept           the file's bytes to a record, that to the sample: what the
 *                  first epoch with --cache does
 *   pack           the file's bytes to a record
 *   libjpeg        all coefficients of the file, by libjpeg-turbo
 *   expand KERNEL  all blocks of the record
 *
 * One pinned thread.  They take turns on each image, in another order each
 * pass; of an image's passes the least counts.
 *
 * usage: packed DIR
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/load.h"
#include "base/clock.h"
#include "base/err.h"
#include "bench/bench.h"
#include "bench/files.h"
#include "packed/blocks.h"
#include "packed/expand.h"
#include "jpeg/whole.h"
#include "recipe/preset.h"
#include "packed/record.h"

#define MAX_FILES 240
#define MAX_PASSES 16

enum arm {
	JPEG,
	PACKED,
	KEPT,
	PACK,
	LIBJPEG,
	EXPAND, /* at each level */
	ARMS = EXPAND + TSI_SIMD_LEVELS
};

static const char *const names[EXPAND] = {
	"JPEG, chain",  "packed, chain",         "kept, chain",
	"JPEG, packed", "libjpeg, coefficients",
};

struct file {
	uint8_t *data, *record;
	size_t len, record_len;
	uint64_t blocks;
	double ns[ARMS][MAX_PASSES];
};

static struct file files[MAX_FILES];
static size_t nfiles;
static struct tsi_jpeg_whole *whole;
static struct tsi_jpeg_packer *packer;
static struct tsi_record_maker *maker;
static struct tsi_image *image;
static uint8_t sample[224 * 224 * 3];
static uint8_t copy[4 << 20];
/* Coefficients of one row of MCUs: 65,535 pixels, three components. */
static int16_t (*coef)[64];
static uint8_t *last;

static bool pack(struct file *f)
{
	struct tsi_jpeg_frame frame;
	struct tsi_jpeg_blocks b;
	const uint8_t *record;

	if (tsi_jpeg_whole_open(whole, f->data, f->len, &frame))
		return false;
	if (tsi_jpeg_packer_begin(packer, &frame))
		bench_die("%s", tsock_errmsg());
	for (uint32_t y = 0; y < frame.mcus_down; y++) {
		tsi_jpeg_whole_row(whole, y, &b);
		if (tsi_jpeg_packer_row(packer, &b, 0))
			bench_die("%s", tsock_errmsg());
	}
	record = tsi_jpeg_packer_end(packer, &f->record_len);
	tsi_jpeg_whole_close(whole);
	f->record = malloc(f->record_len);
	if (!f->record)
		bench_die("no memory");
	memcpy(f->record, record, f->record_len);
	for (unsigned k = 0; k < frame.comps; k++)
		f->blocks += (uint64_t)frame.mcus_across * frame.mcus_down *
			     frame.comp[k].h * frame.comp[k].v;
	return true;
}

static bool take(void *arg, size_t i, uint8_t *data, size_t len)
{
	struct file *f = &files[i];

	(void)arg;
	*f = (struct file){ .len = len, .data = data };
	return pack(f);
}

static void load(const uint8_t *data, size_t len, size_t index)
{
	struct tsi_box box;

	if (tsi_image_load(image, data, len, 0, index, sample, &box))
		bench_die("%s", tsock_errmsg());
}

static void keep(const struct file *f, size_t index, bool use)
{
	const uint8_t *record;
	size_t len;

	if (tsi_record_pack(maker, f->data, f->len, &record, &len))
		bench_die("%s", tsock_errmsg());
	if (!use)
		return;
	/* As the cache does. */
	memcpy(copy, record, len < sizeof(copy) ? len : sizeof(copy));
	tsi_image_trust(image, true);
	load(record, len, index);
	tsi_image_trust(image, false);
}

static void expand(const struct file *f, enum tsi_simd level)
{
	struct tsi_expand_kernel e;
	struct tsi_jpeg_packed p;
	struct tsi_jpeg_blocks b = { .area = { 0 } };
	size_t at = 0;

	tsi_expand_kernel_init(&e, level);
	if (tsi_jpeg_packed_open(&p, f->record, f->record_len, false))
		bench_die("%s", tsock_errmsg());
	b.area.across = p.frame.mcus_across;
	for (unsigned k = 0; k < p.frame.comps; k++) {
		b.stride[k] = b.area.across * p.frame.comp[k].h;
		b.coef[k] = coef + at;
		b.last[k] = last + at;
		at += (size_t)b.stride[k] * p.frame.comp[k].v;
	}
	for (uint32_t y = 0; y < p.frame.mcus_down; y++)
		tsi_jpeg_packed_row(&p, y, &e, &b);
}

static void warm(const uint8_t *data, size_t len)
{
	volatile uint8_t sink = 0;

	for (size_t i = 0; i < len; i += 64)
		sink ^= data[i];
	(void)sink;
}

static double timed(int arm, size_t i)
{
	struct file *f = &files[i];
	struct tsi_jpeg_frame frame;
	int64_t from;

	warm(f->data, f->len);
	warm(f->record, f->record_len);
	from = tsi_now_ns();
	if (arm == JPEG) {
		load(f->data, f->len, i);
	} else if (arm == PACKED) {
		load(f->record, f->record_len, i);
	} else if (arm == KEPT || arm == PACK) {
		keep(f, i, arm == KEPT);
	} else if (arm == LIBJPEG) {
		if (tsi_jpeg_whole_open(whole, f->data, f->len, &frame))
			bench_die("%s", tsock_errmsg());
		tsi_jpeg_whole_close(whole);
	} else {
		expand(f, (enum tsi_simd)(arm - EXPAND));
	}
	return (double)(tsi_now_ns() - from);
}

static bool is_there(int arm)
{
	return arm <= EXPAND + (int)tsi_simd_best();
}

static const char *name_of(int arm)
{
	static char expand[32];

	if (arm < EXPAND)
		return names[arm];
	snprintf(expand, sizeof(expand), "expand %s",
		 tsi_simd_name((enum tsi_simd)(arm - EXPAND)));
	return expand;
}

static void report(int passes)
{
	double sum[ARMS] = { 0 }, pass[ARMS][MAX_PASSES] = { 0 };
	double ratio[ARMS][MAX_PASSES];
	uint64_t blocks = 0;

	for (size_t i = 0; i < nfiles; i++) {
		blocks += files[i].blocks;
		for (int arm = 0; arm < ARMS; arm++) {
			double *ns = files[i].ns[arm];

			for (int p = 0; p < passes; p++)
				pass[arm][p] += ns[p];
			bench_median(ns, (size_t)passes);
			sum[arm] += ns[0]; /* sorted by now: the least */
		}
	}
	bench_head("packed: one thread, from bytes in memory");
	for (int arm = 0; arm < ARMS; arm++) {
		/* Chains beside the JPEG's, the others beside libjpeg. */
		int base = arm < LIBJPEG ? JPEG : LIBJPEG;
		struct bench_result r = {
			.bench = "packed",
			.name = name_of(arm),
			.value = (double)nfiles / sum[arm] * 1e9,
			.unit = "images/s",
			.spread = bench_spread(pass[arm], (size_t)passes),
		};

		if (!is_there(arm))
			continue;
		if (arm != base) {
			for (int p = 0; p < passes; p++)
				ratio[arm][p] = pass[base][p] / pass[arm][p];
			r.against = names[base];
			r.ratio = sum[base] / sum[arm];
			r.spread = bench_spread(ratio[arm], (size_t)passes);
		}
		bench_print(&r);
		if (arm >= LIBJPEG)
			printf("    %.1f ns a block\n",
			       sum[arm] / (double)blocks);
	}
}

int main(int argc, char **argv)
{
	struct tsi_recipe *recipe;
	struct tsi_image_opts opts = { .seed = 1 };
	int passes = bench_quick(9, 3);
	double bytes = 0, packed = 0;

	if (argc != 2)
		bench_die("usage: packed DIR");
	if (tsi_preset_recipe(tsi_preset_at(TSI_PRESET_TRAIN), 224, 256,
			      &recipe))
		bench_die("%s", tsock_errmsg());
	opts.recipe = recipe;
	bench_pin(0, 0);
	coef = aligned_alloc(64, (size_t)8192 * 48 * 128);
	last = malloc((size_t)8192 * 48);
	if (!coef || !last || tsi_jpeg_whole_create(&whole) ||
	    tsi_jpeg_packer_create(&packer) ||
	    tsi_record_maker_create((uint64_t)32 << 20, &maker) ||
	    tsi_image_create(&opts, &image))
		bench_die("no memory");
	nfiles = bench_files_read(argv[1], MAX_FILES, take, NULL, NULL);
	if (!nfiles)
		bench_die("no JPEG in %s", argv[1]);
	for (size_t i = 0; i < nfiles; i++) {
		bytes += (double)files[i].len;
		packed += (double)files[i].record_len;
	}
	printf("%zu JPEG files of %s, %.1f kB each, packed %.1f kB (%.2f), "
	       "%d passes\n",
	       nfiles, argv[1], bytes / (double)nfiles / 1e3,
	       packed / (double)nfiles / 1e3, packed / bytes, passes);
	for (int p = 0; p < passes; p++)
		for (size_t i = 0; i < nfiles; i++)
			for (int a = 0; a < ARMS; a++) {
				int arm = (a + p) % ARMS;

				if (is_there(arm))
					files[i].ns[arm][p] = timed(arm, i);
			}
	report(passes);
	for (size_t i = 0; i < nfiles; i++) {
		free(files[i].data);
		free(files[i].record);
	}
	tsi_image_destroy(image);
	tsi_record_maker_destroy(maker);
	tsi_jpeg_packer_destroy(packer);
	tsi_jpeg_whole_destroy(whole);
	free(coef);
	free(last);
	return 0;
}
