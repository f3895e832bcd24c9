/* SPDX-License-Identifier: MIT */
/*
 * lane_avx2.c - the codes of several rows, in turns, with the instructions
 * for bits that processors with AVX2 have.
 */
#include "jpeg/x86/init.h"

#include "jpeg/lane_turns.h"

__attribute__((target("avx2,bmi,bmi2,movbe"))) int
tsi_lane_run_avx2(const struct tsi_lanes *c, struct tsi_lane **lane, int n)
{
	return run(c, lane, n);
}
