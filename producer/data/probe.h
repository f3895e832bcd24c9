/* SPDX-License-Identifier: MIT */
/*
 * probe.h - look at the first bytes of every row's file or range: are they
 * there, and are they what they should be?
 */
#ifndef TSI_DATA_PROBE_H
#define TSI_DATA_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "data/root.h"
#include "data/table.h"

struct tsi_format;

struct tsi_probe_opts {
	const struct tsi_format *format;
	/* As in struct tsi_index_opts. */
	int (*sniff)(void *arg, const void *data, size_t len, bool whole);
	void *arg;
	bool survive_eio;
	unsigned threads;
};

/*
 * Look at n rows of t, those in which or (NULL) the first n: fills in their
 * sizes and adds to the list of bad rows, which is sorted then.  Fails with
 * ESYS (descriptors, EIO unless it is survived), ENOMEM, and what
 * sniff() returns other than EDATA and EAGAIN.
 */
int tsi_probe(const struct tsi_root *root, const struct tsi_probe_opts *opts,
	      struct tsi_table *t, const uint64_t *which, uint64_t n);

#endif
