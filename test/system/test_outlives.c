/* SPDX-License-Identifier: MIT */
/*
 * test_outlives.c - consumers that outlive many producers, and a producer that
 * outlives many consumers: after 30 deaths they have no more descriptors,
 * threads, mappings or memory than after 5, and every sample came in its turn,
 * with its own bytes.
 *
 * TSOCK_KILLS is another number of deaths.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/lib/next_producer.h"
#include "test/lib/sanitized.h"
#include "test/lib/steady_reader.h"
#include "test/lib/usage.h"

#define SETTLED 5 /* what one has after so many deaths is all that it needs */
#define KINDS 3
#define LOOKS 6000 /* of 5 ms each until what a death has left is gone */

/* What may be more: it is not one for each death.  Allocators' mappings and
 * memory come and go. */
#define ANY 5
#define ANY_MAPPINGS 12
#define ANY_KIB 500

static unsigned deaths(void)
{
	const char *n = getenv("TSOCK_KILLS");
	unsigned k = n ? (unsigned)atoi(n) : 30;

	return k > SETTLED ? k : SETTLED + 1;
}

static struct {
	/* The first sample that the producer makes; UINT64_MAX: none yet. */
	_Atomic uint64_t first;
} * shared;

static const struct reader kind[KINDS] = {
	{ .batch = 16 },
	{ .batch = 10, .flags = TSOCK_WRITABLE },
	{ .batch = 20, .floats = true },
};

static void say(const char *what, const struct usage *u)
{
	print_message("%s: %u descriptors, %u threads, %u mappings of rings, "
		      "%u of files, %u others, %ld KiB, %ld KiB of rings\n",
		      what, u->descriptors, u->threads, u->rings, u->files,
		      u->others, u->memory_kib, u->shared_kib);
}

static bool has_no_more(const struct usage *is, const struct usage *was)
{
	return is->descriptors <= was->descriptors + ANY &&
	       is->threads <= was->threads + ANY &&
	       is->rings <= was->rings + ANY && is->files <= was->files + ANY &&
	       (SANITIZED || is->others <= was->others + ANY_MAPPINGS) &&
	       (SANITIZED || is->memory_kib <= was->memory_kib + ANY_KIB);
}

static void expect_no_more(const char *who, pid_t pid, const struct usage *was)
{
	struct usage is = usage_of(pid);

	for (unsigned i = 0; i < LOOKS && !has_no_more(&is, was); i++) {
		proc_pause_us(5000);
		is = usage_of(pid);
	}
	if (has_no_more(&is, was) && !getenv("TEST_VERBOSE"))
		return;
	say("before", was);
	say("after", &is);
	if (!has_no_more(&is, was))
		fail_msg("%s has more than after %d deaths", who, SETTLED);
}

static void hear(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		fail_msg("a consumer has ended");
}

/* ---- consumers ---- */

struct outliver {
	struct reader reader;
	int reached[2], go[2]; /* pipes */
	pid_t pid;
};

/* The next batch, in this epoch or the next one. */
static tsock_batch *take_next(const struct reader *r, tsock *t, uint64_t *next)
{
	tsock_batch *b;
	int err;

	while ((err = tsock_next(t, -1, &b)) == TSOCK_EEPOCH)
		need(!tsock_begin(t));
	if (err)
		die("next: %s", tsock_errmsg());
	if (*next != UINT64_MAX && tsock_batch_seq(b) != *next)
		die("%llu in the place of %llu",
		    (unsigned long long)tsock_batch_seq(b),
		    (unsigned long long)*next);
	reader_check_batch(r, b, 0);
	if (r->floats)
		steady_reader_check_floats(r, b);
	*next = tsock_batch_seq(b) + tsock_batch_count(b);
	return b;
}

/*
 * From each producer the ring is read more than once, so that all is mapped
 * that will be; to the same sample by all, since they wait for each other.  A
 * batch that can be kept is held until there is one of the next producer's.
 */
static void outlive_producers(const struct outliver *o)
{
	const struct reader *r = &o->reader;
	tsock *t = reader_connect(r);
	uint64_t next = UINT64_MAX;
	tsock_batch *held = NULL;
	char byte = 0;

	need(!tsock_begin(t));
	for (;;) {
		tsock_batch *b = take_next(r, t, &next);
		uint64_t first = atomic_load(&shared->first);

		if (held && next > first) {
			tsock_batch_release(held);
			held = NULL;
		}
		if (first == UINT64_MAX || next < first + 4 * r->src->ring) {
			tsock_batch_release(b);
			continue;
		}
		held = b;
		need(write(o->reached[1], "", 1) == 1);
		need(read(o->go[0], &byte, 1) == 1);
		/* Others would stop their producer as long as it lives. */
		if (byte == 'e' || !(r->flags & TSOCK_WRITABLE)) {
			tsock_batch_release(held);
			held = NULL;
		}
		if (byte == 'e')
			break;
	}
	tsock_close(t);
	_exit(0);
}

static void start_outliver(struct outliver *o, const struct source *src,
			   const struct reader *r)
{
	o->reader = *r;
	o->reader.src = src;
	assert_int_equal(pipe(o->reached), 0);
	assert_int_equal(pipe(o->go), 0);
	o->pid = proc_spawn();
	if (!o->pid)
		outlive_producers(o);
	close(o->reached[1]);
	close(o->go[0]);
}

static void note_first(tsock_server *s, const struct source *src)
{
	uint64_t first;

	need(tsock_serve_claim(s, 1, -1, &first) == 1);
	stream_write_sample(s, src, first);
	atomic_store(&shared->first, first);
	tsock_serve_commit(s, first, 1);
}

static void all_go_on(const struct outliver *o, const char *how)
{
	for (unsigned i = 0; i < KINDS; i++)
		assert_int_equal(write(o[i].go[1], how, 1), 1);
}

/* The producer dies while its consumers read, or are busy with a batch. */
static pid_t replace(pid_t producer, const struct source *src,
		     const struct outliver *o, bool while_they_read)
{
	atomic_store(&shared->first, UINT64_MAX);
	if (while_they_read)
		all_go_on(o, "g");
	proc_kill_and_reap(producer);
	if (!while_they_read)
		all_go_on(o, "g");
	return stream_start_producer(src);
}

static void a_consumer_outlives_its_producers(void **state)
{
	struct source src = next_producer_restart("mortal");
	struct usage settled[KINDS] = { 0 };
	struct outliver o[KINDS];
	unsigned most = deaths();
	pid_t producer;

	(void)state;
	src.pace_us = 0;
	src.min_consumers = KINDS;
	src.served = note_first;
	atomic_store(&shared->first, UINT64_MAX);
	producer = stream_start_producer(&src);
	for (unsigned i = 0; i < KINDS; i++)
		start_outliver(&o[i], &src, &kind[i]);
	for (unsigned dead = 0;; dead++) {
		for (unsigned i = 0; i < KINDS; i++)
			hear(o[i].reached[0]);
		for (unsigned i = 0; i < KINDS && dead == SETTLED; i++)
			settled[i] = usage_of(o[i].pid);
		if (dead == most)
			break;
		producer = replace(producer, &src, o, dead % 2);
	}
	for (unsigned i = 0; i < KINDS; i++)
		expect_no_more("a consumer", o[i].pid, &settled[i]);
	all_go_on(o, "e");
	for (unsigned i = 0; i < KINDS; i++) {
		assert_int_equal(proc_ended(o[i].pid), 0);
		close(o[i].reached[0]);
		close(o[i].go[1]);
	}
	proc_kill_and_reap(producer);
}

/* ---- a producer ---- */

/* The reader holds a batch when it is killed. */
static void read_and_die(const struct source *src, const struct reader *r)
{
	struct reader mine = *r;
	uint64_t next = UINT64_MAX;
	int begun[2];
	pid_t pid;
	tsock *t;

	assert_int_equal(pipe(begun), 0);
	pid = proc_spawn();
	if (!pid) {
		mine.src = src;
		mine.join = TSOCK_JOIN_NOW;
		t = reader_connect(&mine);
		need(!tsock_begin(t));
		take_next(&mine, t, &next);
		need(write(begun[1], "", 1) == 1);
		pause();
	}
	close(begun[1]);
	hear(begun[0]);
	close(begun[0]);
	proc_kill_and_reap(pid);
}

static void a_producer_outlives_its_consumers(void **state)
{
	struct source src = next_producer_restart("lasting");
	struct reader good[2] = {
		{ .src = &src, .batch = 32, .epochs = UINT32_MAX },
		{ .src = &src,
		  .batch = 25,
		  .epochs = UINT32_MAX,
		  .floats = true },
	};
	struct usage settled = { 0 };
	pid_t producer, survivor[2];
	unsigned most = deaths();
	struct tsock_stats st;

	(void)state;
	src.min_consumers = 2;
	producer = stream_start_producer(&src);
	for (unsigned i = 0; i < 2; i++)
		survivor[i] = steady_reader_start(&good[i]);
	stream_wait_readers(src.name, 2);
	/* All of the rings has been touched, the view's as well. */
	do
		st = stream_stats(src.name);
	while (st.head < 4 * st.capacity);
	for (unsigned dead = 0; dead < most; dead++) {
		if (dead == SETTLED)
			settled = usage_of(producer);
		read_and_die(&src, &kind[dead % KINDS]);
		stream_wait_readers(src.name, 2);
	}
	expect_no_more("the producer", producer, &settled);
	for (unsigned i = 0; i < 2; i++) {
		assert_false(proc_has_ended(survivor[i]));
		proc_kill_and_reap(survivor[i]);
	}
	proc_kill_and_reap(producer);
}

#define TEST(f) cmocka_unit_test_teardown(f, proc_end_children)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_consumer_outlives_its_producers),
		TEST(a_producer_outlives_its_consumers),
	};

	proc_own_folder();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name("outlives", tests, NULL, NULL);
}
