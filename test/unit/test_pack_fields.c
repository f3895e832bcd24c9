/* SPDX-License-Identifier: MIT */
/*
 * test_pack_fields.c - a pack has the labels, fields and masks of its source,
 * and nothing else is taken for them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "data/columnar/layout.h"
#include "data/columns.h"
#include "data/format.h"
#include "data/index.h"
#include "pack/pack.h"
#include "test/lib/worker_fixture.h"

#define IMAGES 5
#define ROW 512 /* bytes of a value, at most */

static char dest[100], other[100], labels[100], given[200];

/* Images a.png to e.png, and a table of what belongs to each. */
static int setup(void **state)
{
	static const char text[] = "id,label,age,weight,caption\n"
				   "c,bird|dog|cat,99999999999,2,three\n"
				   "a,cat|dog,3,0.5,\"one, two\"\n"
				   "e,dog,5,7.25,five five five\n"
				   "b,cat,1,1.5,\n"
				   "d,bird,-4,0,four\n";
	FILE *f;

	if (worker_make_root(state))
		return -1;
	snprintf(dest, sizeof(dest), "%s-pack", worker_root);
	snprintf(other, sizeof(other), "%s-other", worker_root);
	snprintf(labels, sizeof(labels), "%s.csv", worker_root);
	snprintf(given, sizeof(given), "%s:fields=age+weight+caption", labels);
	for (unsigned i = 0; i < IMAGES; i++) {
		char name[] = "a.png";

		name[0] = (char)('a' + i);
		worker_put_image(name);
	}
	f = fopen(labels, "w");
	return !f || fputs(text, f) < 0 || fclose(f);
}

static int teardown(void **state)
{
	char command[700];

	snprintf(command, sizeof(command),
		 "rm -rf '%s' '%s' '%s' '%s.part' '%s.part'", dest, other,
		 labels, dest, other);
	return system(command) || worker_remove_root(state);
}

static bool on_progress(void *arg, const struct tsi_pack_progress *p)
{
	*(struct tsi_pack_progress *)arg = *p;
	return true;
}

static struct tsi_pack_progress pack_to(const char *to, const char *with,
					const struct tsi_pack_masks *masks)
{
	struct tsi_pack_progress p = { 0 };
	struct tsi_pack_opts o = {
		.format = &tsi_format_images,
		.source = worker_root,
		.labels = with,
		.masks = masks,
		.dest = to,
		.shard_size = 1 << 20,
		.threads = 2,
		.cache_dir = "",
		.progress = on_progress,
		.arg = &p,
	};

	if (tsi_pack_run(&o))
		fail_msg("%s", tsock_errmsg());
	return p;
}

static int try_open(const char *root, const struct tsi_format *f,
		    const char *with, struct tsi_index **x)
{
	struct tsi_index_opts o = { .format = f,
				    .root = root,
				    .labels = with,
				    .cache_dir = "",
				    .threads = 2 };

	return tsi_index_open(&o, x);
}

static struct tsi_index *open_pack(const char *root)
{
	struct tsi_index *x = NULL;

	if (try_open(root, &tsi_format_packed, NULL, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

static void check_same(const struct tsi_index *a, const struct tsi_index *b)
{
	const struct tsi_columns *c = tsi_index_columns(a);
	const struct tsi_columns *d = tsi_index_columns(b);
	uint8_t want[ROW], got[ROW];

	assert_int_equal(tsi_columns_count(c), tsi_columns_count(d));
	assert_memory_equal(tsi_columns_label(c), tsi_columns_label(d),
			    sizeof(struct tsock_field));
	assert_int_equal(tsi_index_unlabelled(a), tsi_index_unlabelled(b));
	for (uint64_t i = 0; i < IMAGES; i++) {
		assert_int_equal(tsi_columns_put_label(c, i, want), 0);
		assert_int_equal(tsi_columns_put_label(d, i, got), 0);
		assert_memory_equal(want, got, 3 * sizeof(float));
		assert_true(tsi_index_weight(a, i) == tsi_index_weight(b, i));
		for (unsigned k = 0; k < tsi_columns_count(c); k++) {
			memset(want, 0, ROW);
			memset(got, 0, ROW);
			assert_memory_equal(tsi_columns_field(c, k),
					    tsi_columns_field(d, k),
					    sizeof(struct tsock_field));
			assert_int_equal(tsi_columns_put(c, k, i, want), 0);
			assert_int_equal(tsi_columns_put(d, k, i, got), 0);
			assert_memory_equal(want, got, ROW);
		}
	}
}

static void a_pack_has_the_fields_of_its_source(void **state)
{
	struct tsi_index *a, *b;

	(void)state;
	pack_to(dest, given, NULL);
	assert_int_equal(try_open(worker_root, &tsi_format_images, given, &a),
			 0);
	b = open_pack(dest);
	check_same(a, b);
	assert_int_equal(tsi_index_classes(b), 3);
	assert_false(tsi_index_unlabelled(b));
	tsi_index_close(a);
	tsi_index_close(b);
}

/* Which version of the index a pack has. */
static uint32_t version_of(const char *root)
{
	char path[200];
	uint32_t head[3] = { 0 };
	FILE *f;

	snprintf(path, sizeof(path), "%s/pack.index", root);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fread(head, sizeof(head), 1, f), 1);
	fclose(f);
	return head[2];
}

static void a_pack_without_fields_is_what_it_was(void **state)
{
	struct tsi_index *x;
	char path[200];

	(void)state;
	pack_to(dest, NULL, NULL);
	assert_int_equal(version_of(dest), 1);
	snprintf(path, sizeof(path), "%s/pack.columns", dest);
	assert_int_equal(access(path, F_OK), -1);
	x = open_pack(dest);
	assert_null(tsi_index_columns(x));
	assert_true(tsi_index_unlabelled(x));
	tsi_index_close(x);
	/* An older producer refuses one with fields. */
	pack_to(other, given, NULL);
	assert_int_equal(version_of(other), 2);
}

/* Byte `at` of the file is xored with x. */
static void change(uint64_t at, uint8_t x)
{
	char path[200];
	uint8_t b;
	int fd;

	snprintf(path, sizeof(path), "%s/pack.columns", dest);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &b, 1, (off_t)at), 1);
	b ^= x;
	assert_int_equal(pwrite(fd, &b, 1, (off_t)at), 1);
	close(fd);
}

static void damaged_fields_are_refused(void **state)
{
	struct tsi_index *a, *b;
	unsigned refused = 0;
	struct stat st;
	char path[200];

	(void)state;
	pack_to(dest, given, NULL);
	assert_int_equal(try_open(worker_root, &tsi_format_images, given, &a),
			 0);
	snprintf(path, sizeof(path), "%s/pack.columns", dest);
	assert_int_equal(stat(path, &st), 0);
	for (uint64_t i = 0; i < (uint64_t)st.st_size; i++) {
		change(i, 0x10);
		b = NULL;
		if (try_open(dest, &tsi_format_packed, NULL, &b)) {
			assert_non_null(strstr(tsock_errmsg(),
					       "pack.columns is damaged"));
			refused++;
		} else {
			/* Between columns. */
			check_same(a, b);
			tsi_index_close(b);
		}
		change(i, 0x10);
	}
	/* 63 bytes before each of 4 columns and at the end, at most. */
	assert_true(refused >= (uint64_t)st.st_size - 5 * 63);
	tsi_index_close(a);
}

static void another_packs_fields_are_refused(void **state)
{
	char command[400], less[200];
	struct tsi_index *x;

	(void)state;
	snprintf(less, sizeof(less), "%s:fields=age", labels);
	pack_to(dest, given, NULL);
	pack_to(other, less, NULL);
	snprintf(command, sizeof(command),
		 "cp '%s/pack.columns' '%s/pack.columns'", other, dest);
	assert_int_equal(system(command), 0);
	assert_int_equal(try_open(dest, &tsi_format_packed, NULL, &x),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "of another pack"));
	snprintf(command, sizeof(command), "rm '%s/pack.columns'", dest);
	assert_int_equal(system(command), 0);
	assert_true(try_open(dest, &tsi_format_packed, NULL, &x) < 0);
}

/* ---- masks, whose files are "mask 0", none for 1, and so on ---- */

static int open_masks(void *arg, const struct tsi_index *x)
{
	++*(int *)arg;
	return tsi_index_count(x) == IMAGES ? 0 : TSOCK_EDATA;
}

static int read_mask(void *arg, uint64_t i, size_t max, uint8_t **data,
		     size_t *len)
{
	(void)arg;
	(void)max;
	if (i == 1)
		return ENOENT;
	*data = calloc(1, 20);
	*len = (size_t)snprintf((char *)*data, 20, "mask %u", (unsigned)i);
	return 0;
}

static void close_masks(void *arg)
{
	--*(int *)arg;
}

static void check_mask(const struct tsi_index *x, uint64_t i)
{
	const struct tsi_columns *c = tsi_index_columns(x);
	char name[20], want[20], got[20] = "";
	struct tsi_columns_mask at;
	int fd;

	assert_true(tsi_columns_mask(c, i, &at));
	if (i == 1) {
		assert_int_equal(at.length, 0);
		return;
	}
	snprintf(want, sizeof(want), "mask %u", (unsigned)i);
	snprintf(name, sizeof(name), "%05u.pack", at.shard);
	assert_int_equal(at.length, strlen(want));
	fd = openat(tsi_index_dirfd(x), name, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, got, at.length, (off_t)at.offset),
			 at.length);
	close(fd);
	assert_string_equal(got, want);
}

static void masks_lie_behind_the_images(void **state)
{
	int opened = 0;
	struct tsi_pack_masks masks = { .folder = "masks",
					.open = open_masks,
					.read = read_mask,
					.close = close_masks,
					.arg = &opened };
	struct tsi_pack_progress p;
	struct tsi_index *x;

	(void)state;
	p = pack_to(dest, given, &masks);
	assert_int_equal(opened, 0);
	assert_int_equal(p.samples, IMAGES);
	assert_int_equal(p.done, IMAGES);
	assert_int_equal(p.kept, IMAGES);
	assert_int_equal(p.bad, 1);
	x = open_pack(dest);
	assert_int_equal(tsi_index_count(x), IMAGES);
	for (uint64_t i = 0; i < IMAGES; i++)
		check_mask(x, i);
	tsi_index_close(x);
}

/* ---- a column with the checksum that it had, and other bytes ---- */

#define COLUMN 200 /* bytes, at most */

static uint32_t crc_of(const uint8_t *p, size_t n)
{
	return (uint32_t)crc32(0, p, (uInt)n);
}

/*
 * Change the four bytes at p[at] so that the checksum of p[0..n) is want.  A
 * CRC is linear: each bit changes the same bits of the checksum, whatever the
 * others are.
 */
static void forge(uint8_t *p, size_t n, size_t at, uint32_t want)
{
	uint32_t off = crc_of(p, n) ^ want, change[32], bits[32], word = 0;

	for (unsigned b = 0; b < 32; b++) {
		p[at + b / 8] ^= (uint8_t)(1 << b % 8);
		change[b] = crc_of(p, n) ^ off ^ want;
		bits[b] = UINT32_C(1) << b;
		p[at + b / 8] ^= (uint8_t)(1 << b % 8);
	}
	for (unsigned top = 32; top--;) {
		unsigned k = 0;

		while (k < 32 && (!(change[k] >> top & 1) ||
				  (top < 31 && change[k] >> (top + 1))))
			k++;
		if (k == 32)
			continue;
		for (unsigned j = 0; j < 32; j++)
			if (j != k && change[j] >> top & 1) {
				change[j] ^= change[k];
				bits[j] ^= bits[k];
			}
		if (off >> top & 1) {
			off ^= change[k];
			word ^= bits[k];
		}
	}
	assert_int_equal(off, 0);
	for (unsigned b = 0; b < 4; b++)
		p[at + b] ^= (uint8_t)(word >> 8 * b);
	assert_int_equal(crc_of(p, n), want);
}

/* Names are made for all shards up to the last one, so it has to be one. */
static void a_shard_that_no_pack_has_is_refused(void **state)
{
	int opened = 0;
	struct tsi_pack_masks masks = { .folder = "masks",
					.open = open_masks,
					.read = read_mask,
					.close = close_masks,
					.arg = &opened };
	struct tsi_columnar_entry e = { .count = 0 };
	struct tsi_columnar_range *r;
	uint8_t column[COLUMN];
	struct tsi_index *x;
	char path[200];
	off_t at = sizeof(struct tsi_columnar_head);
	int fd;

	(void)state;
	pack_to(dest, given, &masks);
	snprintf(path, sizeof(path), "%s/pack.columns", dest);
	fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	for (; strcmp(e.name, "pack.masks"); at += (off_t)sizeof(e))
		assert_int_equal(pread(fd, &e, sizeof(e), at), sizeof(e));
	assert_true(e.bytes == IMAGES * sizeof(*r) && e.bytes <= COLUMN);
	assert_int_equal(pread(fd, column, e.bytes, (off_t)e.offset), e.bytes);
	r = (struct tsi_columnar_range *)(void *)column;
	r[0].file = INT32_MAX;
	/* The offset of another mask makes up for it. */
	forge(column, e.bytes, 4 * sizeof(*r), e.crc);
	assert_int_equal(pwrite(fd, column, e.bytes, (off_t)e.offset), e.bytes);
	close(fd);
	assert_int_equal(try_open(dest, &tsi_format_packed, NULL, &x),
			 TSOCK_EDATA);
	assert_non_null(strstr(tsock_errmsg(), "pack.columns is damaged"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_pack_has_the_fields_of_its_source, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_pack_without_fields_is_what_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged_fields_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			another_packs_fields_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(masks_lie_behind_the_images,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_shard_that_no_pack_has_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
