/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_damaged.c - JPEG files that end early, are damaged or hostile:
 * no bytes make the decoder do anything but answer.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/lib/jpeg_region.h"

static int cut_region(const struct image_gen_bytes *f, size_t len,
		      const struct tsi_rect *r, uint8_t *out)
{
	struct image_gen_bytes cut = image_gen_copy(f->data, len);
	struct tsi_decoder *j;
	int err;

	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	err = jpeg_region(j, &cut, r, out);
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
	struct jpeg_picture want = jpeg_region_reference(&f);
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
	struct jpeg_picture p = { 0 };
	struct tsi_rect r;
	uint8_t *out;
	int err = tsi_jpeg_ops.open(j, f->data, f->len, &p.width, &p.height);

	if (!err && (uint64_t)p.width * p.height < 4u << 20) {
		r = jpeg_region_pick(&p, (int)(image_gen_random(state) % 10),
				     state);
		out = malloc((size_t)r.width * r.height * 3);
		err = jpeg_region(j, f, &r, out);
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
		const struct jpeg_region_sampling *s =
			&jpeg_region_sampling[i % JPEG_SAMPLINGS];
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
		cmocka_unit_test(a_missing_end_marker_alone_is_forgiven),
		cmocka_unit_test(data_may_end_below_the_region_but_not_above),
		cmocka_unit_test(
			cut_progressive_files_are_truncated_wherever_cut),
		cmocka_unit_test(a_file_of_endless_scans_is_refused),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(hostile_files_decode_or_are_bad_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
