/* SPDX-License-Identifier: MIT */
/*
 * gpusum.c - print what a stream holds as it arrives on a GPU: the lines of
 * test/helpers/streamsum.c, to compare with them.
 *
 *   gpusum NAME BATCH SAMPLES [DEVICE [WAY [DTYPE]]]
 *
 * WAY: stored (default), shared, staged, legacy.  DTYPE: u8 (default), f32,
 * f16.  Exits with 77 where there is no GPU, with 0 where there is one and
 * SAMPLES is 0.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/gpu.h"
#include "tsock/tsock.h"

struct field {
	char name[32];
	uint64_t bytes; /* of a sample */
	void *device;   /* stored: of a batch */
	uint8_t *host;
};

static unsigned device;
static tsi_gpu_stream stream;
static struct tsi_gpu_event *event;
static struct field field[TSOCK_MAX_FIELDS];

static void must(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "gpusum: %s: %s\n", what, tsock_errmsg());
	exit(1);
}

static uint64_t hash(uint64_t h, const uint8_t *p, size_t n)
{
	/* FNV-1a (Fowler, Noll, Vo), 64 bit. */
	while (n--)
		h = (h ^ *p++) * UINT64_C(0x100000001b3);
	return h;
}

static void find_fields(tsock *t, unsigned n, uint64_t batch, bool own)
{
	for (unsigned i = 0; i < n; i++) {
		struct tsock_field d;
		void *host;

		must(tsock_get_field(t, i, &d), "field");
		snprintf(field[i].name, sizeof(field[i].name), "%s", d.name);
		field[i].bytes = tsock_dtype_size(d.dtype);
		for (unsigned k = 0; k < d.ndim; k++)
			field[i].bytes *= d.shape[k];
		must(tsi_gpu_host_alloc(device, batch * field[i].bytes, &host),
		     "memory");
		field[i].host = host;
		if (own)
			must(tsi_gpu_alloc(device, batch * field[i].bytes,
					   &field[i].device),
			     "memory");
	}
}

static void fetch(tsock_batch *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const void *from = field[i].device;

		if (from)
			must(tsock_batch_convert(b, i, field[i].device, stream),
			     "convert");
		else
			from = tsock_batch_data(b, i);
		must(tsi_gpu_download(device, stream, field[i].host, from,
				      tsock_batch_count(b) * field[i].bytes),
		     "download");
	}
	must(tsi_gpu_event_record(event, stream), "event");
	must(tsi_gpu_event_wait(event), "event");
}

static void print_batch(tsock_batch *b, unsigned n)
{
	for (uint64_t k = 0; k < tsock_batch_count(b); k++) {
		uint64_t h = UINT64_C(0xcbf29ce484222325);
		int64_t label = -1, index = -1;

		for (unsigned i = 0; i < n; i++) {
			const uint8_t *p = field[i].host + k * field[i].bytes;

			h = hash(h, p, field[i].bytes);
			if (!strcmp(field[i].name, "label"))
				memcpy(&label, p, sizeof(label));
			if (!strcmp(field[i].name, "index"))
				memcpy(&index, p, sizeof(index));
		}
		printf("%" PRIu64 " %" PRId64 " %" PRId64 " %016" PRIx64 "\n",
		       tsock_batch_seq(b) + k, index, label, h);
	}
}

static void choose(struct tsock_opts *o, const char *way, const char *dtype)
{
	o->device = (int32_t)device;
	if (!strcmp(way, "stored"))
		o->flags |= TSOCK_GPU_STORED;
	else if (!strcmp(way, "staged"))
		o->transport = TSOCK_TRANSPORT_STAGED;
	else if (!strcmp(way, "legacy"))
		o->transport = TSOCK_TRANSPORT_LEGACY;
	if (strcmp(dtype, "u8")) {
		o->dtype = strcmp(dtype, "f32") ? TSOCK_F16 : TSOCK_F32;
		o->normalize = TSOCK_UNIT;
		o->layout = TSOCK_CHW;
	}
	o->timeout_ms = 60000;
}

int main(int argc, char **argv)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_info info = { .size = sizeof(info) };
	const char *way = argc > 5 ? argv[5] : "stored";
	uint64_t want, got = 0;
	unsigned n;
	tsock_batch *b;
	tsock *t;
	int err;

	if (argc < 4)
		return 2;
	device = argc > 4 ? (unsigned)atoi(argv[4]) : 0;
	if (tsi_gpu_count(&n)) {
		printf("no GPU here: %s\n", tsock_errmsg());
		return 77;
	}
	if (device >= n) {
		printf("no GPU %u here, but %u\n", device, n);
		return 77;
	}
	o.batch_size = (uint32_t)atoi(argv[2]);
	want = strtoull(argv[3], NULL, 10);
	if (!want)
		return 0;
	choose(&o, way, argc > 6 ? argv[6] : "u8");
	must(tsock_open(argv[1], &o, &t), "open");
	must(tsock_get_info(t, &info), "info");
	must(tsi_gpu_stream_create(device, &stream), "stream");
	must(tsi_gpu_event_create(device, true, &event), "event");
	find_fields(t, info.nfields, o.batch_size, o.flags & TSOCK_GPU_STORED);
	while (got < want) {
		must(tsock_begin(t), "begin");
		while ((err = tsock_next(t, 60000, &b)) == 0) {
			fetch(b, info.nfields);
			print_batch(b, info.nfields);
			got += tsock_batch_count(b);
			tsock_batch_release(b);
			if (got >= want)
				break;
		}
		if (err != TSOCK_EEPOCH)
			must(err, "next");
	}
	tsock_close(t);
	return 0;
}
