/* SPDX-License-Identifier: MIT */
/*
 * membership_fixture.h - a stream of one ring or several, whose workers and
 * stages do all that they may at once.
 */
#ifndef TEST_LIB_MEMBERSHIP_FIXTURE_H
#define TEST_LIB_MEMBERSHIP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "serve/membership.h"

extern struct tsi_membership membership_m;

void membership_make(uint64_t n, uint64_t w, uint64_t c, uint64_t end);

struct tsi_joined membership_join(uint32_t how, uint64_t after);

/* Fill and publish all that may be filled. */
uint64_t membership_fill(void);

/* A view of the base ring, and one that is made of that view. */
void membership_make_chain(uint64_t n, uint64_t w, uint64_t c, bool needs_base);

/* Views as in a stream with float32 and bfloat16 readers, and a GPU's. */
void membership_make_views(uint64_t n, uint64_t w, uint64_t c, uint64_t end);

struct tsi_joined membership_join_view(unsigned view, uint64_t after);

/* One that stays a reader between two epochs. */
struct tsi_joined membership_hold_view(unsigned view, uint64_t after);

/* The view's stage makes so many samples more, as it may; the first of them. */
uint64_t membership_stage(unsigned view, unsigned count);

/* All stages have done all that they may. */
void membership_fill_all(void);

/* A reader reads 64 samples at a time, and all stages follow. */
void membership_read_on(unsigned id, uint64_t from, uint64_t to);

#endif
