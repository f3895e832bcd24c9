/* SPDX-License-Identifier: MIT */
/*
 * test_sniff.c - the look at a file's head: its format and size, or why it
 * can't be decoded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "image/sniff.h"
#include "image/formats.h"
#include "avif/decoder.h"
#include "base/err.h"
#include "jpeg/jpeg.h"
#include "png/png.h"
#include "tiff/tiff.h"
#include "webp/webp.h"
#include "test/lib/image_gen.h"
#include "test/lib/plain_image.h"
#include "test/lib/recipes.h"

#define SIZE 32
#define BYTES (SIZE * SIZE * 3)

static struct tsi_image *open_image(void)
{
	struct tsi_image_opts o = { .recipe = recipes_eval(40, SIZE) };
	struct tsi_image *img = NULL;

	assert_int_equal(tsi_image_create(&o, &img), 0);
	return img;
}

/* More and more of a file: not yet, not yet, and then its size for good. */
static void assert_sniff_settles(const struct image_gen_bytes *f,
				 const struct tsi_decoder_ops *format,
				 uint32_t width, uint32_t height)
{
	struct tsi_image_head head = { 0 };
	bool settled = false;

	for (size_t len = 0; len <= f->len && len < 70000; len++) {
		struct image_gen_bytes cut;
		int err;

		if (settled && len % 97)
			continue;
		cut = image_gen_copy(f->data, len);
		err = tsi_image_sniff(cut.data, len, false, &head);
		if (settled || err != TSOCK_EAGAIN) {
			assert_int_equal(err, 0);
			settled = true;
			assert_ptr_equal(tsi_decoders[head.format], format);
			assert_int_equal(head.width, width);
			assert_int_equal(head.height, height);
		} else {
			assert_int_equal(
				tsi_image_sniff(cut.data, len, true, &head),
				TSOCK_EDATA);
		}
		free(cut.data);
	}
	assert_true(settled);
}

static void every_format_has_all_operations(void **state)
{
	(void)state;
	for (unsigned i = 0; tsi_decoders[i]; i++) {
		const struct tsi_decoder_ops *f = tsi_decoders[i];
		struct tsi_decoder *d;

		assert_non_null(f->name);
		/* Too few bytes to tell, and bytes of no format. */
		assert_false(f->claims((const uint8_t *)"", 0));
		assert_false(f->claims((const uint8_t *)"sixteen letters", 16));
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(f->name, tsi_decoders[k]->name);
		if (f->lacks) {
			assert_non_null(f->extensions);
			continue;
		}
		assert_non_null(f->need);
		assert_non_null(f->begin);
		assert_non_null(f->read);
		assert_non_null(f->rows);
		/* A decoder can be closed before it was ever opened. */
		assert_int_equal(f->create(&d), 0);
		assert_ptr_equal(d->ops, f);
		f->close(d);
		f->destroy(d);
		f->destroy(NULL);
	}
}

static void sniffing_asks_for_more_until_it_knows(void **state)
{
	struct image_gen_bytes j = plain_image_jpeg(123, 45),
			       p = plain_image_png(67, 89);

	(void)state;
	assert_sniff_settles(&j, &tsi_jpeg_ops, 123, 45);
	assert_sniff_settles(&p, &tsi_png_ops, 67, 89);
	free(j.data);
	free(p.data);
}

static void sniffing_walks_over_megabytes_of_metadata(void **state)
{
	struct image_gen_bytes f = plain_image_jpeg(50, 60);
	size_t extra = 40 * 65537u;
	uint8_t *big = calloc(1, f.len + extra);
	struct tsi_image *img = open_image();
	struct tsi_image_head head;
	struct tsi_box box;
	uint8_t dst[BYTES];

	(void)state;
	memcpy(big, f.data, 2);
	for (size_t at = 2; at < 2 + extra; at += 65537)
		memcpy(big + at, "\xff\xe1\xff\xff", 4);
	memcpy(big + 2 + extra, f.data + 2, f.len - 2);
	assert_int_equal(tsi_image_sniff(big, extra, false, &head),
			 TSOCK_EAGAIN);
	assert_int_equal(tsi_image_sniff(big, f.len + extra, true, &head), 0);
	assert_int_equal(head.width, 50);
	assert_int_equal(
		tsi_image_load(img, big, f.len + extra, 0, 0, dst, &box), 0);
	tsi_image_destroy(img);
	free(big);
	free(f.data);
}

static size_t frame_of(const struct image_gen_bytes *f)
{
	size_t at = 2;

	while (f->data[at + 1] != 0xc0)
		at += 2 + (size_t)(f->data[at + 2] << 8) + f->data[at + 3];
	return at;
}

/* One byte changed at a place of the frame header; the message must say it. */
static void assert_refused(size_t place, uint8_t value, const char *says)
{
	struct image_gen_bytes f = plain_image_jpeg(50, 60);
	struct tsi_image *img = open_image();
	struct tsi_image_head head;
	struct tsi_box box;
	uint8_t dst[BYTES];

	f.data[frame_of(&f) + place] = value;
	assert_int_equal(tsi_image_sniff(f.data, f.len, true, &head),
			 TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), says))
		fail_msg("'%s' does not say '%s'", tsock_errmsg(), says);
	assert_int_equal(tsi_image_load(img, f.data, f.len, 0, 0, dst, &box),
			 TSOCK_EDATA);
	tsi_image_destroy(img);
	free(f.data);
}

static void unsupported_jpegs_are_named(void **state)
{
	(void)state;
	assert_refused(1, 0xc3, "lossless");
	assert_refused(1, 0xc5, "0xc5");
	assert_refused(4, 12, "12 bits");
	assert_refused(9, 2, "frame header");
}

static void refuse_bytes(const void *data, size_t len, const char *says)
{
	struct tsi_image_head head;

	assert_int_equal(tsi_image_sniff(data, len, true, &head), TSOCK_EDATA);
	if (!strstr(tsock_errmsg(), says))
		fail_msg("'%s' does not say '%s'", tsock_errmsg(), says);
}

static void other_files_are_named(void **state)
{
	(void)state;
	refuse_bytes("", 0, "empty");
	refuse_bytes("GIF89a..............", 20, "GIF");
	refuse_bytes("BM..................", 20, "but text");
	refuse_bytes("II+\0................", 20, "a BigTIFF image");
	refuse_bytes("\0\0\0\x14"
		     "ftypavif........",
		     20,
		     tsi_avif_version() ? "AVIF is truncated"
					: "this build reads no AVIF");
	refuse_bytes("\0\0\0\x18"
		     "ftypheic........",
		     20, "a HEIC image");
	refuse_bytes("\0\0\0\x18"
		     "ftypisom........",
		     20, "something else");
	refuse_bytes("\0\0\0\x0cjP  \r\n\x87\n........", 20, "JPEG 2000");
	refuse_bytes("\0\0\0\x0cJXL \r\n\x87\n........", 20, "JPEG XL");
	refuse_bytes("\xff\x0a..................", 20, "JPEG XL");
	refuse_bytes("P4\n64 64\n............", 20, "a PBM image");
	refuse_bytes("P3\n64 64\n255\n.......", 20, "image in text");
	refuse_bytes("\0\0\1\0\1\0..............", 20, "ICO");
	refuse_bytes("this is not an image", 20, "text");
	refuse_bytes("\x7f"
		     "ELF\1\2\3\0\0\0\0\0\0\0\0\0\0",
		     18, "something else");
	refuse_bytes("\xff\xd8\xff", 3, "truncated");
	refuse_bytes("\xff\xd8\xff\xd9", 4, "no frame");
	refuse_bytes("\xff\xd8\xff\xd8\xff", 5, "twice");
}

/* A build without a library says so, and knows names of such files. */
static void formats_that_this_build_lacks_are_named(void **state)
{
	static const uint8_t webp[] =
		"RIFF\x0e\0\0\0WEBPVP8L\5\0\0\0\x2f\1\0\0";
	static const uint8_t tiff[] = "II*\0\x08\0\0\0\2\0"
				      "\0\1\3\0\1\0\0\0\2\0\0\0"
				      "\1\1\4\0\1\0\0\0\1\0\0";
	static const uint8_t avif[] =
		"\0\0\0\x14"
		"ftypavif\0\0\0\0avif"
		"\0\0\0\x52meta\0\0\0\0"
		"\0\0\0\x0epitm\0\0\0\0\0\1"
		"\0\0\0\x38iprp"
		"\0\0\0\x1cipco\0\0\0\x14ispe\0\0\0\0\0\0\0\2\0\0\0\1"
		"\0\0\0\x14ipma\0\0\0\0\0\0\0\1\0\1\1\1";
	const struct {
		const uint8_t *file;
		size_t len;
		const char *version, *path, *says;
	} format[] = {
		{ webp, 25, tsi_webp_version(), "a.webp",
		  "this build reads no WebP; build one where "
		  "libwebp is installed, or convert the images" },
		{ tiff, 34, tsi_tiff_version(), "b.TIF",
		  "this build reads no TIFF; build one where "
		  "libtiff is installed, or convert the images" },
		{ avif, sizeof(avif), tsi_avif_version(), "c.avif",
		  "this build reads no AVIF; build one where "
		  "libavif is installed, or convert the images" },
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(format) / sizeof(*format); i++) {
		struct tsi_image_head head = { 0 };
		int err = tsi_image_sniff(format[i].file, format[i].len, true,
					  &head);

		assert_int_equal(tsi_image_foreign(format[i].path),
				 !format[i].version);
		assert_int_equal(err, format[i].version ? 0 : TSOCK_EDATA);
		if (err) {
			assert_string_equal(tsock_errmsg(), format[i].says);
			continue;
		}
		assert_int_equal(head.width, 2);
		assert_int_equal(head.height, 1);
	}
}

static void foreign_names_are_known(void **state)
{
	static const char *const foreign[] = { "a.heic",  "x/b.HeiC", "c.HEIF",
					       "d.jxl",   "e.pbm",    "f.ico",
					       "g.1.jp2", "h.jpx",    "i.j2k" };
	static const char *const ours[] = { "a.jpg", "b.JPEG",  "c.png",
					    "p.ppm", "q.bmp",   "tiff",
					    "d.ti",  "e.",      ".x",
					    "f.",    "g.tifff", "h.tifffff" };

	(void)state;
	for (unsigned i = 0; i < sizeof(foreign) / sizeof(*foreign); i++)
		if (!tsi_image_foreign(foreign[i]))
			fail_msg("%s", foreign[i]);
	for (unsigned i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (tsi_image_foreign(ours[i]))
			fail_msg("%s", ours[i]);
}

static void set_be32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void sizes_beyond_the_limit_are_refused(void **state)
{
	struct image_gen_bytes j = plain_image_jpeg(50, 60),
			       p = plain_image_png(5, 5);
	uint8_t *frame = j.data + frame_of(&j);

	(void)state;
	/* 13,377 squared is the first square beyond 178,956,970. */
	set_be32(frame + 5, 13378u << 16 | 13378);
	refuse_bytes(j.data, j.len, "too large");
	set_be32(frame + 5, 0u << 16 | 50);
	refuse_bytes(j.data, j.len, "empty");
	set_be32(frame + 5, 50u << 16 | 0);
	refuse_bytes(j.data, j.len, "empty");
	set_be32(p.data + 16, 13378);
	set_be32(p.data + 20, 13378);
	refuse_bytes(p.data, p.len, "too large");
	set_be32(p.data + 16, 1000001);
	set_be32(p.data + 20, 1);
	refuse_bytes(p.data, p.len, "too large");
	set_be32(p.data + 16, 0);
	refuse_bytes(p.data, p.len, "empty");
	set_be32(p.data + 16, 5);
	p.data[24] = 17;
	refuse_bytes(p.data, p.len, "depth 17");
	p.data[24] = 3;
	refuse_bytes(p.data, p.len, "depth 3");
	free(j.data);
	free(p.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_format_has_all_operations),
		cmocka_unit_test(sniffing_asks_for_more_until_it_knows),
		cmocka_unit_test(sniffing_walks_over_megabytes_of_metadata),
		cmocka_unit_test(unsupported_jpegs_are_named),
		cmocka_unit_test(other_files_are_named),
		cmocka_unit_test(formats_that_this_build_lacks_are_named),
		cmocka_unit_test(foreign_names_are_known),
		cmocka_unit_test(sizes_beyond_the_limit_are_refused),
	};

	return cmocka_run_group_tests_name("sniff", tests, NULL, NULL);
}
