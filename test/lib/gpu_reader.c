/* SPDX-License-Identifier: MIT */
/*
 * gpu_reader.c - readers over every transport that check every byte.
 */
#include "test/lib/gpu_reader.h"

#include <sys/mman.h>

#include "test/simcuda/hooks.h"

/* The simulation's; not there with a real runtime. */
#pragma weak simcuda_may_use

/* GPUs that readers have asked producers for so far; shared with these. */
static _Atomic uint32_t *asked_for;

const char *const gpu_reader_transport_name[] = {
	"host",   "pinned", "staged", "staged_stored",
	"shared", "stored", "legacy", "legacy_stored",
};

static void keep_line(void *arg, const char *line)
{
	snprintf(arg, 256, "%s", line);
}

static void only_what_was_asked_for(void)
{
	simcuda_may_use(asked_for);
}

static void __attribute__((constructor)) share_what_is_asked_for(void)
{
	if (!simcuda_may_use)
		return;
	asked_for = mmap(NULL, sizeof(*asked_for), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(asked_for != MAP_FAILED);
	stream_serves = only_what_was_asked_for;
}

/* A bit for the GPU that a reader names, by its number in the machine. */
static uint32_t gpu_bit(const struct reader_proc *r)
{
	const char *at =
		r->visible ? r->visible : getenv("CUDA_VISIBLE_DEVICES");

	for (int i = 0; at && i < r->device; i++)
		at = strchr(at, ',') + 1;
	return UINT32_C(1) << (at ? atoi(at) : r->device);
}

/* Before it opens the stream. */
static void note_what_is_asked_for(const struct reader_proc *r)
{
	static _Atomic uint32_t mine;
	uint32_t own = gpu_reader_on_gpu(r->transport) ? gpu_bit(r) : 0;
	int transport = gpu_reader_transport(r->transport);

	if (!simcuda_may_use)
		return;
	atomic_fetch_or(&mine, own);
	simcuda_may_use(&mine);
	if (transport && transport != TSOCK_TRANSPORT_STAGED)
		atomic_fetch_or(asked_for, own);
}

unsigned gpu_reader_gpus(void)
{
	static int n = -1;
	pid_t pid;

	if (n >= 0)
		return (unsigned)n;
	pid = proc_spawn();
	if (pid == 0) {
		char line[256] = "";

		n = tsock_devices(keep_line, line);
		if (!n)
			puts(line);
		fflush(stdout);
		_exit(n);
	}
	n = proc_ended(pid);
	if (n < 0 || n > 255)
		die("looking for GPUs ended with %d", n);
	return (unsigned)n;
}

void gpu_reader_set(const char *name, const char *value)
{
	need(setenv(name, value, 1) == 0);
}

bool gpu_reader_on_gpu(enum transport k)
{
	return k >= STAGED;
}

bool gpu_reader_as_stored(enum transport k)
{
	return k == STAGED_STORED || k == STORED || k == LEGACY_STORED;
}

int gpu_reader_transport(enum transport k)
{
	switch (k) {
	case HOST:
	case PINNED:
	case TRANSPORTS:
		break;
	case STAGED:
	case STAGED_STORED:
		return TSOCK_TRANSPORT_STAGED;
	case SHARED:
	case STORED:
		return TSOCK_TRANSPORT_VMM;
	case LEGACY:
	case LEGACY_STORED:
		return TSOCK_TRANSPORT_LEGACY;
	}
	return 0;
}

struct tsock_opts gpu_reader_opts(const struct reader_proc *r)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;

	note_what_is_asked_for(r);
	o.batch_size = r->batch;
	o.join = r->join;
	o.between = r->between;
	o.rank = r->rank;
	o.world = r->world;
	memset(o.job, r->world > 1 ? 7 + (int)r->job : 0, sizeof(o.job));
	o.flags = r->flags |
		  (gpu_reader_as_stored(r->transport) ? TSOCK_GPU_STORED : 0);
	if (r->writes && !gpu_reader_on_gpu(r->transport))
		o.flags |= TSOCK_WRITABLE;
	o.timeout_ms = 20000;
	o.device = gpu_reader_on_gpu(r->transport) ? r->device : -1;
	o.transport = (uint32_t)gpu_reader_transport(r->transport);
	if (r->floats) {
		o.dtype = TSOCK_F32;
		o.layout = TSOCK_CHW;
		o.normalize = TSOCK_UNIT;
	}
	return o;
}

static uint64_t bytes_of(const struct tsock_field *f)
{
	uint64_t n = tsock_dtype_size(f->dtype);

	for (unsigned i = 0; i < f->ndim; i++)
		n *= f->shape[i];
	return n;
}

static void make_copy(struct gpu_reader *s, struct copy *l)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		uint64_t bytes = s->bytes[i] * s->r->batch;

		if (!gpu_reader_on_gpu(s->r->transport)) {
			l->host[i] = malloc(bytes);
			continue;
		}
		cu(cudaMallocHost((void **)&l->host[i], bytes));
		if (gpu_reader_as_stored(s->r->transport))
			cu(cudaMalloc((void **)&l->device[i], bytes));
	}
}

void gpu_reader_open(struct gpu_reader *s, const struct reader_proc *r)
{
	struct tsock_opts o = gpu_reader_opts(r);

	memset(s, 0, sizeof(*s));
	s->r = r;
	if (r->visible)
		setenv("CUDA_VISIBLE_DEVICES", r->visible, 1);
	if (r->delay_us)
		proc_pause_us(r->delay_us);
	if (tsock_open(r->src->name, &o, &s->t))
		die("open: %s", tsock_errmsg());
	for (unsigned i = 0; i < FIELDS; i++) {
		struct tsock_field f;

		need(tsock_get_field(s->t, i, &f) == 0);
		s->bytes[i] = bytes_of(&f);
	}
	if (gpu_reader_on_gpu(r->transport)) {
		cu(cudaSetDevice(r->device));
		for (unsigned i = 0; i < 4; i++)
			cu(cudaStreamCreateWithFlags(&s->stream[i],
						     cudaStreamNonBlocking));
	}
	for (unsigned i = 0; i <= DEFER; i++)
		make_copy(s, &s->copy[i]);
}

void gpu_reader_check_image(const struct gpu_reader *s, const void *image,
			    uint64_t q)
{
	const float *f = image;
	uint8_t raw[PIXELS];

	stream_fill_payload(raw, PIXELS, q ^ 77);
	if (!s->r->floats) {
		if (memcmp(raw, image, PIXELS))
			die("%s: torn image %llu",
			    gpu_reader_transport_name[s->r->transport],
			    (unsigned long long)q);
		return;
	}
	for (unsigned c = 0; c < 3; c++)
		for (unsigned p = 0; p < SIDE * SIDE; p++)
			if (f[c * SIDE * SIDE + p] != raw[p * 3 + c] / 255.0f)
				die("%s: wrong image %llu",
				    gpu_reader_transport_name[s->r->transport],
				    (unsigned long long)q);
}

void gpu_reader_check_copy(const struct gpu_reader *s, const struct copy *l)
{
	const struct source *src = s->r->src;
	const int64_t *label = (const void *)l->host[1];
	const int64_t *index = (const void *)l->host[2];

	stream_check_samples(src, gpu_reader_transport_name[s->r->transport],
			     l->seq, l->count, l->host[0], label, index);
	for (uint64_t i = 0; i < l->count; i++)
		gpu_reader_check_image(s, l->host[3] + i * s->bytes[3],
				       l->seq + i);
}

void gpu_reader_queue_copy(struct gpu_reader *s, tsock_batch *b, struct copy *l,
			   cudaStream_t stream)
{
	l->seq = tsock_batch_seq(b);
	l->count = tsock_batch_count(b);
	l->at = stream;
	l->busy = true;
	for (unsigned i = 0; i < FIELDS; i++) {
		uint64_t bytes = s->bytes[i] * l->count;
		const void *from = l->device[i];

		if (!gpu_reader_on_gpu(s->r->transport)) {
			memcpy(l->host[i], tsock_batch_data(b, i), bytes);
			continue;
		}
		if (!gpu_reader_as_stored(s->r->transport))
			from = tsock_batch_data(b, i);
		else if (tsock_batch_convert(b, i, l->device[i], stream))
			die("convert: %s", tsock_errmsg());
		need(from != NULL);
		cu(cudaMemcpyAsync(l->host[i], from, bytes,
				   cudaMemcpyDeviceToHost, stream));
	}
}

void gpu_reader_finish_copy(struct gpu_reader *s, struct copy *l)
{
	if (!l->busy)
		return;
	if (gpu_reader_on_gpu(s->r->transport))
		cu(cudaStreamSynchronize(l->at));
	gpu_reader_check_copy(s, l);
	l->busy = false;
}

void gpu_reader_leave_to_gpu(struct gpu_reader *s, tsock_batch *b,
			     unsigned turn)
{
	unsigned n = s->r->streams ? s->r->streams : 1;
	struct copy *l = &s->copy[1 + turn % DEFER];
	cudaStream_t at = s->stream[turn % n];

	gpu_reader_finish_copy(s, l);
	for (unsigned i = 0; i < n && gpu_reader_on_gpu(s->r->transport); i++)
		if (!gpu_reader_as_stored(s->r->transport) &&
		    tsock_batch_use(b, s->stream[(turn + i) % n]))
			die("use: %s", tsock_errmsg());
	gpu_reader_queue_copy(s, b, l, at);
	tsock_batch_release(b);
}

/* Write over it, if that is its reader's own, and give it back. */
static void scribble(struct gpu_reader *s, tsock_batch *b)
{
	enum transport k = s->r->transport;

	for (unsigned i = 0; i < FIELDS; i++) {
		uint64_t bytes = s->bytes[i] * tsock_batch_count(b);
		void *at = s->copy[0].device[i];

		if (!gpu_reader_on_gpu(k)) {
			memset(tsock_batch_data_mut(b, i), 0xee, bytes);
			continue;
		}
		if (k == STAGED) {
			at = (void *)(uintptr_t)tsock_batch_data(b, i);
			need(tsock_batch_use(b, s->stream[1]) == 0);
		}
		cu(cudaMemsetAsync(at, 0xee, bytes, s->stream[1]));
	}
	tsock_batch_release(b);
}

void gpu_reader_check(struct gpu_reader *s, tsock_batch *b, unsigned turn)
{
	bool common = gpu_reader_on_gpu(s->r->transport) &&
		      s->r->transport != STAGED &&
		      !gpu_reader_as_stored(s->r->transport);

	/* What was written into this copy's memory before. */
	if (s->r->writes && gpu_reader_on_gpu(s->r->transport))
		cu(cudaStreamSynchronize(s->stream[1]));
	gpu_reader_queue_copy(s, b, &s->copy[0], s->stream[0]);
	gpu_reader_finish_copy(s, &s->copy[0]);
	if (s->r->writes && !common)
		scribble(s, b);
	else
		gpu_reader_leave_to_gpu(s, b, turn);
}

void gpu_reader_settle(struct gpu_reader *s)
{
	for (unsigned i = 0; i < 4 && gpu_reader_on_gpu(s->r->transport); i++)
		cu(cudaStreamSynchronize(s->stream[i]));
	for (unsigned i = 1; i <= DEFER; i++)
		if (s->copy[i].busy)
			gpu_reader_check_copy(s, &s->copy[i]);
	for (unsigned i = 0; i <= DEFER; i++)
		s->copy[i].busy = false;
}

bool gpu_reader_begin(struct gpu_reader *s)
{
	int err = tsock_begin(s->t);

	if (err == TSOCK_EENDED)
		return false;
	if (err)
		die("begin: %s", tsock_errmsg());
	s->begun++;
	if (tsock_transport(s->t) != gpu_reader_transport(s->r->transport))
		die("transport %d for %s", tsock_transport(s->t),
		    gpu_reader_transport_name[s->r->transport]);
	return true;
}

void gpu_reader_some(struct gpu_reader *s, unsigned batches)
{
	tsock_batch *b;

	for (unsigned i = 0; i < batches; i++) {
		if (tsock_next(s->t, 60000, &b))
			die("next: %s", tsock_errmsg());
		gpu_reader_check(s, b, i);
	}
}

void gpu_reader_epoch(struct gpu_reader *s)
{
	unsigned turn = 0;
	struct tally y;
	tsock_batch *b;
	int err;

	reader_tally_begin(&y, s->r->src, s->r->batch, s->r->flags);
	while ((err = tsock_next(s->t, -1, &b)) == 0) {
		reader_tally_add(&y, b);
		gpu_reader_check(s, b, turn++);
	}
	if (err != TSOCK_EEPOCH)
		die("next: %s", tsock_errmsg());
	reader_tally_end(&y, s->r->join != TSOCK_JOIN_NOW || s->begun > 1);
	gpu_reader_settle(s);
}

static void free_copy(const struct gpu_reader *s, struct copy *l)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		if (!gpu_reader_on_gpu(s->r->transport)) {
			free(l->host[i]);
			continue;
		}
		cu(cudaFreeHost(l->host[i]));
		if (l->device[i])
			cu(cudaFree(l->device[i]));
	}
}

void gpu_reader_close(struct gpu_reader *s)
{
	tsock_close(s->t);
	for (unsigned i = 0; i <= DEFER; i++)
		free_copy(s, &s->copy[i]);
	for (unsigned i = 0; i < 4 && gpu_reader_on_gpu(s->r->transport); i++)
		cu(cudaStreamDestroy(s->stream[i]));
}

void gpu_reader_read_to_the_end(const struct reader_proc *r)
{
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	for (uint32_t e = 0; e < r->epochs && gpu_reader_begin(&s); e++)
		gpu_reader_epoch(&s);
	gpu_reader_close(&s);
}

pid_t gpu_reader_start_as(void (*fn)(const struct reader_proc *r),
			  const struct reader_proc *r)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		fn(r);
		_exit(0);
	}
	return pid;
}

pid_t gpu_reader_start(const struct reader_proc *r)
{
	return gpu_reader_start_as(gpu_reader_read_to_the_end, r);
}
