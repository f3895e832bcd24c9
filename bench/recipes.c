/* SPDX-License-Identifier: MIT */
/*
 * recipes.c - what a sample takes by any recipe, on one pinned thread, from
 * the bytes of JPEG files in memory or from pixels in memory.
 *
 * It does one pass for each line that it reads, and answers with a line:
 *
 *   files EPOCH TEXT         all files to samples by the recipe TEXT; the JPEG
 *                            index knows the files, as in later epochs.  CPU
 *                            microseconds a sample
 *   pictures W H EPOCH TEXT  pixels of W x H to samples: drawing, doing, and
 *                            copying them in and out.  CPU nanoseconds a sample
 *   apply W H EPOCH TEXT     the same, but what is counted is doing it alone
 *
 * so that recipes.py can let others take turns with it.  A recipe that can't be
 * read is answered with "error" and the reason.
 *
 * usage: recipes FILE...
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "bench/bench.h"
#include "bench/files.h"
#include "image/load.h"
#include "jpeg/index.h"
#include "recipe/recipe.h"
#include "resample/resample.h"

#define INDEX_MEMORY (UINT64_C(64) << 20)
#define MAX_RECIPES 128
#define MAX_LINE (TSI_RECIPE_TEXT + 64)
/* Samples of a pass of pictures at least, so that the clock is good enough. */
#define SAMPLES 64
#define PIXELS (UINT64_C(1) << 20)

struct file {
	uint8_t *data;
	size_t len;
};

/* A recipe that was asked for, and what makes samples by it. */
struct known {
	char *text;
	struct tsi_recipe *recipe;
	struct tsi_image *image; /* NULL: as long as no file was asked for */
	double *draws;
	uint8_t *sample[TSI_RECIPE_VIEWS];
};

/* All files at this size, as pixels. */
struct pictures {
	uint32_t width, height;
	uint8_t *pixels;
};

static struct file *files;
static size_t nfiles;
static struct known known[MAX_RECIPES];
static struct pictures pictures[8];
static struct tsi_image_opts opts = { .seed = 1 };
static struct tsi_canvas canvas;
static struct tsi_resample *resample;

static int64_t cpu_ns(void)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts))
		bench_die("no clock of a thread's CPU time");
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* NULL: it can't be read, and the reason was printed. */
static struct known *recipe_of(const char *text)
{
	struct known *k = known;

	while (k->text && strcmp(k->text, text) != 0)
		k++;
	if (k->text)
		return k;
	if (k == &known[MAX_RECIPES - 1])
		bench_die("more than %d recipes", MAX_RECIPES - 1);
	if (tsi_recipe_read(text, &k->recipe)) {
		printf("error %s\n", tsock_errmsg());
		return NULL;
	}
	k->text = strdup(text);
	k->draws = calloc(k->recipe->draws + 1, sizeof(double));
	if (!k->text || !k->draws)
		bench_die("no memory for a recipe");
	for (unsigned i = 0; i < k->recipe->views; i++) {
		const struct tsi_recipe_view *v = &k->recipe->view[i];

		k->sample[i] =
			malloc((size_t)v->width * v->height * v->channels);
		if (!k->sample[i])
			bench_die("no memory for a sample");
	}
	return k;
}

static void load(struct known *k, size_t i, uint32_t epoch, uint8_t *to)
{
	struct tsi_box box;

	if (tsi_image_load_file(k->image, i, files[i].data, files[i].len, epoch,
				i, to, &box))
		bench_die("file %zu: %s", i, tsock_errmsg());
}

/* Without an index of the files before, they get one. */
static void begin_files(struct known *k)
{
	if (k->image)
		return;
	opts.recipe = k->recipe;
	if (tsi_image_create(&opts, &k->image))
		bench_die("%s", tsock_errmsg());
	tsi_image_set_more(k->image, k->sample + 1);
	for (size_t i = 0; i < nfiles; i++)
		load(k, i, 0, k->sample[0]);
}

static void pass_files(struct known *k, uint32_t epoch)
{
	int64_t from;

	begin_files(k);
	from = cpu_ns();
	for (size_t i = 0; i < nfiles; i++)
		load(k, i, epoch, k->sample[0]);
	printf("%.3f\n", (double)(cpu_ns() - from) / 1e3 / (double)nfiles);
}

/* Pictures of this size: the files, made so large. */
static const struct pictures *pictures_of(uint32_t width, uint32_t height)
{
	size_t bytes = (size_t)width * height * 3;
	struct pictures *p = pictures;
	struct known *k;
	char text[64];

	while (p->pixels && (p->width != width || p->height != height))
		p++;
	if (p->pixels)
		return p;
	if (p == &pictures[sizeof(pictures) / sizeof(pictures[0]) - 1])
		bench_die("too many sizes of pictures");
	snprintf(text, sizeof(text), "Resize((%u, %u))", height, width);
	k = recipe_of(text);
	p->pixels = malloc(nfiles * bytes);
	if (!k || !p->pixels)
		bench_die("no pictures of %u x %u", width, height);
	begin_files(k);
	for (size_t i = 0; i < nfiles; i++)
		load(k, i, 0, p->pixels + i * bytes);
	p->width = width;
	p->height = height;
	return p;
}

/* Nanoseconds of doing what the recipe says behind its first operation. */
static int64_t make(struct known *k, const struct pictures *p, size_t i,
		    uint32_t epoch, bool clock)
{
	struct tsi_op_sample s = { .seed = opts.seed,
				   .epoch = epoch,
				   .index = i,
				   .width = p->width,
				   .height = p->height };
	size_t bytes = (size_t)p->width * p->height * 3;
	int64_t from;

	if (tsi_recipe_draw(k->recipe, &s, k->draws) ||
	    tsi_canvas_begin(&canvas, p->width, p->height, 3))
		bench_die("%s", tsock_errmsg());
	memcpy(canvas.pixels, p->pixels + i % nfiles * bytes, bytes);
	from = clock ? cpu_ns() : 0;
	if (tsi_recipe_apply(k->recipe->view[0].first->next, k->draws, &canvas))
		bench_die("%s", tsock_errmsg());
	from = clock ? cpu_ns() - from : 0;
	memcpy(k->sample[0], canvas.pixels, tsi_canvas_bytes(&canvas));
	return from;
}

static void pass_pictures(struct known *k, const struct pictures *p,
			  uint32_t epoch, bool clock)
{
	uint64_t area = (uint64_t)p->width * p->height;
	size_t n = SAMPLES + (size_t)(PIXELS / area);
	int64_t sum = 0, from;

	/* Once outside of the time: the recipe's memory is touched. */
	make(k, p, 0, epoch, clock);
	from = cpu_ns();
	for (size_t i = 0; i < n; i++)
		sum += make(k, p, i, epoch, clock);
	if (!clock)
		sum = cpu_ns() - from;
	printf("%.3f\n", (double)sum / (double)n);
}

/* The text begins with a resize, so that its size is known. */
static void answer_pictures(const char *line, bool clock)
{
	char text[MAX_LINE + 64];
	uint32_t width, height, epoch;
	struct known *k;
	int at = 0;

	if (sscanf(line, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %n", &width,
		   &height, &epoch, &at) < 3 ||
	    !at)
		bench_die("not a size and an epoch: %s", line);
	snprintf(text, sizeof(text), "Resize((%u, %u)) %s", height, width,
		 line + at);
	k = recipe_of(text);
	if (k)
		pass_pictures(k, pictures_of(width, height), epoch, clock);
}

static void answer(const char *line)
{
	uint32_t epoch;
	struct known *k;
	int at = 0;

	if (strncmp(line, "pictures ", 9) == 0) {
		answer_pictures(line + 9, false);
	} else if (strncmp(line, "apply ", 6) == 0) {
		answer_pictures(line + 6, true);
	} else if (sscanf(line, "files %" SCNu32 " %n", &epoch, &at) == 1 &&
		   at) {
		k = recipe_of(line + at);
		if (k)
			pass_files(k, epoch);
	} else {
		bench_die("not a pass: %s", line);
	}
	fflush(stdout);
}

static void set_up(int n, char **paths)
{
	nfiles = (size_t)n;
	files = calloc(nfiles, sizeof(*files));
	if (!files)
		bench_die("no memory for %zu files", nfiles);
	for (size_t i = 0; i < nfiles; i++)
		files[i].data = bench_file_read(paths[i], &files[i].len);
	if (tsi_jpeg_index_create(nfiles, INDEX_MEMORY, &opts.jpeg_index) ||
	    tsi_resample_create(TSI_SIMD_BEST, &resample))
		bench_die("%s", tsock_errmsg());
	tsi_canvas_init(&canvas, tsi_simd_best());
	canvas.resample = resample;
}

static void tear_down(void)
{
	for (struct known *k = known; k->text; k++) {
		tsi_image_destroy(k->image);
		free(k->text);
		free(k->draws);
		for (unsigned i = 0; i < k->recipe->views; i++)
			free(k->sample[i]);
		tsi_recipe_free(k->recipe);
	}
	for (struct pictures *p = pictures; p->pixels; p++)
		free(p->pixels);
	for (size_t i = 0; i < nfiles; i++)
		free(files[i].data);
	free(files);
	tsi_canvas_fini(&canvas);
	tsi_resample_destroy(resample);
	tsi_jpeg_index_destroy(opts.jpeg_index);
}

int main(int argc, char **argv)
{
	static char line[MAX_LINE];

	if (argc < 2)
		bench_die("usage: recipes FILE...");
	bench_pin(0, 0);
	set_up(argc - 1, argv + 1);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		answer(line);
	}
	tear_down();
	return 0;
}
