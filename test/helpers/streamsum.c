/* SPDX-License-Identifier: MIT */
/*
 * streamsum.c - print what a stream holds, a line for each sample: its
 * sequence number, its index, its label and a hash of all its bytes.
 *
 *   streamsum NAME BATCH SAMPLES [epoch|segment|now] [dtype]
 *
 * Reads as many epochs as SAMPLES need.  dtype: u8 (default), f32, f16.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tsock/tsock.h"

static uint64_t hash(uint64_t h, const uint8_t *p, size_t n)
{
	/* FNV-1a (Fowler, Noll, Vo), 64 bit. */
	while (n--)
		h = (h ^ *p++) * UINT64_C(0x100000001b3);
	return h;
}

static size_t sample_bytes(const struct tsock_field *f)
{
	size_t n = tsock_dtype_size(f->dtype);

	for (unsigned i = 0; i < f->ndim; i++)
		n *= f->shape[i];
	return n;
}

static void print_batch(tsock *t, const tsock_batch *b, unsigned nfields)
{
	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		uint64_t h = UINT64_C(0xcbf29ce484222325);
		int64_t label = -1, index = -1;

		for (unsigned f = 0; f < nfields; f++) {
			const uint8_t *p = tsock_batch_data(b, f);
			struct tsock_field d;
			size_t n;

			tsock_get_field(t, f, &d);
			n = sample_bytes(&d);
			h = hash(h, p + i * n, n);
			if (!strcmp(d.name, "label"))
				memcpy(&label, p + i * n, n);
			if (!strcmp(d.name, "index"))
				memcpy(&index, p + i * n, n);
		}
		printf("%" PRIu64 " %" PRId64 " %" PRId64 " %016" PRIx64 "\n",
		       tsock_batch_seq(b) + i, index, label, h);
	}
}

static int complain(void)
{
	fprintf(stderr, "streamsum: %s\n", tsock_errmsg());
	return 1;
}

int main(int argc, char **argv)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_info info = { .size = sizeof(info) };
	uint64_t want, got = 0;
	tsock_batch *b;
	tsock *t;
	int err;

	if (argc < 4)
		return 2;
	o.batch_size = (uint32_t)atoi(argv[2]);
	want = strtoull(argv[3], NULL, 10);
	if (argc > 4 && !strcmp(argv[4], "segment"))
		o.join = TSOCK_JOIN_SEGMENT;
	if (argc > 4 && !strcmp(argv[4], "now"))
		o.join = TSOCK_JOIN_NOW;
	if (argc > 5 && strcmp(argv[5], "u8")) {
		o.dtype = strcmp(argv[5], "f32") ? TSOCK_F16 : TSOCK_F32;
		o.normalize = TSOCK_UNIT;
		o.layout = TSOCK_CHW;
	}
	o.timeout_ms = 30000;
	if (tsock_open(argv[1], &o, &t) || tsock_get_info(t, &info))
		return complain();
	while (got < want) {
		if (tsock_begin(t))
			return complain();
		while ((err = tsock_next(t, -1, &b)) == 0) {
			print_batch(t, b, info.nfields);
			got += tsock_batch_count(b);
			tsock_batch_release(b);
			if (got >= want)
				break;
		}
		if (err && err != TSOCK_EEPOCH)
			return complain();
	}
	tsock_close(t);
	return 0;
}
