/* SPDX-License-Identifier: MIT */
/*
 * test_stream.c - a server and its consumers in one process: each of their
 * system calls and allocations fails in turn.
 */
#include <pthread.h>

#include "test/faults/inject.h"
#include "test/faults/walk.h"
#include "test/lib/proc.h"

#define NAME "stream"
#define SIDE 40
#define BYTES (SIDE * SIDE * 3)
#define EPOCH 60
#define BATCH 7

static uint8_t pixel(uint64_t seq)
{
	return (uint8_t)(seq * 7 + 3);
}

static void *fill(void *arg)
{
	tsock_server *s = arg;
	uint64_t first;
	int n;

	while ((n = tsock_serve_claim(s, 3, -1, &first)) > 0) {
		for (uint64_t q = first; q < first + (unsigned)n; q++) {
			int64_t label = (int64_t)q;

			memset(tsock_serve_slot(s, 0, q), pixel(q), BYTES);
			memcpy(tsock_serve_slot(s, 1, q), &label,
			       sizeof(label));
		}
		tsock_serve_commit(s, first, (unsigned)n);
	}
	return NULL;
}

static int open_server(tsock_server **out)
{
	static const char *const classes[] = { "cat", "dog" };
	static const struct tsock_field field[] = {
		{ .name = "image",
		  .dtype = TSOCK_U8,
		  .flags = TSOCK_FIELD_IMAGE,
		  .ndim = 3,
		  .shape = { SIDE, SIDE, 3 } },
		{ .name = "label", .dtype = TSOCK_I64 },
	};
	struct tsock_serve_opts o = TSOCK_SERVE_OPTS_INIT;

	o.fields = field;
	o.nfields = 2;
	o.epoch_len = EPOCH;
	o.ring = 128;
	o.max_batch = 16;
	o.classes = (const char **)classes;
	o.nclasses = 2;
	o.identity = "made=up";
	return tsock_serve_open(NAME, &o, out);
}

static void check(const tsock_batch *b, bool stored)
{
	const int64_t *label = tsock_batch_data(b, 1);

	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		uint64_t q = tsock_batch_seq(b) + i;
		const uint8_t *p = tsock_batch_data(b, 0);
		const float *f = tsock_batch_data(b, 0);

		need(label[i] == (int64_t)q);
		for (unsigned k = 0; k < BYTES; k++)
			if (stored ? p[i * BYTES + k] != pixel(q)
				   : f[i * BYTES + k] != pixel(q) / 255.0f)
				die("sample %llu is wrong",
				    (unsigned long long)q);
	}
}

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
		check(b, stored);
		for (unsigned i = 0; i < 2 && b; i++) {
			if (!kept[i]) {
				kept[i] = b;
				b = NULL;
			}
		}
		if (b && stored)
			memset(tsock_batch_data_mut(b, 0), 0xee,
			       tsock_batch_count(b) * BYTES);
		tsock_batch_release(b);
	}
	need(err != TSOCK_EEPOCH || got == EPOCH);
	for (unsigned i = 0; i < 2; i++) {
		if (kept[i])
			check(kept[i], stored);
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
	err = tsock_open(NAME, &o, &t);
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

	return tsock_query(NAME, patience_ms, &st);
}

static int serve_and_read(int patience_ms)
{
	tsock_server *s;
	pthread_t thread;
	int err = open_server(&s);

	if (err)
		return err;
	inject_pause();
	need(!pthread_create(&thread, NULL, fill, s));
	inject_resume();
	err = consume(true, patience_ms);
	if (!err)
		err = consume(false, patience_ms);
	if (!err)
		err = ask(patience_ms);
	tsock_serve_stop(s);
	inject_pause();
	pthread_join(thread, NULL);
	inject_resume();
	tsock_serve_close(s);
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
	own_folder();
	pid = spawn();
	if (pid == 0) {
		inject_jumping_clock();
		need(!serve_and_read(30000));
		need(inject_clock_looks() == 0);
		_exit(0);
	}
	assert_int_equal(ended(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(nothing_looks_at_the_time_of_day,
					  end_children),
		cmocka_unit_test_teardown(a_fault_is_survived_or_named,
					  end_children),
		cmocka_unit_test_teardown(a_lasting_fault_is_survived_or_named,
					  end_children),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
