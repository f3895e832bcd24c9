/* SPDX-License-Identifier: MIT */
/*
 * test_stream.c - a server and its consumers in one process: each of their
 * system calls and allocations fails in turn.
 */
#include "test/faults/inject.h"
#include "test/faults/made.h"
#include "test/faults/walk.h"
#include "test/lib/proc.h"

#define BATCH 7

/* Two of the batches are kept while others are read. */
static int read_epoch(tsock *t, bool stored, int patience_ms)
{
	tsock_batch *kept[2] = { NULL, NULL }, *b;
	uint64_t got = 0, want = 0;
	int err;

	while (!(err = tsock_next(t, patience_ms, &b))) {
		need(!got || tsock_batch_seq(b) == want);
		want = tsock_batch_seq(b) + tsock_batch_count(b);
		got += tsock_batch_count(b);
		made_check(b, stored);
		for (unsigned i = 0; i < 2 && b; i++) {
			if (!kept[i]) {
				kept[i] = b;
				b = NULL;
			}
		}
		if (b && stored)
			memset(tsock_batch_data_mut(b, 0), 0xee,
			       tsock_batch_count(b) * MADE_BYTES);
		tsock_batch_release(b);
	}
	need(err != TSOCK_EEPOCH || got == MADE_EPOCH);
	for (unsigned i = 0; i < 2; i++) {
		if (kept[i])
			made_check(kept[i], stored);
		tsock_batch_release(kept[i]);
	}
	return err == TSOCK_EEPOCH ? 0 : err;
}

static int consume(bool stored, int patience_ms)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	tsock *t;
	int err;

	o.batch_size = BATCH;
	o.flags = stored ? TSOCK_WRITABLE : 0;
	o.dtype = stored ? 0 : TSOCK_F32;
	o.normalize = stored ? TSOCK_RAW : TSOCK_UNIT;
	o.timeout_ms = (uint32_t)patience_ms;
	err = tsock_open(MADE_NAME, &o, &t);
	if (err)
		return err;
	err = tsock_begin_timed(t, patience_ms);
	if (!err)
		err = read_epoch(t, stored, patience_ms);
	if (!err) {
		tsock_leave(t);
		err = tsock_begin_timed(t, patience_ms);
	}
	tsock_close(t);
	return err;
}

static int ask(int patience_ms)
{
	struct tsock_stats st = { .size = sizeof(st) };

	return tsock_query(MADE_NAME, patience_ms, &st);
}

static int serve_and_read(int patience_ms)
{
	struct made_opts ordinary = { .resumable = false };
	struct made m;
	int err = made_open(ordinary, &m);

	if (err)
		return err;
	err = consume(true, patience_ms);
	if (!err)
		err = consume(false, patience_ms);
	if (!err)
		err = ask(patience_ms);
	made_close(&m);
	return err;
}

static const struct walk stream = { .name = "stream", .work = serve_and_read };

static void a_fault_is_survived_or_named(void **state)
{
	(void)state;
	walk_one_by_one(&stream);
}

static const struct walk lasting = {
	.name = "stream",
	.work = serve_and_read,
	.kinds = "malloc calloc realloc open socket memfd_create mmap fcntl "
		 "accept4 poll sendmsg recvmsg fallocate write fstat ",
};

static void a_lasting_fault_is_survived_or_named(void **state)
{
	(void)state;
	walk_from_each_on(&lasting);
}

/* Nothing that is waited for, and no time limit, is by the time of day. */
static void nothing_looks_at_the_time_of_day(void **state)
{
	pid_t pid;

	(void)state;
	proc_own_folder();
	pid = proc_spawn();
	if (pid == 0) {
		inject_jumping_clock();
		need(!serve_and_read(30000));
		need(inject_clock_looks() == 0);
		_exit(0);
	}
	assert_int_equal(proc_ended(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_looks_at_the_time_of_day,
					  proc_end_children),
		cmocka_unit_test_teardown(a_fault_is_survived_or_named,
					  proc_end_children),
		cmocka_unit_test_teardown(a_lasting_fault_is_survived_or_named,
					  proc_end_children),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
