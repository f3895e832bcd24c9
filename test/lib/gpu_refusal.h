/* SPDX-License-Identifier: MIT */
/*
 * gpu_refusal.h - tests of a GPU that refuses: a child makes some calls while
 * its environment tells the simulation which of them fails, and prints
 * "CODE MESSAGE".
 */
#ifndef TEST_LIB_GPU_REFUSAL_H
#define TEST_LIB_GPU_REFUSAL_H

#include "base/err.h"
#include "test/lib/gpu_child.h"

/* In main(), after gpu_child_main(): prints why the tests are skipped. */
bool gpu_refusal_lacks_simulation(void);

/* What a lost context left behind, CUDA itself can't clear. */
void gpu_refusal_say(int err);

/*
 * A child with env ("NAME=VALUE") in its environment has to print a text that
 * begins with first and contains then, and leave CUDA's last error clear.  The
 * child is "do" with what as its argument, or "count" or "devices" itself.
 */
void gpu_refusal_expect(const char *env, const char *what, const char *first,
			const char *then);

#endif
