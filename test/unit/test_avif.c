/* SPDX-License-Identifier: MIT */
/*
 * test_avif.c - every kind of AVIF, by region, against libavif's own reading of
 * a whole file; heads, damage, and what a decoder may use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "avif/decoder.h"
#include "base/err.h"
#include "image/load.h"
#include "test/lib/avif_gen.h"
#include "test/lib/decoder_region.h"
#include "test/lib/recipes.h"
#include "test/lib/seccomp.h"
#include "tsock/tsock.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct avif_gen kinds[] = {
	{ .format = AVIF_PIXEL_FORMAT_YUV420 },
	{ .format = AVIF_PIXEL_FORMAT_YUV420, .limited = true },
	{ .format = AVIF_PIXEL_FORMAT_YUV420, .alpha = true },
	{ .format = AVIF_PIXEL_FORMAT_YUV422 },
	{ .format = AVIF_PIXEL_FORMAT_YUV444 },
	{ .format = AVIF_PIXEL_FORMAT_YUV444, .alpha = true, .depth = 10 },
	{ .format = AVIF_PIXEL_FORMAT_YUV400, .limited = true },
	{ .format = AVIF_PIXEL_FORMAT_YUV420, .depth = 10 },
};

static struct image_gen_bytes make(unsigned kind, uint32_t width,
				   uint32_t height, uint64_t seed)
{
	struct avif_gen g = kinds[kind];

	g.width = width;
	g.height = height;
	g.seed = seed;
	return avif_gen(&g);
}

/* The whole first image, as Pillow asks libavif for it; four bytes a pixel. */
static uint8_t *read_whole(const struct image_gen_bytes *f, uint32_t *w,
			   uint32_t *h)
{
	avifDecoder *d = avifDecoderCreate();
	avifRGBImage rgb;
	unsigned n;
	uint8_t *out, *raw;

	assert_non_null(d);
	assert_int_equal(avifDecoderSetIOMemory(d, f->data, f->len), 0);
	assert_int_equal(avifDecoderParse(d), 0);
	assert_int_equal(avifDecoderNthImage(d, 0), 0);
	avifRGBImageSetDefaults(&rgb, d->image);
	rgb.depth = 8;
	rgb.format =
		d->alphaPresent ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
	n = d->alphaPresent ? 4 : 3;
	*w = rgb.width;
	*h = rgb.height;
	raw = malloc((size_t)*w * *h * n);
	rgb.pixels = raw;
	rgb.rowBytes = *w * n;
	assert_int_equal(avifImageYUVToRGB(d->image, &rgb), 0);
	out = malloc((size_t)*w * *h * 4);
	for (size_t i = 0; i < (size_t)*w * *h; i++)
		memcpy(out + i * 4, raw + i * n, 3);
	free(raw);
	avifDecoderDestroy(d);
	return out;
}

/* Regions of the file have the pixels of the whole. */
static void compare_areas(struct tsi_decoder *p,
			  const struct image_gen_bytes *f, uint32_t width,
			  uint32_t height, uint64_t *state)
{
	uint32_t w, h;
	uint8_t *want = read_whole(f, &w, &h);
	uint8_t *got = malloc((size_t)w * h * 4);

	assert_int_equal(w, width);
	assert_int_equal(h, height);
	for (int n = 0; n < 4; n++) {
		struct tsi_rect r = decoder_region_pick(w, h, n, state);

		if (decoder_region_read(p, f, &r, got))
			fail_msg("%s", tsock_errmsg());
		for (uint32_t i = 0; i < r.width * r.height; i++)
			assert_memory_equal(
				got + i * 4,
				want + ((size_t)(r.top + i / r.width) * w +
					r.left + i % r.width) *
						4,
				3);
	}
	free(got);
	free(want);
}

static void regions_of_every_kind_equal_the_whole(void **state)
{
	static const uint32_t size[][2] = {
		{ 1, 1 }, { 3, 50 }, { 61, 47 }, { 150, 91 }
	};
	uint64_t r = 1;
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_avif_ops.create(&p), 0);
	for (size_t i = 0; i < COUNT(kinds) * COUNT(size); i++) {
		const uint32_t *wh = size[i / COUNT(kinds)];
		struct image_gen_bytes f =
			make(i % COUNT(kinds), wh[0], wh[1], i);

		compare_areas(p, &f, wh[0], wh[1], &r);
		free(f.data);
	}
	tsi_avif_ops.destroy(p);
}

static void a_sequence_is_its_first_image(void **state)
{
	struct avif_gen g = { .width = 70,
			      .height = 40,
			      .format = AVIF_PIXEL_FORMAT_YUV420,
			      .alpha = true,
			      .files = 3,
			      .seed = 4 };
	struct image_gen_bytes f = avif_gen(&g);
	uint64_t r = 3;
	struct tsi_decoder *p;
	uint32_t w, h;

	(void)state;
	assert_memory_equal(f.data + 8, "avis", 4);
	assert_int_equal(tsi_avif_head(f.data, f.len, &w, &h), 0);
	assert_int_equal(w, 70);
	assert_int_equal(h, 40);
	assert_int_equal(tsi_avif_ops.create(&p), 0);
	compare_areas(p, &f, 70, 40, &r);
	tsi_avif_ops.destroy(p);
	free(f.data);
}

/* Each cut of a file is bad data, wherever the crop is. */
static void every_cut_is_refused(void **state)
{
	struct tsi_rect top = { 0, 0, 40, 3 };
	uint8_t out[40 * 3 * 4];
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_avif_ops.create(&p), 0);
	for (unsigned kind = 0; kind < COUNT(kinds); kind += 2) {
		struct image_gen_bytes f = make(kind, 40, 60, kind);

		for (size_t len = 12; len < f.len; len += 11) {
			struct image_gen_bytes cut =
				image_gen_copy(f.data, len);

			assert_int_equal(
				decoder_region_read(p, &cut, &top, out),
				TSOCK_EDATA);
			assert_non_null(strstr(tsock_errmsg(), "bad AVIF"));
			free(cut.data);
		}
		assert_int_equal(decoder_region_read(p, &f, &top, out), 0);
		free(f.data);
	}
	tsi_avif_ops.destroy(p);
}

static void damaged_files_decode_or_are_bad_data(void **state)
{
	struct image_gen_bytes whole[COUNT(kinds)];
	uint64_t r = 7;
	struct tsi_decoder *p;

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++)
		whole[i] = make(i, 20 + i, 35 - i, i);
	assert_int_equal(tsi_avif_ops.create(&p), 0);
	for (size_t i = 0; i < 2000; i++) {
		const struct image_gen_bytes *from = &whole[i % COUNT(kinds)];
		struct image_gen_bytes f =
			image_gen_copy(from->data, from->len);
		struct image_gen_bytes copy;
		uint32_t w, h;
		int err;

		image_gen_damage(&f, &r);
		copy = image_gen_copy(f.data, f.len);
		err = tsi_avif_ops.open(p, copy.data, copy.len, &w, &h);
		if (!err && (uint64_t)w * h < 1u << 20 && w && h) {
			struct tsi_rect rect =
				decoder_region_pick(w, h, (int)(i % 3), &r);
			uint8_t *out =
				malloc((size_t)rect.width * rect.height * 4);

			err = decoder_region_read(p, &copy, &rect, out);
			free(out);
		}
		if (err)
			assert_int_equal(err, TSOCK_EDATA);
		free(copy.data);
		free(f.data);
	}
	tsi_avif_ops.destroy(p);
	for (unsigned i = 0; i < COUNT(kinds); i++)
		free(whole[i].data);
}

/* ---- limits ---- */

static void a_large_image_needs_memory_for_its_pixels(void **state)
{
	uint64_t need[COUNT(kinds)];
	struct tsi_decoder *p;

	(void)state;
	assert_int_equal(tsi_avif_ops.create(&p), 0);
	for (unsigned i = 0; i < COUNT(kinds); i++) {
		struct image_gen_bytes f = make(i, 1000, 500, i);
		uint32_t w, h;

		assert_int_equal(tsi_avif_ops.open(p, f.data, f.len, &w, &h),
				 0);
		need[i] = tsi_avif_ops.need(p);
		assert_in_range(need[i], 6 * 500000, 40 * 500000);
		tsi_avif_ops.close(p);
		free(f.data);
	}
	assert_true(need[2] > need[0] && need[7] > need[0]);
	tsi_avif_ops.destroy(p);
}

static void put_be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Memory is claimed by the head: no image inside may be larger. */
static void an_image_larger_than_its_head_says_is_refused(void **state)
{
	struct image_gen_bytes f = make(0, 1200, 1000, 1);
	size_t ispe = avif_gen_box(&f, "ispe");
	struct tsi_rect all = { 0, 0, 10, 10 };
	uint8_t out[400];
	struct tsi_decoder *p;

	(void)state;
	put_be32(f.data + ispe + 8, 10);
	put_be32(f.data + ispe + 12, 10);
	assert_int_equal(tsi_avif_ops.create(&p), 0);
	assert_int_equal(decoder_region_read(p, &f, &all, out), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "bad AVIF: libavif says"));
	tsi_avif_ops.destroy(p);
	free(f.data);
}

/* In a process that can't start threads: 0 if all kinds can be decoded. */
static int decode_without_threads(const struct image_gen_bytes *f)
{
	static uint8_t out[300 * 300 * 4];
	struct tsi_rect all = { 0, 0, 300, 300 };
	struct tsi_decoder *p;

	if (!seccomp_forbid(SYS_clone3, ENOSYS) ||
	    !seccomp_forbid(SYS_clone, EAGAIN))
		return 77;
	if (tsi_avif_ops.create(&p))
		return 1;
	for (unsigned i = 0; i < COUNT(kinds); i++)
		if (decoder_region_read(p, &f[i], &all, out))
			return 2;
	tsi_avif_ops.destroy(p);
	return 0;
}

static void decoding_starts_no_threads(void **state)
{
	struct image_gen_bytes f[COUNT(kinds)];
	pid_t pid;
	int status;

	(void)state;
	for (unsigned i = 0; i < COUNT(kinds); i++)
		f[i] = make(i, 300, 300, i);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(decode_without_threads(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (unsigned i = 0; i < COUNT(kinds); i++)
		free(f[i].data);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- heads ---- */

static void assert_head(const struct image_gen_bytes *f, uint32_t width,
			uint32_t height)
{
	bool settled = false;

	for (size_t len = 12; len <= f->len; len++) {
		struct image_gen_bytes cut = image_gen_copy(f->data, len);
		uint32_t w = 0, h = 0;
		int err = tsi_avif_head(cut.data, len, &w, &h);

		if (err != TSOCK_EAGAIN || settled) {
			assert_int_equal(err, 0);
			assert_int_equal(w, width);
			assert_int_equal(h, height);
			settled = true;
		}
		free(cut.data);
	}
	assert_true(settled);
}

static void heads_have_the_size_as_soon_as_it_is_there(void **state)
{
	struct avif_gen g = { .width = 65,
			      .height = 31,
			      .format = AVIF_PIXEL_FORMAT_YUV444,
			      .alpha = true };
	struct image_gen_bytes f;

	(void)state;
	for (g.files = 0; g.files < 4; g.files += 2) {
		f = avif_gen(&g);
		/* What a sequence's still image would be. */
		if (g.files)
			put_be32(f.data + avif_gen_box(&f, "ispe") + 8, 99);
		assert_head(&f, 65, 31);
		/* The brands of any HEIF image, and AVIF's among the others. */
		memcpy(f.data + 8, g.files ? "msf1" : "mif1", 4);
		assert_true(tsi_avif_claims(f.data, f.len));
		assert_head(&f, 65, 31);
		free(f.data);
	}
}

static void assert_bad_head(const struct image_gen_bytes *f, const char *says)
{
	uint32_t w, h;

	assert_int_equal(tsi_avif_head(f->data, f->len, &w, &h), TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), says))
		fail_msg("'%s' does not say '%s'", tsock_errmsg(), says);
}

/* A file with other bytes in its first box of this type. */
static void spoil_and_refuse(const char *type, size_t at, uint32_t value,
			     const char *says)
{
	struct image_gen_bytes f = make(0, 20, 20, 1);

	put_be32(f.data + avif_gen_box(&f, type) + at, value);
	assert_bad_head(&f, says);
	free(f.data);
}

static void bad_heads_are_refused(void **state)
{
	static const char heic[] = "\0\0\0\x18"
				   "ftypmif1\0\0\0\0mif1heic";
	struct image_gen_bytes f = { (uint8_t *)heic, 24 };

	(void)state;
	assert_true(tsi_avif_claims(f.data, f.len));
	assert_bad_head(&f, "another kind than AVIF, such as HEIC");
	spoil_and_refuse("pitm", 0, 0, "names no image");
	spoil_and_refuse("pitm", 8, 0xffff0000, "has no size");
	spoil_and_refuse("ispe", 0, 0, "has no size");
	spoil_and_refuse("ipma", 8, 0, "has no size");
	spoil_and_refuse("meta", -4, 3, "a box has the size 3");
	assert_false(tsi_avif_claims((const uint8_t *)"....ftypisom....", 16));
	assert_false(tsi_avif_claims((const uint8_t *)"....ftypavif", 11));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regions_of_every_kind_equal_the_whole),
		cmocka_unit_test(a_sequence_is_its_first_image),
		cmocka_unit_test(every_cut_is_refused),
		cmocka_unit_test(damaged_files_decode_or_are_bad_data),
		cmocka_unit_test(a_large_image_needs_memory_for_its_pixels),
		cmocka_unit_test(an_image_larger_than_its_head_says_is_refused),
		cmocka_unit_test(decoding_starts_no_threads),
		cmocka_unit_test(heads_have_the_size_as_soon_as_it_is_there),
		cmocka_unit_test(bad_heads_are_refused),
	};

	return cmocka_run_group_tests_name("avif", tests, NULL, NULL);
}
