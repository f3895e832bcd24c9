/* SPDX-License-Identifier: MIT */
/*
 * orderdump.c - for test_order.py: print the orders of some epochs, a line
 * each, or the files of an index, "label path" each ended by a NUL.
 *
 * orderdump philox|torch|sequential SEED COUNT EPOCHS [RANK WORLD]
 * orderdump index ROOT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "data/epochs.h"
#include "data/format.h"
#include "data/index.h"

static int kind(const char *name)
{
	static const char *const names[] = { "philox", "torch", "sequential" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(name, names[i]))
			return i;
	return -1;
}

static int print_epoch(struct tsi_epochs *o, uint64_t epoch)
{
	for (uint64_t p = 0; p < tsi_epochs_len(o); p++) {
		uint64_t index;

		if (tsi_epochs_at(o, epoch, p, &index))
			return 1;
		printf("%s%llu", p ? " " : "", (unsigned long long)index);
	}
	putchar('\n');
	return 0;
}

static int print_index(const char *root)
{
	struct tsi_index_opts opts = { .format = &tsi_format_imagefolder,
				       .root = root,
				       .cache_dir = "" };
	char text[TSI_PATH];
	struct tsi_index *x;

	if (tsi_index_open(&opts, &x)) {
		fprintf(stderr, "orderdump: %s\n", tsock_errmsg());
		return 1;
	}
	for (uint64_t i = 0; i < tsi_index_count(x); i++)
		printf("%lld %s%c", (long long)tsi_index_label(x, i),
		       tsi_index_path(x, i, text), '\0');
	tsi_index_close(x);
	return 0;
}

int main(int argc, char **argv)
{
	struct tsi_order_opts opts = { 0 };
	struct tsi_epochs *o;

	if (argc == 3 && !strcmp(argv[1], "index"))
		return print_index(argv[2]);
	if ((argc != 5 && argc != 7) || kind(argv[1]) < 0) {
		fprintf(stderr, "usage: orderdump philox|torch|sequential SEED "
				"COUNT EPOCHS [RANK WORLD]\n"
				"       orderdump index ROOT\n");
		return 2;
	}
	opts.kind = (enum tsock_order_kind)kind(argv[1]);
	opts.seed = strtoull(argv[2], NULL, 0);
	opts.count = strtoull(argv[3], NULL, 0);
	if (argc == 7) {
		opts.part.first = (uint32_t)strtoul(argv[5], NULL, 0);
		opts.part.world = (uint32_t)strtoul(argv[6], NULL, 0);
	}
	if (tsi_epochs_create(&opts, &o)) {
		fprintf(stderr, "orderdump: %s\n", tsock_errmsg());
		return 1;
	}
	for (uint64_t e = 0; e < strtoull(argv[4], NULL, 0); e++) {
		if (print_epoch(o, e)) {
			fprintf(stderr, "orderdump: %s\n", tsock_errmsg());
			return 1;
		}
	}
	tsi_epochs_destroy(o);
	return 0;
}
