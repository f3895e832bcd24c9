/* SPDX-License-Identifier: MIT */
/*
 * imgload.c - loads image files for test_pixels.py and test_damage.py.
 *
 *     imgload RECIPE SEED [PILLOW [WAY,...]]
 *
 * says in three 32-bit numbers how high, wide and deep samples are (of several
 * views, the first), reads lines
 * "EPOCH INDEX PATH" and answers each with eight numbers (error code, the five
 * of the box, bytes of the rest, numbers of the draws), the rest (pixels, or
 * the message of the error) and the draws.  With an index of JPEG files INDEX is the number
 * of the file in there, too: a later epoch enters the file in its middle.
 *
 * Ways: fast, index, stock (libjpeg alone), packed (what a pack or the cache
 * has of the file), masks (behind each sample two numbers, an error code and
 * bytes of the rest, and the rest: the mask, of the file PATH.mask, or the
 * message of the error).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/load.h"
#include "image/mask.h"
#include "jpeg/index.h"
#include "packed/record.h"
#include "recipe/recipe.h"

#define FILES 65536 /* in the index */

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "imgload: %s\n", what);
	exit(1);
}

static uint8_t *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data;
	long end;

	if (!f || fseek(f, 0, SEEK_END) || (end = ftell(f)) < 0)
		die(path);
	rewind(f);
	data = malloc((size_t)end + 1);
	if (!data || fread(data, 1, (size_t)end, f) != (size_t)end)
		die(path);
	fclose(f);
	*len = (size_t)end;
	return data;
}

static void say(const void *data, size_t len)
{
	if (fwrite(data, 1, len, stdout) != len || fflush(stdout))
		die("write");
}

static void answer(int err, const struct tsi_box *box, const void *rest,
		   size_t len, const double *draws, unsigned ndraws)
{
	int32_t head[8] = {
		err,        box->top,  box->left,    box->height,
		box->width, box->flip, (int32_t)len, (int32_t)ndraws
	};

	say(head, sizeof(head));
	say(rest, len);
	if (ndraws)
		say(draws, ndraws * sizeof(*draws));
}

/* What a pack has in the file's place, in a block of just its size. */
static void pack(struct tsi_record_maker *m, uint8_t **data, size_t *len)
{
	struct tsi_record r;

	if (tsi_record_make(m, *data, *len, &r))
		die(tsock_errmsg());
	free(*data);
	*data = r.data;
	*len = r.len;
}

/* The bytes of all views. */
static size_t bytes_of(const struct tsi_recipe *r)
{
	size_t n = 0;

	for (unsigned k = 0; k < r->views; k++)
		n += (size_t)r->view[k].width * r->view[k].height *
		     r->view[k].channels;
	return n;
}

/* The views behind the first go behind it. */
static void set_more(struct tsi_image *img, const struct tsi_recipe *r,
		     uint8_t *pixels)
{
	uint8_t *more[TSI_RECIPE_VIEWS - 1] = { NULL };

	for (unsigned k = 0; k + 1 < r->views; k++) {
		pixels += (size_t)r->view[k].width * r->view[k].height *
			  r->view[k].channels;
		more[k] = pixels;
	}
	tsi_image_set_more(img, more);
}

/* maker: of packed images, or NULL. */
static void load(struct tsi_image *img, struct tsi_record_maker *maker,
		 const char *line, uint8_t *pixels, const struct tsi_recipe *r)
{
	struct tsi_box box = { 0 };
	double draws[4096];
	unsigned long epoch, index;
	char path[4096];
	uint8_t *data, *exact;
	size_t len;
	int err;

	if (sscanf(line, "%lu %lu %4095[^\n]", &epoch, &index, path) != 3)
		die("bad line");
	data = read_file(path, &len);
	/* A block of just this size lets a sanitizer see one byte too far. */
	exact = malloc(len ? len : 1);
	if (!exact)
		die("no memory");
	memcpy(exact, data, len);
	free(data);
	if (maker)
		pack(maker, &exact, &len);
	err = tsi_image_load_file(img, index % FILES, exact, len,
				  (uint32_t)epoch, index, pixels, &box);
	free(exact);
	if (err)
		answer(err, &box, tsock_errmsg(), strlen(tsock_errmsg()), NULL,
		       0);
	else {
		memcpy(draws, tsi_image_last(img).draws,
		       r->draws * sizeof(*draws));
		answer(0, &box, pixels, bytes_of(r), draws, r->draws);
	}
}

static void load_mask(struct tsi_image_mask *m, const struct tsi_image *img,
		      const char *line, const struct tsi_recipe *r)
{
	const struct tsi_image_drawn last = tsi_image_last(img);
	size_t n = (size_t)r->view[0].width * r->view[0].height, len;
	uint8_t *to = malloc(n), *data, *exact;
	char path[4096 + 8];
	int32_t head[2];

	if (!to || sscanf(line, "%*u %*u %4095[^\n]", path) != 1)
		die("bad line");
	strcat(path, ".mask");
	data = read_file(path, &len);
	exact = malloc(len ? len : 1);
	if (!exact)
		die("no memory");
	memcpy(exact, data, len);
	free(data);
	head[0] = tsi_image_mask_load(m, exact, len, &last, to);
	head[1] = (int32_t)(head[0] ? strlen(tsock_errmsg()) : n);
	say(head, sizeof(head));
	say(head[0] ? (const void *)tsock_errmsg() : to, (size_t)head[1]);
	free(exact);
	free(to);
}

int main(int argc, char **argv)
{
	struct tsi_image_opts opts = { 0 };
	struct tsi_record_maker *maker = NULL;
	struct tsi_recipe *recipe;
	struct tsi_image *img;
	struct tsi_image_mask *mask = NULL;
	char line[8192];
	const char *ways = argc > 4 ? argv[4] : "";
	uint8_t *pixels;
	int32_t size[3];

	if (argc < 3 || argc > 5)
		die("usage: imgload RECIPE SEED [PILLOW [WAY,...]]");
	if (tsi_recipe_read(argv[1], &recipe))
		die(tsock_errmsg());
	opts.recipe = recipe;
	opts.seed = strtoull(argv[2], NULL, 0);
	opts.pillow = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
	opts.fast = strstr(ways, "fast");
	opts.stock_jpeg = strstr(ways, "stock");
	if (strstr(ways, "index") &&
	    tsi_jpeg_index_create(FILES, 64 << 20, &opts.jpeg_index))
		die(tsock_errmsg());
	if (strstr(ways, "packed") &&
	    tsi_record_maker_create((uint64_t)256 << 20, &maker))
		die(tsock_errmsg());
	if (tsi_image_create(&opts, &img))
		die(tsock_errmsg());
	if (strstr(ways, "masks") && tsi_image_mask_create(recipe, &mask))
		die(tsock_errmsg());
	size[0] = (int32_t)recipe->view[0].height;
	size[1] = (int32_t)recipe->view[0].width;
	size[2] = (int32_t)recipe->view[0].channels;
	say(size, sizeof(size));
	pixels = malloc(bytes_of(recipe));
	if (!pixels)
		die("no memory");
	set_more(img, recipe, pixels);
	while (fgets(line, sizeof(line), stdin)) {
		load(img, maker, line, pixels, recipe);
		if (mask)
			load_mask(mask, img, line, recipe);
	}
	free(pixels);
	tsi_image_mask_destroy(mask);
	tsi_image_destroy(img);
	tsi_record_maker_destroy(maker);
	tsi_jpeg_index_destroy(opts.jpeg_index);
	tsi_recipe_free(recipe);
	return 0;
}
