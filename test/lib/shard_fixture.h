/* SPDX-License-Identifier: MIT */
/*
 * shard_fixture.h - data sets of tar shards, in the folder of worker_fixture.h.
 */
#ifndef TEST_LIB_SHARD_FIXTURE_H
#define TEST_LIB_SHARD_FIXTURE_H

#include "test/lib/tar_gen.h"
#include "test/lib/worker_fixture.h"

static inline int setup(void **state)
{
	int err = make_root(state);

	options.format = &tsi_format_webdataset;
	return err;
}

/* Write what was made, and begin anew. */
static inline void write_tar(struct tar_gen *t, const char *name)
{
	put(name, t->data, t->len);
	free(t->data);
	*t = (struct tar_gen){ 0 };
}

static inline void add(struct tar_gen *t, const char *name)
{
	tar_gen_file(t, name, png, sizeof(png));
}

/* The data set of one shard, or of all that were written. */
static inline struct tsi_index *open_index(void)
{
	struct tsi_index_opts o = { .format = options.format,
				    .root = options.folder,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x;

	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

static inline struct tsi_index *open_one(struct tar_gen *t)
{
	tar_gen_end(t);
	write_tar(t, "s.tar");
	return open_index();
}

static inline void expect(const struct tsi_index *x, uint64_t i,
			  const char *name, int64_t label)
{
	struct tsi_location at;

	tsi_index_locate(x, i, &at);
	assert_string_equal(at.member, name);
	assert_int_equal(tsi_index_label(x, i), label);
}

/* Three samples, of which the label comes first. */
static inline void three(struct tar_gen *t)
{
	for (unsigned i = 0; i < 3; i++) {
		char name[20], text[4];

		snprintf(name, sizeof(name), "%u.cls", i);
		snprintf(text, sizeof(text), "%u", i);
		tar_gen_text(t, name, text);
		snprintf(name, sizeof(name), "%u.png", i);
		add(t, name);
	}
}

#endif
