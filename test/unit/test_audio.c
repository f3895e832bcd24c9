/* SPDX-License-Identifier: MIT */
/*
 * test_audio.c - WAV files' heads and numbers, where crops lie, and what of a
 * damaged file they need.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "audio/length.h"
#include "audio/load.h"
#include "audio/sndfile.h"
#include "audio/soxr.h"
#include "audio/wav.h"
#include "base/err.h"
#include "pixel/draw.h"

#define RATE 8000

struct file {
	uint8_t bytes[4096];
	size_t len;
};

static void put(struct file *f, const void *bytes, size_t n)
{
	assert_true(f->len + n <= sizeof(f->bytes));
	memcpy(f->bytes + f->len, bytes, n);
	f->len += n;
}

static void put_number(struct file *f, uint64_t value, unsigned bytes)
{
	for (unsigned k = 0; k < bytes; k++, value >>= 8) {
		uint8_t byte = (uint8_t)value;

		put(f, &byte, 1);
	}
}

static void put_chunk(struct file *f, const char *name, uint32_t bytes)
{
	put(f, name, 4);
	put_number(f, bytes, 4);
}

static void put_format(struct file *f, uint16_t tag, uint16_t channels,
		       uint16_t bits)
{
	uint16_t block = (uint16_t)(channels * ((bits + 7) / 8));

	put_chunk(f, "fmt ", 16);
	put_number(f, tag, 2);
	put_number(f, channels, 2);
	put_number(f, RATE, 4);
	put_number(f, (uint64_t)RATE * block, 4);
	put_number(f, block, 2);
	put_number(f, bits, 2);
}

static struct file begun(uint16_t tag, uint16_t channels, uint16_t bits)
{
	struct file f = { .len = 0 };

	put(&f, "RIFF\0\0\0\0WAVE", 12);
	put_format(&f, tag, channels, bits);
	return f;
}

/* n frames of 16 bits: 0, 1, 2, ... */
static struct file counting(unsigned n)
{
	struct file f = begun(1, 1, 16);

	put_chunk(&f, "data", 2 * n);
	for (unsigned i = 0; i < n; i++)
		put_number(&f, i, 2);
	return f;
}

static int head_of(const struct file *f, struct tsi_wav *w)
{
	assert_true(tsi_wav_claims(f->bytes, f->len));
	return tsi_wav_head(f->bytes, f->len, f->len, w);
}

static void each_coding_has_the_values_of_libsndfile(void **state)
{
	static const struct {
		uint16_t tag, bits;
		uint64_t stored[3];
		float value[3];
	} coding[] = {
		{ 1, 8, { 0, 128, 255 }, { -1, 0, 127 / 128.0f } },
		{ 1,
		  16,
		  { 0x8000, 1, 0x7fff },
		  { -1, 0x1p-15f, 1 - 0x1p-15f } },
		{ 1, 12, { 0x8000, 16, 0 }, { -1, 0x1p-11f, 0 } },
		{ 1,
		  24,
		  { 0x800000, 1, 0xffffff },
		  { -1, 0x1p-23f, -0x1p-23f } },
		{ 1, 32, { 0x80000000, 1, 0x7fffffff }, { -1, 0x1p-31f, 1 } },
		{ 3, 32, { 0x3f000000, 0xc0000000, 0 }, { .5f, -2, 0 } },
		{ 3,
		  64,
		  { 0x3fe0000000000000, 0xc000000000000000, 0 },
		  { .5f, -2, 0 } },
	};

	(void)state;
	for (unsigned k = 0; k < sizeof(coding) / sizeof(coding[0]); k++) {
		struct file f = begun(coding[k].tag, 1, coding[k].bits);
		unsigned bytes = (coding[k].bits + 7u) / 8;
		struct tsi_wav w;
		float got[30];

		put_chunk(&f, "data", 30 * bytes);
		for (unsigned i = 0; i < 30; i++)
			put_number(&f, coding[k].stored[i % 3], bytes);
		assert_int_equal(head_of(&f, &w), 0);
		assert_int_equal(w.frames, 30);
		assert_int_equal(w.bytes, bytes);
		/* Vector code, and what is left over. */
		tsi_wav_read(&w, f.bytes + tsi_wav_frame(&w, 1), 29, got);
		for (unsigned i = 0; i < 29; i++)
			assert_true(got[i] == coding[k].value[(i + 1) % 3]);
	}
}

static void a_head_that_is_cut_anywhere_is_bad_or_needs_more(void **state)
{
	struct file f = counting(100);
	struct tsi_wav w;

	(void)state;
	for (size_t len = 12; len < f.len; len++) {
		int err = tsi_wav_head(f.bytes, len, f.len, &w);

		assert_int_equal(err, len < 44 ? TSOCK_EAGAIN : 0);
		if (!err)
			assert_int_equal(w.there, 100);
		err = tsi_wav_head(f.bytes, len, len, &w);
		assert_int_equal(err, len < 44 ? TSOCK_EDATA : 0);
		if (!err)
			assert_int_equal(w.there, (len - 44) / 2);
		err = tsi_audio_sniff(f.bytes, len, false);
		assert_int_equal(err, len < 44 ? TSOCK_EAGAIN : 0);
	}
}

static void sizes_that_overflow_are_bad(void **state)
{
	struct file f = begun(1, 1, 16);
	struct tsi_wav w;

	(void)state;
	put_chunk(&f, "junk", UINT32_MAX);
	assert_int_equal(head_of(&f, &w), TSOCK_EDATA);
	f = (struct file){ .len = 0 };
	put(&f, "RF64\xff\xff\xff\xffWAVE", 12);
	put_chunk(&f, "ds64", 28);
	put_number(&f, UINT64_MAX, 8);
	put_number(&f, UINT64_MAX, 8);
	put_number(&f, UINT64_MAX, 8);
	put_number(&f, 0, 4);
	put_format(&f, 1, 1, 16);
	put_chunk(&f, "data", UINT32_MAX);
	put_number(&f, 7, 2);
	assert_int_equal(head_of(&f, &w), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "it says that it has"));
}

/* WAVE_FORMAT_UNKNOWN: it says of no number how many bytes it has. */
static void a_file_of_no_format_is_bad(void **state)
{
	struct file f = begun(0, 2, 16);
	struct tsi_wav w;

	(void)state;
	put_chunk(&f, "data", 4);
	put_number(&f, 7, 4);
	assert_int_equal(head_of(&f, &w), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "its format is unknown"));
	assert_int_equal(tsi_audio_sniff(f.bytes, f.len, true), TSOCK_EDATA);
}

static void chunks_have_even_places_and_a_size_may_be_unknown(void **state)
{
	static const uint32_t unknown[] = { 0, 0x7ffff000, UINT32_MAX };

	(void)state;
	for (unsigned k = 0; k < 3; k++) {
		struct file f = begun(1, 1, 16);
		struct tsi_wav w;

		put_chunk(&f, "odd ", 3);
		put(&f, "abc", 4);
		put_chunk(&f, "data", unknown[k]);
		put_number(&f, 0x00020001, 4);
		assert_int_equal(head_of(&f, &w), 0);
		assert_int_equal(w.frames, 2);
		assert_int_equal(w.there, 2);
	}
}

static struct tsi_audio *made(const struct tsi_audio_opts *o)
{
	struct tsi_audio *a;

	assert_int_equal(tsi_audio_create(o, &a), 0);
	return a;
}

static void a_crop_lies_where_its_draw_says(void **state)
{
	const struct tsi_audio_opts o = {
		.channels = 1, .frames = 50, .views = 2, .seed = 3
	};
	struct tsi_audio *a = made(&o);
	struct file f = counting(400);
	float got[2][50];
	float *to[2] = { got[0], got[1] };

	(void)state;
	for (uint64_t i = 0; i < 20; i++) {
		uint32_t epoch = (uint32_t)i * 7, end = 0;

		assert_int_equal(
			tsi_audio_load(a, f.bytes, f.len, epoch, i, to), 0);
		for (unsigned k = 0; k < 2; k++) {
			uint32_t first =
				tsi_draw(3, epoch, i, (uint16_t)(0xc001 + k), 0)
					.v[0] %
				351;

			for (uint32_t j = 0; j < 50; j++)
				assert_true(got[k][j] * 0x1p15f ==
					    (float)(first + j));
			end = first + 50 > end ? first + 50 : end;
		}
		assert_int_equal(tsi_audio_end(a, 400, epoch, i), end);
	}
	assert_int_equal(tsi_audio_least_end(a, 400), 50);
	assert_int_equal(tsi_audio_least_end(a, 40), 40);
	assert_false(tsi_audio_same_frames(a));
	tsi_audio_destroy(a);
}

static void each_frame_may_be_the_first_of_a_crop(void **state)
{
	const struct tsi_audio_opts o = { .channels = 1,
					  .frames = 5,
					  .views = 1 };
	struct tsi_audio *a = made(&o);
	bool seen[3] = { false };

	(void)state;
	for (uint64_t i = 0; i < 50; i++)
		seen[tsi_audio_end(a, 7, 0, i) - 5] = true;
	assert_true(seen[0] && seen[1] && seen[2]);
	tsi_audio_destroy(a);
}

static void a_load_fails_just_where_frames_that_it_needs_are_lost(void **state)
{
	const struct tsi_audio_opts o = { .channels = 1,
					  .frames = 50,
					  .views = 1 };
	struct tsi_audio *a = made(&o);
	struct file f = counting(400);
	float got[50];
	float *to[1] = { got };
	uint32_t frames, there, lost = 0;

	(void)state;
	f.len -= 2 * 200;
	assert_int_equal(tsi_audio_measure(a, f.bytes, f.len, &frames, &there),
			 0);
	assert_int_equal(frames, 400);
	assert_int_equal(there, 200);
	for (uint64_t i = 0; i < 50; i++) {
		int err = tsi_audio_load(a, f.bytes, f.len, 0, i, to);
		bool needs = tsi_audio_end(a, 400, 0, i) > 200;

		assert_int_equal(err, needs ? TSOCK_EDATA : 0);
		lost += needs;
	}
	assert_in_range(lost, 10, 40);
	f.len = 44;
	assert_int_equal(tsi_audio_measure(a, f.bytes, f.len, &frames, &there),
			 TSOCK_EDATA);
	tsi_audio_destroy(a);
}

static void a_short_file_is_followed_by_zeros(void **state)
{
	const struct tsi_audio_opts o = {
		.channels = 2, .frames = 9, .views = 1, .centre = true
	};
	struct tsi_audio *a = made(&o);
	struct file f = counting(3);
	float got[18];
	float *to[1] = { got };

	(void)state;
	memset(got, 1, sizeof(got));
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 0, 0, to), 0);
	for (unsigned i = 0; i < 18; i++)
		assert_true(got[i] * 0x1p15f == (float)(i % 9 < 3 ? i % 9 : 0));
	assert_true(tsi_audio_same_frames(a));
	f = counting(0);
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 0, 0, to),
			 TSOCK_EDATA);
	tsi_audio_destroy(a);
}

static void a_file_that_is_resampled_has_to_be_whole(void **state)
{
	const struct tsi_audio_opts o = { .channels = 1,
					  .frames = 50,
					  .views = 1,
					  .rate = RATE / 2,
					  .resamples = true };
	struct tsi_audio *a;
	struct file f = counting(400);
	float got[50];
	float *to[1] = { got };
	uint32_t frames, there;
	int err;

	(void)state;
	a = made(&o);
	err = tsi_audio_load(a, f.bytes, f.len, 0, 0, to);
	assert_int_equal(err, tsi_soxr_is_there() ? 0 : TSOCK_ENOTSUP);
	f.len -= 2;
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 0, 0, to),
			 TSOCK_EDATA);
	assert_int_equal(tsi_audio_measure(a, f.bytes, f.len, &frames, &there),
			 TSOCK_EDATA);
	tsi_audio_destroy(a);
}

/* ---- samples of several lengths ---- */

#define MOST 500

static void a_sample_is_a_whole_file_and_zeros(void **state)
{
	static const unsigned frames[] = { 1, 37, MOST - 1, MOST };
	const struct tsi_audio_opts o = { .channels = 2,
					  .frames = MOST,
					  .clips = TSI_AUDIO_WHOLE,
					  .views = 1 };
	struct tsi_audio *a = made(&o);
	float got[2 * MOST];
	float *to[1] = { got };

	(void)state;
	assert_true(tsi_audio_same_frames(a));
	for (unsigned k = 0; k < 4; k++) {
		struct file f = counting(frames[k]);

		memset(got, 0xff, sizeof(got));
		assert_int_equal(tsi_audio_load(a, f.bytes, f.len, k, 9, to),
				 0);
		assert_int_equal(tsi_audio_last(a), frames[k]);
		for (unsigned i = 0; i < 2 * MOST; i++) {
			unsigned at = i % MOST;

			assert_true(got[i] * 0x1p15f ==
				    (float)(at < frames[k] ? at : 0));
		}
		f.len -= 2;
		assert_int_equal(tsi_audio_load(a, f.bytes, f.len, k, 9, to),
				 TSOCK_EDATA);
	}
	tsi_audio_destroy(a);
}

static void a_file_that_is_too_long_is_bad_or_cropped(void **state)
{
	struct tsi_audio_opts o = { .channels = 1,
				    .frames = MOST,
				    .clips = TSI_AUDIO_WHOLE,
				    .views = 1 };
	struct tsi_audio *a = made(&o);
	struct file f = counting(MOST + 1);
	uint32_t frames, there, first;
	float got[MOST];
	float *to[1] = { got };

	(void)state;
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 0, 0, to),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "501 frames"));
	assert_non_null(strstr(tsock_errmsg(), "500 at most"));
	assert_int_equal(tsi_audio_measure(a, f.bytes, f.len, &frames, &there),
			 TSOCK_EDATA);
	tsi_audio_destroy(a);
	o.clips = TSI_AUDIO_CUT;
	a = made(&o);
	assert_false(tsi_audio_same_frames(a));
	first = tsi_draw(0, 2, 1, TSI_AUDIO_OP, 0).v[0] % 2;
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 2, 1, to), 0);
	assert_int_equal(tsi_audio_last(a), MOST);
	assert_true(got[0] * 0x1p15f == (float)first);
	f = counting(7);
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 2, 1, to), 0);
	assert_int_equal(tsi_audio_last(a), 7);
	tsi_audio_destroy(a);
}

static void a_head_says_that_a_file_is_too_long(void **state)
{
	static const uint8_t flac[2][26] = {
		"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0"
		"\x01\xf4\0\xf0\0\0\1\xf4",
		"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0"
		"\x01\xf4\0\xf1\0\0\1\xf4",
	};
	struct tsi_audio_opts o = { .channels = 1,
				    .frames = MOST,
				    .clips = TSI_AUDIO_WHOLE,
				    .views = 1 };
	struct file f = counting(MOST);

	(void)state;
	assert_int_equal(tsi_audio_length_sniff(&o, f.bytes, f.len), 0);
	o.rate = RATE + 16;
	o.resamples = true;
	assert_int_equal(tsi_audio_length_sniff(&o, f.bytes, 60), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "501 frames"));
	o.resamples = false;
	f = counting(MOST + 1);
	assert_int_equal(tsi_audio_length_sniff(&o, f.bytes, 60), TSOCK_EDATA);
	assert_int_equal(tsi_audio_length_sniff(&o, f.bytes, 40), 0);
	o.clips = TSI_AUDIO_CUT;
	assert_int_equal(tsi_audio_length_sniff(&o, f.bytes, 60), 0);
	o.clips = TSI_AUDIO_WHOLE;
	/* Its length is that of the file. */
	memset(f.bytes + 40, 0xff, 4);
	assert_int_equal(tsi_audio_length_sniff(&o, f.bytes, 60), 0);
	/* 500 frames, and 2^32 more. */
	assert_int_equal(tsi_audio_length_sniff(&o, flac[0], 26), 0);
	assert_int_equal(tsi_audio_length_sniff(&o, flac[1], 26), TSOCK_EDATA);
	assert_int_equal(tsi_audio_length_sniff(&o, flac[1], 25), 0);
	o.frames--;
	assert_int_equal(tsi_audio_length_sniff(&o, flac[0], 26), TSOCK_EDATA);
}

/* What libsoxr makes of all frames at once. */
static uint32_t resampled(const struct file *f, uint32_t frames, float *to)
{
	struct tsi_wav w;
	struct tsi_soxr *s;
	size_t n = frames, made_, rest;
	float from[MOST];

	assert_int_equal(head_of(f, &w), 0);
	tsi_wav_read(&w, f->bytes + tsi_wav_frame(&w, 0), frames, from);
	assert_int_equal(tsi_soxr_open(RATE, 2 * RATE, 1, &s), 0);
	assert_int_equal(tsi_soxr_run(s, from, &n, to, 2 * MOST, &made_), 0);
	assert_int_equal(n, frames);
	n = 0;
	assert_int_equal(
		tsi_soxr_run(s, NULL, &n, to + made_, 2 * MOST - made_, &rest),
		0);
	tsi_soxr_close(s);
	return (uint32_t)(made_ + rest);
}

static void a_whole_file_is_resampled_as_one(void **state)
{
	struct tsi_audio_opts o = { .channels = 1,
				    .frames = 2 * MOST,
				    .clips = TSI_AUDIO_WHOLE,
				    .rate = 2 * RATE,
				    .resamples = true,
				    .views = 1 };
	struct tsi_audio *a = made(&o);
	struct file f = counting(MOST - 13);
	float got[2 * MOST], want[2 * MOST] = { 0 };
	float *to[1] = { got };

	(void)state;
	if (!tsi_soxr_is_there()) {
		tsi_audio_destroy(a);
		skip();
	}
	assert_int_equal(resampled(&f, MOST - 13, want), 2 * (MOST - 13));
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 0, 0, to), 0);
	assert_int_equal(tsi_audio_last(a), 2 * (MOST - 13));
	assert_memory_equal(got, want, sizeof(got));
	tsi_audio_destroy(a);
	/* The length is that of what comes out. */
	o.frames = 2 * (MOST - 13) - 1;
	a = made(&o);
	assert_int_equal(tsi_audio_load(a, f.bytes, f.len, 0, 0, to),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "974 frames"));
	tsi_audio_destroy(a);
}

static void without_libsndfile_the_message_says_what_to_do(void **state)
{
	static const char flac[64] = "fLaC";
	int err = tsi_audio_sniff(flac, sizeof(flac), true);

	(void)state;
	assert_int_equal(err, tsi_sndfile_is_there() ? 0 : TSOCK_EDATA);
	if (err)
		assert_non_null(strstr(tsock_errmsg(), "without libsndfile"));
	assert_int_equal(tsi_audio_sniff("some text", 9, true), TSOCK_EDATA);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_coding_has_the_values_of_libsndfile),
		cmocka_unit_test(
			a_head_that_is_cut_anywhere_is_bad_or_needs_more),
		cmocka_unit_test(sizes_that_overflow_are_bad),
		cmocka_unit_test(a_file_of_no_format_is_bad),
		cmocka_unit_test(
			chunks_have_even_places_and_a_size_may_be_unknown),
		cmocka_unit_test(a_crop_lies_where_its_draw_says),
		cmocka_unit_test(each_frame_may_be_the_first_of_a_crop),
		cmocka_unit_test(
			a_load_fails_just_where_frames_that_it_needs_are_lost),
		cmocka_unit_test(a_short_file_is_followed_by_zeros),
		cmocka_unit_test(a_file_that_is_resampled_has_to_be_whole),
		cmocka_unit_test(a_sample_is_a_whole_file_and_zeros),
		cmocka_unit_test(a_file_that_is_too_long_is_bad_or_cropped),
		cmocka_unit_test(a_head_says_that_a_file_is_too_long),
		cmocka_unit_test(a_whole_file_is_resampled_as_one),
		cmocka_unit_test(
			without_libsndfile_the_message_says_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
