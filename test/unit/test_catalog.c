/* SPDX-License-Identifier: MIT */
/*
 * test_catalog.c - tables of all samples, small ones copied, large ones as they
 * lie in the index.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data/format.h"
#include "run/catalog.h"
#include "test/lib/index_tree.h"

#define MANY 4800 /* names of 220 bytes: more than a MiB in all */

/* A table, as the server has it made. */
struct made {
	struct tsock_serve_table t;
	char *memory; /* of its own, or mapped */
};

static int make(const struct tsi_index *x, uint32_t kind, struct made *out)
{
	struct tsock_serve_table *t = &out->t;
	int err;

	*t = (struct tsock_serve_table){ .kind = kind, .fd = -1 };
	err = tsi_catalog_table((void *)(uintptr_t)x, t);
	if (err)
		return err;
	if (t->fd >= 0) {
		out->memory =
			mmap(NULL, t->length, PROT_READ, MAP_SHARED, t->fd, 0);
		assert_ptr_not_equal(out->memory, MAP_FAILED);
		t->data = out->memory + t->data_at;
		t->start = (void *)(out->memory + t->start_at);
		return 0;
	}
	t->data_at = t->text ? t->count * sizeof(*t->start) : 0;
	out->memory = malloc(t->data_at + t->bytes);
	t->start = (void *)out->memory;
	t->data = out->memory + t->data_at;
	return tsi_catalog_table((void *)(uintptr_t)x, t);
}

static void unmake(struct made *m)
{
	if (m->t.fd >= 0)
		munmap(m->memory, m->t.length);
	else
		free(m->memory);
}

/* As tsock_table_text() makes it. */
static const char *text(const struct made *m, uint64_t i)
{
	const uint64_t *folder = (void *)(m->memory + m->t.folders_at);
	static char joined[TSI_PATH];
	const char *data = m->t.data, *in;
	uint64_t k = m->t.folders;

	assert_true(m->t.start[i] < m->t.bytes);
	while (k && folder[k - 1] > m->t.start[i])
		k--;
	assert_true(k || !m->t.folders);
	in = k && data[folder[k - 1]] ? data + folder[k - 1] : NULL;
	return tsi_path_join(in, data + m->t.start[i], joined);
}

/* All three tables say what the index says. */
static void check(const struct tsi_index *x, bool shared)
{
	struct made label, file, key;
	const int32_t *number;

	assert_int_equal(make(x, TSOCK_TABLE_LABELS, &label), 0);
	assert_int_equal(make(x, TSOCK_TABLE_FILES, &file), 0);
	assert_int_equal(make(x, TSOCK_TABLE_KEYS, &key), 0);
	number = label.t.data;
	assert_int_equal(label.t.fd >= 0, shared);
	assert_int_equal(file.t.fd >= 0, shared);
	assert_int_equal(key.t.fd >= 0, shared);
	assert_int_equal(label.t.count, tsi_index_count(x));
	assert_int_equal(label.t.bytes, 4 * label.t.count);
	for (uint64_t i = 0; i < label.t.count; i++) {
		assert_int_equal(number[i], tsi_index_unlabelled(x)
						    ? -1
						    : tsi_index_label(x, i));
		assert_string_equal(text(&file, i), tree_path(x, i));
		assert_string_equal(text(&key, i), tree_path(x, i));
	}
	unmake(&label);
	unmake(&file);
	unmake(&key);
}

static void small_tables_are_written(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct tsi_index *x;
	struct made m;

	(void)state;
	tree_put("b/2.jpg", "ok");
	tree_put("a/1.jpg", "ok");
	tree_put("b/10.jpg", "ok");
	x = tree_open(o);
	check(x, false);
	assert_int_equal(make(x, 4, &m), TSOCK_ENOTSUP);
	tsi_index_close(x);
	/* Without classes. */
	o.format = &tsi_format_images;
	x = tree_open(o);
	assert_true(tsi_index_unlabelled(x));
	check(x, false);
	tsi_index_close(x);
}

static void put_many(void)
{
	char name[300], first[300];

	for (unsigned i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "%s/tree/c%u/%0200u.jpg", tree_top,
			 i % 7, i);
		if (i < 7) {
			tree_put(name + strlen(tree_top) + strlen("/tree/"),
				 "ok");
			strcpy(first, name);
		} else {
			assert_int_equal(link(first, name), 0);
		}
	}
}

static void large_tables_lie_in_the_index(void **state)
{
	struct tsi_index_opts o = tree_options();
	struct rlimit usual, little = { 4096, RLIM_INFINITY };
	struct tsi_index *x;

	(void)state;
	put_many();
	o.cache_dir = tree_cache;
	for (unsigned i = 0; i < 2; i++) { /* scanned, and kept */
		x = tree_open(o);
		assert_int_equal(tsi_index_cached(x), i == 1);
		check(x, true);
		tsi_index_close(x);
	}
	/* No memfd may be so large: private memory does as well. */
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
	little.rlim_max = usual.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	o.cache_dir = "";
	x = tree_open(o);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
	check(x, false);
	tsi_index_close(x);
}

int main(void)
{
#define TREE(f) cmocka_unit_test_setup_teardown(f, tree_setup, tree_teardown)
	const struct CMUnitTest tests[] = {
		TREE(small_tables_are_written),
		TREE(large_tables_lie_in_the_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
