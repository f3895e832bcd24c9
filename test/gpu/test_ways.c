/* SPDX-License-Identifier: MIT */
/*
 * test_ways.c - which GPU a reader is on, which way its samples get there, and
 * what it is told of that.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/lib/for_each_transport.h"

static void jobs_number_their_gpus_as_they_like(void **state)
{
	struct source src = transport_small_source;
	struct reader_proc r[8] = {
		{ .transport = SHARED, .device = 0, .visible = "3" },
		{ .transport = SHARED, .device = 3 },
		{ .transport = STORED, .device = 1, .visible = "0,2" },
		{ .transport = LEGACY, .device = 0, .visible = "2,1" },
		{ .transport = LEGACY_STORED, .device = 1, .visible = "2,1" },
		{ .transport = STAGED, .device = 2, .visible = "1,2,3" },
		{ .transport = SHARED, .device = 0 },
		{ .transport = HOST },
	};

	(void)state;
	transport_need_gpus(4);
	src.name = "numbers";
	src.n = 203;
	for (unsigned i = 0; i < 8; i++) {
		r[i].batch = 16 - i;
		r[i].epochs = 2;
		r[i].floats = i % 2;
	}
	transport_run_readers(&src, r, 8);
}

/* Stopped in mid-epoch; then it has missed samples, and reads on. */
static void stop_and_go_on(const struct reader_proc *r)
{
	struct gpu_reader s;
	tsock_batch *b;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	gpu_reader_some(&s, 2);
	raise(SIGSTOP);
	for (unsigned i = 0; i < 30; i++) {
		int err = tsock_next(s.t, -1, &b);

		if (err == TSOCK_EEPOCH)
			need(gpu_reader_begin(&s));
		else if (err)
			die("next: %s", tsock_errmsg());
		else
			gpu_reader_check(&s, b, i);
	}
	need(tsock_missed(s.t) > 0);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

/* Its samples come by way of the host ring, which has two halves. */
static void who_copies_to_its_gpu_can_be_detached(void **state)
{
	struct source src = transport_small_source;
	struct reader_proc gpu = {
		.src = &src, .transport = STAGED, .batch = 8, .floats = true
	};
	struct reader_proc host = {
		.src = &src, .transport = HOST, .batch = 16, .epochs = 1000000
	};
	pid_t producer, other, pid;
	int status;

	(void)state;
	transport_need_gpus(1);
	src.name = "leaves";
	src.slow_ms = 300;
	src.detach = true;
	producer = stream_start_producer(&src);
	pid = gpu_reader_start_as(stop_and_go_on, &gpu);
	need(waitpid(pid, &status, WUNTRACED) == pid && WIFSTOPPED(status));
	other = gpu_reader_start(&host);
	for (unsigned i = 0; !stream_stats("leaves").detached; i++) {
		assert_true(i < 6000);
		proc_pause_us(10000);
	}
	kill(pid, SIGCONT);
	assert_int_equal(proc_ended(pid), 0);
	proc_kill_and_reap(other);
	proc_kill_and_reap(producer);
}

/* In a child: open must fail like this. */
static void refused(const char *name, const char *value, int device,
		    uint32_t flags, int code, const char *text)
{
	pid_t pid = proc_spawn();

	if (pid == 0) {
		struct tsock_opts o = TSOCK_OPTS_INIT;
		tsock *t;

		if (name)
			gpu_reader_set(name, value);
		o.device = device;
		o.batch_size = 4;
		o.flags = flags;
		o.timeout_ms = 100;
		if (tsock_open("nobody", &o, &t) != code ||
		    !strstr(tsock_errmsg(), text))
			die("%s instead of %s: %s", tsock_errmsg(), text,
			    value ? value : "");
		_exit(0);
	}
	assert_int_equal(proc_ended(pid), 0);
}

static void a_gpu_that_is_not_there_is_named_at_open(void **state)
{
	(void)state;
	refused(NULL, NULL, 99, 0, TSOCK_EARG, "99");
	refused(NULL, NULL, -2, 0, TSOCK_EARG, "-2");
	refused(NULL, NULL, -1, TSOCK_GPU_STORED, TSOCK_EARG,
		"TSOCK_GPU_STORED");
	refused(NULL, NULL, 0, TSOCK_WRITABLE, TSOCK_EARG, "TSOCK_WRITABLE");
	refused("CUDA_VISIBLE_DEVICES", "", 0, 0, TSOCK_ENOTSUP, "no GPU");
#ifdef SIMCUDA
	refused("SIMCUDA_DRIVER", "none", 0, 0, TSOCK_ENOTSUP, "driver");
	refused("SIMCUDA_DRIVER", "old", 0, 0, TSOCK_ENOTSUP, "driver");
#endif
}

/* From outside, too, it can be read how a reader comes to its samples. */
static void stats_tell_the_way(void **state)
{
	struct reader_proc r = { .src = &transport_small_source,
				 .transport = transport_of_case(state),
				 .batch = 16,
				 .epochs = 100000 };
	pid_t producer = transport_start_source(&transport_small_source,
						r.transport),
	      pid = gpu_reader_start(&r);

	stream_wait_readers("small", 1);
	assert_int_equal(stream_stats("small").row[0].transport,
			 gpu_reader_transport(r.transport));
	proc_kill_and_reap(pid);
	proc_kill_and_reap(producer);
}

#ifdef SIMCUDA
/* What a producer said of sharing a GPU's memory; shared with it. */
static struct {
	_Atomic unsigned refused, chosen;
} * said;

static void count_said(void *arg, int level, const char *line)
{
	if (strstr(line, "can't be shared by"))
		atomic_fetch_add(&said->refused, 1);
	else if (strstr(line, "is shared by"))
		atomic_fetch_add(&said->chosen, 1);
	else
		proc_log_line(arg, level, line);
}

static void count_what_is_said(tsock_server *s, const struct source *src)
{
	(void)s;
	(void)src;
	tsock_set_logger(count_said, NULL);
}

/* So often, and no oftener.  Lines come from a thread of their own. */
static void check_said(unsigned refused)
{
	unsigned chosen = refused < 2 ? refused + 1 : 2;

	for (unsigned i = 0; said->refused < refused || said->chosen < chosen;
	     i++) {
		assert_true(i < 6000);
		proc_pause_us(10000);
	}
	assert_int_equal(said->refused, refused);
	assert_int_equal(said->chosen, chosen);
}

/* With that in a consumer's way, or in the producer's, it ends up there. */
static void falls_back(const char *name, const char *value, bool producers,
		       int transport, uint32_t flags, int refused)
{
	struct source src = transport_small_source;
	struct reader_proc me = { .src = &src,
				  .transport = SHARED,
				  .batch = 16 };
	pid_t producer, pid;

	src.name = "back";
	src.n = 100;
	src.served = count_what_is_said;
	said->refused = said->chosen = 0;
	if (producers)
		setenv(name, value, 1);
	producer = stream_start_producer(&src);
	unsetenv(name);
	pid = proc_spawn();
	if (pid == 0) {
		struct tsock_stats st = { .size = sizeof(st) };
		struct tsock_opts o;
		struct gpu_reader s;

		if (!producers)
			gpu_reader_set(name, value);
		me.transport = flags ? STORED : SHARED;
		gpu_reader_open(&s, &me);
		tsock_close(s.t);
		o = gpu_reader_opts(&me);
		o.transport = TSOCK_TRANSPORT_AUTO;
		need(tsock_open("back", &o, &s.t) == 0);
		need(tsock_transport(s.t) == TSOCK_TRANSPORT_AUTO);
		for (unsigned e = 0; e < 2; e++) {
			need(tsock_begin(s.t) == 0);
			if (tsock_transport(s.t) != transport)
				die("%s: transport %d", value,
				    tsock_transport(s.t));
			gpu_reader_epoch(&s);
		}
		/* From outside, too, it can be seen. */
		need(tsock_begin(s.t) == 0);
		need(tsock_query("back", 60000, &st) == 0);
		need(st.nrows == 1 &&
		     st.row[0].transport == (uint32_t)transport);
		gpu_reader_close(&s);
		_exit(0);
	}
	assert_int_equal(proc_ended(pid), 0);
	if (refused >= 0)
		check_said((unsigned)refused);
	proc_kill_and_reap(producer);
}

/* Some transports can't share the producer's memory, and each one is tried
 * and told of once. */
static void the_next_transport_is_taken(const char *fault, int transport,
					int refused)
{
	for (unsigned i = 0; i < 2; i++)
		falls_back("SIMCUDA_FAULT", fault, true, transport,
			   i ? TSOCK_GPU_STORED : 0, refused);
}

static void what_cant_be_shared_is_shared_in_another_way(void **state)
{
	(void)state;
	the_next_transport_is_taken("cuMemCreate=801", TSOCK_TRANSPORT_LEGACY,
				    1);
	the_next_transport_is_taken("cuMemExportToShareableHandle=304",
				    TSOCK_TRANSPORT_LEGACY, 1);
	the_next_transport_is_taken("cuMemExportToShareableHandle=800",
				    TSOCK_TRANSPORT_LEGACY, 1);
	the_next_transport_is_taken("cuMemSetAccess=1", TSOCK_TRANSPORT_LEGACY,
				    1);
	the_next_transport_is_taken("cuMemCreate=801,cudaIpcGetMemHandle=1",
				    TSOCK_TRANSPORT_STAGED, 2);
	the_next_transport_is_taken("cuMemExportToShareableHandle=304,"
				    "cudaIpcGetMemHandle=801",
				    TSOCK_TRANSPORT_STAGED, 2);
}

/* 0, or the error that a job whose images are converted is told. */
static int without_kernels(const char *whose, enum transport transport,
			   bool floats)
{
	struct source src = transport_small_source;
	struct reader_proc r = { .src = &src,
				 .transport = transport,
				 .batch = 16,
				 .floats = floats };
	bool producers = !strcmp(whose, "producer");
	pid_t producer, pid;
	int rc;

	src.name = "images";
	if (producers)
		gpu_reader_set("SIMCUDA_NO_IMAGE", "all");
	producer = stream_start_producer(&src);
	unsetenv("SIMCUDA_NO_IMAGE");
	pid = proc_spawn();
	if (pid == 0) {
		tsock_batch *b;
		struct gpu_reader s;
		int err = 0;

		if (!producers)
			gpu_reader_set("SIMCUDA_NO_IMAGE", "all");
		gpu_reader_open(&s, &r);
		need(gpu_reader_begin(&s));
		for (unsigned i = 0; i < 20 && !err; i++) {
			err = tsock_next(s.t, 60000, &b);
			if (!err && gpu_reader_as_stored(transport))
				err = tsock_batch_convert(
					b, 3, s.copy[0].device[3], s.stream[0]);
			if (!err)
				tsock_batch_release(b);
		}
		if (err && (!strstr(tsock_errmsg(), "compute capability 9.0") ||
			    !strstr(tsock_errmsg(), "7.5, 8.0, 9.0")))
			die("%d: %s", err, tsock_errmsg());
		_exit(err ? 7 : 0);
	}
	rc = proc_ended(pid);
	proc_kill_and_reap(producer);
	return rc;
}

static void a_gpu_that_kernels_were_not_compiled_for_is_named(void **state)
{
	(void)state;
	assert_int_equal(without_kernels("producer", SHARED, true), 7);
	assert_int_equal(without_kernels("producer", SHARED, false), 0);
	assert_int_equal(without_kernels("producer", STORED, true), 0);
	assert_int_equal(without_kernels("consumer", STORED, true), 7);
	assert_int_equal(without_kernels("consumer", SHARED, true), 0);
	assert_int_equal(without_kernels("consumer", STAGED, true), 7);
}

/* A producer on one MIG instance; the job on another sees but its own. */
static void other_mig_instances_are_copied_to(void **state)
{
	(void)state;
	gpu_reader_set("SIMCUDA_MIG", "all");
	for (unsigned i = 0; i < 2; i++) {
		uint32_t flags = i ? TSOCK_GPU_STORED : 0;

		falls_back("CUDA_VISIBLE_DEVICES", "0", false,
			   TSOCK_TRANSPORT_VMM, flags, -1);
		falls_back("CUDA_VISIBLE_DEVICES", "3", false,
			   TSOCK_TRANSPORT_STAGED, flags, -1);
		falls_back("CUDA_VISIBLE_DEVICES", "2", true,
			   TSOCK_TRANSPORT_STAGED, flags, -1);
	}
	unsetenv("SIMCUDA_MIG");
}

/* Why, by name: the producer can't know of an instance that it doesn't see. */
static void that_a_process_sees_one_mig_instance_is_said(void **state)
{
	struct source src = transport_small_source;
	struct reader_proc r = {
		.src = &src, .transport = SHARED, .visible = "1", .batch = 16
	};
	pid_t producer, pid;

	(void)state;
	src.name = "mig";
	gpu_reader_set("SIMCUDA_MIG", "all");
	producer = stream_start_producer(&src);
	pid = proc_spawn();
	if (pid == 0) {
		struct gpu_reader s;

		gpu_reader_open(&s, &r);
		need(tsock_begin(s.t) == TSOCK_ENOTSUP);
		need(strstr(tsock_errmsg(), "one MIG instance"));
		_exit(0);
	}
	unsetenv("SIMCUDA_MIG");
	assert_int_equal(proc_ended(pid), 0);
	proc_kill_and_reap(producer);
}

/* By name, that one alone: the reason, and what it is about. */
static void a_transport_by_name_has_no_other(void **state)
{
	struct source src = transport_small_source;
	struct reader_proc r = { .src = &src,
				 .transport = SHARED,
				 .batch = 16 };
	pid_t producer, pid;

	(void)state;
	src.name = "named";
	setenv("SIMCUDA_FAULT", "cuMemExportToShareableHandle=304", 1);
	producer = stream_start_producer(&src);
	unsetenv("SIMCUDA_FAULT");
	for (unsigned i = 0; i < 2; i++) {
		pid = proc_spawn();
		if (pid == 0) {
			struct gpu_reader s;

			gpu_reader_open(&s, &r);
			need(tsock_begin(s.t) == TSOCK_ENOTSUP);
			need(strstr(tsock_errmsg(), "OPERATING_SYSTEM"));
			_exit(0);
		}
		assert_int_equal(proc_ended(pid), 0);
	}
	proc_kill_and_reap(producer);
}

static void what_cant_be_opened_is_come_by_in_another_way(void **state)
{
	static const char import[] = "cuMemImportFromShareableHandle=1";
	static const char neither[] = "cuMemImportFromShareableHandle=1,"
				      "cudaIpcOpenMemHandle=201";

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		uint32_t flags = i ? TSOCK_GPU_STORED : 0;

		falls_back("SIMCUDA_SEED", "1", false, TSOCK_TRANSPORT_VMM,
			   flags, -1);
		falls_back("SIMCUDA_FAULT", import, false,
			   TSOCK_TRANSPORT_LEGACY, flags, -1);
		falls_back("SIMCUDA_FAULT", neither, false,
			   TSOCK_TRANSPORT_STAGED, flags, -1);
		falls_back("SIMCUDA_NO_FD", "1", true, TSOCK_TRANSPORT_LEGACY,
			   flags, -1);
		falls_back("CUDA_VISIBLE_DEVICES", "2", true,
			   TSOCK_TRANSPORT_STAGED, flags, -1);
		falls_back("SIMCUDA_CONTEXT_MEM", "5000000000", true,
			   TSOCK_TRANSPORT_STAGED, flags, -1);
		falls_back("SIMCUDA_DRIVER", "none", true,
			   TSOCK_TRANSPORT_STAGED, flags, -1);
	}
}
#endif

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_TRANSPORT(stats_tell_the_way),
	};
	const struct CMUnitTest once[] = {
		cmocka_unit_test(jobs_number_their_gpus_as_they_like),
		cmocka_unit_test(who_copies_to_its_gpu_can_be_detached),
		cmocka_unit_test(a_gpu_that_is_not_there_is_named_at_open),
#ifdef SIMCUDA
		cmocka_unit_test(what_cant_be_opened_is_come_by_in_another_way),
		cmocka_unit_test(what_cant_be_shared_is_shared_in_another_way),
		cmocka_unit_test(a_transport_by_name_has_no_other),
		cmocka_unit_test(
			a_gpu_that_kernels_were_not_compiled_for_is_named),
		cmocka_unit_test(other_mig_instances_are_copied_to),
		cmocka_unit_test(that_a_process_sees_one_mig_instance_is_said),
#endif
	};

#ifdef SIMCUDA
	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(said != MAP_FAILED);
#endif
	return transport_run_each("ways to a GPU", each,
				  sizeof(each) / sizeof(each[0]), once,
				  sizeof(once) / sizeof(once[0]));
}
