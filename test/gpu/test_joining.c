/* SPDX-License-Identifier: MIT */
/*
 * test_joining.c - readers of every transport that join in the middle of a
 * stream, leave and begin again, and see every sample of each of their epochs
 * exactly once, whatever the others do.
 */
#include "test/lib/for_each_transport.h"

static const unsigned numbers[] = { 1, 2, 8 };

/* ---- several handles in one process ---- */

struct joiner {
	struct reader_proc r;
	struct gpu_reader s;
	struct tally y;
	uint64_t start; /* the first sample of all */
	bool reading;
	unsigned turn;
};

static void open_joiner(struct joiner *g, const struct reader_proc *r)
{
	memset(g, 0, sizeof(*g));
	g->r = *r;
	gpu_reader_open(&g->s, &g->r);
}

static void begin_joiner(struct joiner *g)
{
	need(gpu_reader_begin(&g->s));
	reader_tally_begin(&g->y, g->r.src, g->r.batch, g->r.flags);
	g->reading = true;
}

static void take_joiner(struct joiner *g, tsock_batch *b)
{
	if (!g->turn)
		g->start = tsock_batch_seq(b);
	reader_tally_add(&g->y, b);
	gpu_reader_check(&g->s, b, g->turn++);
}

/* A step towards so many epochs, if one is possible now. */
static bool step_joiner(struct joiner *g, unsigned epochs)
{
	tsock_batch *b;
	int err;

	if (!g->reading && g->s.begun == epochs)
		return false;
	if (!g->reading)
		begin_joiner(g);
	err = tsock_next(g->s.t, 0, &b);
	if (err == TSOCK_EAGAIN)
		return false;
	if (!err) {
		take_joiner(g, b);
		return true;
	}
	if (err != TSOCK_EEPOCH)
		die("next: %s", tsock_errmsg());
	reader_tally_end(&g->y, g->r.join != TSOCK_JOIN_NOW || g->s.begun > 1);
	g->reading = false;
	/* Else the others would wait for it. */
	if (g->s.begun == epochs)
		tsock_leave(g->s.t);
	return true;
}

/* Is it through with so many epochs? */
static bool through(const struct joiner *g, unsigned epochs)
{
	return !g->reading && g->s.begun == epochs;
}

static void leave_joiner(struct joiner *g)
{
	if (g->reading)
		free(g->y.seen);
	gpu_reader_settle(&g->s);
	gpu_reader_close(&g->s);
}

/* ---- ways in ---- */

#define SEGMENTS 8

static uint64_t bound(const struct source *src, unsigned segment)
{
	return segment / SEGMENTS * src->n +
	       src->n * (segment % SEGMENTS) / SEGMENTS;
}

/* The segment at whose start the reader began, near the leader. */
static unsigned segment_of(const struct joiner *g, uint64_t lead)
{
	uint64_t part = g->r.src->n / SEGMENTS + 1;
	unsigned i = 0;

	while (bound(g->r.src, i) < g->start)
		i++;
	if (bound(g->r.src, i) != g->start || g->start > lead + part ||
	    g->start + 4 * part < lead)
		die("%s: a start at %llu, the leader being at %llu",
		    gpu_reader_transport_name[g->r.transport],
		    (unsigned long long)g->start, (unsigned long long)lead);
	return i;
}

/* One leads, and of the others each comes while it reads another segment. */
static void read_segments(const struct reader_proc *r)
{
	static struct joiner lead, g[SEGMENTS];
	uint64_t came[SEGMENTS], part = r->src->n / SEGMENTS;
	unsigned n = 0, over = 0, seen = 0;

	open_joiner(&lead, r);
	while (over < SEGMENTS) {
		bool did = step_joiner(&lead, UINT32_MAX);

		if (n < SEGMENTS && lead.y.want != UINT64_MAX &&
		    lead.y.want >= bound(r->src, n) + part / 2) {
			struct reader_proc joins = *r;

			joins.join = TSOCK_JOIN_SEGMENT;
			joins.batch = 1 + n * 5 % 16;
			joins.floats = n % 2;
			came[n] = lead.y.want;
			open_joiner(&g[n], &joins);
			begin_joiner(&g[n++]);
		}
		over = 0;
		for (unsigned i = 0; i < n; i++) {
			did |= step_joiner(&g[i], 2);
			over += through(&g[i], 2);
		}
		if (!did)
			proc_pause_us(200);
	}
	for (unsigned i = 0; i < SEGMENTS; i++) {
		seen |= 1u << segment_of(&g[i], came[i]) % SEGMENTS;
		leave_joiner(&g[i]);
	}
	/* On a busy machine some are too late for theirs. */
	need(__builtin_popcount(seen) >= SEGMENTS / 2);
	leave_joiner(&lead);
}

static void every_segment_boundary_is_a_way_in(void **state)
{
	struct source src = { .name = "segments",
			      .n = 403,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 40,
			      .image = SIDE,
			      .segments = SEGMENTS };
	struct reader_proc r = { .src = &src,
				 .transport = transport_of_case(state),
				 .batch = 16 };

	transport_run_as(read_segments, &r);
}

/* Beside a leader of its own transport, or on the host. */
static void read_now(const struct reader_proc *r)
{
	static struct joiner lead, late;
	struct reader_proc first = *r;

	first.join = TSOCK_JOIN_EPOCH;
	first.transport = r->streams == 2 ? HOST : r->transport;
	open_joiner(&lead, &first);
	while (lead.turn < 19)
		if (!step_joiner(&lead, 1))
			proc_pause_us(200);
	open_joiner(&late, r);
	begin_joiner(&late);
	while (!through(&late, 2))
		if (!step_joiner(&lead, 100) + !step_joiner(&late, 2) == 2)
			proc_pause_us(200);
	/* Not before the leader, and no more than two rings beyond. */
	need(late.start >= 19 * 16 && late.start <= 19 * 16 + 4 * 64);
	/* Its first epoch was the rest of one, the second was whole. */
	need(late.y.first == 1000 && late.y.want == 2000);
	leave_joiner(&late);
	leave_joiner(&lead);
}

static void joining_now_gives_a_short_first_epoch(void **state)
{
	struct source src = { .name = "now",
			      .n = 1000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 40,
			      .image = SIDE };
	struct reader_proc r = { .src = &src,
				 .transport = transport_of_case(state),
				 .join = TSOCK_JOIN_NOW,
				 .batch = 16 };

	for (unsigned i = 0; i < 2; i++) {
		r.streams = 1 + i;
		r.floats = i == 0;
		transport_run_as(read_now, &r);
	}
}

/* ---- beginning again ---- */

#define ROUNDS 5

/* With work still queued it joins again before it is known to have left. */
static void read_jumps(const struct reader_proc *r)
{
	const uint64_t n = r->src->n;
	tsock_batch *b;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	for (unsigned round = 0; round < ROUNDS; round++) {
		need(gpu_reader_begin(&s));
		for (unsigned i = 0; i < 10; i++) {
			need(tsock_next(s.t, 60000, &b) == 0);
			need(tsock_batch_seq(b) == round * n + i * 16);
			gpu_reader_check(&s, b, i);
		}
		if (round % 2)
			gpu_reader_settle(&s);
		tsock_leave(s.t);
	}
	gpu_reader_settle(&s);
	/* No more was made than was asked for, and to fill up to three rings. */
	need(stream_stats(r->src->name).produced <= ROUNDS * (160 + 4 * 64));
	gpu_reader_close(&s);
}

static void a_stream_without_readers_jumps_to_a_fresh_epoch(void **state)
{
	struct source src = { .name = "jump",
			      .n = 100000,
			      .ring = 64,
			      .max_batch = 16,
			      .payload = 16,
			      .image = SIDE };
	struct reader_proc r = { .src = &src,
				 .transport = transport_of_case(state),
				 .batch = 16 };

	for (unsigned i = 0; i < 2; i++) {
		r.floats = i;
		transport_run_as(read_jumps, &r);
	}
}

static void read_again(const struct reader_proc *r)
{
	const uint64_t n = r->src->n;
	uint64_t after = 0;
	tsock_batch *b;
	struct gpu_reader s;

	gpu_reader_open(&s, r);
	for (unsigned round = 0; round < ROUNDS; round++) {
		need(gpu_reader_begin(&s));
		need(tsock_next(s.t, 60000, &b) == 0);
		need(tsock_batch_seq(b) >= after);
		need(tsock_batch_seq(b) % n == 0);
		after = tsock_batch_seq(b) + n;
		gpu_reader_check(&s, b, round);
		/* An epoch begun and not finished is left by the next one. */
	}
	gpu_reader_settle(&s);
	gpu_reader_close(&s);
}

static void break_and_iterate_again_is_a_fresh_epoch_beside_others(void **state)
{
	struct source src = { .name = "again",
			      .n = 500,
			      .ring = 128,
			      .max_batch = 32,
			      .payload = 16,
			      .image = SIDE };
	struct reader_proc me = { .src = &src,
				  .transport = transport_of_case(state),
				  .batch = 20 };

	for (unsigned n = 0; n < 3; n++) {
		pid_t producer = transport_start_source(&src, me.transport),
		      pid, other[8];

		for (unsigned i = 0; i < numbers[n]; i++) {
			struct reader_proc r = { .src = &src,
						 .transport = me.transport,
						 .batch = 32 - 3 * i,
						 .epochs = ROUNDS + 1,
						 .floats = i % 2 };

			other[i] = gpu_reader_start(&r);
		}
		pid = gpu_reader_start_as(read_again, &me);
		assert_int_equal(proc_ended(pid), 0);
		for (unsigned i = 0; i < numbers[n]; i++)
			assert_int_equal(proc_ended(other[i]), 0);
		proc_kill_and_reap(producer);
	}
}

int main(void)
{
	static const struct transport_test each[] = {
		FOR_EACH_TRANSPORT(every_segment_boundary_is_a_way_in),
		FOR_EACH_TRANSPORT(joining_now_gives_a_short_first_epoch),
		FOR_EACH_TRANSPORT(
			a_stream_without_readers_jumps_to_a_fresh_epoch),
		FOR_EACH_TRANSPORT(
			break_and_iterate_again_is_a_fresh_epoch_beside_others),
	};

	return transport_run_each("joining", each,
				  sizeof(each) / sizeof(each[0]), NULL, 0);
}
