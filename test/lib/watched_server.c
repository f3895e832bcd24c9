/* SPDX-License-Identifier: MIT */
/*
 * watched_server.c - a server and a good reader, watched while others attack.
 */
#include "test/lib/watched_server.h"

#include <pthread.h>

#include "test/lib/sanitized.h"
#include "test/lib/usage.h"

#define BATCH 48

#define LONG_MS 60000 /* whatever is to come has come by then */

/* Sanitizers keep what is freed for a while. */
#define GROWTH_KIB ((SANITIZED ? 768L : 48L) * 1024)

struct source watched_src = { .name = WATCHED,
			      .n = 3000,
			      .ring = 512,
			      .max_batch = 64,
			      .payload = 3000,
			      .image = 8 };
/* All wait for this one, so that the stream is lively and not all that runs:
 * attacks, and not samples, are to keep the machine busy. */
static struct reader good = { .src = &watched_src,
			      .batch = BATCH,
			      .epochs = 1000000,
			      .flags = TSOCK_WRITABLE,
			      .hold_us = 2000 };
struct tsi_address watched_address;
static pid_t server, survivor;
static unsigned fds;
static long rss_kib;

double watched_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* ---- the server ---- */

static void *work(void *arg)
{
	stream_produce(arg, &watched_src);
	return NULL;
}

/* Until SIGTERM; then in good order. */
static pid_t start_server(void)
{
	pid_t pid = proc_spawn();
	pthread_t t[2];
	tsock_server *s;
	sigset_t set;
	int sig;

	if (pid)
		return pid;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	s = stream_serve(&watched_src);
	for (unsigned i = 0; i < 2; i++)
		need(!pthread_create(&t[i], NULL, work, s));
	sigwait(&set, &sig);
	tsock_serve_stop(s);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	tsock_serve_close(s);
	_exit(0);
}

/* The server answers, however busy the machine, and makes more samples. */
void watched_answers_and_goes_on(void)
{
	struct tsock_stats st = { .size = sizeof(st) };
	uint64_t head = 0;
	double t0 = watched_now_s();

	do {
		assert_int_equal(tsock_query(WATCHED, LONG_MS, &st), 0);
		if (!head)
			head = st.head;
		assert_int_equal(waitpid(survivor, NULL, WNOHANG), 0);
		assert_true(watched_now_s() - t0 < 2 * LONG_MS / 1000);
	} while (st.head < head + 200);
}

static void one_can_still_join(void)
{
	struct reader me = { .src = &watched_src, .batch = 7 };
	tsock *t = reader_connect(&me);
	tsock_batch *b;

	assert_int_equal(tsock_begin_timed(t, LONG_MS), 0);
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(tsock_next(t, LONG_MS, &b), 0);
		reader_check_batch(&me, b, 0);
		tsock_batch_release(b);
	}
	tsock_close(t);
}

/* As it was before the attack. */
void watched_is_as_before(void)
{
	double t0 = watched_now_s();

	watched_answers_and_goes_on();
	one_can_still_join();
	stream_wait_readers(WATCHED, 1);
	while (usage_descriptors(server) > fds) {
		assert_true(watched_now_s() - t0 < LONG_MS / 1000);
		proc_pause_us(20000);
	}
	if (getenv("TEST_VERBOSE"))
		print_message("memory %ld KiB, was %ld\n", usage_memory(server),
			      rss_kib);
	assert_true(usage_memory(server) < rss_kib + GROWTH_KIB);
}

/* An attack by another process, watched all the time. */
void watched_attacked_by(void (*attack)(void))
{
	pid_t pid = proc_spawn();
	int status = 0;

	if (pid == 0) {
		attack();
		_exit(0);
	}
	while (waitpid(pid, &status, WNOHANG) == 0)
		watched_answers_and_goes_on();
	assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
	watched_is_as_before();
}

static uint64_t dice = 1;

uint64_t watched_roll(void)
{
	return stream_mix(dice++);
}

void watched_roll_bytes(void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)watched_roll();
}

struct tsi_msg watched_join_message(void)
{
	struct tsi_msg m = { .type = TSI_JOIN, .serial = 1 };

	m.u.join.pid = (uint32_t)getpid();
	m.u.join.batch_size = 16;
	watched_roll_bytes(m.u.join.nonce, TSI_NONCE);
	return m;
}

void watched_set_up(void)
{
	struct tsock_stats st;

	server = start_server();
	survivor = reader_start(&good);
	stream_wait_readers(WATCHED, 1);
	assert_int_equal(tsi_address_find(WATCHED, &watched_address, 1), 1);
	/* Once round the ring, so that all is mapped that will be. */
	do
		st = stream_stats(WATCHED);
	while (st.head < 2 * st.capacity);
	one_can_still_join();
	stream_wait_readers(WATCHED, 1);
}

void watched_measure(void)
{
	fds = usage_descriptors(server);
	rss_kib = usage_memory(server);
}

void watched_closes_in_good_order(void **state)
{
	double t0 = watched_now_s();

	(void)state;
	assert_int_equal(waitpid(survivor, NULL, WNOHANG), 0);
	proc_kill_and_reap(survivor);
	kill(server, SIGTERM);
	assert_int_equal(proc_ended(server), 0);
	assert_true(watched_now_s() - t0 < 60.0);
	assert_int_equal(access(watched_address.fdpass, F_OK), -1);
}
