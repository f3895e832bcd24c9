/* SPDX-License-Identifier: MIT */
/*
 * shard_fixture.c - data sets of tar shards.
 */
#include "test/lib/shard_fixture.h"

int shard_setup(void **state)
{
	int err = worker_make_root(state);

	worker_options.format = &tsi_format_webdataset;
	return err;
}

void shard_write_tar(struct tar_gen *t, const char *name)
{
	worker_put(name, t->data, t->len);
	free(t->data);
	*t = (struct tar_gen){ 0 };
}

void shard_add(struct tar_gen *t, const char *name)
{
	tar_gen_file(t, name, worker_png, sizeof(worker_png));
}

struct tsi_index *shard_open_index(void)
{
	struct tsi_index_opts o = { .format = worker_options.format,
				    .root = worker_options.folder,
				    .cache_dir = "",
				    .threads = 2 };
	struct tsi_index *x;

	if (tsi_index_open(&o, &x))
		fail_msg("%s", tsock_errmsg());
	return x;
}

struct tsi_index *shard_open_one(struct tar_gen *t)
{
	tar_gen_end(t);
	shard_write_tar(t, "s.tar");
	return shard_open_index();
}

void shard_expect(const struct tsi_index *x, uint64_t i, const char *name,
		  int64_t label)
{
	struct tsi_location at;

	tsi_index_locate(x, i, &at);
	assert_string_equal(at.member, name);
	assert_int_equal(tsi_index_label(x, i), label);
}

void shard_three(struct tar_gen *t)
{
	for (unsigned i = 0; i < 3; i++) {
		char name[20], text[4];

		snprintf(name, sizeof(name), "%u.cls", i);
		snprintf(text, sizeof(text), "%u", i);
		tar_gen_text(t, name, text);
		snprintf(name, sizeof(name), "%u.png", i);
		shard_add(t, name);
	}
}
