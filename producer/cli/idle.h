/* SPDX-License-Identifier: MIT */
/*
 * idle.h - does a process still read the stream, or may it soon?
 *
 * A loader that is connected may become a reader, or be between two epochs, so
 * the stream isn't idle.  A process that asks for statistics is connected for a
 * moment too, so connections count when they are seen twice.
 *
 * Pure: the caller looks, and says when.
 */
#ifndef TSI_CLI_IDLE_H
#define TSI_CLI_IDLE_H

#include <stdbool.h>
#include <stdint.h>

/* Jobs that are started together with the producer have Python to load first,
 * so the first reader is waited for for so long at least. */
#define TSI_IDLE_FIRST_MS 120000

struct tsi_idle {
	int64_t busy_ms;   /* when there was a consumer, or the start */
	int64_t looked_ms; /* when connections were counted last ... */
	int connected;     /* ... and how many there were */
	bool deserted;     /* no reader, and twice no connection */
	bool had_reader;   /* ever */
	bool said;         /* that an idle stream stays for loaders */
};

/* The stream begins: nobody was there yet, or those of the one before. */
void tsi_idle_begin(struct tsi_idle *i, int64_t now_ms);

/* Note how many consumers read now; read: or have read. */
void tsi_idle_readers(struct tsi_idle *i, uint32_t readers, bool read,
		      int64_t now_ms);

/* Nobody reads: is it time to count connections? */
bool tsi_idle_due(const struct tsi_idle *i, int64_t now_ms);

/* Note how many consumers there are.  True, once: the stream stays for them. */
bool tsi_idle_connections(struct tsi_idle *i, int connected, int64_t now_ms);

/* Has nobody been there for so long that the stream ends? */
bool tsi_idle_over(const struct tsi_idle *i, uint64_t limit_ms, int64_t now_ms);

#endif
