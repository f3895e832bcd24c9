/* SPDX-License-Identifier: MIT */
/*
 * test_rank_parts.c - ranks of a job, each on a GPU of its own: what is uploaded
 * to a GPU is what its rank reads, and whoever else reads there gets all.
 *
 * Slots of the rings that were never filled hold garbage, so a sample that is
 * missing is noticed.  Runs on the simulation alone.
 */
#include "test/lib/fanout_producer.h"

#ifdef SIMCUDA

#include "order/ranks.h"

#define EPOCHS 6
#define MOST 640

/* How often each sample was read; shared by all readers. */
static _Atomic uint8_t (*seen)[MOST];

static struct source parts_source(uint64_t n)
{
	struct source src = model;

	need(n <= MOST);
	src.n = n;
	src.ring = 256;
	src.identity = "kind=parts\n";
	return src;
}

static void forget_seen(void)
{
	for (unsigned e = 0; e < EPOCHS; e++)
		for (unsigned i = 0; i < MOST; i++)
			seen[e][i] = 0;
}

/* ---- ranks ---- */

static struct tsi_ranks rule(const struct reader_proc *r)
{
	return (struct tsi_ranks){
		.rank = r->rank,
		.world = r->world,
		.once = r->src->sequential && !(r->flags & TSOCK_EVEN),
		.drop_last = r->flags & TSOCK_DROP_LAST,
		.batch = r->batch,
	};
}

/* A rank's samples of an epoch, by the rule as consumers walk it. */
static uint64_t samples_of(const struct reader_proc *r)
{
	struct tsi_ranks p = rule(r);
	uint64_t n = r->src->n, sum = 0, first;

	for (uint64_t at = 0; at < n; at += tsi_ranks_block(&p, n - at))
		sum += tsi_ranks_next(&p, n - at, &first);
	return sum;
}

static void note_batch(const struct reader_proc *r, const tsock_batch *b)
{
	uint64_t seq = tsock_batch_seq(b);

	for (uint64_t i = seq; i < seq + tsock_batch_count(b); i++)
		if (i / r->src->n < EPOCHS)
			seen[i / r->src->n][i % r->src->n]++;
}

/* Its part of some epochs, of each as much as there is. */
static void read_part(const struct reader_proc *r)
{
	struct gpu_reader s;
	tsock_batch *b;

	gpu_reader_open(&s, r);
	for (uint32_t e = 0; e < r->epochs && gpu_reader_begin(&s); e++) {
		uint64_t got = 0;
		int err;

		for (unsigned i = 0; !(err = tsock_next(s.t, 60000, &b)); i++) {
			got += tsock_batch_count(b);
			note_batch(r, b);
			gpu_reader_check(&s, b, i);
		}
		if (err != TSOCK_EEPOCH)
			die("next: %s", tsock_errmsg());
		if (got != samples_of(r))
			die("rank %u has %llu samples of %llu", r->rank,
			    (unsigned long long)got,
			    (unsigned long long)samples_of(r));
		gpu_reader_settle(&s);
	}
	gpu_reader_close(&s);
}

static void read_till_killed(const struct reader_proc *r)
{
	struct gpu_reader s;
	tsock_batch *b;

	gpu_reader_open(&s, r);
	while (gpu_reader_begin(&s))
		for (unsigned i = 0; !tsock_next(s.t, 60000, &b); i++)
			gpu_reader_check(&s, b, i);
	gpu_reader_close(&s);
}

struct job {
	struct reader_proc r[4];
	pid_t pid[4];
};

static void start_job(struct job *j, const struct reader_proc *like,
		      unsigned world, void (*does)(const struct reader_proc *r))
{
	for (unsigned i = 0; i < world; i++) {
		j->r[i] = *like;
		j->r[i].rank = i;
		j->r[i].world = world;
		j->r[i].device += (int)i;
		j->pid[i] = gpu_reader_start_as(does, &j->r[i]);
	}
}

static void end_job(struct job *j, unsigned world)
{
	for (unsigned i = 0; i < world; i++)
		assert_int_equal(proc_ended(j->pid[i]), 0);
}

/* Each sample of an epoch was read as often as the ranks' rule says. */
static void check_seen(const struct job *j, unsigned world, unsigned epochs)
{
	uint64_t n = j->r[0].src->n;
	static uint8_t want[MOST];

	memset(want, 0, sizeof(want));
	for (unsigned i = 0; i < world; i++) {
		struct tsi_ranks p = rule(&j->r[i]);
		uint64_t first, count;

		for (uint64_t at = 0; at < n;
		     at += tsi_ranks_block(&p, n - at)) {
			count = tsi_ranks_next(&p, n - at, &first);
			for (uint64_t k = 0; k < count; k++)
				want[at + first + k]++;
		}
	}
	for (unsigned e = 0; e < epochs; e++)
		for (uint64_t i = 0; i < n; i++)
			assert_int_equal(seen[e][i], want[i]);
}

/* ---- what is uploaded ---- */

static uint64_t sample_bytes(const struct source *src)
{
	return src->payload + 8 + 8 + PIXELS;
}

/* Its own samples, and those of them that lie in the margin twice. */
static void check_upload(const struct reader_proc *r, unsigned epochs)
{
	uint64_t own = samples_of(r) * epochs, twice;

	twice = (r->src->n * epochs / r->src->ring + 1) * r->src->max_batch;
	if (twice > own)
		twice = own;
	assert_in_range(did->up_to[r->device], own * sample_bytes(r->src),
			(own + twice) * sample_bytes(r->src));
}

static void whole_epochs(uint64_t n, unsigned world, uint32_t batch,
			 enum transport transport, uint32_t flags,
			 bool sequential)
{
	struct way w = { .fanout = TSOCK_FANOUT_PEER,
			 .legacy = transport >= LEGACY };
	struct source src = parts_source(n);
	struct reader_proc like = { .src = &src,
				    .transport = transport,
				    .batch = batch,
				    .floats = transport != STORED &&
					      transport != LEGACY_STORED,
				    .flags = flags,
				    .between = TSOCK_BETWEEN_HOLD,
				    .epochs = 3 };
	struct job j;
	pid_t producer;

	forget_seen();
	src.epochs = 3;
	src.sequential = sequential;
	/* A rank without a sample is gone before the others have come. */
	src.min_consumers = n < world ? 1 : world;
	producer = start_fan(&src, &w);
	start_job(&j, &like, world, read_part);
	end_job(&j, world);
	assert_int_equal(proc_ended(producer), 0);
	check_seen(&j, world, 3);
	for (unsigned i = 0; i < world; i++)
		check_upload(&j.r[i], 3);
	assert_int_equal(did->across, 0);
}

static void a_gpu_gets_what_its_rank_reads(void **state)
{
	(void)state;
	for (unsigned m = 0; m < 5; m++) {
		in_mode(modes[m]);
		whole_epochs(320, 2, 16, SHARED, 0, false);
	}
	whole_epochs(301, 4, 16, SHARED, 0, false);
	whole_epochs(301, 4, 7, STORED, 0, false);
	whole_epochs(299, 2, 5, LEGACY, 0, false);
	whole_epochs(299, 4, 16, LEGACY_STORED, 0, false);
	/* More than is begun at once. */
	whole_epochs(640, 2, 16, STORED, 0, false);
}

static void an_epoch_s_end_is_cut_as_its_rank_reads_it(void **state)
{
	(void)state;
	whole_epochs(301, 4, 16, SHARED, TSOCK_DROP_LAST, false);
	whole_epochs(301, 4, 16, SHARED, 0, true);
	whole_epochs(301, 4, 16, STORED, TSOCK_EVEN, true);
	/* There is no whole block, and not a sample for each. */
	whole_epochs(7, 4, 16, SHARED, 0, true);
	whole_epochs(3, 4, 16, SHARED, 0, true);
	whole_epochs(3, 4, 16, SHARED, 0, false);
}

/* ---- who else reads ---- */

/* Ranks on GPUs 0 and 1; somebody else comes, and gets all of each epoch. */
static void others_get_all(const struct reader_proc *other, uint32_t fanout)
{
	struct way w = { .fanout = fanout };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .batch = 16,
				    .between = TSOCK_BETWEEN_HOLD,
				    .epochs = EPOCHS };
	struct reader_proc o = *other;
	struct job j;
	pid_t producer, pid;

	forget_seen();
	src.pace_us = 200;
	src.min_consumers = 2;
	producer = start_fan(&src, &w);
	start_job(&j, &like, 2, read_part);
	stream_wait_readers("fan", 2);
	o.src = &src;
	o.epochs = 2;
	pid = gpu_reader_start(&o);
	assert_int_equal(proc_ended(pid), 0);
	end_job(&j, 2);
	proc_kill_and_reap(producer);
	check_seen(&j, 2, EPOCHS);
}

static void who_comes_without_ranks_gets_all(void **state)
{
	struct reader_proc o = { .transport = SHARED,
				 .floats = true,
				 .batch = 16 };

	(void)state;
	others_get_all(&o, TSOCK_FANOUT_PEER);
	o.transport = STORED;
	o.floats = false;
	others_get_all(&o, TSOCK_FANOUT_HOST);
	/* A rank's ring is no source for another GPU's. */
	o.device = 2;
	others_get_all(&o, TSOCK_FANOUT_PEER);
	others_get_all(&o, TSOCK_FANOUT_NCCL);
}

/* A view of all samples that is there is used, and another one isn't made. */
static void a_rank_uses_the_view_that_has_all(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_HOST };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .batch = 16,
				    .between = TSOCK_BETWEEN_HOLD,
				    .epochs = 2 };
	struct reader_proc first = like;
	struct job j;
	pid_t producer, pid;

	(void)state;
	forget_seen();
	first.epochs = 100000;
	src.min_consumers = 3;
	producer = start_fan(&src, &w);
	pid = gpu_reader_start(&first);
	stream_wait_readers("fan", 1);
	start_job(&j, &like, 2, read_part);
	stream_wait_readers("fan", 3);
	/* The host's, two on GPU 0, two on GPU 1. */
	assert_int_equal(stream_stats("fan").views, 4);
	end_job(&j, 2);
	proc_kill_and_reap(pid);
	proc_kill_and_reap(producer);
	check_seen(&j, 2, 2);
}

/* ---- memory ---- */

/* The first has rings of its own, all others those of all samples. */
static void jobs_that_differ_share_rings_of_all_samples(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_HOST };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .between = TSOCK_BETWEEN_HOLD };
	struct job j[3];
	pid_t producer;

	(void)state;
	producer = start_fan(&src, &w);
	for (unsigned i = 0; i < 3; i++) {
		like.batch = 16 - 3 * i;
		like.job = i;
		like.epochs = i < 2 ? 100000 : 2;
		start_job(&j[i], &like, 2,
			  i < 2 ? read_till_killed : read_part);
		stream_wait_readers("fan", 2 * i + 2);
		/* As stored and as floats, on two GPUs. */
		assert_int_equal(stream_stats("fan").views, i ? 8 : 4);
	}
	end_job(&j[2], 2);
	for (unsigned i = 0; i < 4; i++)
		proc_kill_and_reap(j[i / 2].pid[i % 2]);
	proc_kill_and_reap(producer);
}

/* Two ranks on one GPU, which has memory for one pair of rings. */
static void without_room_for_both_there_is_one_ring_of_all(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_HOST };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .batch = 16,
				    .between = TSOCK_BETWEEN_HOLD,
				    .epochs = 2 };
	struct job j;
	pid_t producer;

	(void)state;
	forget_seen();
	/* Each ring's fields have pages of 2 MiB on the simulation. */
	src.gpu_memory = UINT64_C(26) << 20;
	src.min_consumers = 2;
	producer = start_fan(&src, &w);
	for (unsigned i = 0; i < 2; i++) {
		j.r[i] = like;
		j.r[i].rank = i;
		j.r[i].world = 2;
		j.pid[i] = gpu_reader_start_as(read_part, &j.r[i]);
	}
	stream_wait_readers("fan", 2);
	assert_int_equal(stream_stats("fan").views, 2);
	end_job(&j, 2);
	proc_kill_and_reap(producer);
	check_seen(&j, 2, 2);
}

/* ---- coming and going ---- */

static void ranks_that_leave_and_come_back_have_their_parts(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_PEER };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .batch = 16,
				    .between = TSOCK_BETWEEN_LEAVE,
				    .epochs = 3 };
	struct reader_proc stays = {
		.src = &src, .transport = HOST, .batch = 16, .epochs = 100000
	};
	struct job j;
	pid_t producer, pid;

	(void)state;
	for (unsigned other = 0; other < 2; other++) {
		forget_seen();
		producer = start_fan(&src, &w);
		pid = other ? gpu_reader_start(&stays) : 0;
		if (other)
			stream_wait_readers("fan", 1);
		src.pace_us = 300;
		start_job(&j, &like, 2, read_part);
		end_job(&j, 2);
		if (other)
			proc_kill_and_reap(pid);
		proc_kill_and_reap(producer);
	}
}

static void ranks_go_on_with_the_next_producer(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_PEER };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .batch = 8,
				    .between = TSOCK_BETWEEN_HOLD,
				    .epochs = EPOCHS };
	unsigned seed = 5, killed = 0;
	struct job j;
	pid_t producer;

	(void)state;
	forget_seen();
	src.pace_us = 700;
	src.min_consumers = 2;
	producer = start_fan(&src, &w);
	start_job(&j, &like, 2, read_part);
	stream_wait_readers("fan", 2);
	while (killed < 4 && !proc_has_ended(j.pid[0])) {
		proc_pause_us(100000 + (unsigned)rand_r(&seed) % 200000);
		proc_kill_and_reap(producer);
		producer = start_fan(&src, &w);
		killed++;
	}
	end_job(&j, 2);
	proc_kill_and_reap(producer);
	assert_true(killed > 1);
	check_seen(&j, 2, EPOCHS);
}

/* ---- to where nobody's blocks begin ---- */

static void next_is(struct gpu_reader *s, uint64_t seq)
{
	tsock_batch *b;

	if (tsock_next(s->t, 60000, &b))
		die("next: %s", tsock_errmsg());
	if (tsock_batch_seq(b) != seq)
		die("sample %llu comes, not %llu",
		    (unsigned long long)tsock_batch_seq(b),
		    (unsigned long long)seq);
	gpu_reader_check(s, b, 0);
}

static void go_about(const struct reader_proc *r)
{
	uint64_t n = r->src->n, own = r->rank * r->batch;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	need(gpu_reader_begin(&s));
	next_is(&s, own);
	/* Blocks are skipped, and nothing else. */
	need(tsock_skip(s.t, 5) == TSOCK_EARG);
	need(strstr(tsock_errmsg(), "whole batches, of 16") != NULL);
	next_is(&s, 32 + own);
	need(tsock_skip(s.t, 32) == 0);
	next_is(&s, 128 + own);
	need(tsock_skip(s.t, n) == 0);
	need(tsock_next(s.t, 60000, &(tsock_batch *){ NULL }) == TSOCK_EEPOCH);
	/* Not where blocks begin: its reader looks at what others' do. */
	if (tsock_resume(s.t, n, 10, 60000))
		die("resume: %s", tsock_errmsg());
	next_is(&s, n + 10 + own);
	need(tsock_skip(s.t, 5) == 0);
	next_is(&s, n + 52 + own);
	/* At a block, of an epoch that does not begin where they all do. */
	if (tsock_resume(s.t, 2 * n + 7, 32, 60000))
		die("resume: %s", tsock_errmsg());
	next_is(&s, 2 * n + 7 + 32 + own);
	if (tsock_resume(s.t, 3 * n, 64, 60000))
		die("resume: %s", tsock_errmsg());
	next_is(&s, 3 * n + 64 + own);
	need(tsock_skip(s.t, 5) == TSOCK_EARG);
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void a_rank_that_goes_elsewhere_has_all(void **state)
{
	struct way w = { .fanout = TSOCK_FANOUT_HOST };
	struct source src = parts_source(301);
	struct reader_proc like = { .src = &src,
				    .transport = SHARED,
				    .floats = true,
				    .batch = 16,
				    .between = TSOCK_BETWEEN_HOLD };
	struct job j;
	pid_t producer;

	(void)state;
	src.min_consumers = 2;
	producer = start_fan(&src, &w);
	for (unsigned i = 0; i < 2; i++) {
		j.r[i] = like;
		j.r[i].rank = i;
		j.r[i].world = 2;
		j.r[i].device = (int)i;
		j.pid[i] = gpu_reader_start_as(go_about, &j.r[i]);
	}
	end_job(&j, 2);
	proc_kill_and_reap(producer);
}

#define parts(fn) cmocka_unit_test_teardown(fn, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		parts(a_gpu_gets_what_its_rank_reads),
		parts(an_epoch_s_end_is_cut_as_its_rank_reads_it),
		parts(who_comes_without_ranks_gets_all),
		parts(a_rank_uses_the_view_that_has_all),
		parts(jobs_that_differ_share_rings_of_all_samples),
		parts(without_room_for_both_there_is_one_ring_of_all),
		parts(ranks_that_leave_and_come_back_have_their_parts),
		parts(ranks_go_on_with_the_next_producer),
		parts(a_rank_that_goes_elsewhere_has_all),
	};

	fanout_prepare();
	seen = mmap(NULL, EPOCHS * sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(seen != MAP_FAILED);
	return cmocka_run_group_tests_name("parts of ranks", tests, NULL, NULL);
}

#else

int main(void)
{
	puts("the simulation's devices are needed: make CUDA=sim");
	return 77;
}

#endif
