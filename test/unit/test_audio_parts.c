/* SPDX-License-Identifier: MIT */
/*
 * test_audio_parts.c - samples of the parts of a WAV file that crops need, and
 * of windows of files that are resampled.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audio/load.h"
#include "audio/soxr.h"
#include "audio/wav.h"
#include "pixel/draw.h"

#define RATE 8000
#define HEAD 44

static void put_number(uint8_t *to, uint32_t value)
{
	for (unsigned k = 0; k < 4; k++, value >>= 8)
		to[k] = (uint8_t)value;
}

/* A file of 16 bits with random bytes; freed by the caller. */
static uint8_t *noise(uint8_t channels, uint32_t frames, size_t *len)
{
	static const char head[HEAD] = "RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0";
	uint32_t bytes = frames * channels * 2;
	uint8_t *all = malloc(HEAD + bytes);

	assert_non_null(all);
	memcpy(all, head, HEAD);
	all[22] = channels;
	put_number(all + 24, RATE);
	all[32] = (uint8_t)(2 * channels);
	all[34] = 16;
	memcpy(all + 36, "data", 4);
	put_number(all + 40, bytes);
	for (uint32_t k = 0; k < bytes; k++)
		all[HEAD + k] = (uint8_t)(k * 2654435761u >> 21);
	*len = HEAD + bytes;
	return all;
}

static struct tsi_audio *made(const struct tsi_audio_opts *o)
{
	struct tsi_audio *a;

	assert_int_equal(tsi_audio_create(o, &a), 0);
	return a;
}

/* The head and the chosen parts of a file; freed by the caller. */
static uint8_t *parts_of(const uint8_t *all, size_t head,
			 const struct tsi_audio_part *part, unsigned n,
			 size_t *len)
{
	uint8_t *some;

	*len = head;
	for (unsigned k = 0; k < n; k++)
		*len += part[k].len;
	some = malloc(*len);
	assert_non_null(some);
	memcpy(some, all, head);
	*len = head;
	for (unsigned k = 0; k < n; k++) {
		memcpy(some + *len, all + part[k].at, part[k].len);
		*len += part[k].len;
	}
	return some;
}

static void the_parts_of_a_file_make_the_sample_of_the_whole(void **state)
{
	const struct tsi_audio_opts o = {
		.channels = 2, .frames = 5000, .views = 3, .seed = 3
	};
	struct tsi_audio *a = made(&o);
	size_t size, len, most = 0;
	uint8_t *all = noise(2, 100000, &size);
	static float got[2][3][10000];

	(void)state;
	for (uint64_t i = 0; i < 300; i++) {
		float *whole[3] = { got[0][0], got[0][1], got[0][2] };
		float *some[3] = { got[1][0], got[1][1], got[1][2] };
		struct tsi_audio_part part[TSI_AUDIO_VIEWS];
		unsigned n = tsi_audio_choose(a, all, 4096, size, 1, i, part);
		uint8_t *bytes = parts_of(all, 4096, part, n, &len);

		assert_in_range(n, 1, 3);
		for (unsigned k = 0; k < n; k++) {
			assert_true(part[k].at >= 4096);
			assert_true(!k || part[k].at > part[k - 1].at +
							       part[k - 1].len);
		}
		memset(got, 0xff, sizeof(got));
		assert_int_equal(tsi_audio_load(a, all, size, 1, i, whole), 0);
		assert_int_equal(
			tsi_audio_load_parts(a, bytes, 4096, size, 1, i, some),
			0);
		assert_memory_equal(got[0], got[1], sizeof(got[0]));
		most = len > most ? len : most;
		free(bytes);
	}
	assert_true(most < 4096 + 3 * 20000 + 4 * 16384);
	free(all);
	tsi_audio_destroy(a);
}

static void a_file_is_needed_whole_if_parts_of_it_say_too_little(void **state)
{
	struct tsi_audio_opts o = { .channels = 1, .frames = 50, .views = 1 };
	struct tsi_audio_part part[TSI_AUDIO_VIEWS];
	struct tsi_audio *a = made(&o);
	size_t size;
	uint8_t *all = noise(1, 100000, &size);
	unsigned lost = 0;

	(void)state;
	assert_int_equal(tsi_audio_choose(a, all, 4096, size, 0, 1, part), 1);
	/* A short file, a head that is longer, another format. */
	assert_int_equal(tsi_audio_choose(a, all, 4096, 60000, 0, 1, part), 0);
	assert_int_equal(tsi_audio_choose(a, "fLaC", 4, size, 0, 1, part), 0);
	memcpy(all + 36, "LIST", 4);
	assert_int_equal(tsi_audio_choose(a, all, 4096, size, 0, 1, part), 0);
	memcpy(all + 36, "data", 4);
	/* Where it was cut short, a crop may be lost. */
	for (uint64_t i = 0; i < 40; i++) {
		bool needs = tsi_audio_end(a, 100000, 0, i) > 50000;

		assert_int_equal(
			tsi_audio_choose(a, all, 4096, 100044, 0, i, part),
			!needs);
		lost += needs;
	}
	assert_in_range(lost, 10, 30);
	tsi_audio_destroy(a);
	/* Another rate is refused, or resampled if nothing was lost. */
	o.rate = RATE / 2;
	a = made(&o);
	assert_int_equal(tsi_audio_choose(a, all, 4096, size, 0, 1, part), 0);
	tsi_audio_destroy(a);
	o.resamples = true;
	a = made(&o);
	assert_int_equal(tsi_audio_choose(a, all, 4096, size, 0, 1, part), 1);
	for (uint64_t i = 0; i < 9; i++)
		assert_int_equal(
			tsi_audio_choose(a, all, 4096, size - 2, 0, i, part),
			0);
	tsi_audio_destroy(a);
	free(all);
}

/* All of a file of one channel at another rate; freed by the caller. */
static float *all_resampled(const uint8_t *all, size_t size, uint32_t rate,
			    size_t *n)
{
	const size_t room = 1100000;
	float *in, *out = malloc(room * sizeof(*out));
	struct tsi_soxr *by;
	struct tsi_wav w;
	size_t taken, given, none = 0;

	assert_int_equal(tsi_wav_head(all, size, size, &w), 0);
	in = malloc(w.frames * sizeof(*in));
	assert_true(in && out);
	tsi_wav_read(&w, all + tsi_wav_frame(&w, 0), w.frames, in);
	assert_int_equal(tsi_soxr_open(RATE, rate, 1, &by), 0);
	taken = w.frames;
	assert_int_equal(tsi_soxr_run(by, in, &taken, out, room, &given), 0);
	assert_int_equal(taken, w.frames);
	for (*n = given; given; *n += given)
		assert_int_equal(tsi_soxr_run(by, NULL, &none, out + *n,
					      room - *n, &given),
				 0);
	tsi_soxr_close(by);
	free(in);
	return out;
}

/* Both crops of sample i, from the whole file and, if n, from its parts. */
static void check_resampled(const struct tsi_audio_opts *o, const uint8_t *all,
			    size_t size, uint64_t i, const float *want,
			    size_t frames)
{
	struct tsi_audio *a = made(o);
	float got[2][2][900];
	float *to[] = { got[0][0], got[0][1] },
	      *some[] = { got[1][0], got[1][1] };
	struct tsi_audio_part part[TSI_AUDIO_VIEWS];
	unsigned n = tsi_audio_choose(a, all, 4096, size, 0, i, part);
	size_t len;
	uint8_t *bytes = parts_of(all, 4096, part, n, &len);

	assert_int_equal(tsi_audio_load(a, all, size, 0, i, to), 0);
	for (unsigned k = 0; k < 2; k++) {
		const float *crop =
			want +
			tsi_draw(0, 0, i, (uint16_t)(0xc001 + k), 0).v[0] %
				(frames - 900 + 1);

		for (unsigned f = 0; f < 900; f++)
			assert_true(fabsf(got[0][k][f] - crop[f]) < 1e-6f);
	}
	if (n) {
		assert_int_equal(
			tsi_audio_load_parts(a, bytes, 4096, size, 0, i, some),
			0);
		assert_memory_equal(got[0], got[1], sizeof(got[0]));
	}
	/* Of a ratio of large numbers the file is needed. */
	assert_int_equal(n > 0, o->rate != RATE * 10 + 1);
	free(bytes);
	tsi_audio_destroy(a);
}

static void a_window_makes_the_crop_that_the_whole_file_does(void **state)
{
	static const uint32_t rate[] = { RATE / 2, RATE * 441 / 320, 2 * RATE,
					 RATE * 10 + 1 };
	size_t size, frames;
	uint8_t *all = noise(1, 100000, &size);

	(void)state;
	for (unsigned r = 0; r < 4 && tsi_soxr_is_there(); r++) {
		const struct tsi_audio_opts o = { .channels = 1,
						  .frames = 900,
						  .views = 2,
						  .rate = rate[r],
						  .resamples = true };
		float *want = all_resampled(all, size, rate[r], &frames);

		for (uint64_t i = 0; i < 20; i++)
			check_resampled(&o, all, size, i, want, frames);
		free(want);
	}
	free(all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			the_parts_of_a_file_make_the_sample_of_the_whole),
		cmocka_unit_test(
			a_file_is_needed_whole_if_parts_of_it_say_too_little),
		cmocka_unit_test(
			a_window_makes_the_crop_that_the_whole_file_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
