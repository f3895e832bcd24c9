/* SPDX-License-Identifier: MIT */
/*
 * test_resume_time.c - how long a reader waits for its next batch once the next
 * producer is up.
 *
 * TSOCK_KILLS is the number of producers that are killed.
 */
#include <math.h>
#include <sys/mman.h>

#include "test/lib/reader.h"
#include "test/lib/sanitized.h"

#define LONG_MS 60000
#define FEW 96  /* samples of a producer that is killed */
#define TRIES 2 /* of a kind, and so many if none was quick: */
#define MOST 20 /* somebody may have got no CPU */
#define LIMIT_S (SANITIZED ? 20.0 : 1.0) /* sanitizers tell no time */

/* What another reader does when the producer dies; one that is busy with its
 * batch doesn't ask the next one for more. */
enum other { NONE, WAITS, DIED, BUSY, OTHERS };
static const char *const names[] = { "alone", "beside one that waits too",
				     "beside one that has died",
				     "beside one that is busy" };

static struct {
	_Atomic int64_t up_ns; /* when the next producer was up */
} * shared;

static char name[32]; /* another one each time: nothing is recorded of it */

static struct source src = { .name = name,
			     .n = 2000,
			     .ring = 256,
			     .max_batch = 16,
			     .payload = 400,
			     .identity = "kind=test\n" };

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void make_few(tsock_server *s, const struct source *source)
{
	uint64_t first;

	while (tsock_serve_claim(s, 1, -1, &first) == 1 && first < FEW) {
		stream_write_sample(s, source, first);
		tsock_serve_commit(s, first, 1);
	}
	for (;;)
		pause();
}

static void note_up(tsock_server *s, const struct source *source)
{
	(void)s;
	(void)source;
	shared->up_ns = now_ns();
}

/* The next producer; it begins when a byte is written to *go. */
static pid_t prepare_next(int *go)
{
	struct source next = src;
	int fd[2];
	pid_t pid;

	assert_int_equal(pipe(fd), 0);
	next.go = fd[0];
	next.served = note_up;
	pid = stream_start_producer(&next);
	close(fd[0]);
	*go = fd[1];
	return pid;
}

static pid_t start_other(enum other kind)
{
	struct reader r = { .src = &src, .batch = 16, .epochs = 1000000 };
	pid_t pid;

	if (kind == NONE)
		return 0;
	pid = reader_start(&r);
	stream_wait_readers(src.name, 1);
	return pid;
}

/* The producer dies last, so what it has recorded of the other one stays. */
static void kill_producer(pid_t producer, pid_t other, enum other kind)
{
	kill(producer, SIGSTOP);
	if (kind == DIED)
		proc_kill_and_reap(other);
	if (kind == BUSY)
		kill(other, SIGSTOP);
	proc_kill_and_reap(producer);
}

/* All that the dead one has made; next: the first sample that it has not. */
static tsock_batch *read_on(tsock *t, uint64_t *next)
{
	tsock_batch *b;

	for (;;) {
		assert_int_equal(tsock_next(t, LONG_MS, &b), 0);
		assert_int_equal(tsock_batch_seq(b), *next);
		*next += tsock_batch_count(b);
		if (*next > FEW)
			return b;
		tsock_batch_release(b);
	}
}

static double seconds_to_resume(enum other kind)
{
	struct reader me = { .src = &src, .batch = 16 };
	struct source first = src;
	static unsigned tries;
	uint64_t next = 0;
	pid_t producer, successor, other;
	tsock_batch *b;
	tsock *t;
	double took;
	int go;

	snprintf(name, sizeof(name), "time%u", tries++);
	successor = prepare_next(&go);
	first.served = make_few;
	producer = stream_start_producer(&first);
	other = start_other(kind);
	t = reader_connect(&me);
	assert_int_equal(tsock_begin_timed(t, LONG_MS), 0);
	kill_producer(producer, other, kind);
	assert_int_equal(write(go, "", 1), 1);
	b = read_on(t, &next);
	took = (double)(now_ns() - shared->up_ns) * 1e-9;
	reader_check_batch(&me, b, 0);
	tsock_batch_release(b);
	tsock_close(t);
	close(go);
	if (kind == WAITS || kind == BUSY)
		proc_kill_and_reap(other);
	proc_kill_and_reap(successor);
	return took;
}

static int shorter_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void try(enum other kind, unsigned tries)
{
	double *took = calloc(tries + MOST, sizeof(*took)), least = INFINITY;
	unsigned n = 0;

	assert_non_null(took);
	while (n < tries || (least > LIMIT_S && n < MOST)) {
		took[n] = seconds_to_resume(kind);
		least = fmin(least, took[n++]);
	}
	qsort(took, n, sizeof(*took), shorter_first);
	print_message("%s: %u producers killed; from the next one's start to "
		      "the next batch: median %.2f s, longest %.2f s\n",
		      names[kind], n, took[n / 2], took[n - 1]);
	free(took);
	if (least > LIMIT_S)
		fail_msg("%s: it takes %.1f s at least", names[kind], least);
}

static void a_reader_has_its_next_batch_within_a_second(void **state)
{
	const char *kills = getenv("TSOCK_KILLS");
	unsigned each = kills ? ((unsigned)atoi(kills) + 3) / OTHERS : TRIES;

	(void)state;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(shared != MAP_FAILED);
	for (enum other k = 0; k < OTHERS; k++)
		try(k, each);
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(
			a_reader_has_its_next_batch_within_a_second,
			proc_end_children),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("resume_time", tests, NULL, NULL);
}
