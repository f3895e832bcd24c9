/* SPDX-License-Identifier: MIT */
/*
 * test_protocol_random.c - joining, reading, leaving, and producers that die,
 * under seeded random schedules of the modelled machine of protocol.h.
 *
 * $TSOCK_SEED is the first seed and $TSOCK_SEEDS how many there are; a failure
 * names its seed.  The producer is killed at any step, within any function that
 * writes its record, publishes a head or replies; a next one reads the record;
 * messages get lost, come twice and come late; consumers are born, die, and
 * stop for a while, some for longer than they are waited for.  What has to
 * hold, whatever happens:
 *
 *   - a reader of a producer that died goes on at its exact next sample,
 *     unless it lets more than the time of grace pass
 *   - samples come in order, each with its own bytes, and none is written over
 *     that a reader needs
 *   - nobody joins before all who return have asked, or half a second has
 *     passed
 *   - no stream is held for readers that are all back, or dead
 *   - whatever epoch one rank of a job gets, all get, or they are refused:
 *     where one was held up for ten seconds, or where ranks leave between
 *     epochs and a producer has died
 *   - epochs begin at epochs' starts, or at those of segments if asked to
 *   - where a job had saved that it was, its next process goes on; nobody but
 *     other readers is a reason against that
 *   - what a detached reader has in hand stays as it is, and then it goes on
 *     where the stream is, with its producer or the next one
 *   - who has taken itself off the record is waited for by no next producer
 *   - nobody waits for ever
 */
#include "test/lib/protocol.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/lib/protocol_producer.h"

/* Schedules, each of its own seed; fewer where each takes ten times as long, and
 * fewer still where TSan looks for races that one thread can't have. */
#ifdef __SANITIZE_THREAD__
#define SEEDS 20
#elif defined(__SANITIZE_ADDRESS__)
#define SEEDS 200
#else
#define SEEDS 5000
#endif

#define STEPS 2500

/* ---- deaths ---- */

static jmp_buf death;
static bool runs;     /* a step of the producer */
static unsigned fuse; /* it dies at that many moments from now; 0: never */

/* What readers do while the producer is at work, and what one may do that
 * waits for it to begin. */
static void read_meanwhile(void)
{
	struct consumer *q = &machine.who[machine_random(machine.people)];

	if (q->stopped_until > machine.now ||
	    q->phase != (machine.up ? READS : WAITS))
		return;
	runs = false;
	consumer_step(q);
	runs = true;
}

static void moment(void)
{
	if (!runs)
		return;
	if (machine.detaches && machine_random(4) == 0)
		read_meanwhile();
	if (fuse && !--fuse)
		longjmp(death, 1);
}

/* Is its claim in the record, as the next producer will find it? */
static bool recorded(const struct consumer *q)
{
	static struct tsi_record_row row[TSI_RECORD_ROWS];
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%s/model.readers", folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || pread(fd, row, sizeof(row), 64) != sizeof(row))
		row[0].used = 0;
	close(fd);
	for (unsigned i = 0; i < TSI_RECORD_ROWS; i++)
		if (row[i].used &&
		    !memcmp(row[i].reader.nonce, q->claim.nonce, TSI_NONCE))
			return true;
	return false;
}

static void producer_dies(void)
{
	runs = false;
	fuse = 0;
	machine.up = machine.listens = false;
	machine.deaths++;
	for (unsigned i = 0; i < PEOPLE; i++) {
		struct consumer *q = &machine.who[i];

		if (q->incarnation == machine.incarnation)
			consumer_loses_producer(q, recorded(q));
		/* What ZeroMQ has not yet handed over may go to the next. */
		if (machine_random(2))
			q->out.n = 0;
	}
	for (unsigned i = 0; i < CALLS; i++)
		machine.call[i].cut = true;
	if (p.readers.record.fd >= 0)
		close(p.readers.record.fd);
}

static void step_of_producer(void (*step)(void))
{
	if (setjmp(death)) {
		producer_dies();
		return;
	}
	runs = true;
	step();
	runs = false;
}

/* ---- the producer ---- */

/* A consumer that has taken itself off the record isn't waited for. */
static void check_returners(void)
{
	static const uint8_t nobody[TSI_NONCE];

	for (unsigned i = 0; i < PEOPLE && machine.up; i++) {
		const struct consumer *q = &machine.who[i];

		/* One that begins meanwhile was told. */
		if (q->off_in == machine.incarnation ||
		    !memcmp(q->off, nobody, TSI_NONCE))
			continue;
		check(!tsi_returners_find(&p.readers.returners, q->off));
	}
}

static void begin_producer(void)
{
	tsi_production_fini(&p.production);
	tsi_readers_fini(&p.readers);
	memset(&p, 0, sizeof(p));
	p.readers.record.fd = -1;
	memset(machine.page, 0, sizeof(machine.page));
	machine.incarnation++;
	machine.began_ms = machine.looked_ms = machine.now;
	for (unsigned i = 0; i < CALLS; i++)
		machine.call[i].accepted = true;
	machine.nring = (unsigned)(machine.incarnation % RINGS);
	for (unsigned i = 0; i < VIEWS; i++)
		make_ring(&machine.ring[machine.nring][i]);
	machine.listens = true;
	step_of_producer(start);
	check_returners();
}

bool machine_is_held(void)
{
	return p.membership.hold != TSI_NEVER;
}

bool machine_take_off(const uint8_t *nonce)
{
	struct tsi_address a = { .name = "model" };

	snprintf(a.folder, sizeof(a.folder), "%s", folder);
	return tsi_record_file_leave(&a, nonce);
}

/* ---- schedules ---- */

static void make_segments(void)
{
	uint64_t most = machine.n < MOST_SEGMENTS ? machine.n : MOST_SEGMENTS;

	machine.segments = 1;
	if (machine.saves && machine_random(2))
		machine.segments = 1 + (unsigned)machine_random(most);
	for (unsigned i = 0; i <= machine.segments; i++)
		machine.bounds[i] = machine.n * i / machine.segments;
}

/* What of the model there is: of a seed that has failed, what there was. */
enum kind { BARE, SAVES, DETACHES, KINDS = 3, SEES, PARTS = 8 };

static void make_machine(uint64_t seed, unsigned kind)
{
	memset(&machine, 0, sizeof(machine));
	machine.seed = seed;
	machine.rng = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	machine.now = 1000000;
	machine.c = 8 + machine_random(MOST_C - 7);
	machine.w = 1 + machine_random(machine.c / 2);
	machine.n = 1 + machine_random(60);
	machine.loss = 3 + machine_random(60);
	machine.saves = (kind & KINDS) >= SAVES;
	machine.detaches = (kind & KINDS) >= DETACHES;
	machine.sees = kind & SEES;
	machine.parts = kind & PARTS;
	make_segments();
	machine.people = 1 + (unsigned)machine_random(PEOPLE);
	if (machine.detaches && machine.people == 1)
		machine.people = 2;
	/* Ranks can't join where readers are detached. */
	if (!machine.detaches && machine.people > 2 && machine_random(3) == 0)
		machine.ranks =
			2 + (unsigned)machine_random(machine.people - 2);
	/* Ranks alone, or beside others; most schedules have some. */
	if (machine.parts && machine.people < 3)
		machine.people = 3;
	if (machine.parts && !machine.ranks)
		machine.ranks =
			2 + (unsigned)machine_random(machine.people - 1);
	for (unsigned i = 0; i < PEOPLE; i++)
		machine.who[i].number = i;
	begin_producer();
}

/* The consumer's silence has lasted so long that nobody waits for it any
 * more. */
static void give_up(struct consumer *q)
{
	if (machine.now - machine.began_ms >= GRACE_MS)
		q->owed = q->stale = false;
	if (q->owed && q->asked_in == machine.incarnation &&
	    machine.now - q->asked_ms > SILENCE_MS)
		q->owed = false;
}

/* Once all are back, or dead, the stream is held no longer. */
static void check_hold(void)
{
	static const uint8_t nobody[TSI_NONCE];
	bool awaited = false;

	for (unsigned i = 0; i < PEOPLE; i++) {
		const struct consumer *q = &machine.who[i];

		/* The consumer has still to notice that its producer died. */
		awaited |= q->phase == READS &&
			   q->incarnation != machine.incarnation;
		/* Or it doesn't know whether it has become a reader. */
		awaited |= q->owed || q->stale || q->phase == CALLS_IN ||
			   q->phase == LEAVES ||
			   memcmp(q->was, nobody, TSI_NONCE) != 0;
	}
	if (awaited || p.membership.hold == TSI_NEVER)
		machine.idle_ms = machine.now;
	check(machine.now - machine.idle_ms <= SILENCE_MS + 2000);
}

static void let_time_pass(void)
{
	int64_t by = (int64_t)machine_random(8);

	if (machine_random(300) == 0)
		by = (int64_t)machine_random(3000);
	/* A rank that is held up for ten seconds is not waited for. */
	if (machine.fair && by > 100)
		by = 100;
	machine.job_stopped_ms += by > 100 ? by : 0;
	machine.now += by;
}

static void disturb(void)
{
	struct consumer *q = &machine.who[machine_random(machine.people)];

	switch (machine_random(8)) {
	case 0:
	case 1:
		/* A consumer that stands still is to be waited for, and not to
		 * return. */
		if (machine.up && (!machine.detaches || !machine_random(4)))
			fuse = 1 + (unsigned)machine_random(40);
		break;
	case 2:
		if (q->pid)
			consumer_die(q);
		break;
	case 3:
		/* In a job each waits for all, and all for the slowest. */
		q->stopped_until =
			machine.now +
			(int64_t)machine_random(machine.ranks       ? 3000
						: machine_random(4) ? 8000
								    : 90000);
		if (q->number < machine.ranks)
			machine.job_stopped_ms +=
				q->stopped_until - machine.now;
		break;
	default:
		if (machine.detaches)
			q->stopped_until =
				machine.now + (int64_t)machine_random(4000);
	}
}

static void step(void)
{
	struct consumer *q;

	let_time_pass();
	if (!machine.fair && machine_random(60) == 0)
		disturb();
	switch (machine.up ? machine_random(machine.detaches ? 11 : 8) : 7) {
	case 0:
	case 1:
		step_of_producer(control);
		if (!machine.up)
			break;
		for (unsigned i = 0; i < PEOPLE; i++)
			give_up(&machine.who[i]);
		check_hold();
		break;
	case 2:
		step_of_producer(claim);
		break;
	case 3:
		step_of_producer(commit);
		break;
	case 8:
	case 9:
		step_of_producer(stage);
		break;
	default:
		q = &machine.who[machine_random(machine.people)];
		if (q->stopped_until <= machine.now)
			consumer_step(q);
		if (!machine.up && (machine.fair || machine_random(60) == 0))
			begin_producer();
	}
}

static bool all_got_on(void)
{
	for (unsigned i = 0; i < machine.people; i++)
		if (consumer_is_busy(&machine.who[i]) &&
		    machine.who[i].epochs < 2)
			return false;
	return true;
}

/* Now nothing more happens to them. */
static void everybody_gets_on(void)
{
	int64_t begun = machine.now;
	uint64_t most = 20000 + 3000 * machine.n;

	machine.fair = true;
	fuse = 0;
	for (unsigned i = 0; i < PEOPLE; i++) {
		machine.who[i].epochs = 0;
		machine.who[i].stopped_until = 0;
	}
	for (uint64_t i = 0; !all_got_on(); i++) {
		check(i < most || machine.now < begun + 2 * GRACE_MS);
		step();
	}
}

static unsigned number(const char *name, unsigned otherwise)
{
	return getenv(name) ? (unsigned)atoi(getenv(name)) : otherwise;
}

static void run_seed(uint64_t seed, unsigned kind)
{
	make_machine(seed, kind);
	for (unsigned i = 0; i < STEPS; i++)
		step();
	everybody_gets_on();
	if (p.readers.record.fd >= 0)
		tsi_record_close(&p.readers.record, false);
}

static void random_schedules_keep_every_promise(void **state)
{
	unsigned first = number("TSOCK_SEED", 1);
	unsigned seeds = number("TSOCK_SEEDS", SEEDS);
	uint64_t deaths = 0, returned = 0, refused = 0, taken = 0, joined = 0;
	uint64_t resumed = 0, segmented = 0;

	(void)state;
	for (unsigned seed = first; seed < first + seeds; seed++) {
		run_seed(seed, SAVES | SEES);
		deaths += machine.deaths;
		returned += machine.returned;
		refused += machine.refused;
		joined += machine.joined;
		taken += machine.taken;
		resumed += machine.resumed;
		segmented += machine.segmented;
	}
	print_message("%llu producers died, %llu readers returned; %llu joins, "
		      "%llu where a job had been, %llu at a segment, %llu "
		      "refused, %llu samples\n",
		      (unsigned long long)deaths, (unsigned long long)returned,
		      (unsigned long long)joined, (unsigned long long)resumed,
		      (unsigned long long)segmented,
		      (unsigned long long)refused, (unsigned long long)taken);
	/* A model in which nothing happens would keep every promise, too. */
	if (seeds >= 100)
		assert_true(deaths > seeds && returned > seeds / 2 && refused &&
			    resumed > seeds / 8 && segmented > seeds / 8 &&
			    taken > 100 * seeds);
}

static void who_is_slow_keeps_what_it_looks_at(void **state)
{
	unsigned first = number("TSOCK_SEED", 1);
	unsigned seeds = number("TSOCK_SEEDS", SEEDS / 5);
	uint64_t detached = 0, turns = 0, outlived = 0, off = 0, taken = 0;

	(void)state;
	for (unsigned seed = first; seed < first + seeds; seed++) {
		run_seed(seed, DETACHES | SEES);
		detached += machine.detachments;
		turns += machine.turns;
		outlived += machine.outlived;
		off += machine.took_off;
		taken += machine.taken;
	}
	print_message("%llu readers were detached, %llu halves begun; the "
		      "producers of %llu died before they saw that; %llu took "
		      "themselves off the record, %llu samples\n",
		      (unsigned long long)detached, (unsigned long long)turns,
		      (unsigned long long)outlived, (unsigned long long)off,
		      (unsigned long long)taken);
	if (seeds >= 100)
		assert_true(detached > seeds / 4 && turns > seeds / 4 &&
			    outlived > seeds / 100 && off > seeds / 2 &&
			    taken > 50 * seeds);
}

static void ranks_that_leave_get_the_same_epochs(void **state)
{
	unsigned first = number("TSOCK_SEED", 1);
	unsigned seeds = number("TSOCK_SEEDS", SEEDS / 2);
	uint64_t deaths = 0, followed = 0, parted = 0;

	(void)state;
	for (unsigned seed = first; seed < first + seeds; seed++) {
		run_seed(seed, SAVES | SEES | PARTS);
		deaths += machine.deaths;
		followed += machine.followed;
		parted += machine.parted;
	}
	print_message("%llu producers died, %llu epochs were begun by a rank "
		      "where another one had; %llu ranks came too late\n",
		      (unsigned long long)deaths, (unsigned long long)followed,
		      (unsigned long long)parted);
	if (seeds >= 100)
		assert_true(deaths > seeds && followed > 2 * seeds &&
			    parted < seeds / 20);
}

static void schedules_that_have_failed_keep_every_promise(void **state)
{
	(void)state;
	/* A reader came back, hung up while the producer stood still, and was
	 * waited for no longer: the stream went past it. */
	run_seed(44, BARE);
	/* A producer died between recording a claim and replying, and the next
	 * one waited a minute for a reader that knew nothing of that claim. */
	run_seed(17, BARE);
	/* The last rank of a job does so, and then waited for ever for ranks
	 * that had begun. */
	run_seed(194, BARE);
	/* Two rows of one reader, of which one only was taken up. */
	run_seed(200, BARE);
	/* Three deaths in a row, each after another step of one return. */
	run_seed(61328, BARE);
	/* And a fourth, between two writes of the record. */
	run_seed(604567, BARE);
	/* A rank returned, hung up, and no longer fixed its job's start. */
	run_seed(591057, BARE);
	/* A rank that was held up for ten seconds while its job began waited
	 * for ranks that had begun. */
	run_seed(81469, BARE);
	/* And one that came when the stream had gone past that start. */
	run_seed(516234, BARE);
	/* A reader took itself off the record while the next producer read it,
	 * and that one wrote over the word. */
	run_seed(4200, DETACHES);
	/* One did whose return its producer hadn't noted when it died. */
	run_seed(3110, DETACHES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_that_have_failed_keep_every_promise),
		cmocka_unit_test(random_schedules_keep_every_promise),
		cmocka_unit_test(who_is_slow_keeps_what_it_looks_at),
		cmocka_unit_test(ranks_that_leave_get_the_same_epochs),
	};
	int failed;

	if (!mkdtemp(folder))
		return 1;
	failed = cmocka_run_group_tests_name("protocol_random", tests, NULL,
					     NULL);
	rmdir(folder);
	return failed;
}
