/* SPDX-License-Identifier: MIT */
/*
 * futex.h - sleep on a word that another process writes.
 *
 * The futexes are shared ones, since FUTEX_PRIVATE_FLAG doesn't wake other
 * processes.  A read-only mapping is enough to wait (Linux 3.1).
 */
#ifndef TSI_RING_FUTEX_H
#define TSI_RING_FUTEX_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * Sleep while *word == value, at most timeout_ms.  Returns at once if the word
 * has another value, else after a wake-up, a timeout or a signal; the caller
 * then checks its condition again.
 */
void tsi_futex_wait(const _Atomic uint32_t *word, uint32_t value,
		    int timeout_ms);

/* Wake all that sleep on word. */
void tsi_futex_wake(const _Atomic uint32_t *word);

/* The same for a word that sleepers share: one sleeps until it is woken for one
 * of its bits. */
void tsi_futex_wait_bits(const _Atomic uint32_t *word, uint32_t value,
			 uint32_t bits, int timeout_ms);
void tsi_futex_wake_bits(const _Atomic uint32_t *word, uint32_t bits);

#endif
