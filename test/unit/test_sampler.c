/* SPDX-License-Identifier: MIT */
/*
 * test_sampler.c - --sampler: samples that are drawn with replacement, repeated
 * or limited.
 */
#include "run/sampler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "run/picks.h"
#include "test/lib/worker_fixture.h"

/* Files of a, b and c: 0 to 5, 6 and 7, and 8. */
#define FILES 9
static const unsigned first_of[] = { 0, 6, 8, FILES };

/* A sum of squares that chance exceeds once in a million, for so many degrees
 * of freedom: by Wilson and Hilferty. */
#define MOST_2 27.7
#define MOST_7 42.0
#define MOST_80 151.0

static char list_path[96];

static int make_files(void **state)
{
	static const char classes[] = "abc";
	char name[16];

	if (worker_make_root(state))
		return -1;
	for (unsigned c = 0; c < 3; c++) {
		for (unsigned i = first_of[c]; i < first_of[c + 1]; i++) {
			snprintf(name, sizeof(name), "%c/%u.png", classes[c],
				 i);
			worker_put_image(name);
		}
	}
	return 0;
}

static int remove_files(void **state)
{
	unlink(list_path);
	return worker_remove_root(state);
}

/* The files in their order, with weights. */
static void weigh(const float *weight)
{
	FILE *f;

	snprintf(list_path, sizeof(list_path), "%s.txt", worker_root);
	f = fopen(list_path, "w");
	assert_non_null(f);
	for (unsigned i = 0; i < FILES; i++)
		fprintf(f, "%c/%u.png\t%g\n", "aaaaaabbc"[i], i,
			(double)weight[i]);
	fclose(f);
	worker_options.select = list_path;
}

static struct tsi_sampler *open_by(const char *sampler)
{
	if (tsi_sampling_read(sampler, &worker_options.sampling))
		fail_msg("%s", tsock_errmsg());
	return worker_open_sampler();
}

static struct tsi_sample_id at(struct tsi_sampler *s, uint64_t seq)
{
	struct tsi_sample_id id;

	assert_int_equal(tsi_sampler_at(s, seq, &id), 0);
	return id;
}

/* How far counts are from what is expected of n cells; 0 expected is exact. */
static double distance(const unsigned *count, const double *expected,
		       unsigned n)
{
	double sum = 0;

	for (unsigned i = 0; i < n; i++) {
		double off = count[i] - expected[i];

		if (expected[i] > 0)
			sum += off * off / expected[i];
		else
			assert_int_equal(count[i], 0);
	}
	return sum;
}

static void weights_decide_how_often_samples_are_drawn(void **state)
{
	static const float weight[FILES] = { 1,     0, 2.5f,   0.125f, 40,
					     3e-3f, 7, 1.0e1f, 1 };
	enum { DRAWS = 900000 };
	double expected[FILES], sum = 0;
	unsigned count[FILES] = { 0 };
	struct tsi_sampler *s;

	(void)state;
	weigh(weight);
	s = open_by("weighted");
	assert_int_equal(tsi_sampler_epoch_len(s), FILES);
	for (uint64_t k = 0; k < DRAWS; k++)
		count[at(s, k).index]++;
	for (unsigned i = 0; i < FILES; i++)
		sum += (double)weight[i];
	for (unsigned i = 0; i < FILES; i++)
		expected[i] = (double)weight[i] / sum * DRAWS;
	assert_true(distance(count, expected, FILES) < MOST_7);
	tsi_sampler_close(s);
}

/* One that has nearly all the weight, and weights that rounding loses. */
static void extreme_weights_are_drawn_from(void **state)
{
	static const float weight[FILES] = { 0, 0, 0, 3e38f, 0, 0, 1e-45f };
	static const float tiny[FILES] = {
		0, 0, 0, 0, 0, 0, 0, 1e-45f, 1e-45f
	};
	struct tsi_sampler *s;
	unsigned eights = 0;

	(void)state;
	weigh(weight);
	s = open_by("weighted");
	for (uint64_t k = 0; k < 10000; k++)
		assert_int_equal(at(s, k).index, 3);
	tsi_sampler_close(s);
	weigh(tiny);
	s = open_by("weighted");
	for (uint64_t k = 0; k < 10000; k++) {
		uint64_t i = at(s, k).index;

		assert_true(i == 7 || i == 8);
		eights += i == 8;
	}
	assert_true(eights > 4750 && eights < 5250);
	tsi_sampler_close(s);
}

static void draws_that_follow_each_other_are_independent(void **state)
{
	static const float weight[FILES] = { 1, 2, 1, 2, 1, 2, 1, 2, 1.5f };
	enum { PAIRS = 400000 };
	double expected[FILES * FILES], sum = 0;
	unsigned count[FILES * FILES] = { 0 };
	struct tsi_sampler *s;

	(void)state;
	weigh(weight);
	s = open_by("weighted");
	for (uint64_t k = 0; k < PAIRS; k++)
		count[at(s, 2 * k).index * FILES + at(s, 2 * k + 1).index]++;
	for (unsigned i = 0; i < FILES; i++)
		sum += (double)weight[i];
	for (unsigned i = 0; i < FILES * FILES; i++)
		expected[i] = (double)weight[i / FILES] *
			      (double)weight[i % FILES] / sum / sum * PAIRS;
	assert_true(distance(count, expected, FILES * FILES) < MOST_80);
	tsi_sampler_close(s);
}

/* As 32 bits number samples, or 64; in cells of as many units, or fewer. */
static void a_table_for_more_than_32_bits_draws_the_same(void **state)
{
	/* Multiples of a unit, also where a cell has 2^8. */
	static const float weight[FILES] = { 0.25f, 0, 2.5f, 0.125f, 0.125f,
					     3,     1, 1.5f, 0.5f };
	static const unsigned bits[] = { 30, 14, 8 };
	struct tsi_sampler *s;

	(void)state;
	weigh(weight);
	s = open_by("weighted");
	for (size_t k = 0; k < sizeof(bits) / sizeof(bits[0]); k++) {
		struct tsi_picks *p;

		assert_int_equal(tsi_picks_in_cells(tsi_sampler_index(s),
						    worker_options.seed,
						    bits[k], &p),
				 0);
		for (uint64_t i = 0; i < 5000; i++)
			assert_int_equal(tsi_picks_at(p, i / FILES, i % FILES),
					 at(s, i).index);
		tsi_picks_destroy(p);
	}
	tsi_sampler_close(s);
}

static void units_of_all_cells_are_counted_by_64_bits(void **state)
{
	static const unsigned log2[] = { 32, 33, 47, 48 };

	(void)state;
	assert_int_equal(tsi_picks_bits(1), 32);
	assert_int_equal(tsi_picks_bits(UINT32_MAX), 32);
	for (size_t k = 0; k < sizeof(log2) / sizeof(log2[0]); k++) {
		uint64_t n = UINT64_C(1) << log2[k];

		assert_int_equal(n << tsi_picks_bits(n), UINT64_C(1) << 62);
		n = 2 * n - 1;
		assert_int_equal(n << tsi_picks_bits(n) >> tsi_picks_bits(n),
				 n);
	}
}

static void
balanced_draws_each_class_and_each_of_its_samples_alike(void **state)
{
	enum { DRAWS = 900000 };
	double expected[FILES], of_class[3];
	unsigned count[FILES] = { 0 }, by_class[3] = { 0 };
	struct tsi_sampler *s;

	(void)state;
	s = open_by("balanced");
	for (uint64_t k = 0; k < DRAWS; k++) {
		uint64_t i = at(s, k).index;

		count[i]++;
		by_class[tsi_index_label(tsi_sampler_index(s), i)]++;
	}
	for (unsigned c = 0; c < 3; c++) {
		of_class[c] = DRAWS / 3.0;
		for (unsigned i = first_of[c]; i < first_of[c + 1]; i++)
			expected[i] =
				DRAWS / 3.0 / (first_of[c + 1] - first_of[c]);
	}
	assert_true(distance(by_class, of_class, 3) < MOST_2);
	assert_true(distance(count, expected, FILES) < MOST_7);
	tsi_sampler_close(s);
}

/* A draw depends on seed, epoch and position, whatever the epoch's length. */
static void what_is_drawn_is_a_function_of_seed_and_place(void **state)
{
	static const char *const way[] = { "balanced,limit:100",
					   "weighted,limit:100" };
	static const float weight[FILES] = { 1, 2, 1, 2, 1, 2, 1, 2, 1 };

	(void)state;
	weigh(weight);
	for (unsigned k = 0; k < 2; k++) {
		struct tsi_sampler *one = open_by(way[k]), *same, *other;
		unsigned differ = 0, again = 0;

		same = open_by(way[k]);
		worker_options.seed++;
		other = open_by(way[k]);
		worker_options.seed--;
		assert_int_equal(tsi_sampler_epoch_len(one), 100);
		/* Not in their order. */
		for (uint64_t i = 1000; i-- > 0;) {
			struct tsi_sample_id a = at(one, i), b = at(same, i);

			assert_int_equal(a.index, b.index);
			assert_int_equal(a.draw, i % 100);
			assert_int_equal(a.epoch, i / 100);
			differ += a.index != at(other, i).index;
			again += a.index != at(one, i + 100).index;
		}
		assert_true(differ > 700 && again > 700);
		tsi_sampler_close(one);
		tsi_sampler_close(same);
		tsi_sampler_close(other);
	}
}

static void repeats_follow_each_other_and_have_draws_of_their_own(void **state)
{
	struct tsi_sampler *plain, *s;

	(void)state;
	worker_options.order = TSOCK_ORDER_PHILOX;
	plain = open_by("repeat:1");
	s = open_by("repeat:3");
	assert_int_equal(tsi_sampler_epoch_len(plain), FILES);
	assert_int_equal(tsi_sampler_epoch_len(s), 3 * FILES);
	for (uint64_t k = 0; k < 5 * FILES; k++) {
		struct tsi_sample_id once = at(plain, k);

		assert_int_equal(once.draw, once.index);
		for (unsigned r = 0; r < 3; r++) {
			struct tsi_sample_id id = at(s, 3 * k + r);

			assert_int_equal(id.epoch, once.epoch);
			assert_int_equal(id.index, once.index);
			assert_int_equal(id.draw, once.index + r * FILES);
		}
	}
	tsi_sampler_close(plain);
	tsi_sampler_close(s);
}

/* The crop of the first time is that without --sampler, and of others not. */
static void a_repeated_sample_is_cropped_anew(void **state)
{
	struct sample plain[64], made[64];
	unsigned substituted, same = 0;
	struct tsi_sampler *s;

	(void)state;
	s = open_by("repeat:1");
	assert_int_equal(worker_make(s, DEPTH, plain, FILES, &substituted), 0);
	tsi_sampler_close(s);
	s = open_by("repeat:3");
	assert_int_equal(worker_make(s, DEPTH, made, 3 * FILES, &substituted),
			 0);
	for (unsigned i = 0; i < FILES; i++) {
		const struct sample *m = &made[3 * i];

		assert_int_equal(m[2].index, plain[i].index);
		assert_memory_equal(m[0].box, plain[i].box, sizeof(m->box));
		same += !memcmp(m[0].box, m[1].box, sizeof(m->box));
		same += !memcmp(m[1].box, m[2].box, sizeof(m->box));
	}
	assert_true(same < 3);
	tsi_sampler_close(s);
}

static void a_limit_leaves_the_first_samples_of_each_epoch(void **state)
{
	struct tsi_sampler *plain, *s;
	unsigned seen = 0;

	(void)state;
	worker_options.order = TSOCK_ORDER_PHILOX;
	plain = open_by("limit:9");
	s = open_by("limit:4");
	assert_int_equal(tsi_sampler_epoch_len(s), 4);
	for (uint64_t k = 0; k < 40; k++) {
		struct tsi_sample_id id = at(s, k);

		assert_int_equal(id.epoch, k / 4);
		assert_int_equal(id.index,
				 at(plain, k / 4 * FILES + k % 4).index);
		assert_int_equal(id.draw, id.index);
		seen |= 1u << id.index;
	}
	assert_int_equal(seen, (1u << FILES) - 1);
	tsi_sampler_close(plain);
	tsi_sampler_close(s);
	/* The limit counts repeated samples, as in DeiT's sampler. */
	s = open_by("repeat:3,limit:7");
	assert_int_equal(tsi_sampler_epoch_len(s), 7);
	assert_int_equal(at(s, 5).index, at(s, 3).index);
	assert_int_not_equal(at(s, 6).index, at(s, 5).index);
	assert_int_equal(at(s, 7).draw, at(s, 7).index);
	tsi_sampler_close(s);
}

/* Position p is rank p modulo world's, and the first ones pad the last. */
static void ranks_have_each_position_once(void **state)
{
	static const char *const way[] = { "weighted", "balanced,limit:31",
					   "repeat:2", "limit:7",
					   "repeat:3,limit:20" };
	static const float weight[FILES] = { 1, 2, 1, 2, 1, 2, 1, 2, 1 };
	enum { WORLD = 4 };

	(void)state;
	weigh(weight);
	worker_options.order = TSOCK_ORDER_PHILOX;
	for (unsigned k = 0; k < sizeof(way) / sizeof(way[0]); k++) {
		struct tsi_sampler *whole, *rank;
		uint64_t n, part;

		worker_options.part = (struct tsi_part){ .world = 0 };
		whole = open_by(way[k]);
		n = tsi_sampler_epoch_len(whole);
		part = (n + WORLD - 1) / WORLD;
		for (uint32_t r = 0; r < WORLD; r++) {
			worker_options.part =
				(struct tsi_part){ .first = r, .world = WORLD };
			rank = open_by(way[k]);
			assert_int_equal(tsi_sampler_epoch_len(rank), part);
			for (uint64_t i = 0; i < 3 * part; i++) {
				uint64_t p = (i % part * WORLD + r) % n;
				struct tsi_sample_id a = at(rank, i), b;

				b = at(whole, i / part * n + p);
				assert_int_equal(a.index, b.index);
				assert_int_equal(a.draw, b.draw);
				assert_int_equal(a.epoch, b.epoch);
			}
			tsi_sampler_close(rank);
		}
		tsi_sampler_close(whole);
	}
}

static void refuse(const char *sampler, int code, const char *what)
{
	struct tsi_sampler *s;

	assert_int_equal(tsi_sampling_read(sampler, &worker_options.sampling),
			 0);
	assert_int_equal(tsi_sampler_open(&worker_options, &s), code);
	if (!strstr(tsock_errmsg(), what))
		fail_msg("'%s' lacks '%s'", tsock_errmsg(), what);
}

/* From the end of one epoch through all of another, and into a third. */
static void a_run_has_the_files_of_its_samples(void **state)
{
	static const char *const way[] = { "repeat:1", "repeat:2", "balanced",
					   "limit:4" };

	(void)state;
	worker_options.order = TSOCK_ORDER_PHILOX;
	for (unsigned k = 0; k < sizeof(way) / sizeof(way[0]); k++) {
		struct tsi_sampler *s = open_by(way[k]);
		uint64_t n = tsi_sampler_epoch_len(s), file[3 * FILES];

		assert_int_equal(
			tsi_sampler_run(s, 2 * n - 1, (unsigned)n + 2, file),
			0);
		for (uint64_t i = 0; i < n + 2; i++)
			assert_int_equal(file[i], at(s, 2 * n - 1 + i).index);
		tsi_sampler_close(s);
	}
}

static void what_cant_be_sampled_is_refused(void **state)
{
	static const float ones[FILES] = { 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	static const float none[FILES] = { 0 };

	(void)state;
	refuse("weighted", TSOCK_EARG, "no weights are given");
	weigh(ones);
	refuse("weighted", TSOCK_EARG, "no weights are given");
	weigh(none);
	refuse("weighted", TSOCK_EDATA, "all weights are 0");
	refuse("limit:10", TSOCK_EARG, "limit of 10 is more than the 9");
	refuse("repeat:2,limit:19", TSOCK_EARG, "more than the 18");
	worker_options.order = TSOCK_ORDER_PHILOX;
	worker_options.segments = 2;
	refuse("repeat:2", TSOCK_EARG, "can't have segments");
	refuse("limit:8", TSOCK_EARG, "can't have segments");
	worker_options.segments = 1;
	worker_options.format = &tsi_format_images;
	worker_options.select = NULL;
	refuse("balanced", TSOCK_EARG, "no classes");
}

static void expect_text(const char *text, const char *want)
{
	struct tsi_sampling s;
	char *said = NULL;
	size_t len;
	FILE *f = open_memstream(&said, &len);

	assert_int_equal(tsi_sampling_read(text, &s), 0);
	tsi_sampling_write(&s, f);
	fclose(f);
	assert_string_equal(said, want);
	free(said);
}

static void the_option_has_one_form_for_each_meaning(void **state)
{
	static const char *const wrong[] = { "",
					     "weigted",
					     "weighted,",
					     "repeat",
					     "repeat:0",
					     "repeat:1025",
					     "repeat:-1",
					     "limit:",
					     "limit:0",
					     "limit:3x",
					     "limit:3,limit:4",
					     "balanced,repeat:2",
					     "limit:9223372036854775808" };
	struct tsi_sampling s;

	(void)state;
	expect_text("weighted", "weighted");
	expect_text("balanced,limit:07", "balanced,limit:7");
	expect_text("repeat:03", "repeat:3");
	expect_text("repeat:1", "");
	expect_text("repeat:1,limit:5", "limit:5");
	expect_text("repeat:1024,limit:9223372036854775807",
		    "repeat:1024,limit:9223372036854775807");
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(tsi_sampling_read(wrong[i], &s), TSOCK_EARG);
		assert_non_null(strstr(tsock_errmsg(), "--sampler"));
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_files, remove_files)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(weights_decide_how_often_samples_are_drawn),
		TEST(extreme_weights_are_drawn_from),
		TEST(draws_that_follow_each_other_are_independent),
		TEST(a_table_for_more_than_32_bits_draws_the_same),
		cmocka_unit_test(units_of_all_cells_are_counted_by_64_bits),
		TEST(balanced_draws_each_class_and_each_of_its_samples_alike),
		TEST(what_is_drawn_is_a_function_of_seed_and_place),
		TEST(repeats_follow_each_other_and_have_draws_of_their_own),
		TEST(a_repeated_sample_is_cropped_anew),
		TEST(a_limit_leaves_the_first_samples_of_each_epoch),
		TEST(ranks_have_each_position_once),
		TEST(a_run_has_the_files_of_its_samples),
		TEST(what_cant_be_sampled_is_refused),
		TEST(the_option_has_one_form_for_each_meaning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
