/* SPDX-License-Identifier: MIT */
/*
 * lane.c - the codes of several rows, in turns, for any processor.
 */
#include "jpeg/lane.h"

#include "jpeg/lane_turns.h"

int tsi_lane_run_scalar(const struct tsi_lanes *c, struct tsi_lane **lane,
			int n)
{
	return run(c, lane, n);
}

bool tsi_lane_begin_block(const struct tsi_lanes *c, struct tsi_lane *l)
{
	return begin_block(c, l);
}
