/* SPDX-License-Identifier: MIT */
/*
 * thread.h - starting the library's own threads, and how they wait.
 */
#ifndef TSI_BASE_THREAD_H
#define TSI_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

/*
 * Start a thread with every signal blocked but those of a fault of its own
 * (SIGBUS, SIGSEGV, SIGILL, SIGFPE): no other handler of the user's runs in it.
 * Fails with ESYS; tsi_thread_try() with an errno, and no message.
 */
int tsi_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);
int tsi_thread_try(pthread_t *t, void *(*fn)(void *), void *arg);

/*
 * Block every signal for the calling thread, and for the threads that others'
 * code starts in it; then have those again that were not blocked before.
 */
void tsi_thread_block_signals(sigset_t *before);
void tsi_thread_restore_signals(const sigset_t *before);

/*
 * Name the calling thread, for `top -H`, ps and debuggers: at most 15 bytes, of
 * which the kernel keeps a copy.
 */
void tsi_thread_name(const char *name);

/* A condition variable for tsi_thread_wait(): its clock never steps. */
void tsi_thread_cond_init(pthread_cond_t *c);

/*
 * Wait for c, which tsi_thread_cond_init() has made, until tsi_now_ns() is
 * until_ns.  Returns what pthread_cond_timedwait() does.
 */
int tsi_thread_wait(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ns);

#endif
