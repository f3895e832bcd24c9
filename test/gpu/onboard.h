/*
 * onboard.h - readers on a GPU, in processes of their own, that check every
 * byte.
 *
 * A process that forks readers must not have used CUDA itself.  Bytes are
 * looked at twice: copied back and waited for when a batch is handed out, and
 * by copies that are queued before it is released and looked at only some
 * batches later.
 */
#ifndef TEST_GPU_ONBOARD_H
#define TEST_GPU_ONBOARD_H

#include "test/system/common.h"

#include <cuda_runtime_api.h>

#define SIDE 10 /* of an image */
#define PIXELS (SIDE * SIDE * 3)
#define DEFER 3 /* batches later */
#define FIELDS 4

#define cu(call) \
	do { \
		cudaError_t e_ = (call); \
		if (e_ != cudaSuccess) \
			die("%s: %s", #call, cudaGetErrorName(e_)); \
	} while (0)

enum kind {
	HOST,
	STAGED,
	STAGED_PRIVATE,
	SHARED,
	PRIVATE,
	LEGACY,
	LEGACY_PRIVATE,
	KINDS,
};

static const char *const kind_name[] = {
	"host",    "staged", "staged private", "shared",
	"private", "legacy", "legacy private",
};

struct rider {
	const struct source *src;
	enum kind kind;
	int device;
	const char *visible; /* CUDA_VISIBLE_DEVICES */
	uint32_t batch, epochs, flags, join;
	bool floats;      /* f32 CHW in [0, 1]; else as it is stored */
	unsigned streams; /* that use each batch; 0 means 1 */
	unsigned delay_us;
};

/* The host's copy of a batch, on its way. */
struct look {
	uint8_t *host[FIELDS], *device[FIELDS];
	uint64_t seq, count;
	bool busy;
	cudaStream_t at; /* where it was queued */
};

struct seat {
	const struct rider *r;
	tsock *t;
	uint64_t bytes[FIELDS]; /* of a sample */
	cudaStream_t stream[4];
	struct look look[DEFER + 1];
};

static inline bool on_gpu(enum kind k)
{
	return k != HOST;
}

static inline bool separate(enum kind k)
{
	return k == STAGED_PRIVATE || k == PRIVATE || k == LEGACY_PRIVATE;
}

static inline int path_of(enum kind k)
{
	switch (k) {
	case HOST:
	case KINDS:
		break;
	case STAGED:
	case STAGED_PRIVATE:
		return TSOCK_PATH_STAGED;
	case SHARED:
	case PRIVATE:
		return TSOCK_PATH_VMM;
	case LEGACY:
	case LEGACY_PRIVATE:
		return TSOCK_PATH_LEGACY;
	}
	return 0;
}

static inline struct tsock_opts opts_of(const struct rider *r)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;

	o.batch_size = r->batch;
	o.join = r->join;
	o.flags = r->flags | (separate(r->kind) ? TSOCK_PRIVATE : 0);
	o.timeout_ms = 20000;
	o.device = on_gpu(r->kind) ? r->device : -1;
	o.path = (uint32_t)path_of(r->kind);
	if (r->floats) {
		o.dtype = TSOCK_F32;
		o.layout = TSOCK_CHW;
		o.normalize = TSOCK_UNIT;
	}
	return o;
}

static inline uint64_t bytes_of(const struct tsock_field *f)
{
	uint64_t n = tsock_dtype_size(f->dtype);

	for (unsigned i = 0; i < f->ndim; i++)
		n *= f->shape[i];
	return n;
}

static inline void make_look(struct seat *s, struct look *l)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		uint64_t bytes = s->bytes[i] * s->r->batch;

		if (!on_gpu(s->r->kind)) {
			l->host[i] = malloc(bytes);
			continue;
		}
		cu(cudaMallocHost((void **)&l->host[i], bytes));
		if (separate(s->r->kind))
			cu(cudaMalloc((void **)&l->device[i], bytes));
	}
}

static inline void board(struct seat *s, const struct rider *r)
{
	struct tsock_opts o = opts_of(r);

	memset(s, 0, sizeof(*s));
	s->r = r;
	if (r->visible)
		setenv("CUDA_VISIBLE_DEVICES", r->visible, 1);
	if (r->delay_us)
		pause_us(r->delay_us);
	if (tsock_open(r->src->name, &o, &s->t))
		die("open: %s", tsock_errmsg());
	for (unsigned i = 0; i < FIELDS; i++) {
		struct tsock_field f;

		need(tsock_get_field(s->t, i, &f) == 0);
		s->bytes[i] = bytes_of(&f);
	}
	if (on_gpu(r->kind)) {
		cu(cudaSetDevice(r->device));
		for (unsigned i = 0; i < 4; i++)
			cu(cudaStreamCreateWithFlags(&s->stream[i],
						     cudaStreamNonBlocking));
	}
	for (unsigned i = 0; i <= DEFER; i++)
		make_look(s, &s->look[i]);
}

static inline void check_image(const struct seat *s, const void *image,
			       uint64_t q)
{
	const float *f = image;
	uint8_t raw[PIXELS];

	fill_payload(raw, PIXELS, q ^ 77);
	if (!s->r->floats) {
		if (memcmp(raw, image, PIXELS))
			die("%s: torn image %llu", kind_name[s->r->kind],
			    (unsigned long long)q);
		return;
	}
	for (unsigned c = 0; c < 3; c++)
		for (unsigned p = 0; p < SIDE * SIDE; p++)
			if (f[c * SIDE * SIDE + p] != raw[p * 3 + c] / 255.0f)
				die("%s: wrong image %llu",
				    kind_name[s->r->kind],
				    (unsigned long long)q);
}

static inline void check_look(const struct seat *s, const struct look *l)
{
	const struct source *src = s->r->src;
	const int64_t *label = (const void *)l->host[1];
	const int64_t *index = (const void *)l->host[2];

	for (uint64_t i = 0; i < l->count; i++) {
		uint64_t q = l->seq + i;

		if (label[i] != (int64_t)q)
			die("%s: label %lld at place of %llu",
			    kind_name[s->r->kind], (long long)label[i],
			    (unsigned long long)q);
		if (index[i] != (int64_t)index_of(src, q))
			die("%s: wrong index at %llu", kind_name[s->r->kind],
			    (unsigned long long)q);
		if (!payload_is(l->host[0] + i * src->payload, src->payload, q))
			die("%s: torn sample %llu", kind_name[s->r->kind],
			    (unsigned long long)q);
		check_image(s, l->host[3] + i * s->bytes[3], q);
	}
}

/* Queue copies of the batch to the host in a stream. */
static inline void queue_look(struct seat *s, tsock_batch *b, struct look *l,
			      cudaStream_t stream)
{
	l->seq = tsock_batch_seq(b);
	l->count = tsock_batch_count(b);
	l->at = stream;
	l->busy = true;
	for (unsigned i = 0; i < FIELDS; i++) {
		uint64_t bytes = s->bytes[i] * l->count;
		const void *from = l->device[i];

		if (s->r->kind == HOST) {
			memcpy(l->host[i], tsock_batch_data(b, i), bytes);
			continue;
		}
		if (!separate(s->r->kind))
			from = tsock_batch_data(b, i);
		else if (tsock_batch_convert(b, i, l->device[i], stream))
			die("convert: %s", tsock_errmsg());
		need(from != NULL);
		cu(cudaMemcpyAsync(l->host[i], from, bytes,
				   cudaMemcpyDeviceToHost, stream));
	}
}

static inline void finish_look(struct seat *s, struct look *l)
{
	if (!l->busy)
		return;
	if (on_gpu(s->r->kind))
		cu(cudaStreamSynchronize(l->at));
	check_look(s, l);
	l->busy = false;
}

/* Name the streams, queue a late look in one of them, give the batch back. */
static inline void leave_to_gpu(struct seat *s, tsock_batch *b, unsigned turn)
{
	unsigned n = s->r->streams ? s->r->streams : 1;
	struct look *l = &s->look[1 + turn % DEFER];
	cudaStream_t at = s->stream[turn % n];

	finish_look(s, l);
	for (unsigned i = 0; i < n && on_gpu(s->r->kind); i++)
		if (!separate(s->r->kind) &&
		    tsock_batch_use(b, s->stream[(turn + i) % n]))
			die("use: %s", tsock_errmsg());
	queue_look(s, b, l, at);
	tsock_batch_release(b);
}

/* A batch that was taken: look at it, and give it back. */
static inline void ride(struct seat *s, tsock_batch *b, unsigned turn)
{
	queue_look(s, b, &s->look[0], s->stream[0]);
	finish_look(s, &s->look[0]);
	leave_to_gpu(s, b, turn);
}

static inline void settle(struct seat *s)
{
	for (unsigned i = 0; i < 4 && on_gpu(s->r->kind); i++)
		cu(cudaStreamSynchronize(s->stream[i]));
	for (unsigned i = 1; i <= DEFER; i++)
		if (s->look[i].busy)
			check_look(s, &s->look[i]);
	for (unsigned i = 0; i <= DEFER; i++)
		s->look[i].busy = false;
}

static inline void ride_epoch(struct seat *s)
{
	uint64_t n = s->r->src->n, want = UINT64_MAX, got = 0;
	uint8_t *seen = calloc(n, 1);
	unsigned turn = 0;
	tsock_batch *b;
	int err;

	need(seen);
	while ((err = tsock_next(s->t, -1, &b)) == 0) {
		uint64_t seq = tsock_batch_seq(b), c = tsock_batch_count(b);

		need(want == UINT64_MAX || seq == want);
		need(c >= 1 && c <= s->r->batch);
		want = seq + c;
		got += c;
		for (uint64_t i = 0; i < c; i++)
			need(!seen[index_of(s->r->src, seq + i)]++);
		ride(s, b, turn++);
	}
	if (err != TSOCK_EEPOCH)
		die("next: %s", tsock_errmsg());
	if (s->r->join != TSOCK_JOIN_NOW)
		need(got == n);
	settle(s);
	free(seen);
}

static inline void free_look(const struct seat *s, struct look *l)
{
	for (unsigned i = 0; i < FIELDS; i++) {
		if (!on_gpu(s->r->kind)) {
			free(l->host[i]);
			continue;
		}
		cu(cudaFreeHost(l->host[i]));
		if (l->device[i])
			cu(cudaFree(l->device[i]));
	}
}

static inline void alight(struct seat *s)
{
	tsock_close(s->t);
	for (unsigned i = 0; i <= DEFER; i++)
		free_look(s, &s->look[i]);
	for (unsigned i = 0; i < 4 && on_gpu(s->r->kind); i++)
		cu(cudaStreamDestroy(s->stream[i]));
}

static inline void ride_all(const struct rider *r)
{
	struct seat s;

	board(&s, r);
	for (uint32_t e = 0; e < r->epochs; e++) {
		int err = tsock_begin(s.t);

		if (err == TSOCK_EENDED)
			break;
		if (err)
			die("begin: %s", tsock_errmsg());
		if (tsock_path(s.t) != path_of(r->kind))
			die("path %d for %s", tsock_path(s.t),
			    kind_name[r->kind]);
		ride_epoch(&s);
	}
	alight(&s);
}

static inline pid_t start_rider(const struct rider *r)
{
	pid_t pid = spawn();

	if (pid == 0) {
		ride_all(r);
		_exit(0);
	}
	return pid;
}

#endif
