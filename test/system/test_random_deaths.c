/* SPDX-License-Identifier: MIT */
/*
 * test_random_deaths.c - a producer and its consumers are killed in any order
 * and at any moment; those that are left have each sample in its turn and once,
 * with its own bytes, from one producer or the next.
 *
 * $TSOCK_SEED is the first seed and $TSOCK_SEEDS how many there are; with each
 * $TSOCK_KILLS processes are killed.  A failure names its seed.
 */
#include <stdatomic.h>
#include <sys/mman.h>

#include "test/lib/next_producer.h"
#include "test/lib/steady_reader.h"

#define SURVIVORS 2
#define VICTIMS 3
#define ENDLESS 1000000
#define LOOKS 120000 /* of 1 ms each until somebody must have read on */

static struct {
	_Atomic bool enough;
} * shared;

static struct {
	unsigned seed, dice;
	char name[32];
	struct source src;
	struct reader survives[SURVIVORS], dies[VICTIMS];
	pid_t producer, survivor[SURVIVORS], victim[VICTIMS]; /* 0: none */
	unsigned killed;
} w;

static unsigned producers, consumers; /* killed in all */

static unsigned number(const char *name, unsigned otherwise)
{
	const char *n = getenv(name);

	return n ? (unsigned)atoi(n) : otherwise;
}

static unsigned roll(unsigned n)
{
	return (unsigned)rand_r(&w.dice) % n;
}

/* ---- who there is ---- */

/* Any kind of consumer; one of floats reads epochs of whole batches alone. */
static void choose(struct reader *r, bool survives)
{
	static const uint32_t whole[] = { 5, 8, 10, 16, 20, 25 };

	*r = (struct reader){ .src = &w.src,
			      .epochs = ENDLESS,
			      .enough = &shared->enough,
			      .floats = roll(3) == 0,
			      .flags = roll(2) ? TSOCK_WRITABLE : 0 };
	r->batch = r->floats ? whole[roll(6)] : 1 + roll(32);
	r->scribble = !r->floats && r->flags && roll(2);
	r->hold_us = roll(2) ? 0 : roll(600);
	if (survives || r->floats)
		return;
	r->join = roll(2) ? TSOCK_JOIN_NOW : TSOCK_JOIN_EPOCH;
	r->between = roll(2) ? TSOCK_BETWEEN_LEAVE : TSOCK_BETWEEN_HOLD;
}

static void begin(unsigned seed)
{
	/* A test that hangs is killed: then this is all that it has said. */
	fprintf(stderr, "seed %u\n", seed);
	memset(&w, 0, sizeof(w));
	w.seed = w.dice = seed;
	snprintf(w.name, sizeof(w.name), "deaths%u", seed);
	w.src = next_producer_restart(w.name);
	atomic_store(&shared->enough, false);
	w.producer = stream_start_producer(&w.src);
	for (unsigned i = 0; i < SURVIVORS; i++) {
		choose(&w.survives[i], true);
		w.survivor[i] = steady_reader_start(&w.survives[i]);
	}
}

/* ---- what happens to them ---- */

static void kill_producer(void)
{
	proc_kill_and_reap(w.producer);
	w.killed++;
	producers++;
}

static void kill_victim(unsigned i)
{
	if (!w.victim[i])
		return;
	proc_kill_and_reap(w.victim[i]);
	w.victim[i] = 0;
	w.killed++;
	consumers++;
}

/* Alone, or just before or after a consumer. */
static void next_producer(void)
{
	unsigned i = roll(2 * VICTIMS), first = roll(2);

	if (i < VICTIMS && first)
		kill_victim(i);
	kill_producer();
	if (i < VICTIMS && !first)
		kill_victim(i);
	if (roll(2))
		proc_pause_us(roll(50000));
	w.producer = stream_start_producer(&w.src);
}

/* A process that ended by itself says why on standard error. */
static void all_live(void)
{
	bool live = !proc_has_ended(w.producer);

	for (unsigned i = 0; i < SURVIVORS; i++)
		live &= !proc_has_ended(w.survivor[i]);
	for (unsigned i = 0; i < VICTIMS; i++)
		live &= !w.victim[i] || !proc_has_ended(w.victim[i]);
	if (!live)
		fail_msg("seed %u: a process has ended by itself", w.seed);
}

/* However busy the machine is, there is always somebody who reads on. */
static void await_samples(unsigned n)
{
	uint64_t until = reader_samples_checked() + n;

	for (unsigned i = 0; reader_samples_checked() < until; i++) {
		all_live();
		if (i == LOOKS)
			fail_msg("seed %u: nobody reads on", w.seed);
		proc_pause_us(1000);
	}
}

static void something_happens(void)
{
	unsigned i = roll(VICTIMS + 1);

	if (roll(2))
		await_samples(roll(1000));
	else
		proc_pause_us(roll(60000));
	if (i == VICTIMS) {
		next_producer();
	} else if (w.victim[i]) {
		kill_victim(i);
	} else {
		choose(&w.dies[i], false);
		w.victim[i] = steady_reader_start(&w.dies[i]);
	}
}

static void run_seed(unsigned seed, unsigned kills)
{
	begin(seed);
	while (w.killed < kills) {
		something_happens();
		all_live();
	}
	for (unsigned i = 0; i < VICTIMS; i++)
		kill_victim(i);
	atomic_store(&shared->enough, true);
	for (unsigned i = 0; i < SURVIVORS; i++) {
		int status = proc_ended(w.survivor[i]);

		if (status)
			fail_msg("seed %u: a consumer has ended with %d", seed,
				 status);
	}
	proc_kill_and_reap(w.producer);
}

static void whoever_is_left_misses_nothing(void **state)
{
	unsigned first = number("TSOCK_SEED", 1);
	unsigned seeds = number("TSOCK_SEEDS", 3);
	unsigned kills = number("TSOCK_KILLS", 12);
	uint64_t checked = reader_samples_checked();

	(void)state;
	for (unsigned seed = first; seed < first + seeds; seed++)
		run_seed(seed, kills);
	checked = reader_samples_checked() - checked;
	print_message("%u producers and %u consumers killed, %llu samples "
		      "checked\n",
		      producers, consumers, (unsigned long long)checked);
	if (seeds * kills >= 30)
		assert_true(producers && consumers && checked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(whoever_is_left_misses_nothing,
					  proc_end_children),
	};

	proc_own_folder();
	reader_count_checked();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests_name("random deaths", tests, NULL, NULL);
}
