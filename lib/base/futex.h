/*
 * futex.h - sleep on a word that another process writes.
 *
 * Shared futexes only: FUTEX_PRIVATE_FLAG never wakes across processes.  A
 * read-only mapping is enough to wait on (Linux 3.1).
 */
#ifndef TSI_BASE_FUTEX_H
#define TSI_BASE_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Sleep while *word == value, at most timeout_ms.  Returns after a wake, a
 * timeout, a signal, or at once if the word differs; the caller looks again.
 */
void tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
		    int timeout_ms);

/* Wake everybody who sleeps on word. */
void tsi_futex_wake(const _Atomic uint32_t *word);

#endif
