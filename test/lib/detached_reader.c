/* SPDX-License-Identifier: MIT */
#include "test/lib/detached_reader.h"
#include "test/lib/steady_reader.h"

struct source detached_source(const char *name)
{
	return (struct source){ .name = name,
				.n = 1000,
				.ring = 64,
				.max_batch = 16,
				.payload = 3000,
				.image = 8,
				.slow_ms = DETACH_MS,
				.detach = true };
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void check_all(const struct reader *r, const tsock_batch *b)
{
	reader_check_batch(r, b, 0);
	if (r->floats)
		steady_reader_check_floats(r, b);
}

void detached_trail_step(struct trail *w, const tsock *t, const tsock_batch *b)
{
	uint64_t seq = tsock_batch_seq(b);

	if (w->begun) {
		need(seq >= w->next);
		w->missed += seq - w->next;
	}
	need(tsock_missed(t) == w->missed);
	w->begun = true;
	w->next = seq + tsock_batch_count(b);
}

tsock_batch *detached_trail_take(const struct reader *r, tsock *t,
				 struct trail *w)
{
	tsock_batch *b;
	int err = tsock_next(t, -1, &b);

	while (err == TSOCK_EEPOCH) {
		need(tsock_begin(t) == 0);
		err = tsock_next(t, -1, &b);
	}
	if (err)
		die("next: %s", tsock_errmsg());
	detached_trail_step(w, t, b);
	check_all(r, b);
	return b;
}

pid_t detached_await_stop(pid_t pid)
{
	int status;

	need(waitpid(pid, &status, WUNTRACED) == pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

pid_t detached_start_stopping(const struct reader *r, unsigned held,
			      bool misses)
{
	pid_t pid = proc_spawn();
	tsock_batch *b[8];
	struct trail w = { 0 };
	tsock *t;

	if (pid)
		return detached_await_stop(pid);
	t = reader_connect(r);
	need(tsock_begin(t) == 0);
	for (unsigned i = 0; i < held; i++)
		b[i] = detached_trail_take(r, t, &w);
	raise(SIGSTOP);
	for (unsigned i = 0; i < held; i++) {
		check_all(r, b[i]);
		tsock_batch_release(b[i]);
	}
	for (unsigned i = 0; i < 100; i++)
		tsock_batch_release(detached_trail_take(r, t, &w));
	need(misses == (w.missed > 0));
	tsock_close(t);
	_exit(0);
}

double detached_read_ahead(tsock *t, const struct reader *r, struct trail *w,
			   uint64_t samples)
{
	uint64_t until = w->next + samples;
	double longest = 0;

	while (w->next < until) {
		double t0 = now_s(), waited;
		tsock_batch *b = detached_trail_take(r, t, w);

		waited = now_s() - t0;
		longest = waited > longest ? waited : longest;
		tsock_batch_release(b);
	}
	return longest;
}

void detached_read_until_ended(tsock *t, const struct reader *r,
			       struct trail *w, pid_t pid)
{
	while (!proc_has_ended(pid))
		detached_read_ahead(t, r, w, 16);
	assert_int_equal(proc_ended(pid), 0);
}
