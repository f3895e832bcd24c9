/* SPDX-License-Identifier: MIT */
/*
 * watched_server.h - a server and a good reader, watched while others attack.
 *
 * Both live through all of a program's tests: the reader reads on, every sample
 * right, and the server loses neither descriptors, nor memory, nor time.
 */
#ifndef TEST_LIB_WATCHED_SERVER_H
#define TEST_LIB_WATCHED_SERVER_H

#include "test/lib/reader.h"
#include "wire/address.h"
#include "wire/msg.h"

#define WATCHED "hostile" /* the stream's name */

extern struct source watched_src;
extern struct tsi_address watched_address;

/* Start both, and let the ring be filled once. */
void watched_set_up(void);

/* What the server has now is what it may have after an attack. */
void watched_measure(void);

double watched_now_s(void);

/* The server answers, however busy the machine, and makes more samples. */
void watched_answers_and_goes_on(void);

/* As it was before the attack. */
void watched_is_as_before(void);

/* An attack by another process, watched all the time. */
void watched_attacked_by(void (*attack)(void));

/* Numbers of any kind, the same ones in every run. */
uint64_t watched_roll(void);

void watched_roll_bytes(void *to, size_t len);

/* A JOIN such as a consumer sends. */
struct tsi_msg watched_join_message(void);

/* A test, the last of all: it ends both. */
void watched_closes_in_good_order(void **state);

#endif
