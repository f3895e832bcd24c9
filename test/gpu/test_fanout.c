/* SPDX-License-Identifier: MIT */
/*
 * test_fanout.c - one stream on several GPUs: everybody sees every sample
 * once, whichever way it comes there, and each sample is uploaded as often as
 * that way needs it.
 *
 * Copies are counted where the producer calls CUDA: of two functions by one
 * name the program's own goes first.  Runs on the simulation alone.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/lib/gpu_reader.h"

#ifdef SIMCUDA

#include "test/simcuda/simcuda.h"

/* What the producer did; shared with it. */
static struct {
	_Atomic uint64_t up, across; /* bytes to, and between, GPUs */
	_Atomic unsigned warnings, choices, fallbacks, spoilt;
} * did;

static bool is_producer;

static void find(const char *name, void *out)
{
	void *fn = dlsym(RTLD_NEXT, name);

	memcpy(out, &fn, sizeof(fn));
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t count,
			    enum cudaMemcpyKind kind, cudaStream_t stream)
{
	cudaError_t (*real)(void *, const void *, size_t, enum cudaMemcpyKind,
			    cudaStream_t);

	find("cudaMemcpyAsync", &real);
	if (is_producer && kind == cudaMemcpyHostToDevice)
		atomic_fetch_add(&did->up, count);
	return real(dst, src, count, kind, stream);
}

cudaError_t cudaMemcpyPeerAsync(void *dst, int to, const void *src, int from,
				size_t count, cudaStream_t stream)
{
	cudaError_t (*real)(void *, int, const void *, int, size_t,
			    cudaStream_t);

	find("cudaMemcpyPeerAsync", &real);
	if (is_producer)
		atomic_fetch_add(&did->across, count);
	return real(dst, to, src, from, count, stream);
}

/* ---- a producer ---- */

struct way {
	uint32_t fanout;
	bool legacy;
	const char *fault;              /* once there are samples */
	const char *name[3], *value[3]; /* of its environment */
};

static const char *nccl_path(void)
{
	static char path[PATH_MAX + 40];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
	char *slash;

	need(n > 0);
	path[n] = '\0';
	for (unsigned i = 0; i < 2; i++) {
		slash = strrchr(path, '/');
		need(slash);
		*slash = '\0';
	}
	strcat(path, "/simcuda/libnccl_sim.so");
	return path;
}

static void note(void *arg, int level, const char *line)
{
	if (level == TSOCK_LOG_WARN && strstr(line, "NCCL"))
		atomic_fetch_add(&did->warnings, 1);
	else
		log_line(arg, level, line);
	if (strstr(line, "from now on, not from GPU"))
		atomic_fetch_add(&did->fallbacks, 1);
	else if (strstr(line, "with other bytes"))
		atomic_fetch_add(&did->spoilt, 1);
	else if (strstr(line, "is filled from"))
		atomic_fetch_add(&did->choices, 1);
}

/* What is copied before the first sample is there is no sample; from then on
 * GPUs may fail. */
static void produce_counted(tsock_server *s, const struct source *src,
			    const char *fault)
{
	uint64_t first;
	int n = tsock_serve_claim(s, 4, -1, &first);

	did->up = did->across = 0;
	if (fault)
		simcuda_set_faults(fault);
	for (int i = 0; i < n; i++) {
		write_sample(s, src, first + (uint64_t)i);
		tsock_serve_commit(s, first + (uint64_t)i, 1);
	}
	produce(s, src);
}

static pid_t start_fan(const struct source *src, const struct way *w)
{
	pid_t pid;

	memset(did, 0, sizeof(*did));
	pid = spawn();
	if (pid == 0) {
		struct source fan = *src;
		tsock_server *s;

		is_producer = true;
		tsock_set_logger(note, NULL);
		setenv("TSOCK_NCCL", nccl_path(), 1);
		for (unsigned i = 0; i < 3 && w->name[i]; i++)
			setenv(w->name[i], w->value[i], 1);
		fan.fanout = w->fanout;
		fan.gpu_transport = w->legacy ? TSOCK_TRANSPORT_LEGACY : 0;
		s = serve(&fan);
		produce_counted(s, src, w->fault);
		while (!tsock_serve_drained(s))
			pause_us(5000);
		tsock_serve_close(s);
		_exit(0);
	}
	return pid;
}

static uint64_t sample_bytes(const struct source *src)
{
	return src->payload + 8 + 8 + PIXELS;
}

static const struct source model = { .name = "fan",
				     .n = 300,
				     .ring = 64,
				     .max_batch = 16,
				     .payload = 2500,
				     .image = SIDE };

static const char *const modes[] = { "eager", "late", "random", "reverse",
				     "stuck" };

static void in_mode(const char *mode)
{
	setenv("SIMCUDA_MODE", mode, 1);
	setenv("SIMCUDA_LATE_MS", "20", 1);
	setenv("SIMCUDA_STUCK_MS", "150", 1);
}

static void in_each_mode(void (*fn)(uint32_t fanout), uint32_t fanout)
{
	const char *only = getenv("FANOUT_MODE");

	for (unsigned m = 0; m < 5; m++) {
		if (only && strcmp(only, modes[m]) != 0)
			continue;
		in_mode(modes[m]);
		fn(fanout);
	}
	unsetenv("SIMCUDA_MODE");
	unsetenv("SIMCUDA_LATE_MS");
	unsetenv("SIMCUDA_STUCK_MS");
}

/* ---- everybody sees everything ---- */

/* They come one by one, some stay longer, one is killed. */
static void coming_and_going(uint32_t fanout)
{
	struct way w = { .fanout = fanout };
	struct reader_proc r[8] = {
		{ .transport = SHARED, .device = 0 },
		{ .transport = STORED, .device = 1 },
		{ .transport = SHARED, .device = 0, .visible = "2" },
		{ .transport = SHARED, .device = 1, .visible = "0,3" },
		{ .transport = SHARED, .device = 0, .visible = "1" },
		{ .transport = STORED, .device = 2, .visible = "3,2,0" },
		{ .transport = LEGACY, .device = 3 },
		{ .transport = HOST },
	};
	struct reader_proc victim = { .src = &model,
				      .transport = SHARED,
				      .device = 1,
				      .batch = 9,
				      .epochs = 100000 };
	pid_t producer = start_fan(&model, &w), pid[8], dies;

	dies = start_reader_proc(&victim);
	for (unsigned i = 0; i < 8; i++) {
		r[i].src = &model;
		r[i].batch = 16 - 2 * i;
		r[i].epochs = 1 + i % 2;
		r[i].floats = i % 3 == 0;
		r[i].delay_us = i * 9000;
		pid[i] = start_reader_proc(&r[i]);
	}
	for (unsigned i = 0; stats_of("fan").head < 100; i++) {
		assert_true(i < 2000);
		pause_us(5000);
	}
	kill_and_reap(dies);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(ended(pid[i]), 0);
	/* None of this was an error. */
	assert_int_equal(did->warnings + did->fallbacks, 0);
	kill_and_reap(producer);
}

static void everybody_sees_all_by_auto(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_AUTO);
}

static void everybody_sees_all_by_peer_copies(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_PEER);
}

static void everybody_sees_all_by_nccl(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_NCCL);
}

static void everybody_sees_all_from_the_host(void **state)
{
	(void)state;
	in_each_mode(coming_and_going, TSOCK_FANOUT_HOST);
}

/* ---- how often a sample is uploaded ---- */

/* A whole stream on four GPUs: how often each of its bytes went up, and from
 * GPU to GPU, in hundredths. */
static void whole_stream(const struct way *w, unsigned *up, unsigned *across)
{
	struct source src = model;
	struct reader_proc r[4] = { { 0 } };
	pid_t producer, pid[4];
	uint64_t bytes;

	src.epochs = 3;
	src.ring = 256;
	src.min_consumers = 4;
	producer = start_fan(&src, w);
	for (unsigned i = 0; i < 4; i++) {
		r[i].src = &src;
		r[i].transport = w->legacy ? i % 2 ? LEGACY_STORED : LEGACY
				 : i % 2   ? STORED
					   : SHARED;
		r[i].device = (int)i;
		r[i].batch = 16 - 3 * i;
		r[i].epochs = 3;
		pid[i] = start_reader_proc(&r[i]);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ended(pid[i]), 0);
	assert_int_equal(ended(producer), 0);
	bytes = src.n * src.epochs * sample_bytes(&src);
	*up = (unsigned)(did->up * 100 / bytes);
	*across = (unsigned)(did->across * 100 / bytes);
}

/* The margin is copied, too: a sixteenth. */
static void goes_up(const struct way *w, unsigned times)
{
	unsigned up, across;

	whole_stream(w, &up, &across);
	assert_int_equal(did->fallbacks, 0);
	assert_in_range(up, times * 100, times * 115);
	if (times == 4)
		assert_int_equal(across, 0);
	else if (w->fanout == TSOCK_FANOUT_PEER)
		assert_in_range(across, 300, 345);
}

static void one_upload_is_enough_for_all_gpus(void **state)
{
	struct way peer = { .fanout = TSOCK_FANOUT_PEER };
	struct way nccl = { .fanout = TSOCK_FANOUT_NCCL };
	unsigned up, across;

	(void)state;
	goes_up(&peer, 1);
	peer.legacy = true;
	goes_up(&peer, 1);
	whole_stream(&nccl, &up, &across);
	assert_in_range(up, 100, 115);
	assert_in_range(across, 0, 30);
	assert_int_equal(did->warnings + did->fallbacks, 0);
}

static void from_the_host_there_is_one_for_each(void **state)
{
	struct way host = { .fanout = TSOCK_FANOUT_HOST };

	(void)state;
	goes_up(&host, 4);
}

static void gpus_that_cant_reach_each_other_take_the_host(void **state)
{
	(void)state;
	for (uint32_t f = TSOCK_FANOUT_AUTO; f <= TSOCK_FANOUT_NCCL; f++) {
		struct way w = { .fanout = f,
				 .name = { "SIMCUDA_NO_P2P" },
				 .value = { "all" } };

		goes_up(&w, 4);
		assert_int_equal(did->warnings, 0);
		assert_int_equal(did->choices, 0);
	}
}

/* Who can't be believed is not used, and named once for each pair. */
static void copies_that_arrive_with_other_bytes_are_found_out(void **state)
{
	unsigned up, across;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct way w = { .fanout = TSOCK_FANOUT_AUTO + i,
				 .legacy = i == 1,
				 .name = { "SIMCUDA_LIES" },
				 .value = { "all" } };

		goes_up(&w, 4);
		assert_in_range(did->spoilt, 3, 6);
		assert_int_equal(did->warnings, 0);
		w.value[0] = "0-1,2-3";
		whole_stream(&w, &up, &across);
		assert_int_equal(did->fallbacks, 0);
	}
}

static void broadcasts_that_arrive_with_other_bytes_are_found_out(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL,
			 .name = { "SIMCUDA_NCCL_LIES" },
			 .value = { "1" } };
	unsigned up, across;

	(void)state;
	whole_stream(&w, &up, &across);
	assert_in_range(up, 100, 115);
	assert_true(across > 250);
	assert_int_equal(did->warnings, 1);
	assert_int_equal(did->fallbacks, 0);
}

static void auto_measures_and_says_so(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_AUTO };
	unsigned up, across;

	(void)state;
	whole_stream(&w, &up, &across);
	assert_int_equal(did->choices, 3);
}

/* ---- what fails ---- */

static void nccl_that_fails_is_done_without(void **state)
{
	static const struct way w[] = {
		{ TSOCK_FANOUT_NCCL,
		  false,
		  NULL,
		  { "TSOCK_NCCL" },
		  { "/none/libnccl" } },
		{ TSOCK_FANOUT_NCCL,
		  false,
		  NULL,
		  { "TSOCK_NCCL" },
		  { "libm.so.6" } },
		{ TSOCK_FANOUT_NCCL,
		  false,
		  NULL,
		  { "SIMCUDA_FAULT" },
		  { "ncclCommInitAll=3" } },
		{ TSOCK_FANOUT_NCCL,
		  false,
		  NULL,
		  { "SIMCUDA_FAULT" },
		  { "ncclBroadcast:70=1" } },
		{ TSOCK_FANOUT_NCCL,
		  false,
		  NULL,
		  { "SIMCUDA_FAULT" },
		  { "ncclGroupEnd:20=3" } },
		{ TSOCK_FANOUT_NCCL,
		  false,
		  NULL,
		  { "SIMCUDA_FAULT" },
		  { "ncclCommGetAsyncError:30=3" } },
	};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		unsigned up, across;

		whole_stream(&w[i], &up, &across);
		assert_in_range(up, 100, 115);
		assert_true(across > 50);
		assert_int_equal(did->warnings, 1);
	}
}

/* 7 if its GPU failed and it was told so, 0 if it saw the end. */
static pid_t start_witness(const struct reader_proc *r)
{
	pid_t pid = spawn();

	if (pid == 0) {
		struct gpu_reader s;
		tsock_batch *b;
		char gpu[32];
		int err = 0;

		gpu_reader_open(&s, r);
		for (unsigned e = 0; e < r->epochs && !err; e++) {
			need(tsock_begin(s.t) == 0);
			for (unsigned i = 0; !err; i++) {
				err = tsock_next(s.t, 20000, &b);
				if (!err)
					gpu_reader_check(&s, b, i);
			}
			if (err == TSOCK_EEPOCH)
				err = 0;
		}
		gpu_reader_settle(&s);
		snprintf(gpu, sizeof(gpu), "on GPU %d: ", r->device);
		if (err && !strstr(tsock_errmsg(), gpu))
			die("%d: %s", err, tsock_errmsg());
		tsock_close(s.t);
		_exit(err ? 7 : 0);
	}
	return pid;
}

/* All samples go up to GPU 0, and the others have them from there; a fourth
 * reader is on the host.  Who was told of a failure, a bit for each. */
static unsigned who_fails(uint32_t fanout, const char *fault)
{
	struct way w = { .fanout = fanout, .fault = fault };
	struct source src = model;
	struct reader_proc r[4] = { { 0 } };
	pid_t producer, pid[4];
	unsigned failed = 0;

	src.min_consumers = 4;
	producer = start_fan(&src, &w);
	for (unsigned i = 0; i < 4; i++) {
		r[i].src = &src;
		r[i].transport = i == 3 ? HOST : SHARED;
		r[i].device = (int)i;
		r[i].batch = 16;
		r[i].epochs = 3;
		pid[i] = start_witness(&r[i]);
		if (i == 0)
			wait_readers("fan", 1);
	}
	for (unsigned i = 0; i < 4; i++) {
		int rc = ended(pid[i]);

		assert_true(rc == 0 || rc == 7);
		failed |= (rc == 7) << i;
	}
	kill_and_reap(producer);
	return failed;
}

static void a_gpu_that_fails_takes_nobody_along(void **state)
{
	unsigned who;

	(void)state;
	who = who_fails(TSOCK_FANOUT_PEER, "cudaMemcpyPeerAsync:60=700");
	assert_true(who == 2 || who == 4);
	who = who_fails(TSOCK_FANOUT_HOST, "cudaMemcpyAsync:90=700");
	assert_true(who == 1 || who == 2 || who == 4);
	/* Of every three calls the second is for the first that receives. */
	who = who_fails(TSOCK_FANOUT_NCCL, "ncclBroadcast:32=700");
	assert_true(who == 2 || who == 4);
}

static void the_gpu_that_feeds_the_others_may_fail(void **state)
{
	static const char *const fault[] = { "cudaMemcpyAsync@0:30=700",
					     "cudaEventRecord@0:9=806",
					     "work@0:50=700",
					     "work@0:70=lost" };

	(void)state;
	for (uint32_t f = TSOCK_FANOUT_PEER; f <= TSOCK_FANOUT_NCCL; f++)
		for (unsigned i = 0; i < 4; i++) {
			in_mode(modes[(i + f) % 5]);
			assert_int_equal(who_fails(f, fault[i]), 1);
		}
}

/* As when the MPS server ends: the host's readers are still served. */
static void all_gpus_may_fail_and_the_host_goes_on(void **state)
{
	(void)state;
	for (uint32_t f = TSOCK_FANOUT_AUTO; f <= TSOCK_FANOUT_HOST; f++) {
		in_mode(modes[f]);
		assert_int_equal(who_fails(f, "work:150=lost"), 7);
	}
}

/* ---- rings that end, and begin again ---- */

static void rings_end_while_others_are_broadcast_to(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_NCCL };
	struct reader_proc stays[2] = { { .transport = SHARED, .device = 0 },
					{ .transport = SHARED, .device = 3 } };
	struct reader_proc comes[2] = { { .transport = SHARED, .device = 1 },
					{ .transport = STORED, .device = 2 } };
	struct source src = model;
	pid_t producer, pid[2], guest[2];

	(void)state;
	src.pace_us = 1000;
	producer = start_fan(&src, &w);
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < 2; i++) {
			comes[i].src = stays[i].src = &src;
			comes[i].batch = stays[i].batch = 16 - i;
			comes[i].epochs = 1;
			stays[i].epochs = 100000;
			guest[i] = start_reader_proc(&comes[i]);
			if (!round)
				pid[i] = start_reader_proc(&stays[i]);
		}
		for (unsigned i = 0; i < 2; i++)
			assert_int_equal(ended(guest[i]), 0);
		/* What nobody reads is kept for five seconds. */
		for (unsigned i = 0; !round && i < 70; i++) {
			pause_us(100000);
			assert_int_equal(stats_of("fan").consumers, 2);
		}
	}
	assert_int_equal(did->warnings, 0);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pid[i], NULL, WNOHANG), 0);
		kill_and_reap(pid[i]);
	}
	kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_sees_all_by_auto),
		cmocka_unit_test(everybody_sees_all_by_peer_copies),
		cmocka_unit_test(everybody_sees_all_by_nccl),
		cmocka_unit_test(everybody_sees_all_from_the_host),
		cmocka_unit_test(one_upload_is_enough_for_all_gpus),
		cmocka_unit_test(from_the_host_there_is_one_for_each),
		cmocka_unit_test(gpus_that_cant_reach_each_other_take_the_host),
		cmocka_unit_test(
			copies_that_arrive_with_other_bytes_are_found_out),
		cmocka_unit_test(
			broadcasts_that_arrive_with_other_bytes_are_found_out),
		cmocka_unit_test(auto_measures_and_says_so),
		cmocka_unit_test(nccl_that_fails_is_done_without),
		cmocka_unit_test(a_gpu_that_fails_takes_nobody_along),
		cmocka_unit_test(the_gpu_that_feeds_the_others_may_fail),
		cmocka_unit_test(all_gpus_may_fail_and_the_host_goes_on),
		cmocka_unit_test(rings_end_while_others_are_broadcast_to),
	};

	did = mmap(NULL, sizeof(*did), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(did != MAP_FAILED);
	own_folder();
	return cmocka_run_group_tests_name("fan-out", tests, NULL, NULL);
}

#else

int main(void)
{
	puts("the simulation's devices are needed: make CUDA=sim");
	return 77;
}

#endif
