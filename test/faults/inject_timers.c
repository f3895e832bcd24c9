/* SPDX-License-Identifier: MIT */
/*
 * inject_timers.c - waits of our own objects that don't end by themselves.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "test/faults/inject.h"
#include "wire/zmq.h"

#define NEVER_MS 3600000 /* an hour: longer than any test */
#define FAILS_MS 60000   /* then a test learns that nothing comes */

/* In memory that the test and its processes share. */
static struct {
	_Atomic bool stopped;
	_Atomic unsigned polls; /* begun since */
} * timers;

bool inject_share_timers(void)
{
	timers = mmap(NULL, sizeof(*timers), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return timers != MAP_FAILED;
}

void inject_stop_timers(void)
{
	atomic_store(&timers->polls, 0);
	atomic_store(&timers->stopped, true);
}

void inject_start_timers(void)
{
	atomic_store(&timers->stopped, false);
}

unsigned inject_untimed_polls(void)
{
	return atomic_load(&timers->polls);
}

static bool stopped(void)
{
	return timers && atomic_load(&timers->stopped);
}

static int limit(int timeout_ms, int longest_ms)
{
	return stopped() && timeout_ms ? longest_ms : timeout_ms;
}

int __real_tsi_zmq_poll(struct tsi_channel *ch, struct pollfd *fds,
			unsigned nfds, int timeout_ms, bool *ready);
int __wrap_tsi_zmq_poll(struct tsi_channel *ch, struct pollfd *fds,
			unsigned nfds, int timeout_ms, bool *ready);
int __wrap_tsi_zmq_poll(struct tsi_channel *ch, struct pollfd *fds,
			unsigned nfds, int timeout_ms, bool *ready)
{
	if (stopped())
		atomic_fetch_add(&timers->polls, 1);
	return __real_tsi_zmq_poll(ch, fds, nfds, limit(timeout_ms, NEVER_MS),
				   ready);
}

void __real_tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
			   int timeout_ms);
void __wrap_tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
			   int timeout_ms);
void __wrap_tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
			   int timeout_ms)
{
	__real_tsi_futex_wait(word, value, limit(timeout_ms, FAILS_MS));
}

void __real_tsi_futex_wait_bits(const _Atomic uint32_t *word, uint32_t value,
				uint32_t bits, int timeout_ms);
void __wrap_tsi_futex_wait_bits(const _Atomic uint32_t *word, uint32_t value,
				uint32_t bits, int timeout_ms);
void __wrap_tsi_futex_wait_bits(const _Atomic uint32_t *word, uint32_t value,
				uint32_t bits, int timeout_ms)
{
	__real_tsi_futex_wait_bits(word, value, bits,
				   limit(timeout_ms, FAILS_MS));
}

int __real_tsi_thread_wait(pthread_cond_t *c, pthread_mutex_t *lock,
			   int64_t until_ns);
int __wrap_tsi_thread_wait(pthread_cond_t *c, pthread_mutex_t *lock,
			   int64_t until_ns);
int __wrap_tsi_thread_wait(pthread_cond_t *c, pthread_mutex_t *lock,
			   int64_t until_ns)
{
	if (stopped())
		until_ns = INT64_MAX;
	return __real_tsi_thread_wait(c, lock, until_ns);
}
