/* SPDX-License-Identifier: MIT */
/*
 * test_fields.c - what a batch on a GPU holds: its fields in any order, as
 * tensors that say where they are, also where rings wrap at different samples.
 */
#include "test/lib/for_each_transport.h"

/* ---- tensors ---- */

struct dl {
	struct {
		uint32_t major, minor;
	} version;
	void *context;
	void (*deleter)(struct dl *self);
	uint64_t flags;
	void *data;
	int32_t device, id, ndim;
	uint8_t code, bits;
	uint16_t lanes;
	int64_t *shape, *strides;
	uint64_t offset;
};

static void read_lent(const struct reader_proc *r)
{
	enum transport transport = r->transport;
	tsock_batch *b;
	struct gpu_reader s;
	struct dl *d;
	void *out;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	need(tsock_next(s.t, 60000, &b) == 0);
	if (transport == STAGED_STORED) {
		need(tsock_batch_data(b, 3) == NULL);
		need(tsock_batch_dlpack(b, 3, 1, &out) == TSOCK_ENOTSUP);
		tsock_batch_release(b);
		gpu_reader_close(&s);
		return;
	}
	need(tsock_batch_dlpack(b, 3, 1, &out) == 0);
	d = out;
	need(d->device == 2 && d->id == r->device && d->flags == 1);
	need(d->data == tsock_batch_data(b, 3) && d->ndim == 4);
	if (gpu_reader_as_stored(transport)) /* as it is stored */
		need(d->shape[3] == 3 && d->bits == 8);
	else
		need(d->shape[1] == 3 && d->bits == 32);
	/* Named late, by whom the tensor went to. */
	need(tsock_batch_use(b, s.stream[2]) == 0);
	need(tsock_batch_use(b, (void *)2) == TSOCK_EARG);
	need(tsock_batch_use(b, NULL) == 0);
	need(tsock_batch_use(b, (void *)1) == 0);
	tsock_batch_release(b);
	d->deleter(d);
	gpu_reader_some(&s, 12);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void tensors_say_on_which_gpu_they_are(void **state)
{
	bool several =
		gpu_reader_gpus() >= 4 && !getenv("CUDA_VISIBLE_DEVICES");
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .device = several,
				 .visible = several ? "2,3" : NULL,
				 .batch = 16,
				 .floats = true };

	transport_run_as(read_lent, &r);
}

/* ---- an image that isn't the last field ---- */

#define ORDER_N 60

static void serve_image_first(void)
{
	static const struct tsock_field f[] = {
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .flags = TSOCK_FIELD_IMAGE,
		  .ndim = 3,
		  .shape = { SIDE, SIDE, 3 } },
		{ .name = "label", .dtype = TSOCK_I64 },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;
	tsock_server *s;
	uint64_t q;

	o.fields = f;
	o.nfields = 2;
	o.epoch_len = ORDER_N;
	o.ring = 64;
	o.max_batch = 16;
	if (tsock_serve_open("order", &o, &s))
		die("serve: %s", tsock_errmsg());
	while (tsock_serve_claim(s, 1, -1, &q) > 0) {
		stream_fill_payload(tsock_serve_slot(s, 0, q), PIXELS, q ^ 77);
		*(int64_t *)tsock_serve_slot(s, 1, q) = (int64_t)q;
		tsock_serve_commit(s, q, 1);
	}
}

/* Both fields of a batch, in host memory. */
static void fetch(tsock_batch *b, enum transport transport, uint32_t n,
		  void *const *host, void *const *device)
{
	for (unsigned i = 0; i < 2; i++) {
		size_t bytes = n * (i ? sizeof(int64_t) : PIXELS * 4);
		const void *from = device[i];

		if (!gpu_reader_as_stored(transport))
			from = tsock_batch_data(b, i);
		else if (tsock_batch_convert(b, i, device[i], NULL))
			die("convert: %s", tsock_errmsg());
		cu(cudaMemcpy(host[i], from, bytes, cudaMemcpyDeviceToHost));
	}
}

static void read_image_first(const struct reader_proc *r)
{
	struct source src = { .name = "order", .image = SIDE };
	struct reader_proc me = *r;
	struct gpu_reader s = { .r = &me };
	struct tsock_opts o;
	void *host[2], *device[2];
	tsock_batch *b;

	me.src = &src;
	o = gpu_reader_opts(&me);
	need(tsock_open("order", &o, &s.t) == 0);
	for (unsigned i = 0; i < 2; i++) {
		need((host[i] = malloc(16 * PIXELS * 4)));
		cu(cudaMalloc(&device[i], 16 * PIXELS * 4));
	}
	need(tsock_begin(s.t) == 0);
	for (uint64_t q = 0; q < ORDER_N;) {
		uint32_t n;

		need(tsock_next(s.t, 60000, &b) == 0);
		n = (uint32_t)tsock_batch_count(b);
		fetch(b, r->transport, n, host, device);
		tsock_batch_release(b);
		for (uint32_t i = 0; i < n; i++, q++) {
			if (((int64_t *)host[1])[i] != (int64_t)q)
				die("%s: wrong label at %llu",
				    gpu_reader_transport_name[r->transport],
				    (unsigned long long)q);
			gpu_reader_check_image(
				&s, (uint8_t *)host[0] + i * PIXELS * 4, q);
		}
	}
	tsock_close(s.t);
}

static void fields_come_in_any_order(void **state)
{
	struct reader_proc r = { .transport = transport_of_case(state),
				 .batch = 16,
				 .floats = true };
	pid_t producer = proc_spawn();

	if (producer == 0) {
		serve_image_first();
		_exit(0);
	}
	assert_int_equal(proc_ended(gpu_reader_start_as(read_image_first, &r)),
			 0);
	proc_kill_and_reap(producer);
}

/* ---- rings ---- */

/*
 * 60 slots on the host are 64 on a GPU, where whole mappings of 2 MiB need 32:
 * the two wrap at different samples, now one first, now the other.
 */
static void rings_of_different_lengths_wrap_each_at_its_own_end(void **state)
{
	struct source src = { .name = "lengths",
			      .n = 500,
			      .ring = 60,
			      .max_batch = 15,
			      .payload = 65536,
			      .image = SIDE };
	struct reader_proc r[4] = { { .transport = SHARED },
				    { .transport = SHARED, .floats = true },
				    { .transport = STORED },
				    { .transport = LEGACY } };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		r[i].batch = 15 - i;
		r[i].epochs = 2;
	}
	transport_run_readers(&src, r, 4);
}

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_GPU_TRANSPORT(tensors_say_on_which_gpu_they_are),
		FOR_EACH_GPU_TRANSPORT(fields_come_in_any_order),
	};
	const struct CMUnitTest once[] = {
		cmocka_unit_test(
			rings_of_different_lengths_wrap_each_at_its_own_end),
	};

	return transport_run_each("fields on a GPU", each,
				  sizeof(each) / sizeof(each[0]), once,
				  sizeof(once) / sizeof(once[0]));
}
