/*
 * thread.h - starting the library's own threads.
 */
#ifndef TSI_BASE_THREAD_H
#define TSI_BASE_THREAD_H

#include <pthread.h>

/* Start a thread with every signal blocked: handlers run in the caller's. */
int tsi_thread_start(pthread_t *t, void *(*fn)(void *), void *arg);

#endif
