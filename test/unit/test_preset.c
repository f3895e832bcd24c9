/* SPDX-License-Identifier: MIT */
/*
 * test_preset.c - the table of presets, and a preset that is not in it, with
 * draws and changed pixels of its own, all the way to samples.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "image/load.h"
#include "pixel/draw.h"
#include "preset_tint.h"
#include "run/identity.h"
#include "test/lib/image_gen.h"
#include "test/lib/worker_fixture.h"

/* The edge of a sample: nothing is resized. */
#define WIDTH SIZE
#define HEIGHT 60
#define FILES 6
#define SAMPLES (8 * FILES)

#define WORD(name, help) #name,
static const char *const words[] = { TSI_PRESETS(WORD) };
#define PRESETS (sizeof(words) / sizeof(words[0]))

/* Those of the table, and the test's own. */
static const struct tsi_preset *preset_at(unsigned k)
{
	return k < PRESETS ? tsi_preset_at(k) : &tsi_preset_tint;
}

static void every_preset_of_the_table_is_whole(void **state)
{
	char all[200] = "";

	(void)state;
	for (unsigned k = 0; k < PRESETS; k++) {
		const struct tsi_preset *p = tsi_preset_at(k);

		assert_string_equal(p->name, words[k]);
		assert_non_null(p->plan);
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 k ? "|" : "", words[k]);
		assert_non_null(strstr(TSI_PRESET_HELP, words[k]));
	}
	assert_string_equal(TSI_PRESET_WORDS, all);
}

/* An operation that several presets have draws alike in all of them. */
static void no_two_operations_draw_with_one_number(void **state)
{
	const struct tsi_draw_op *seen[64];
	unsigned n = 0;

	(void)state;
	for (unsigned k = 0; k <= PRESETS; k++) {
		const struct tsi_draw_op *o = preset_at(k)->draws;

		for (; o && o->number; o++) {
			assert_in_range(o->number, 0xa001, 0xafff);
			for (unsigned i = 0; i < n; i++)
				assert_int_equal(
					seen[i]->number == o->number,
					!strcmp(seen[i]->name, o->name));
			assert_true(n < 64);
			seen[n++] = o;
		}
	}
	assert_true(n >= 4);
}

/* What preset.h says of a plan, which damaged files are judged by. */
static void check_plan(const struct tsi_preset *p,
		       const struct tsi_image_opts *o, uint32_t w, uint32_t h)
{
	const struct tsi_preset_sample first = { o, 0, 0 };
	struct tsi_preset_plan one, plan;
	struct tsi_box box;

	assert_int_equal(p->plan(&first, w, h, &box, &one), 0);
	for (uint64_t i = 0; i < 200; i++) {
		struct tsi_preset_sample s = { o, (uint32_t)i % 7, i };

		assert_int_equal(p->plan(&s, w, h, &box, &plan), 0);
		assert_in_range(plan.left + plan.x.in, 1, w);
		assert_in_range(plan.top + plan.y.in, 1, h);
		assert_in_range(plan.to_x + plan.x.count, 1, o->size);
		assert_in_range(plan.to_y + plan.y.count, 1, o->size);
		if (p->same_rows) {
			assert_memory_equal(&plan.y, &one.y, sizeof(one.y));
			assert_int_equal(plan.top, one.top);
			continue;
		}
		assert_int_equal(plan.y.first, 0);
		assert_int_equal(plan.y.count, plan.y.out);
		if (p->least_bottom)
			assert_in_range(p->least_bottom(w, h), 1,
					plan.top + plan.y.in);
	}
}

static void plans_are_what_damaged_files_are_judged_by(void **state)
{
	const struct tsi_image_opts o = { .size = 24, .resize = 30, .seed = 5 };
	uint64_t r = 1;

	(void)state;
	for (unsigned k = 0; k <= PRESETS; k++)
		for (unsigned i = 0; i < 60; i++)
			check_plan(preset_at(k), &o,
				   1 + image_gen_random(&r) % 300,
				   1 + image_gen_random(&r) % 300);
}

/* ------------------------------------------------------------------------
 * The test's own preset
 */

static struct image_gen_bytes image(unsigned i)
{
	struct image_gen_png g = { .width = WIDTH,
				   .height = HEIGHT,
				   .depth = 8,
				   .type = PNG_COLOR_TYPE_RGB,
				   .seed = i };

	return image_gen_png(&g);
}

/* The pixels of that file. */
static void pixels_of(unsigned i, uint8_t (*rows)[WIDTH * 3])
{
	uint64_t seed = i;

	for (uint32_t y = 0; y < HEIGHT; y++)
		image_gen_row(&seed, y, rows[y], WIDTH * 3, 1);
}

static void put_images(void)
{
	for (unsigned i = 0; i < FILES; i++) {
		struct image_gen_bytes f = image(i);
		char name[16];

		snprintf(name, sizeof(name), "%c/%u.png", 'a' + i / 2, i);
		put(name, f.data, f.len);
		free(f.data);
	}
}

/* Sample seq of file i, by hand. */
static void expect(struct sample *s, uint64_t seq, unsigned i)
{
	static uint8_t rows[HEIGHT][WIDTH * 3];
	uint32_t epoch = (uint32_t)seq / FILES;
	uint64_t index = seq % FILES;
	struct tsi_philox_ctr place = tsi_draw(9, epoch, index, 0xaf01, 0);
	struct tsi_philox_ctr red = tsi_draw(9, epoch, index, 0xaf02, 0);
	uint32_t top = place.v[1] % (HEIGHT - WIDTH + 1);

	pixels_of(i, rows);
	memset(s, 0, sizeof(*s));
	memcpy(s->image, rows[top], sizeof(s->image));
	for (unsigned k = 0; k < sizeof(s->image); k += 3) {
		unsigned more = s->image[k] + red.v[0] % 100;

		s->image[k] = more < 255 ? (uint8_t)more : 255;
	}
	s->label = i / 2;
	s->index = i;
	s->box[0] = (int32_t)top;
	s->box[2] = WIDTH;
	s->box[3] = WIDTH;
	s->weight = 1;
}

static void make_all(struct sample *to, unsigned *substituted)
{
	struct tsi_sampler *s;

	options.preset = &tsi_preset_tint;
	s = open_sampler();
	memset(to, 0, SAMPLES * sizeof(*to));
	assert_int_equal(make(s, DEPTH, to, SAMPLES, substituted), 0);
	tsi_sampler_close(s);
}

static void samples_are_planned_and_changed_by_it(void **state)
{
	struct sample got[64], want;
	unsigned n;

	(void)state;
	put_images();
	make_all(got, &n);
	assert_int_equal(n, 0);
	for (unsigned i = 0; i < SAMPLES; i++) {
		expect(&want, i, i % FILES);
		assert_memory_equal(&got[i], &want, sizeof(want));
	}
	/* Another epoch of a file is another sample. */
	assert_memory_not_equal(got[0].image, got[FILES].image,
				sizeof(got[0].image));
}

/* What ends in the middle serves the samples that don't reach so far. */
static void a_cut_file_is_bad_for_the_samples_that_reach_the_cut(void **state)
{
	struct image_gen_bytes f = image(3);
	struct sample got[64], want;
	unsigned n, cut = 0, whole = 0;

	(void)state;
	put_images();
	put("b/3.png", f.data, f.len * 2 / 3);
	free(f.data);
	make_all(got, &n);
	for (unsigned i = 0; i < SAMPLES; i++) {
		/* Another file stands in for it, with the sample's draws. */
		expect(&want, i, (unsigned)got[i].index);
		assert_memory_equal(&got[i], &want, sizeof(want));
		if (i % FILES != 3) {
			assert_int_equal(got[i].index, i % FILES);
			continue;
		}
		/* Two thirds of the bytes are about two thirds of the rows. */
		if (got[i].box[0] + SIZE < HEIGHT / 2)
			assert_int_equal(got[i].index, 3);
		if (got[i].box[0] + SIZE > HEIGHT * 5 / 6)
			assert_int_not_equal(got[i].index, 3);
		cut += got[i].index != 3;
		whole += got[i].index == 3;
	}
	assert_int_equal(n, cut);
	assert_true(cut && whole);
}

static void a_stream_says_that_it_is_of_it(void **state)
{
	struct tsi_sampler *s;
	char *text;

	(void)state;
	put_images();
	options.preset = &tsi_preset_tint;
	s = open_sampler();
	assert_int_equal(tsi_identity_text(&options, s, &text), 0);
	assert_non_null(strstr(text, "\npreset=tint\n"));
	assert_null(strstr(text, "\nresize="));
	free(text);
	tsi_sampler_close(s);
}

static void its_own_words_come_through(void **state)
{
	struct tsi_image_opts o = { .preset = &tsi_preset_tint, .size = 15 };
	struct tsi_image *img;

	(void)state;
	assert_int_equal(tsi_image_create(&o, &img), TSOCK_EARG);
	assert_string_equal(tsock_errmsg(), "tint: size is 15, must be even");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_preset_of_the_table_is_whole),
		cmocka_unit_test(no_two_operations_draw_with_one_number),
		cmocka_unit_test(plans_are_what_damaged_files_are_judged_by),
		TEST(samples_are_planned_and_changed_by_it),
		TEST(a_cut_file_is_bad_for_the_samples_that_reach_the_cut),
		TEST(a_stream_says_that_it_is_of_it),
		cmocka_unit_test(its_own_words_come_through),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
