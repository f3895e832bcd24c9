/* SPDX-License-Identifier: MIT */
/*
 * test_resident.c - a producer whose samples lie in a GPU's memory: consumers
 * in host memory and on every GPU get the right bytes, and those on the same
 * GPU get them without an upload.
 *
 * The producer fills memory that was given back with other bytes at once, so
 * what is still read of it then is found out.  Copies are counted on the
 * simulation alone.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/lib/gpu_reader.h"

#ifdef SIMCUDA
#include <dlfcn.h>

#include "test/simcuda/hooks.h"
#endif

#define MOST 8 /* samples of a commit */
#define BLOCKS 64
#define WORKERS 2
#define PAYLOAD 5000
#define GARBAGE 0xa5

/* What became of the memory, and how many bytes the library has uploaded;
 * shared with the producer. */
static struct {
	_Atomic unsigned lent, given_back;
	_Atomic unsigned streams; /* made */
	_Atomic uint64_t up;
} * count;

#ifdef SIMCUDA
/* Where two functions have one name, the program's own goes first. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
			    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind,
			    cudaStream_t);
	void *fn = dlsym(RTLD_NEXT, "cudaMemcpyAsync");

	memcpy(&real, &fn, sizeof(real));
	if (kind == cudaMemcpyHostToDevice)
		atomic_fetch_add(&count->up, bytes);
	return real(dst, src, bytes, kind, stream);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *to, unsigned flags)
{
	cudaError_t (*real)(cudaStream_t *, unsigned);
	void *fn = dlsym(RTLD_NEXT, "cudaStreamCreateWithFlags");

	memcpy(&real, &fn, sizeof(real));
	atomic_fetch_add(&count->streams, 1);
	return real(to, flags);
}
#endif

static const struct source model = { .name = "resident",
				     .n = 1000,
				     .epochs = 3,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = PAYLOAD,
				     .image = SIDE };

/* ---- a producer ---- */

/* What the samples of a commit lie in. */
struct block {
	struct worker *w;
	uint8_t *payload, *image; /* on the GPU */
	uint64_t end;             /* behind its samples */
	_Atomic bool busy;
};

struct worker {
	const struct source *src;
	tsock_server *s;
	unsigned device;
	bool alone;   /* nobody reads on that GPU */
	bool watched; /* one reader does, one sample at a time */
	cudaStream_t stream;
	uint8_t *host, *garbage;
	struct block block[BLOCKS];
	unsigned seed;
	pthread_t thread;
};

/* Not counted: the library says cudaMemcpyHostToDevice. */
static void send(const struct worker *w, void *to, const void *from,
		 size_t bytes)
{
	/* Any thread gives memory back. */
	cu(cudaSetDevice((int)w->device));
	cu(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, w->stream));
}

/*
 * Samples are published before their memory is given back, since its owner may
 * be slow: the reader gets all of them although this doesn't return.
 */
static void await_readers(const struct block *b)
{
	for (unsigned i = 0; i < 20000; i++) {
		struct tsock_stats st = { .size = sizeof(st) };

		need(tsock_serve_stats(b->w->s, &st) == 0);
		need(st.head >= b->end);
		if (!b->w->watched || !st.consumers || st.row[0].tail >= b->end)
			return;
		proc_pause_us(1000);
	}
	die("memory is given back before its samples are published");
}

static void give_back(void *arg)
{
	struct block *b = arg;

	if (b->w->alone || b->w->watched)
		await_readers(b);
	send(b->w, b->payload, b->w->garbage, MOST * PAYLOAD);
	send(b->w, b->image, b->w->garbage, MOST * PIXELS);
	atomic_fetch_add(&count->given_back, 1);
	b->busy = false;
}

static struct block *free_block(struct worker *w)
{
	for (unsigned i = 0; i < 20000; i++) {
		for (unsigned k = 0; k < BLOCKS; k++) {
			if (w->block[k].busy)
				continue;
			w->block[k].busy = true;
			return &w->block[k];
		}
		proc_pause_us(1000);
	}
	die("memory is not given back");
}

static void write_numbers(const struct worker *w, uint64_t q)
{
	*(int64_t *)tsock_serve_slot(w->s, 1, q) = (int64_t)q;
	*(int64_t *)tsock_serve_slot(w->s, 2, q) =
		(int64_t)stream_index_of(w->src, q);
}

static void commit_on_gpu(struct worker *w, uint64_t first, unsigned n)
{
	struct tsock_gpu_samples g = TSOCK_GPU_SAMPLES_INIT;
	struct block *b = free_block(w);
	const void *data[4] = { b->payload, NULL, NULL, b->image };

	for (unsigned i = 0; i < n; i++) {
		stream_fill_payload(w->host + i * PAYLOAD, PAYLOAD, first + i);
		stream_fill_payload(w->host + MOST * PAYLOAD + i * PIXELS,
				    PIXELS, (first + i) ^ 77);
		write_numbers(w, first + i);
	}
	send(w, b->payload, w->host, n * PAYLOAD);
	send(w, b->image, w->host + MOST * PAYLOAD, n * PIXELS);
	g.device = w->device;
	g.stream = w->stream;
	g.data = data;
	g.release = give_back;
	g.arg = b;
	b->end = first + n;
	atomic_fetch_add(&count->lent, 1);
	need(tsock_serve_commit_gpu(w->s, first, n, &g) == 0);
	need(!w->alone || count->given_back == count->lent);
}

static void commit_on_host(const struct worker *w, uint64_t first, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		stream_write_sample(w->s, w->src, first + i);
	tsock_serve_commit(w->s, first, n);
}

/* Most of a claim from the GPU, its rest from the host if it likes. */
static void *work(void *arg)
{
	struct worker *w = arg;
	uint64_t first;
	int got;

	while ((got = tsock_serve_claim(w->s, MOST, -1, &first)) > 0) {
		unsigned n = (unsigned)got, m = n;

		if (w->seed && rand_r(&w->seed) % 4 == 0)
			m = (unsigned)rand_r(&w->seed) % (n + 1);
		/* Out of order. */
		if (m < n)
			commit_on_host(w, first + m, n - m);
		if (m)
			commit_on_gpu(w, first, m);
	}
	return NULL;
}

static void open_worker(struct worker *w)
{
	cu(cudaSetDevice((int)w->device));
	cu(cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking));
	cu(cudaMallocHost((void **)&w->host, MOST * (PAYLOAD + PIXELS)));
	cu(cudaMallocHost((void **)&w->garbage, MOST * PAYLOAD));
	memset(w->garbage, GARBAGE, MOST * PAYLOAD);
	for (unsigned i = 0; i < BLOCKS; i++) {
		struct block *b = &w->block[i];

		b->w = w;
		cu(cudaMalloc((void **)&b->payload, MOST * PAYLOAD));
		cu(cudaMalloc((void **)&b->image, MOST * PIXELS));
	}
}

static void close_worker(struct worker *w)
{
	cu(cudaStreamSynchronize(w->stream));
	for (unsigned i = 0; i < BLOCKS; i++) {
		need(!w->block[i].busy);
		cu(cudaFree(w->block[i].payload));
		cu(cudaFree(w->block[i].image));
	}
	cu(cudaFreeHost(w->host));
	cu(cudaFreeHost(w->garbage));
	cu(cudaStreamDestroy(w->stream));
}

/* Where samples are, and whether some are in host memory. */
struct place {
	unsigned device;
	bool alone, mixed, watched;
	unsigned readers; /* a bit for each GPU that is read on */
};

/* On its own GPU, and those that are read on. */
static void check_contexts(const struct place *p)
{
#ifdef SIMCUDA
	struct simcuda_live live;

	simcuda_live(&live);
	need(live.contexts == (1u << p->device | p->readers));
#else
	(void)p;
#endif
}

static pid_t start_on_gpu(const struct source *src, const struct place *p)
{
	static struct worker worker[WORKERS];
	/* In order, where one looks what is published. */
	unsigned workers = p->alone || p->watched ? 1 : WORKERS;
	pid_t pid;

	count->lent = count->given_back = 0;
	count->up = 0;
	count->streams = 0;
	pid = proc_spawn();
	if (pid)
		return pid;
	/* This process has its own GPU, which no reader has asked for. */
	stream_serves = NULL;
	for (unsigned i = 0; i < WORKERS; i++) {
		worker[i] = (struct worker){ .src = src,
					     .device = p->device,
					     .alone = p->alone,
					     .watched = p->watched,
					     .seed = p->mixed ? i + 1 : 0 };
		open_worker(&worker[i]);
	}
	worker[0].s = stream_serve(src);
	for (unsigned i = 0; i < workers; i++) {
		worker[i].s = worker[0].s;
		need(pthread_create(&worker[i].thread, NULL, work,
				    &worker[i]) == 0);
	}
	for (unsigned i = 0; i < workers; i++)
		pthread_join(worker[i].thread, NULL);
	while (!tsock_serve_drained(worker[0].s))
		proc_pause_us(10000);
	tsock_serve_close(worker[0].s);
	need(count->given_back == count->lent);
	check_contexts(p);
	for (unsigned i = 0; i < WORKERS; i++)
		close_worker(&worker[i]);
	_exit(0);
}

/* ---- readers ---- */

static void run_readers(const struct source *src, const struct place *p,
			struct reader_proc *r, unsigned n)
{
	struct source all = *src;
	pid_t producer, pid[8];

	all.min_consumers = n;
	producer = start_on_gpu(&all, p);
	for (unsigned i = 0; i < n; i++) {
		r[i].src = &all;
		r[i].epochs = 3;
		pid[i] = gpu_reader_start(&r[i]);
	}
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(proc_ended(pid[i]), 0);
	assert_int_equal(proc_ended(producer), 0);
	assert_true(count->lent > 0);
}

static void readers_everywhere_get_what_a_gpu_has_made(void **state)
{
	struct reader_proc r[] = {
		{ .transport = HOST, .batch = 16, .floats = true },
		{ .transport = SHARED, .batch = 13, .floats = true },
		{ .transport = STORED, .batch = 7 },
		{ .transport = LEGACY, .batch = 16 },
		{ .transport = STAGED, .batch = 5 },
	};
	unsigned n = sizeof(r) / sizeof(r[0]);
	struct place p = { .mixed = true, .readers = 1 };

	(void)state;
	run_readers(&model, &p, r, n);
}

static void readers_on_another_gpu_get_it_from_the_host(void **state)
{
	struct reader_proc r[] = {
		{ .transport = SHARED, .batch = 16, .device = 1 },
		{ .transport = STORED, .batch = 9, .device = 0 },
		{ .transport = HOST, .batch = 11 },
	};
	struct place p = { .device = 1, .mixed = true, .readers = 3 };

	(void)state;
	if (gpu_reader_gpus() < 2)
		skip();
	run_readers(&model, &p, r, 3);
}

static void samples_on_one_gpu_need_no_context_on_another(void **state)
{
	struct reader_proc r = { .transport = HOST, .batch = 16 };
	struct place p = { .device = 3 };

	(void)state;
	if (gpu_reader_gpus() < 4)
		skip();
	run_readers(&model, &p, &r, 1);
}

static void samples_that_a_gpu_has_are_not_uploaded_to_it(void **state)
{
	struct reader_proc r[] = {
		{ .transport = SHARED, .batch = 16 },
		{ .transport = STORED, .batch = 7 },
	};
	struct place p = { .readers = 1 };

	(void)state;
	run_readers(&model, &p, r, 2);
#ifdef SIMCUDA
	/* The producer's and the readers', and one for each worker's copies. */
	assert_in_range(count->streams, WORKERS, 4 * WORKERS + 8);
	/* The two numbers of each sample, and their margin. */
	assert_in_range(count->up, 3 * model.n * 16, 3 * model.n * 24);
#endif
}

static void
without_a_reader_there_the_memory_is_given_back_at_once(void **state)
{
	struct reader_proc r[] = {
		{ .transport = HOST, .batch = 16 },
		{ .transport = STAGED, .batch = 9 },
	};
	struct place p = { .alone = true };

	(void)state;
	run_readers(&model, &p, r, 2);
}

static void
samples_are_published_before_their_memory_is_given_back(void **state)
{
	struct reader_proc r = { .transport = STORED, .batch = 1 };
	struct place p = { .watched = true };
	struct source few = model;

	(void)state;
	few.n = 100;
	run_readers(&few, &p, &r, 1);
}

/* Those that are kept for a view that has ended are given back. */
static void a_reader_s_death_holds_no_memory(void **state)
{
	struct source src = model;
	struct reader_proc host = {
		.src = &src, .transport = HOST, .batch = 16, .epochs = 30
	};
	struct reader_proc gpu = {
		.src = &src, .transport = SHARED, .batch = 8, .epochs = 30
	};
	struct place p = { .mixed = true };
	pid_t producer, pid[2];

	(void)state;
	src.epochs = 30;
	src.min_consumers = 2;
	producer = start_on_gpu(&src, &p);
	pid[0] = gpu_reader_start(&host);
	pid[1] = gpu_reader_start(&gpu);
	for (unsigned i = 0; i < 4; i++) {
		stream_wait_readers(src.name, 2);
		proc_pause_us(30000 * (i + 1));
		proc_kill_and_reap(pid[1]);
		gpu.join = TSOCK_JOIN_NOW;
		pid[1] = gpu_reader_start(&gpu);
	}
	proc_kill_and_reap(pid[1]);
	assert_int_equal(proc_ended(pid[0]), 0);
	assert_int_equal(proc_ended(producer), 0);
}

/* ---- what is refused ---- */

static void refuse(const struct reader_proc *r)
{
	struct source src = model;
	struct tsock_gpu_samples g = TSOCK_GPU_SAMPLES_INIT;
	static struct worker w;
	const void *data[4] = { NULL };
	cudaGraph_t graph;
	uint64_t first;

	(void)r;
	w.src = &src;
	open_worker(&w);
	src.name = "refuses";
	w.s = stream_serve(&src);
	need(tsock_serve_claim(w.s, 1, 0, &first) == TSOCK_EAGAIN);
	g.data = data;
	g.release = give_back;
	g.device = 99;
	need(tsock_serve_commit_gpu(w.s, 0, 1, &g) == TSOCK_EARG);
	need(strstr(tsock_errmsg(), "from.device is 99"));
	g.device = 0;
	g.stream = w.stream;
	data[0] = w.block[0].payload;
	cu(cudaStreamBeginCapture(w.stream, cudaStreamCaptureModeRelaxed));
	need(tsock_serve_commit_gpu(w.s, 0, 1, &g) == TSOCK_ENOTSUP);
	need(strstr(tsock_errmsg(), "captured"));
	cu(cudaStreamEndCapture(w.stream, &graph));
	cu(cudaGraphDestroy(graph));
	need(count->given_back == 0);
	tsock_serve_close(w.s);
	close_worker(&w);
}

static void what_can_t_be_copied_is_refused_and_stays_the_caller_s(void **state)
{
	struct reader_proc r = { .src = &model };

	(void)state;
	count->given_back = 0;
	assert_int_equal(proc_ended(gpu_reader_start_as(refuse, &r)), 0);
}

#define TEST(fn) cmocka_unit_test_teardown(fn, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(readers_everywhere_get_what_a_gpu_has_made),
		TEST(readers_on_another_gpu_get_it_from_the_host),
		TEST(samples_on_one_gpu_need_no_context_on_another),
		TEST(samples_that_a_gpu_has_are_not_uploaded_to_it),
		TEST(without_a_reader_there_the_memory_is_given_back_at_once),
		TEST(samples_are_published_before_their_memory_is_given_back),
		TEST(a_reader_s_death_holds_no_memory),
		TEST(what_can_t_be_copied_is_refused_and_stays_the_caller_s),
	};

	proc_own_folder();
	if (!gpu_reader_gpus())
		return 77;
	count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(count != MAP_FAILED);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
