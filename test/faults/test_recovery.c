/* SPDX-License-Identifier: MIT */
/*
 * test_recovery.c - readers that return to the next producer, or are detached
 * and rejoin: each call on the way for memory or a descriptor fails in turn,
 * those of the server as well as those of the readers.
 *
 * What comes before has its faults in test_stream.c.
 */
#include "base/err.h"
#include "test/faults/inject.h"
#include "test/faults/made.h"
#include "test/faults/walk.h"
#include "test/lib/proc.h"

#define BATCH 7

/* One with the bytes as they are stored, which it writes into; or floats. */
struct reader {
	tsock *t;
	bool stored;
	uint64_t next; /* the sample that comes next */
	uint64_t missed;
	tsock_batch *kept;
};

static int take(struct reader *r, int patience_ms, tsock_batch **out)
{
	uint64_t missed;
	int err = tsock_next(r->t, patience_ms, out);

	if (err)
		return err;
	missed = tsock_missed(r->t) - r->missed;
	r->missed += missed;
	if (tsock_batch_seq(*out) != r->next + missed)
		die("sample %llu comes, not %llu: %llu were missed",
		    (unsigned long long)tsock_batch_seq(*out),
		    (unsigned long long)r->next, (unsigned long long)missed);
	r->next = tsock_batch_seq(*out) + tsock_batch_count(*out);
	made_check(*out, r->stored);
	return 0;
}

/* What it kept is whole still. */
static void give_back(struct reader *r)
{
	if (r->kept)
		made_check(r->kept, r->stored);
	tsock_batch_release(r->kept);
	r->kept = NULL;
}

/* The reader holds one batch at any time. */
static int read_on(struct reader *r, int patience_ms)
{
	tsock_batch *b;
	int err = take(r, patience_ms, &b);

	if (err == TSOCK_EEPOCH)
		return tsock_begin_timed(r->t, patience_ms);
	if (err)
		return err;
	give_back(r);
	r->kept = b;
	return 0;
}

static void begin(struct reader *r, bool stored)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;

	*r = (struct reader){ .stored = stored };
	o.batch_size = BATCH;
	o.flags = stored ? TSOCK_WRITABLE : 0;
	o.dtype = stored ? 0 : TSOCK_F32;
	o.normalize = stored ? TSOCK_RAW : TSOCK_UNIT;
	need(!tsock_open(MADE_NAME, &o, &r->t));
	need(!tsock_begin(r->t));
	r->next = tsock_epoch(r->t) * MADE_EPOCH;
	need(!read_on(r, -1));
	need(!read_on(r, -1));
}

static void close_reader(struct reader *r)
{
	give_back(r);
	tsock_close(r->t);
}

/* ---- the next producer ---- */

/* Readers that could not tell anybody that they left aren't waited for. */
static void forget_readers(void)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/" MADE_NAME ".readers",
		 getenv("TSOCK_DIR"));
	unlink(path);
}

/* On to samples that the one before has not made. */
static int return_to_the_next(int patience_ms, bool stored)
{
	struct made_opts resumable = { .resumable = true };
	struct reader r;
	struct made m;
	int err, opened;

	inject_pause_all();
	need(!made_open(resumable, &m));
	begin(&r, stored);
	inject_resume_all();
	made_close(&m);
	err = opened = made_open(resumable, &m);
	while (!err && r.next < 2 * MADE_RING)
		err = read_on(&r, patience_ms);
	need(!r.missed);
	close_reader(&r);
	if (!opened)
		made_close(&m);
	if (err)
		forget_readers();
	return err;
}

static int return_with_bytes(int patience_ms)
{
	return return_to_the_next(patience_ms, true);
}

static int return_with_floats(int patience_ms)
{
	return return_to_the_next(patience_ms, false);
}

/* More faults of opening a server are test_stream.c's. */
static const struct walk returning = {
	.name = "returning",
	.work = return_with_bytes,
	.kinds = "malloc calloc realloc open memfd_create mmap socket connect ",
	.shortage = true,
};
static const struct walk returning_to_view = {
	.name = "returning to a view",
	.work = return_with_floats,
	.kinds = "memfd_create mmap ",
	.shortage = true,
};

static void readers_return_or_say_why_not(void **state)
{
	(void)state;
	walk_one_by_one(&returning);
	walk_one_by_one(&returning_to_view);
}

static const struct walk short_of = {
	.name = "returning",
	.work = return_with_floats,
	.kinds = "calloc memfd_create mmap socket ",
	.shortage = true,
};

static void readers_return_or_say_why_not_while_it_lasts(void **state)
{
	(void)state;
	walk_from_each_on(&short_of);
}

/* ---- detached ---- */

/* A reader in a thread of its own: it gets two rings further. */
struct other {
	struct reader r;
	int patience_ms, err;
	char said[512]; /* with err, in its thread */
};

static void *overtake(void *arg)
{
	struct other *o = arg;
	uint64_t until = o->r.next + 2 * MADE_RING;

	while (!o->err && o->r.next < until)
		o->err = read_on(&o->r, o->patience_ms);
	snprintf(o->said, sizeof(o->said), "%s", tsock_errmsg());
	/* Nobody waits for it from now on. */
	close_reader(&o->r);
	return NULL;
}

/* The reader is detached, since the other one has to wait for it. */
static int be_overtaken(struct other *o)
{
	pthread_t thread;

	inject_pause();
	need(!pthread_create(&thread, NULL, overtake, o));
	need(!pthread_join(thread, NULL));
	inject_resume();
	return o->err ? tsi_err(o->err, "%s", o->said) : 0;
}

/* Where the stream is by now, and further on. */
static int read_behind(struct reader *r, int patience_ms)
{
	int err = 0;

	for (unsigned i = 0; !err && i < 2 * MADE_EPOCH / BATCH; i++)
		err = read_on(r, patience_ms);
	need(err || r->missed);
	return err;
}

static int rejoin_after_detaching(int patience_ms, bool stored)
{
	struct made_opts opts = { .detach_ms = 1 };
	struct other o = { .patience_ms = patience_ms };
	struct reader slow;
	struct made m;
	int err;

	inject_pause_all();
	need(!made_open(opts, &m));
	begin(&slow, stored);
	begin(&o.r, stored);
	inject_resume_all();
	err = be_overtaken(&o);
	if (!err)
		err = read_behind(&slow, patience_ms);
	close_reader(&slow);
	made_close(&m);
	return err;
}

static int detach_reader(int patience_ms)
{
	return rejoin_after_detaching(patience_ms, true);
}

static int detach_reader_of_view(int patience_ms)
{
	return rejoin_after_detaching(patience_ms, false);
}

static const struct walk detaching = {
	.name = "detaching",
	.work = detach_reader,
	.kinds = "calloc memfd_create mmap fallocate fcntl socket connect ",
	.shortage = true,
};
static const struct walk detaching_view = {
	.name = "detaching from a view",
	.work = detach_reader_of_view,
	.kinds = "mmap fallocate ",
	.shortage = true,
};

static void who_is_detached_rejoins_or_says_why_not(void **state)
{
	(void)state;
	walk_one_by_one(&detaching);
	walk_one_by_one(&detaching_view);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(readers_return_or_say_why_not,
					  proc_end_children),
		cmocka_unit_test_teardown(
			readers_return_or_say_why_not_while_it_lasts,
			proc_end_children),
		cmocka_unit_test_teardown(
			who_is_detached_rejoins_or_says_why_not,
			proc_end_children),
	};

	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
