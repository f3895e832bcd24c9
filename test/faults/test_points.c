/* SPDX-License-Identifier: MIT */
/*
 * test_points.c - a consumer, and a producer, is killed or stopped at each
 * named point; nobody else hangs or sees a wrong byte, and nothing is left.
 */
#include <sys/mman.h>

#include "test/faults/points.h"
#include "test/lib/reader.h"
#include "test/lib/usage.h"

#define ENDLESS 1000000
#define POLITE 5   /* exit status: an error with a sentence */
#define LOOKS 6000 /* of 5 ms each until something must have happened */

static struct points *at; /* shared: of the victim */

/* The points of a producer that are tried. */
static const char *const *names;

static struct source src = { .name = "points",
			     .n = 200,
			     .ring = 128,
			     .max_batch = 16,
			     .payload = 4000 };

static int set_up(void **state)
{
	(void)state;
	at = mmap(NULL, sizeof(*at), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -1;
	proc_own_folder();
	return 0;
}

/* A consumer that reads epochs and leaves after each; it checks every byte.
 * Once the stream is lost it ends with a sentence. */
static void read_epochs(const struct reader *r)
{
	tsock *t = reader_connect(r);

	for (uint32_t e = 0; e < r->epochs; e++) {
		int err = tsock_begin_timed(t, 20000);
		tsock_batch *b;

		while (!err && !(err = tsock_next(t, 20000, &b))) {
			reader_check_batch(r, b, 0);
			tsock_batch_release(b);
		}
		if (err != TSOCK_EEPOCH) {
			need(err != TSOCK_EAGAIN &&
			     strchr(tsock_errmsg(), ' '));
			_exit(POLITE);
		}
		tsock_leave(t);
	}
	tsock_close(t);
}

/* A rank's part of epoch 0, and nothing else: half of it. */
static void read_part(const struct reader *r)
{
	tsock *t = reader_connect(r);
	tsock_batch *b;
	uint64_t got = 0;
	int err = tsock_begin_timed(t, 30000);

	if (err || tsock_epoch(t))
		die("rank %u: epoch %llu: %s", r->rank,
		    (unsigned long long)tsock_epoch(t), tsock_errmsg());
	while (!(err = tsock_next(t, 30000, &b))) {
		reader_check_batch(r, b, 0);
		got += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH || got != r->src->n / 2)
		die("rank %u: %llu samples: %s", r->rank,
		    (unsigned long long)got, tsock_errmsg());
	tsock_close(t);
}

/* The victim reads until the point is first reached, or two epochs: it
 * waits for the producer, for example, only where that one is slower. */
static pid_t start_victim(int n)
{
	struct reader r = { .src = &src, .batch = 7, .epochs = 2 };
	pid_t pid = proc_spawn();

	if (pid == 0) {
		points_obey(at, points_consumer);
		do
			read_epochs(&r);
		while (n == 1 && atomic_load(&at->point) >= 0);
		_exit(0);
	}
	return pid;
}

static void heed(tsock_server *s, const struct source *source)
{
	(void)s;
	(void)source;
	points_obey(at, names);
}

/* Samples go on being taken. */
static void goes_on(void)
{
	uint64_t head = stream_stats("points").head;

	for (unsigned i = 0; stream_stats("points").head < head + src.n; i++) {
		assert_true(i < LOOKS);
		proc_pause_us(5000);
	}
}

/* Waits until the process has been stopped, or has ended. */
static int hit(pid_t pid, const char *name)
{
	siginfo_t info = { .si_pid = 0 };

	for (unsigned i = 0; i < LOOKS; i++) {
		assert_int_equal(waitid(P_PID, (id_t)pid, &info,
					WEXITED | WSTOPPED | WNOHANG | WNOWAIT),
				 0);
		if (info.si_pid)
			return info.si_code;
		proc_pause_us(5000);
	}
	fail_msg("%s is never reached", name);
	return -1;
}

static void stop_consumer(int point, int n)
{
	const char *name = points_consumer[point];
	pid_t victim;

	points_set(at, point, n, SIGSTOP);
	victim = start_victim(n);
	if (hit(victim, name) != CLD_STOPPED)
		fail_msg("%s: the victim has not stopped", name);
	/* A process that asks is answered. */
	stream_stats("points");
	kill(victim, SIGCONT);
	if (proc_ended(victim))
		fail_msg("%s: a stopped consumer doesn't go on", name);
}

static void kill_consumer(int point, int n)
{
	const char *name = points_consumer[point];
	pid_t victim;

	points_set(at, point, n, SIGKILL);
	victim = start_victim(n);
	/* Some points are passed once in a consumer's life. */
	if (hit(victim, name) != CLD_KILLED && n == 1)
		fail_msg("%s: the victim was not killed", name);
	if (proc_ended(victim) != 1000 + SIGKILL)
		assert_true(n > 1);
}

static void a_consumer_is_hit_anywhere(void **state)
{
	struct reader good = { .src = &src, .batch = 16, .epochs = ENDLESS };
	pid_t producer = stream_start_producer(&src),
	      reader = reader_start(&good);
	unsigned files;

	(void)state;
	stream_wait_readers("points", 1);
	stop_consumer(0, 1); /* what is made once is there after it */
	stream_wait_readers("points", 1);
	files = usage_descriptors(producer);
	for (int p = 0; points_consumer[p]; p++) {
		for (int n = 1; n < 3; n++) {
			kill_consumer(p, n);
			goes_on();
		}
		stop_consumer(p, 1);
		goes_on();
		stream_wait_readers("points", 1);
		for (unsigned i = 0; usage_descriptors(producer) > files; i++) {
			if (i == LOOKS)
				fail_msg("%s: descriptors are left",
					 points_consumer[p]);
			proc_pause_us(5000);
		}
	}
	assert_int_equal(waitpid(reader, NULL, WNOHANG), 0);
	proc_kill_and_reap(reader);
	proc_kill_and_reap(producer);
}

/* Two consumers, one after the other, whose joins and leaves come by. */
static void start_readers(pid_t *pid)
{
	struct reader r = { .src = &src, .batch = 16, .epochs = 3 };

	for (unsigned i = 0; i < 2; i++) {
		r.floats = i && src.image;
		pid[i] = proc_spawn();
		if (pid[i] == 0) {
			read_epochs(&r);
			_exit(0);
		}
	}
}

static void end_readers(const pid_t *pid, const char *name, bool lost)
{
	for (unsigned i = 0; i < 2; i++) {
		int status = proc_ended(pid[i]);

		if (status && !(lost && status == POLITE))
			fail_msg("%s: a consumer ends with %d", name, status);
	}
}

static void stop_producer(int point, int n)
{
	const char *name = names[point];
	pid_t producer, reader[2];

	points_set(at, -1, 0, 0);
	producer = stream_start_producer(&src);
	stream_stats("points");
	points_set(at, point, n, SIGSTOP);
	start_readers(reader);
	if (hit(producer, name) != CLD_STOPPED)
		fail_msg("%s: the producer has not stopped", name);
	kill(producer, SIGCONT);
	end_readers(reader, name, false);
	proc_kill_and_reap(producer);
}

/* Another one takes its place; those that had lost theirs may end. */
static void kill_producer(int point, int n)
{
	const char *name = names[point];
	struct source next = src;
	pid_t producer, reader[2];

	points_set(at, -1, 0, 0);
	producer = stream_start_producer(&src);
	stream_stats("points");
	points_set(at, point, n, SIGKILL);
	start_readers(reader);
	if (hit(producer, name) != CLD_KILLED)
		fail_msg("%s: the producer was not killed", name);
	proc_ended(producer);
	next.served = NULL;
	producer = stream_start_producer(&next);
	end_readers(reader, name, true);
	proc_kill_and_reap(producer);
}

static void a_producer_is_hit_anywhere(void **state)
{
	struct source tidy = src;

	(void)state;
	src.served = heed;
	names = points_producer;
	for (int p = 0; points_producer[p]; p++) {
		stop_producer(p, 2);
		kill_producer(p, 1);
		kill_producer(p, 2);
	}
	/* The next one finds a free name, and leaves a tidy folder. */
	src.served = NULL;
	tidy.epochs = 1;
	tidy.served = NULL;
	{
		struct reader r = { .src = &tidy, .batch = 16, .epochs = 1 };
		pid_t producer = stream_start_producer(&tidy);
		pid_t reader = reader_start(&r);

		assert_int_equal(proc_ended(reader), 0);
		assert_int_equal(proc_ended(producer), 0);
	}
	assert_int_equal(usage_entries(getenv("TSOCK_DIR")), 0);
}

static void a_producer_is_hit_as_it_makes_a_view(void **state)
{
	(void)state;
	src.served = heed;
	src.image = 8;
	names = points_viewing;
	for (int p = 0; names[p]; p++) {
		stop_producer(p, 1);
		kill_producer(p, 1);
	}
	src.served = NULL;
	src.image = 0;
}

static int point_of(const char *name)
{
	int p = 0;

	while (strcmp(points_producer[p], name))
		p++;
	return p;
}

/*
 * The second rank is a reader in the eyes of the producer, which dies before it
 * tells that rank: both begin where they would have begun.
 */
static void ranks_begin_together_though_one_has_not_heard_of_it(void **state)
{
	struct source first = src, next;
	struct reader r = { .src = &first,
			    .batch = 10,
			    .world = 2,
			    .between = TSOCK_BETWEEN_LEAVE };
	pid_t producer, rank[2];

	(void)state;
	first.identity = "kind=points\n";
	first.served = heed;
	names = points_producer;
	next = first;
	next.served = NULL;
	points_set(at, point_of("tsi_fdpass_reply"), 2, SIGKILL);
	producer = stream_start_producer(&first);
	for (r.rank = 0; r.rank < 2; r.rank++) {
		rank[r.rank] = proc_spawn();
		if (rank[r.rank] == 0) {
			read_part(&r);
			_exit(0);
		}
	}
	if (hit(producer, "tsi_fdpass_reply") != CLD_KILLED)
		fail_msg("the producer was not killed");
	proc_ended(producer);
	producer = stream_start_producer(&next);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(proc_ended(rank[i]), 0);
	proc_kill_and_reap(producer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_consumer_is_hit_anywhere,
					  proc_end_children),
		cmocka_unit_test_teardown(a_producer_is_hit_anywhere,
					  proc_end_children),
		cmocka_unit_test_teardown(a_producer_is_hit_as_it_makes_a_view,
					  proc_end_children),
		cmocka_unit_test_teardown(
			ranks_begin_together_though_one_has_not_heard_of_it,
			proc_end_children),
	};

	return cmocka_run_group_tests_name("points", tests, set_up, NULL);
}
