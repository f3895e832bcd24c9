/*
 * test_lane.c - from a sequence number to a sample, past files that are bad.
 *
 * The trees are made here: a one-coloured PNG of 40 x 30 pixels, and files
 * that are no images.
 */
#include "run/lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tsock/tsock.h"

#define SIZE 16
#define DEPTH 4

static const uint8_t png[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
	0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00, 0x1e,
	0x08, 0x00, 0x00, 0x00, 0x00, 0x7b, 0xb6, 0x03, 0x01, 0x00, 0x00, 0x00,
	0x1a, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x6c, 0x60, 0x20, 0x0e,
	0x30, 0x31, 0x8c, 0x2a, 0x1c, 0x55, 0x38, 0xaa, 0x70, 0x54, 0xe1, 0x20,
	0x56, 0x08, 0x00, 0xfb, 0x90, 0x00, 0xbc, 0x91, 0x98, 0x23, 0x03, 0x00,
	0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82
};

static char root[64];
static struct tsi_options options;

/* What one sample came out as. */
struct sample {
	uint8_t image[SIZE * SIZE * 3];
	int64_t label, index;
	int32_t box[5];
};

static void put(const char *name, const void *data, size_t len)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	f = fopen(path, "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

static void put_image(const char *name)
{
	put(name, png, sizeof(png));
}

/* The head of an image that passes the scan, and nothing after it. */
static void put_truncated(const char *name)
{
	put(name, png, 45);
}

static void take_away(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	assert_int_equal(unlink(path), 0);
}

static int make_root(void **state)
{
	char path[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/tsock-lane-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	for (char c = 'a'; c <= 'c'; c++) {
		snprintf(path, sizeof(path), "%s/%c", root, c);
		mkdir(path, 0700);
	}
	options = (struct tsi_options){
		.folder = root,
		.preset = TSI_TRAIN,
		.order = TSI_SEQUENTIAL,
		.segments = 1,
		.size = SIZE,
		.resize = SIZE,
		.seed = 9,
		.io = TSI_READER_PREAD,
		.cache = "",
	};
	return 0;
}

static int remove_root(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* Files 0 to 4: a/0 a/1 b/0 b/1 c/0. */
static void put_five(void)
{
	put_image("a/0.png");
	put_image("a/1.png");
	put_image("b/0.png");
	put_image("b/1.png");
	put_image("c/0.png");
}

static struct tsi_source *open_source(void)
{
	struct tsi_source *s;

	if (tsi_source_open(&options, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

static void into(void *arg, uint64_t seq, struct tsi_slots *out)
{
	struct sample *sample = (struct sample *)arg + seq % 64;

	out->image = sample->image;
	out->label = &sample->label;
	out->index = &sample->index;
	out->box = sample->box;
}

/* Make samples 0 .. n-1, several ahead; how many were substituted. */
static int make(struct tsi_source *s, unsigned depth, struct sample *to,
		uint64_t n, unsigned *substituted)
{
	struct tsi_lane *l;
	uint64_t begun = 0;
	int err = 0;

	*substituted = 0;
	assert_int_equal(tsi_lane_create(s, depth, &l), 0);
	while (!err && (begun < n || tsi_lane_busy(l))) {
		struct tsi_made made;

		while (!err && begun < n && tsi_lane_busy(l) < depth)
			err = tsi_lane_begin(l, begun++);
		if (!err)
			err = tsi_lane_finish(l, into, to, &made);
		if (!err)
			*substituted += made.substituted;
	}
	tsi_lane_destroy(l);
	return err;
}

static void samples_come_with_their_labels(void **state)
{
	struct tsi_source *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	put_five();
	s = open_source();
	assert_int_equal(tsi_source_epoch_len(s), 5);
	assert_int_equal(make(s, DEPTH, got, 10, &n), 0);
	assert_int_equal(n, 0);
	for (int i = 0; i < 10; i++) {
		static const int64_t label[] = { 0, 0, 1, 1, 2 };

		assert_int_equal(got[i].index, i % 5);
		assert_int_equal(got[i].label, label[i % 5]);
		assert_int_equal(got[i].image[0], 128);
	}
	/* Another epoch is another crop. */
	assert_memory_not_equal(&got[0].box, &got[5].box, sizeof(got[0].box));
	tsi_source_close(s);
}

static void a_bad_file_is_replaced_by_the_next_good_one(void **state)
{
	struct sample whole[64], got[64];
	struct tsi_source *s;
	unsigned n;

	(void)state;
	put_five();
	s = open_source();
	assert_int_equal(make(s, DEPTH, whole, 10, &n), 0);
	tsi_source_close(s);

	/* One known from the scan, one found later, and the last of all. */
	put("a/1.png", "no image", 8);
	put_truncated("b/0.png");
	put_truncated("c/0.png");
	s = open_source();
	assert_int_equal(make(s, DEPTH, got, 10, &n), 0);
	assert_int_equal(n, 6);
	for (int i = 0; i < 10; i++) {
		static const int64_t index[] = { 0, 3, 3, 3, 0 };
		static const int64_t label[] = { 0, 1, 1, 1, 0 };

		assert_int_equal(got[i].index, index[i % 5]);
		assert_int_equal(got[i].label, label[i % 5]);
		/* Same size of image, so the place's own crop. */
		assert_memory_equal(got[i].box, whole[i].box,
				    sizeof(got[i].box));
	}
	assert_int_equal(tsi_source_bad_files(s), 3);
	tsi_source_close(s);
}

static void the_depth_changes_nothing(void **state)
{
	struct sample one[64], many[64];
	struct tsi_source *s;
	unsigned n;

	(void)state;
	memset(one, 0, sizeof(one));
	memset(many, 0, sizeof(many));
	put_five();
	put_truncated("b/1.png");
	s = open_source();
	assert_int_equal(make(s, 1, one, 20, &n), 0);
	assert_int_equal(make(s, 8, many, 20, &n), 0);
	for (int i = 0; i < 20; i++)
		assert_memory_equal(&one[i], &many[i], sizeof(one[i]));
	tsi_source_close(s);
}

static void a_file_that_comes_back_is_good_again(void **state)
{
	struct tsi_source *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	put_five();
	s = open_source();
	take_away("a/0.png");
	assert_int_equal(make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(got[0].index, 1);
	put_image("a/0.png");
	assert_int_equal(make(s, DEPTH, got, 5, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(got[0].index, 0);
	assert_int_equal(tsi_source_bad_files(s), 1);
	tsi_source_close(s);
}

static void raise_names_the_file(void **state)
{
	struct tsi_source *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	options.on_error = TSI_RAISE;
	put_five();
	put_truncated("b/1.png");
	s = open_source();
	assert_int_equal(make(s, DEPTH, got, 5, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), root));
	assert_non_null(strstr(tsock_errmsg(), "b/1.png"));
	tsi_source_close(s);

	put("b/1.png", "text", 4);
	s = open_source();
	assert_int_equal(make(s, DEPTH, got, 5, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "b/1.png"));
	tsi_source_close(s);
}

static void nothing_good_is_an_error(void **state)
{
	struct tsi_source *s;
	struct sample got[64];
	unsigned n;

	(void)state;
	put_truncated("a/0.png");
	put_truncated("b/0.png");
	put_truncated("c/0.png");
	s = open_source();
	assert_int_equal(make(s, DEPTH, got, 5, &n), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no file"));
	tsi_source_close(s);

	put("a/0.png", "x", 1);
	put("b/0.png", "x", 1);
	put("c/0.png", "x", 1);
	assert_int_equal(tsi_source_open(&options, &s), TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "no good image"));
}

static void segments_fit_the_epoch(void **state)
{
	struct tsi_source *s;

	(void)state;
	put_five();
	options.segments = 0;
	s = open_source();
	assert_int_equal(tsi_source_segments(s), 5);
	assert_int_equal(tsi_source_bounds(s)[5], 5);
	tsi_source_close(s);
	options.order = TSI_PHILOX;
	s = open_source();
	assert_int_equal(tsi_source_segments(s), 1);
	tsi_source_close(s);
	options.segments = 6;
	assert_int_equal(tsi_source_open(&options, &s), TSOCK_EARG);
	assert_non_null(strstr(tsock_errmsg(), "--segments 6"));
}

#define in_a_tree(test) \
	cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_a_tree(samples_come_with_their_labels),
		in_a_tree(a_bad_file_is_replaced_by_the_next_good_one),
		in_a_tree(the_depth_changes_nothing),
		in_a_tree(a_file_that_comes_back_is_good_again),
		in_a_tree(raise_names_the_file),
		in_a_tree(nothing_good_is_an_error),
		in_a_tree(segments_fit_the_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
