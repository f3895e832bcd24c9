/* SPDX-License-Identifier: MIT */
/*
 * worker_fixture.c - a tree of small images, and samples made of it.
 */
#include "test/lib/worker_fixture.h"

const uint8_t worker_png[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d,
	0x49, 0x48, 0x44, 0x52, 0x00, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00, 0x1e,
	0x08, 0x00, 0x00, 0x00, 0x00, 0x7b, 0xb6, 0x03, 0x01, 0x00, 0x00, 0x00,
	0x1a, 0x49, 0x44, 0x41, 0x54, 0x78, 0xda, 0x63, 0x6c, 0x60, 0x20, 0x0e,
	0x30, 0x31, 0x8c, 0x2a, 0x1c, 0x55, 0x38, 0xaa, 0x70, 0x54, 0xe1, 0x20,
	0x56, 0x08, 0x00, 0xfb, 0x90, 0x00, 0xbc, 0x91, 0x98, 0x23, 0x03, 0x00,
	0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82
};
char worker_root[64];
struct tsi_pipeline_opts worker_options;

void worker_write_file(const char *name, const char *mode, const void *data,
		       size_t len)
{
	char path[1400];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", worker_root, name);
	f = fopen(path, mode);
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	fclose(f);
}

void worker_put(const char *name, const void *data, size_t len)
{
	worker_write_file(name, "wb", data, len);
}

void worker_put_image(const char *name)
{
	worker_put(name, worker_png, sizeof(worker_png));
}

int worker_make_root(void **state)
{
	char path[128];

	(void)state;
	snprintf(worker_root, sizeof(worker_root), "/tmp/tsock-worker-XXXXXX");
	if (!mkdtemp(worker_root))
		return -1;
	for (char c = 'a'; c <= 'c'; c++) {
		snprintf(path, sizeof(path), "%s/%c", worker_root, c);
		mkdir(path, 0700);
	}
	worker_options = (struct tsi_pipeline_opts){
		.format = &tsi_format_imagefolder,
		.folder = worker_root,
		.recipe = recipes_train(SIZE),
		.order = TSOCK_ORDER_SEQUENTIAL,
		.segments = 1,
		.seed = 9,
		.io = TSI_READER_PREAD,
		.cache = "",
	};
	return 0;
}

int worker_remove_root(void **state)
{
	char command[96];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", worker_root);
	return system(command);
}

void worker_put_five(void)
{
	worker_put_image("a/0.png");
	worker_put_image("a/1.png");
	worker_put_image("b/0.png");
	worker_put_image("b/1.png");
	worker_put_image("c/0.png");
}

struct tsi_sampler *worker_open_sampler(void)
{
	struct tsi_sampler *s;

	if (tsi_sampler_open(&worker_options, &s))
		fail_msg("%s", tsock_errmsg());
	return s;
}

void worker_into(void *arg, uint64_t seq, struct tsi_slots *out)
{
	struct sample *sample = (struct sample *)arg + seq % 64;

	out->image = sample->image;
	out->label = &sample->label;
	out->index = &sample->index;
	out->box = sample->box;
	out->weight = &sample->weight;
	out->key = worker_options.keys ? sample->key : NULL;
	out->key_width = sizeof(sample->key);
}

int worker_make_within(struct tsi_sampler *s, struct tsi_budget *budget,
		       unsigned depth, struct sample *to, uint64_t n,
		       unsigned *substituted)
{
	struct tsi_worker *w;
	uint64_t begun = 0;
	int err = 0;

	*substituted = 0;
	assert_int_equal(
		tsi_worker_create(s, worker_options.io, depth, budget, &w), 0);
	while (!err && (begun < n || tsi_worker_busy(w))) {
		struct tsi_made made;

		while (!err && begun < n && tsi_worker_busy(w) < depth)
			err = tsi_worker_begin(w, begun++);
		if (!err)
			err = tsi_worker_finish(w, worker_into, to, &made);
		if (!err)
			*substituted += made.substituted;
	}
	tsi_worker_destroy(w);
	return err;
}

int worker_make(struct tsi_sampler *s, unsigned depth, struct sample *to,
		uint64_t n, unsigned *substituted)
{
	return worker_make_within(s, NULL, depth, to, n, substituted);
}
