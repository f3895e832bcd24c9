/* SPDX-License-Identifier: MIT */
/*
 * test_scans.c - files of few bytes and much work are refused by their markers
 * alone; files of everyday scripts are not, whatever their size.
 */
#include "pixel/scans.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "jpeg/jpeg.h"
#include "test/lib/image_gen.h"
#include "test/lib/made_image.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The largest image that is let in, 4:4:4. */
#define BLOCKS_MAX (UINT64_C(1673) * 1673)

static const struct tsi_scan_frame largest = {
	.n = 3,
	.id = { 1, 2, 3 },
	.blocks = { BLOCKS_MAX, BLOCKS_MAX, BLOCKS_MAX },
};

/* Each pass over the image has DC of all parts, AC of each. */
static int open_made(unsigned sof, unsigned edge, unsigned parts,
		     unsigned passes)
{
	static struct made m;
	struct made_image_jpeg g = { .sof = sof,
				     .width = edge,
				     .height = edge,
				     .parts = parts,
				     .sampling = 0x11,
				     .scans = passes,
				     .data = 3 };
	struct tsi_decoder *j;
	uint32_t w, h;
	int err;

	made_image_jpeg(&m, &g);
	assert_int_equal(tsi_jpeg_ops.create(&j), 0);
	err = tsi_jpeg_ops.open(j, m.bytes, m.len, &w, &h);
	if (err) {
		assert_int_equal(err, TSOCK_EDATA);
		assert_non_null(strstr(tsock_errmsg(), "scans"));
	} else {
		assert_int_equal(w, edge);
	}
	tsi_jpeg_ops.destroy(j);
	return err;
}

/* By the header: nothing was decoded yet. */
static void few_bytes_of_much_work_are_refused(void **state)
{
	(void)state;
	assert_int_equal(open_made(0xc2, 13377, 1, 30), TSOCK_EDATA);
	assert_int_equal(open_made(0xc2, 13377, 3, 10), TSOCK_EDATA);
	assert_int_equal(open_made(0xc2, 13377, 4, 8), TSOCK_EDATA);
	assert_int_equal(open_made(0xc2, 4096, 3, 30), TSOCK_EDATA);
	assert_int_equal(open_made(0xca, 13377, 1, 4), TSOCK_EDATA);
	assert_int_equal(open_made(0xc2, 16, 3, 126), TSOCK_EDATA);
}

static void many_scans_of_a_smaller_image_pass(void **state)
{
	(void)state;
	assert_int_equal(open_made(0xc2, 16, 3, 125), 0);
	assert_int_equal(open_made(0xc2, 1024, 3, 100), 0);
	assert_int_equal(open_made(0xca, 1024, 3, 100), 0);
	assert_int_equal(open_made(0xc2, 4096, 3, 12), 0);
	assert_int_equal(open_made(0xc2, 13377, 4, 4), 0);
	assert_int_equal(open_made(0xca, 13377, 1, 2), 0);
}

static void libjpegs_script_passes_at_any_size(void **state)
{
	struct image_gen_jpeg g = {
		.width = 64, .height = 64, .components = 3, .progressive = true
	};
	struct image_gen_bytes f = image_gen_jpeg(&g);
	struct tsi_scan_work w = tsi_scans_count(&largest, f.data, f.len);

	(void)state;
	assert_int_equal(w.scans, 10);
	/* Each part's DC twice, 4 more of the first, 2 of the others. */
	assert_int_equal(w.visits, BLOCKS_MAX * (6 + 4 + 4));
	assert_false(tsi_scans_too_many(&largest, &w));
	/* Once more of them all would still do, four times not. */
	w.visits *= 2;
	assert_false(tsi_scans_too_many(&largest, &w));
	w.visits *= 2;
	assert_true(tsi_scans_too_many(&largest, &w));
	free(f.data);
}

/* What stands in other segments, or in a scan's data, is no scan. */
static void only_scans_are_counted(void **state)
{
	static const uint8_t data[] = {
		0xff, 0xd8, 0xff, 0xe0, 0,    10,   0xff, 0xda, 0,    8,
		1,    1,    0,    0,    0xff, 0xff, 0xda, 0,    8,    1,
		2,    0,    0,    63,   0,    0xff, 0,    0xda, 0xff, 0xd0,
		0xff, 0x01, 7,    0xff, 0xda, 0,    10,   2,    1,    0,
		3,    0,    0,    0,    0,    9,    9,    0xff, 0xd9, 0xff,
		0xda, 0,    8,    1,    1,    0,    0,    63,   0,
	};
	struct tsi_scan_frame f = { .n = 3,
				    .id = { 1, 2, 3 },
				    .blocks = { 100, 10, 1 } };

	(void)state;
	for (size_t len = 0; len <= COUNT(data); len++) {
		struct image_gen_bytes cut = image_gen_copy(data, len);
		struct tsi_scan_work w = tsi_scans_count(&f, cut.data, len);
		/* Their headers end at 25 and 45. */
		unsigned scans = (len >= 25) + (len >= 45);

		assert_int_equal(w.scans, scans);
		assert_int_equal(w.visits, scans == 0   ? 0
					   : scans == 1 ? 10
							: 111);
		free(cut.data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_bytes_of_much_work_are_refused),
		cmocka_unit_test(many_scans_of_a_smaller_image_pass),
		cmocka_unit_test(libjpegs_script_passes_at_any_size),
		cmocka_unit_test(only_scans_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
