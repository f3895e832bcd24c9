/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg.c - a region's pixels are those of a full decode, whatever the
 * file; and no bytes make the decoder do anything but answer.
 */
#include <dirent.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "image/jpeg.h"
#include "test/lib/image_gen.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct picture {
	uint32_t width;
	uint32_t height;
	uint8_t *rgb;
};

static unsigned light(unsigned p, unsigned black)
{
	/* Inverted inks on white paper: paper less ink. */
	unsigned t = (255 - p) * black + 128;
	unsigned ink = (t + (t >> 8)) >> 8;

	return black > ink ? black - ink : 0;
}

/* The whole file with libjpeg's defaults, as anybody would decode it. */
static struct picture reference(const struct image_gen_bytes *f)
{
	struct jpeg_decompress_struct c;
	struct jpeg_error_mgr err;
	struct picture p;
	uint8_t *row;

	c.err = jpeg_std_error(&err);
	jpeg_create_decompress(&c);
	jpeg_mem_src(&c, f->data, f->len);
	jpeg_read_header(&c, TRUE);
	c.out_color_space = c.num_components == 4 ? JCS_CMYK : JCS_RGB;
	jpeg_start_decompress(&c);
	p.width = c.output_width;
	p.height = c.output_height;
	p.rgb = malloc((size_t)p.width * p.height * 3);
	row = malloc((size_t)p.width * 4);
	for (uint32_t y = 0; y < p.height; y++) {
		uint8_t *to = p.rgb + (size_t)y * p.width * 3;
		JSAMPROW rows[1] = { c.num_components == 4 ? row : to };

		jpeg_read_scanlines(&c, rows, 1);
		for (uint32_t x = 0; c.num_components == 4 && x < p.width; x++)
			for (int i = 0; i < 3; i++)
				to[3 * x + i] = (uint8_t)light(row[4 * x + i],
							       row[4 * x + 3]);
	}
	jpeg_finish_decompress(&c);
	jpeg_destroy_decompress(&c);
	free(row);
	return p;
}

/* Decode a region; its rows go to a block of w * h * 3 bytes. */
static int region(struct tsi_decoder *j, const struct image_gen_bytes *f,
		  const struct tsi_rect *rect, uint8_t *out)
{
	struct tsi_strip s;
	uint32_t w, h;
	int err = tsi_jpeg_ops.open(j, f->data, f->len, &w, &h);

	if (!err)
		err = tsi_jpeg_ops.begin(j, rect);
	for (uint32_t y = 0; !err && y < rect->height; y += s.rows) {
		err = tsi_jpeg_ops.read(j, &s);
		if (err)
			break;
		assert_in_range(s.rows, 1, rect->height - y);
		for (uint32_t i = 0; i < s.rows * rect->width; i++)
			memcpy(out + ((size_t)y * rect->width + i) * 3,
			       s.pixels + i / rect->width * s.stride +
				       (size_t)(i % rect->width) * 4,
			       3);
	}
	return err;
}

static void assert_region(struct tsi_decoder *j,
			  const struct image_gen_bytes *f,
			  const struct picture *want, const struct tsi_rect *r)
{
	uint8_t *got = malloc((size_t)r->width * r->height * 3);

	if (region(j, f, r, got))
		fail_msg("%s", tsock_errmsg());
	for (uint32_t y = 0; y < r->height; y++)
		if (memcmp(got + (size_t)y * r->width * 3,
			   want->rgb + ((size_t)(r->top + y) * want->width +
					r->left) *
					       3,
			   (size_t)r->width * 3))
			fail_msg("%u x %u: row %u of the region %u x %u at "
				 "%u, %u differs",
				 want->width, want->height, y, r->width,
				 r->height, r->left, r->top);
	free(got);
}

/* The whole, each corner, single pixels, and any rectangles. */
static struct tsi_rect pick(const struct picture *p, int n, uint64_t *state)
{
	struct tsi_rect r = { 0, 0, p->width, p->height };

	if (!n)
		return r;
	r.left = image_gen_random(state) % p->width;
	r.top = image_gen_random(state) % p->height;
	if (n % 3 == 0)
		r.left -= r.left % 8;
	if (n % 4 == 0)
		r.top -= r.top % 8;
	r.width = 1 + image_gen_random(state) % (p->width - r.left);
	r.height = 1 + image_gen_random(state) % (p->height - r.top);
	if (n % 7 == 0)
		r.width = r.height = 1;
	if (n % 5 == 0)
		r.width = p->width - r.left;
	return r;
}

static void check_file(struct tsi_decoder *j, const struct image_gen_jpeg *g,
		       int regions)
{
	struct image_gen_bytes f = image_gen_jpeg(g);
	struct picture want = reference(&f);
	uint64_t state = g->seed;

	for (int n = 0; n < regions; n++) {
		struct tsi_rect r = pick(&want, n, &state);

		assert_region(j, &f, &want, &r);
	}
	free(want.rgb);
	free(f.data);
}

/* Sampling factors of up to four components. */
static const struct sampling {
	int components;
	J_COLOR_SPACE space;
	int factor[4][2];
} sampling[] = {
	{ 3, 0, { { 1, 1 } } },
	{ 3, 0, { { 2, 1 } } },
	{ 3, 0, { { 2, 2 } } },
	{ 3, 0, { { 1, 2 } } },
	{ 3, 0, { { 4, 1 } } },
	{ 3, 0, { { 4, 2 } } },
	{ 3, 0, { { 1, 4 } } },
	{ 3, 0, { { 2, 4 } } },
	{ 3, 0, { { 3, 1 } } },
	{ 3, 0, { { 1, 3 } } },
	{ 3, 0, { { 3, 2 } } },
	{ 3, 0, { { 2, 2 }, { 2, 1 }, { 1, 2 } } },
	{ 3, 0, { { 2, 2 }, { 1, 2 }, { 1, 1 } } },
	{ 3, 0, { { 4, 1 }, { 2, 1 }, { 1, 1 } } },
	{ 3, 0, { { 1, 1 }, { 2, 2 }, { 2, 2 } } },
	{ 3, 0, { { 1, 1 }, { 2, 1 }, { 1, 2 } } },
	{ 3, 0, { { 2, 2 }, { 2, 2 }, { 2, 1 } } },
	{ 3, JCS_RGB, { { 1, 1 } } },
	{ 3, JCS_RGB, { { 2, 2 } } },
	{ 1, 0, { { 1, 1 } } },
	{ 1, 0, { { 2, 2 } } },
	{ 1, 0, { { 4, 1 } } },
	{ 1, 0, { { 1, 3 } } },
	{ 4, JCS_CMYK, { { 1, 1 } } },
	{ 4, JCS_CMYK, { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
	{ 4, JCS_YCCK, { { 1, 1 } } },
	{ 4, JCS_YCCK, { { 2, 1 }, { 1, 1 }, { 1, 1 }, { 2, 1 } } },
	{ 4, JCS_YCCK, { { 2, 2 }, { 1, 1 }, { 1, 1 }, { 2, 2 } } },
};

static const uint32_t sizes[][2] = {
	{ 1, 1 },   { 1, 40 },  { 40, 1 },   { 2, 3 },     { 8, 8 },
	{ 9, 17 },  { 16, 16 }, { 17, 33 },  { 31, 32 },   { 33, 31 },
	{ 64, 64 }, { 95, 70 }, { 130, 97 }, { 200, 150 },
};

static void a_region_equals_the_full_decode(void **state)
{
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (size_t i = 0; i < COUNT(sampling) * COUNT(sizes) * 4; i++) {
		const struct sampling *s = &sampling[i % COUNT(sampling)];
		size_t size = i / COUNT(sampling) % COUNT(sizes);
		size_t how = i / COUNT(sampling) / COUNT(sizes);
		struct image_gen_jpeg g = {
			.width = sizes[size][0],
			.height = sizes[size][1],
			.components = s->components,
			.space = s->space,
			.progressive = how == 1,
			.restart_rows = how == 2,
			.arithmetic = how == 3,
			.quality = 60 + (int)(i % 40),
			.seed = i,
		};

		memcpy(g.factor, s->factor, sizeof(g.factor));
		check_file(j, &g, 24);
	}
	tsi_jpeg_ops.destroy(j);
}

static void the_widest_and_the_highest_files_decode(void **state)
{
	struct image_gen_jpeg g = { .components = 3, .factor = { { 2, 2 } } };
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (int i = 0; i < 4; i++) {
		g.width = i & 1 ? 65500 : 1 + (uint32_t)i * 4;
		g.height = i & 1 ? 1 + (uint32_t)i * 4 : 65500;
		g.progressive = i & 2;
		check_file(j, &g, 4);
	}
	tsi_jpeg_ops.destroy(j);
}

/* Low frequencies left out: libjpeg guesses them from the neighbours. */
static void an_unfinished_progressive_file_is_smoothed_as_a_whole(void **state)
{
	static const jpeg_scan_info scans[] = {
		{ 3, { 0, 1, 2 }, 0, 0, 0, 1 },
		{ 1, { 0 }, 1, 2, 0, 2 },
	};
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (uint32_t i = 0; i < 24; i++) {
		struct image_gen_jpeg g = {
			.width = 40 + i * 9,
			.height = 170 - i * 5,
			.components = 3,
			.factor = { { 1 + (int)i % 2, 1 + (int)i / 2 % 2 } },
			.progressive = true,
			.scans = scans,
			.scan_count = i % 3 ? 2 : 1,
			.seed = i,
		};

		check_file(j, &g, 12);
	}
	tsi_jpeg_ops.destroy(j);
}

/* Remove every segment of a kind from the header. */
static void strip(struct image_gen_bytes *f, uint8_t marker)
{
	size_t at = 2;

	while (f->data[at + 1] != 0xda) {
		size_t len =
			2 + (size_t)(f->data[at + 2] << 8) + f->data[at + 3];

		if (f->data[at + 1] != marker) {
			at += len;
			continue;
		}
		memmove(f->data + at, f->data + at + len, f->len - at - len);
		f->len -= len;
	}
}

/* With the tables of its own, then with those that it lacks in another's. */
static void the_tables_of_one_file_never_serve_another(void **state)
{
	struct image_gen_jpeg g = {
		.width = 40, .height = 30, .components = 3, .optimize = true
	};
	struct image_gen_bytes whole = image_gen_jpeg(&g), no_dht, no_dqt;
	struct tsi_rect all = { 0, 0, 40, 30 };
	uint8_t first[40 * 30 * 3], again[40 * 30 * 3];
	struct tsi_decoder *fresh, *used;
	int err;

	(void)state;
	no_dht = image_gen_copy(whole.data, whole.len);
	no_dqt = image_gen_copy(whole.data, whole.len);
	strip(&no_dht, 0xc4);
	strip(&no_dqt, 0xdb);
	memset(first, 0, sizeof(first));
	memset(again, 0, sizeof(again));
	assert_int_equal(tsi_jpeg_ops.create(&fresh), 0);
	assert_int_equal(tsi_jpeg_ops.create(&used), 0);
	err = region(fresh, &no_dht, &all, first);
	assert_int_equal(region(used, &whole, &all, again), 0);
	assert_int_equal(region(used, &no_dht, &all, again), err);
	if (!err)
		assert_memory_equal(first, again, sizeof(first));
	assert_int_equal(region(used, &whole, &all, again), 0);
	assert_int_equal(region(used, &no_dqt, &all, again), TSOCK_EDATA);
	tsi_jpeg_ops.destroy(fresh);
	tsi_jpeg_ops.destroy(used);
	free(whole.data);
	free(no_dht.data);
	free(no_dqt.data);
}

static int cut_region(const struct image_gen_bytes *f, size_t len,
		      const struct tsi_rect *r, uint8_t *out)
{
	struct image_gen_bytes cut = image_gen_copy(f->data, len);
	struct tsi_decoder *j;
	int err;

	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	err = region(j, &cut, r, out);
	tsi_jpeg_ops.destroy(j);
	free(cut.data);
	return err;
}

static void a_missing_end_marker_alone_is_forgiven(void **state)
{
	struct tsi_rect all = { 0, 0, 90, 70 };
	static uint8_t want[90 * 70 * 3], got[90 * 70 * 3];

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct image_gen_jpeg g = { .width = 90,
					    .height = 70,
					    .components = 3,
					    .factor = { { 1 + i % 3 % 2,
							  1 + i % 3 / 2 } },
					    .progressive = i >= 3 };
		struct image_gen_bytes f = image_gen_jpeg(&g);

		assert_int_equal(cut_region(&f, f.len, &all, want), 0);
		assert_int_equal(cut_region(&f, f.len - 2, &all, got), 0);
		assert_memory_equal(want, got, sizeof(want));
		assert_int_equal(cut_region(&f, f.len - 1, &all, got), 0);
		assert_int_equal(cut_region(&f, f.len - 12, &all, got),
				 TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "truncated"));
		free(f.data);
	}
}

static void data_may_end_below_the_region_but_not_above(void **state)
{
	struct image_gen_jpeg g = { .width = 120,
				    .height = 160,
				    .components = 3,
				    .factor = { { 2, 2 } } };
	struct image_gen_bytes f = image_gen_jpeg(&g);
	struct picture want = reference(&f);
	struct tsi_rect top = { 5, 3, 80, 20 }, bottom = { 5, 130, 80, 20 };
	uint8_t out[80 * 20 * 3];

	(void)state;
	assert_int_equal(cut_region(&f, f.len / 2, &top, out), 0);
	for (uint32_t y = 0; y < 20; y++)
		assert_memory_equal(out + y * 240,
				    want.rgb + ((y + 3) * 120 + 5) * 3, 240);
	assert_int_equal(cut_region(&f, f.len / 2, &bottom, out), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "truncated"));
	free(want.rgb);
	free(f.data);
}

static void cut_progressive_files_are_truncated_wherever_cut(void **state)
{
	struct image_gen_jpeg g = { .width = 60,
				    .height = 50,
				    .components = 3,
				    .factor = { { 2, 2 } },
				    .progressive = true };
	struct image_gen_bytes f = image_gen_jpeg(&g);
	struct tsi_rect top = { 0, 0, 60, 1 };
	uint8_t out[60 * 3];

	(void)state;
	for (size_t len = 0; len + 12 < f.len; len += 7)
		assert_int_equal(cut_region(&f, len, &top, out), TSOCK_EDATA);
	free(f.data);
}

/* What malloc has handed out; nothing under a sanitizer. */
static uint64_t taken(void)
{
#if __GLIBC_PREREQ(2, 33)
	struct mallinfo2 m = mallinfo2();

	return (uint64_t)m.uordblks + m.hblkhd;
#else
	return 0;
#endif
}

static void no_file_takes_more_memory_than_its_header_says(void **state)
{
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (size_t i = 0; i < COUNT(sampling) * 2; i++) {
		const struct sampling *s = &sampling[i / 2];
		struct image_gen_jpeg g = {
			.width = 1501,
			.height = 997,
			.components = s->components,
			.space = s->space,
			.progressive = i % 2,
		};
		struct tsi_rect all = { 0, 0, 1501, 997 };
		struct image_gen_bytes f;
		uint64_t before, need;
		struct tsi_strip strip;
		uint32_t w, h;

		memcpy(g.factor, s->factor, sizeof(g.factor));
		f = image_gen_jpeg(&g);
		tsi_jpeg_ops.close(j);
		before = taken();
		assert_int_equal(tsi_jpeg_ops.open(j, f.data, f.len, &w, &h),
				 0);
		need = tsi_jpeg_ops.need(j);
		assert_int_equal(tsi_jpeg_ops.begin(j, &all), 0);
		assert_int_equal(tsi_jpeg_ops.read(j, &strip), 0);
		/* The arena takes blocks of a quarter of a mebibyte. */
		if (taken() > before + need + (1 << 19))
			fail_msg("file %zu takes %llu bytes, %llu were said", i,
				 (unsigned long long)(taken() - before),
				 (unsigned long long)need);
		if (g.progressive)
			assert_true(need >= 2 * 1501 * 997);
		else
			assert_true(need < 1 << 19);
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
}

/* The last scan of a progressive file, as often as it takes. */
static void a_file_of_endless_scans_is_refused(void **state)
{
	struct image_gen_jpeg g = {
		.width = 16, .height = 16, .components = 3, .progressive = true
	};
	struct image_gen_bytes f = image_gen_jpeg(&g);
	struct tsi_rect all = { 0, 0, 16, 16 };
	uint8_t out[16 * 16 * 3];
	size_t at = f.len - 2, len;

	(void)state;
	while (f.data[at] != 0xff || f.data[at + 1] != 0xda)
		at--;
	len = f.len - 2 - at;
	f.data = realloc(f.data, f.len + 600 * len);
	for (int i = 0; i < 600; i++, f.len += len)
		memmove(f.data + f.len - 2, f.data + at, len);
	memcpy(f.data + f.len - 2, "\xff\xd9", 2);
	assert_int_equal(cut_region(&f, f.len, &all, out), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "scans"));
	free(f.data);
}

/* Whatever the bytes: an answer, and a decoder that still works after it. */
static void try_bytes(struct tsi_decoder *j, const struct image_gen_bytes *f,
		      uint64_t *state)
{
	struct picture p = { 0 };
	struct tsi_rect r;
	uint8_t *out;
	int err = tsi_jpeg_ops.open(j, f->data, f->len, &p.width, &p.height);

	if (!err && (uint64_t)p.width * p.height < 4u << 20) {
		r = pick(&p, (int)(image_gen_random(state) % 10), state);
		out = malloc((size_t)r.width * r.height * 3);
		err = region(j, f, &r, out);
		free(out);
	}
	if (err) {
		assert_int_equal(err, TSOCK_EDATA);
		assert_true(*tsock_errmsg());
	}
}

static void damaged_files_decode_or_are_bad_data(void **state)
{
	uint64_t r = 99;
	struct tsi_decoder *j;

	(void)state;
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	for (size_t i = 0; i < 2500; i++) {
		const struct sampling *s = &sampling[i % COUNT(sampling)];
		struct image_gen_jpeg g = {
			.width = 1 + image_gen_random(&r) % 90,
			.height = 1 + image_gen_random(&r) % 90,
			.components = s->components,
			.space = s->space,
			.progressive = image_gen_random(&r) % 2,
			.arithmetic = image_gen_random(&r) % 8 == 0,
			.restart_rows = image_gen_random(&r) % 2,
			.seed = i,
		};
		struct image_gen_bytes f, copy;

		memcpy(g.factor, s->factor, sizeof(g.factor));
		f = image_gen_jpeg(&g);
		image_gen_damage(&f, &r);
		copy = image_gen_copy(f.data, f.len);
		try_bytes(j, &copy, &r);
		free(copy.data);
		free(f.data);
	}
	tsi_jpeg_ops.destroy(j);
}

static void try_path(struct tsi_decoder *j, const char *path, uint64_t *r)
{
	struct image_gen_bytes f;
	FILE *in = fopen(path, "rb");
	long len;

	if (!in)
		return;
	if (!fseek(in, 0, SEEK_END) && (len = ftell(in)) > 0) {
		f.len = (size_t)len;
		f.data = malloc(f.len);
		rewind(in);
		if (fread(f.data, 1, f.len, in) == f.len)
			try_bytes(j, &f, r);
		free(f.data);
	}
	fclose(in);
}

static void hostile_files_decode_or_are_bad_data(void **state)
{
	const char *root = getenv("TSOCK_TEST_DATA");
	char path[4096];
	struct dirent *e;
	struct tsi_decoder *j;
	uint64_t r = 5;
	DIR *dir;

	(void)state;
	snprintf(path, sizeof(path), "%s/jpeg-hostile",
		 root ? root : "../shared/data");
	dir = opendir(path);
	if (!dir) {
		print_message("no folder of hostile files at hand\n");
		skip();
	}
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	while ((e = readdir(dir))) {
		if (*e->d_name == '.')
			continue;
		snprintf(path, sizeof(path), "%s/jpeg-hostile/%s",
			 root ? root : "../shared/data", e->d_name);
		for (int i = 0; i < 3; i++)
			try_path(j, path, &r);
	}
	closedir(dir);
	tsi_jpeg_ops.destroy(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_region_equals_the_full_decode),
		cmocka_unit_test(the_widest_and_the_highest_files_decode),
		cmocka_unit_test(
			an_unfinished_progressive_file_is_smoothed_as_a_whole),
		cmocka_unit_test(the_tables_of_one_file_never_serve_another),
		cmocka_unit_test(a_missing_end_marker_alone_is_forgiven),
		cmocka_unit_test(data_may_end_below_the_region_but_not_above),
		cmocka_unit_test(
			cut_progressive_files_are_truncated_wherever_cut),
		cmocka_unit_test(a_file_of_endless_scans_is_refused),
		cmocka_unit_test(
			no_file_takes_more_memory_than_its_header_says),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(hostile_files_decode_or_are_bad_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
