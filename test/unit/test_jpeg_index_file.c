/* SPDX-License-Identifier: MIT */
/*
 * test_jpeg_index_file.c - an index of JPEG rows comes back from its file, and
 * a file that is damaged, foreign or wrong gives nothing that was not recorded.
 */
#include "jpeg/index_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "image/load.h"
#include "base/err.h"
#include "base/hash.h"
#include "test/lib/jpeg_region.h"
#include "test/lib/made_jpeg.h"
#include "test/lib/recipes.h"

#define FILES 8
#define KEY 0x1234
#define MEMORY (1 << 20)

static struct tsi_jpeg_index *create(uint64_t files, uint64_t memory)
{
	struct tsi_jpeg_index *x;

	assert_int_equal(tsi_jpeg_index_create(files, memory, &x), 0);
	return x;
}

/* Some are so narrow that rows have no entries of columns. */
static struct image_gen_bytes image_of(unsigned i)
{
	struct image_gen_jpeg g = {
		.width = 20 + i * 40,
		.height = 100 + i * 10,
		.components = 3,
		.quality = 75,
		.seed = i,
	};

	g.factor[0][0] = 1 + (int)i % 2;
	g.factor[0][1] = 1;
	return image_gen_jpeg(&g);
}

/* A sample of the file, entered by the index; x NULL: libjpeg's. */
static void sample(struct tsi_jpeg_index *x, unsigned file, uint32_t epoch,
		   uint8_t *out)
{
	struct tsi_image_opts o = { .recipe = recipes_train(32),
				    .seed = 3,
				    .stock_jpeg = !x,
				    .jpeg_index = x };
	struct image_gen_bytes f = image_of(file);
	struct tsi_image *img;
	struct tsi_box box;

	assert_int_equal(tsi_image_create(&o, &img), 0);
	assert_int_equal(tsi_image_load_file(img, file, f.data, f.len, epoch,
					     file, out, &box),
			 0);
	tsi_image_destroy(img);
	free(f.data);
}

/* All files but the last are known. */
static struct tsi_jpeg_index *filled(void)
{
	struct tsi_jpeg_index *x = create(FILES, MEMORY);
	uint8_t out[32 * 32 * 3];

	for (unsigned i = 0; i < FILES - 1; i++)
		sample(x, i, 0, out);
	return x;
}

static int written(const struct tsi_jpeg_index *x)
{
	int fd = memfd_create("index", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(tsi_jpeg_index_write(x, KEY, fd));
	return fd;
}

static uint64_t reread(struct tsi_jpeg_index *x, uint64_t key, int fd)
{
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return tsi_jpeg_index_read(x, key, fd);
}

/* What y knows of its files is what x knows; how many files that are. */
static unsigned assert_part(const struct tsi_jpeg_index *x,
			    const struct tsi_jpeg_index *y)
{
	struct tsi_jpeg_kept a, b;
	unsigned n = 0;

	for (uint64_t i = 0; i < tsi_jpeg_index_files(y); i++) {
		if (!tsi_jpeg_index_get(y, i, &b))
			continue;
		assert_true(tsi_jpeg_index_get(x, i, &a));
		assert_int_equal(a.check, b.check);
		assert_int_equal(a.across, b.across);
		assert_int_equal(a.down, b.down);
		assert_int_equal(a.rows, b.rows);
		assert_int_equal(a.step, b.step);
		assert_int_equal(a.ends, b.ends);
		assert_memory_equal(a.entry, b.entry,
				    tsi_jpeg_kept_entries(&a) * 8);
		n++;
	}
	return n;
}

static void what_was_written_is_read(void **state)
{
	struct tsi_jpeg_index *x = filled(), *y = create(FILES, MEMORY);
	uint8_t a[32 * 32 * 3], b[32 * 32 * 3];
	int fd = written(x);

	(void)state;
	assert_int_not_equal(tsi_jpeg_index_rows(x), 0);
	assert_int_equal(reread(y, KEY, fd), tsi_jpeg_index_rows(x));
	assert_int_equal(tsi_jpeg_index_rows(y), tsi_jpeg_index_rows(x));
	assert_int_equal(assert_part(x, y), FILES - 1);
	/* Entered by what was read, and recorded further from there. */
	for (uint32_t i = 0; i < 10 * FILES; i++) {
		sample(y, i % FILES, i / FILES, a);
		sample(NULL, i % FILES, i / FILES, b);
		assert_memory_equal(a, b, sizeof(a));
	}
	tsi_jpeg_index_destroy(x);
	tsi_jpeg_index_destroy(y);
	close(fd);
}

/* A thread may have been quicker than the file. */
static void entries_that_are_there_stay(void **state)
{
	struct tsi_jpeg_index *x = filled();
	struct tsi_jpeg_kept a, b;
	int fd = written(x);

	(void)state;
	assert_true(tsi_jpeg_index_get(x, 2, &a));
	reread(x, KEY, fd);
	assert_true(tsi_jpeg_index_get(x, 2, &b));
	assert_ptr_equal(a.entry, b.entry);
	tsi_jpeg_index_destroy(x);
	close(fd);
}

static void a_cut_file_gives_no_more_than_it_has(void **state)
{
	struct tsi_jpeg_index *x = filled();
	int fd = written(x);
	off_t len = lseek(fd, 0, SEEK_END);

	(void)state;
	while (len-- > 0) {
		struct tsi_jpeg_index *y = create(FILES, MEMORY);

		assert_int_equal(ftruncate(fd, len), 0);
		reread(y, KEY, fd);
		assert_part(x, y);
		tsi_jpeg_index_destroy(y);
	}
	tsi_jpeg_index_destroy(x);
	close(fd);
}

static void a_flipped_byte_is_found(void **state)
{
	struct tsi_jpeg_index *x = filled();
	int fd = written(x);
	off_t len = lseek(fd, 0, SEEK_END);

	(void)state;
	for (off_t at = 0; at < len; at++) {
		struct tsi_jpeg_index *y = create(FILES, MEMORY);
		uint8_t was, is;

		assert_int_equal(pread(fd, &was, 1, at), 1);
		is = was ^ (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(fd, &is, 1, at), 1);
		reread(y, KEY, fd);
		/* The last block is empty: all others were whole. */
		assert_int_equal(assert_part(x, y),
				 at < len - 16 ? 0 : FILES - 1);
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
		tsi_jpeg_index_destroy(y);
	}
	tsi_jpeg_index_destroy(x);
	close(fd);
}

/* The header's checksum is right, so what differs is all that is wrong. */
static void seal(uint8_t *header)
{
	uint64_t sum = tsi_hash(header, 32, 0);

	memcpy(header + 32, &sum, sizeof(sum));
}

static void foreign_files_give_nothing(void **state)
{
	/* Magic, version, byte order, key, number of files. */
	static const unsigned at[] = { 0, 8, 12, 16, 24 };
	struct tsi_jpeg_index *x = filled(), *y = create(FILES, MEMORY);
	struct tsi_jpeg_index *more = create(FILES + 1, MEMORY);
	uint8_t header[40], other[40];
	int fd = written(x);

	(void)state;
	assert_int_equal(reread(y, KEY + 1, fd), 0);
	assert_int_equal(reread(more, KEY, fd), 0);
	assert_int_equal(pread(fd, header, 40, 0), 40);
	for (unsigned i = 0; i < 5; i++) {
		memcpy(other, header, 40);
		other[at[i]]++;
		seal(other);
		assert_int_equal(pwrite(fd, other, 40, 0), 40);
		assert_int_equal(reread(y, KEY, fd), 0);
	}
	assert_int_equal(tsi_jpeg_index_rows(y), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(reread(y, KEY, fd), 0);
	close(fd);
	assert_int_equal(tsi_jpeg_index_read(y, KEY, -1), 0);
	tsi_jpeg_index_destroy(more);
	tsi_jpeg_index_destroy(x);
	tsi_jpeg_index_destroy(y);
}

static void less_memory_takes_what_fits(void **state)
{
	struct tsi_jpeg_index *x = filled();
	uint8_t a[32 * 32 * 3], b[32 * 32 * 3];
	struct tsi_jpeg_kept all, rows;
	int fd = written(x);

	(void)state;
	/* For the rows of all, and then for those of some. */
	for (uint64_t memory = 4000; memory >= 500; memory -= 500) {
		struct tsi_jpeg_index *y = create(FILES, memory);

		reread(y, KEY, fd);
		assert_in_range(tsi_jpeg_index_memory(y), FILES * 8, memory);
		for (unsigned i = 0; i < FILES; i++) {
			sample(y, i, 1, a);
			sample(NULL, i, 1, b);
			assert_memory_equal(a, b, sizeof(a));
		}
		tsi_jpeg_index_destroy(y);
	}
	assert_true(tsi_jpeg_index_get(x, 6, &all));
	assert_int_equal(all.step, TSI_JPEG_INDEX_STEP);
	/* This one's rows alone, which are the last of each row's entries. */
	struct tsi_jpeg_index *y = create(FILES, 8 * FILES + 400);
	uint64_t each = tsi_jpeg_kept_entries(&all) / all.rows;

	assert_int_equal(tsi_jpeg_index_put(y, 6, &all), 0);
	assert_true(tsi_jpeg_index_get(y, 6, &rows));
	assert_int_equal(rows.step, 0);
	assert_int_equal(rows.rows, all.rows);
	for (uint64_t i = 0; i < rows.rows; i++)
		assert_int_equal(rows.entry[i], all.entry[(i + 1) * each - 1]);
	tsi_jpeg_index_destroy(y);
	tsi_jpeg_index_destroy(x);
	close(fd);
}

/* Entries that ascend, and have nothing to do with any image. */
static struct tsi_jpeg_kept made_up(uint32_t across, uint32_t rows,
				    uint64_t *entry, uint64_t step)
{
	struct tsi_jpeg_kept e = {
		.check = 7,
		.across = across,
		.down = rows,
		.rows = rows,
		.step = TSI_JPEG_INDEX_STEP,
		.entry = entry,
	};
	uint64_t n = tsi_jpeg_kept_entries(&e);

	for (uint64_t i = 0; i < n; i++)
		entry[i] = (i + 1) * step | i << 28;
	return e;
}

static void what_no_index_can_have_is_refused(void **state)
{
	struct tsi_jpeg_index *x = create(2, MEMORY);
	uint64_t entry[64];
	struct tsi_jpeg_kept good = made_up(20, 9, entry, 100), e;

	(void)state;
	e = good, e.across = 0;
	assert_int_equal(tsi_jpeg_index_put(x, 0, &e), TSOCK_EDATA);
	e = good, e.across = 8193, e.rows = 0;
	assert_int_equal(tsi_jpeg_index_put(x, 0, &e), TSOCK_EDATA);
	e = good, e.down = 8;
	assert_int_equal(tsi_jpeg_index_put(x, 0, &e), TSOCK_EDATA);
	e = good, e.down = 8193;
	assert_int_equal(tsi_jpeg_index_put(x, 0, &e), TSOCK_EDATA);
	e = good, e.step = 7;
	assert_int_equal(tsi_jpeg_index_put(x, 0, &e), TSOCK_EDATA);
	assert_int_equal(tsi_jpeg_index_put(x, 2, &good), TSOCK_EDATA);
	entry[5] = entry[4];
	assert_int_equal(tsi_jpeg_index_put(x, 0, &good), TSOCK_EDATA);
	assert_int_equal(tsi_jpeg_index_rows(x), 0);
	good = made_up(20, 9, entry, 100);
	assert_int_equal(tsi_jpeg_index_put(x, 0, &good), 0);
	assert_int_equal(tsi_jpeg_index_rows(x), 9);
	tsi_jpeg_index_destroy(x);
}

/* Entries of whoever wrote checksums that fit: other pixels, no crash. */
static void made_up_entries_do_no_harm(void **state)
{
	uint64_t *entry = malloc(8192 * 8);
	struct tsi_jpeg_scan s;

	(void)state;
	for (unsigned i = 0; i < 300; i++) {
		unsigned file = i % FILES;
		struct image_gen_bytes f = image_of(file);
		struct tsi_jpeg_index *x = create(1, MEMORY);
		const struct tsi_image_opts opts = { .jpeg_index = x };
		struct tsi_decoder_hint hint = { .opts = &opts };
		struct tsi_rect r = { 3, 50, 15, 40 };
		uint8_t out[15 * 40 * 3];
		struct tsi_jpeg_kept e;
		struct tsi_decoder *j;

		assert_true(tsi_jpeg_scan_read(f.data, f.len, &s));
		e = made_up(s.frame.mcus_across, s.frame.mcus_down, entry,
			    1 + i * i * 9);
		e.check = tsi_hash(f.data, f.len, f.len);
		e.rows -= i % 3;
		e.ends = i % 7 == 0;
		assert_int_equal(tsi_jpeg_index_put(x, 0, &e), 0);
		assert_int_equal(tsi_jpeg_ops.create(&j), 0);
		tsi_jpeg_ops.hint(j, &hint);
		jpeg_region(j, &f, &r, out);
		tsi_jpeg_ops.close(j);
		tsi_jpeg_ops.destroy(j);
		tsi_jpeg_index_destroy(x);
		free(f.data);
	}
	free(entry);
}

/* Several blocks, and a file whose entries are too many for one. */
static void a_large_index_is_read(void **state)
{
	struct tsi_jpeg_index *x = create(3000, 64 << 20);
	struct tsi_jpeg_index *y = create(3000, 64 << 20);
	uint64_t *entry = malloc((size_t)8192 * 128 * 8), lost;
	struct tsi_jpeg_kept e;
	int fd;

	(void)state;
	e = made_up(1000, 8192, entry, 1);
	assert_int_equal(tsi_jpeg_index_put(x, 1500, &e), 0);
	lost = e.rows;
	e = made_up(40, 100, entry, 99);
	for (uint64_t i = 0; i < 3000; i++)
		assert_int_equal(tsi_jpeg_index_put(x, i, &e), 0);
	fd = written(x);
	assert_int_equal(reread(y, KEY, fd), tsi_jpeg_index_rows(x) - lost);
	assert_int_equal(assert_part(x, y), 2999);
	free(entry);
	tsi_jpeg_index_destroy(x);
	tsi_jpeg_index_destroy(y);
	close(fd);
}

static void what_cannot_be_written_is_said(void **state)
{
	struct tsi_jpeg_index *x = filled();

	(void)state;
	assert_false(tsi_jpeg_index_write(x, KEY, -1));
	tsi_jpeg_index_destroy(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(entries_that_are_there_stay),
		cmocka_unit_test(a_cut_file_gives_no_more_than_it_has),
		cmocka_unit_test(a_flipped_byte_is_found),
		cmocka_unit_test(foreign_files_give_nothing),
		cmocka_unit_test(less_memory_takes_what_fits),
		cmocka_unit_test(what_no_index_can_have_is_refused),
		cmocka_unit_test(made_up_entries_do_no_harm),
		cmocka_unit_test(a_large_index_is_read),
		cmocka_unit_test(what_cannot_be_written_is_said),
	};

	if (!made_jpeg_is_indexed()) {
		puts("no vector instructions, so no index");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
