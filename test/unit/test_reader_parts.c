/* SPDX-License-Identifier: MIT */
/*
 * test_reader_parts.c - parts of a file, which its first bytes choose, by both
 * backends of the reader.
 */
#include <string.h>

#include "test/lib/file_reader.h"

#define HEAD TSI_READER_HEAD
#define LONG ((size_t)300000)

/* What is chosen, and what was asked. */
struct choice {
	unsigned n;
	struct tsi_read_part part[TSI_READER_PARTS];
	unsigned calls;
	uint64_t size;
	uint8_t head[HEAD];
};

static unsigned choose(void *arg, const uint8_t *head, uint64_t size,
		       struct tsi_read_part *to)
{
	struct choice *c = arg;

	c->calls++;
	c->size = size;
	memcpy(c->head, head, HEAD);
	memcpy(to, c->part, c->n * sizeof(*to));
	return c->n;
}

static struct tsi_read read_by(struct tsi_io_reader *r, struct choice *c)
{
	struct tsi_read_request q = { .dirfd = files_dirfd,
				      .direct = files_direct,
				      .path = "file",
				      .choose = choose,
				      .arg = c };
	struct tsi_read out;

	assert_int_equal(tsi_io_reader_submit(r, &q), 0);
	assert_int_equal(tsi_io_reader_next(r, true, &out), 0);
	tsi_io_reader_recycle(r, &out);
	return out;
}

/* The read gave the head and the parts, or, past the page cache, all. */
static void check_parts(const struct tsi_read *r, const struct choice *c,
			size_t size)
{
	struct tsi_read one = *r;

	if (!r->of && files_direct) {
		files_check(r, 0, size, 5);
		return;
	}
	assert_int_equal(c->calls, 1);
	assert_int_equal(c->size, size);
	assert_int_equal(r->of, size);
	one.len = HEAD;
	files_check(&one, 0, HEAD, 5);
	assert_memory_equal(c->head, one.data, HEAD);
	for (unsigned k = 0; k < c->n; k++) {
		one.data += one.len;
		one.len = c->part[k].length;
		files_check(&one, c->part[k].offset, one.len, 5);
	}
	assert_ptr_equal(one.data + one.len, r->data + r->len);
}

static void the_head_and_the_chosen_parts_are_read(void **state)
{
	struct choice c[] = {
		{ .n = 1, .part = { { 200001, 7 } } },
		{ .n = 2,
		  .part = { { HEAD, 90000 }, { 100000, LONG - 100000 } } },
		{ .n = 3,
		  .part = { { 5000, 1 }, { 5001, 70000 }, { LONG - 1, 1 } } },
	};
	struct tsi_io_reader *r = files_reader(2);

	(void)state;
	files_put("file", LONG, 5);
	for (unsigned k = 0; k < 3; k++) {
		struct tsi_read out = read_by(r, &c[k]);

		check_parts(&out, &c[k], LONG);
	}
	tsi_io_reader_destroy(r);
}

static void
a_file_is_read_whole_if_nothing_is_chosen_or_it_is_short(void **state)
{
	struct choice none = { .n = 0 },
		      some = { .n = 1, .part = { { HEAD, 9 } } };
	struct tsi_io_reader *r = files_reader(2);
	struct tsi_read out;

	(void)state;
	files_put("file", LONG, 5);
	out = read_by(r, &none);
	files_check(&out, 0, LONG, 5);
	assert_int_equal(out.of, 0);
	files_put("file", 60000, 5);
	out = read_by(r, &some);
	files_check(&out, 0, 60000, 5);
	assert_int_equal(out.of, 0);
	assert_int_equal(some.calls, 0);
	tsi_io_reader_destroy(r);
}

static void parts_of_a_large_file_are_read_and_all_of_it_is_not(void **state)
{
	const size_t size = TSI_READER_AHEAD + 100000;
	struct choice c = { .n = 1, .part = { { size - 1000, 1000 } } };
	struct tsi_io_reader *r = files_reader(2);
	struct tsi_read out;

	(void)state;
	files_put("file", size, 5);
	out = read_by(r, &c);
	if (out.err != TSI_READ_LARGE || !files_direct)
		check_parts(&out, &c, size);
	c.n = 0;
	out = read_by(r, &c);
	assert_int_equal(out.err, TSI_READ_LARGE);
	assert_int_equal(out.size, size);
	/* Parts that take as much memory are refused as well. */
	c.n = 1;
	c.part[0] = (struct tsi_read_part){ HEAD, TSI_READER_AHEAD };
	out = read_by(r, &c);
	assert_int_equal(out.err, TSI_READ_LARGE);
	tsi_io_reader_destroy(r);
}

static void a_part_that_the_file_lacks_is_an_error(void **state)
{
	struct choice c = { .n = 1, .part = { { LONG - 10, 11 } } };
	struct tsi_io_reader *r = files_reader(2);
	struct tsi_read out;

	(void)state;
	files_put("file", LONG, 5);
	out = read_by(r, &c);
	if (c.calls)
		assert_int_equal(out.err, TSI_READER_TRUNCATED);
	/* The next one is read as if nothing had been. */
	c.part[0] = (struct tsi_read_part){ LONG - 10, 10 };
	c.calls = 0;
	out = read_by(r, &c);
	check_parts(&out, &c, LONG);
	tsi_io_reader_destroy(r);
}

static const struct CMUnitTest suite[] = {
	cmocka_unit_test(the_head_and_the_chosen_parts_are_read),
	cmocka_unit_test(
		a_file_is_read_whole_if_nothing_is_chosen_or_it_is_short),
	cmocka_unit_test(parts_of_a_large_file_are_read_and_all_of_it_is_not),
	cmocka_unit_test(a_part_that_the_file_lacks_is_an_error),
};

int main(void)
{
	int failed = 0;

	files_run_all(failed, suite);
	return failed != 0;
}
