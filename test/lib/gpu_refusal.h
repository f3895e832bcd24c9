/* SPDX-License-Identifier: MIT */
/*
 * gpu_refusal.h - tests of a GPU that refuses: a child makes some calls while
 * its environment tells the simulation which of them fails, and prints
 * "CODE MESSAGE".
 *
 * Included by test programs, after cmocka.
 */
#ifndef TEST_LIB_GPU_REFUSAL_H
#define TEST_LIB_GPU_REFUSAL_H

#include "base/err.h"
#include "test/lib/gpu_child.h"

/* In main(), after child_main(): prints why the tests are skipped. */
static inline bool lacks_simulation(void)
{
	if (simcuda_live && !tsi_gpu_count(&ngpus))
		return false;
	puts("needs the simulation, on which a GPU fails on demand: make "
	     "CUDA=sim");
	return true;
}

/* What a lost context left behind, CUDA itself can't clear. */
static inline void say(int err)
{
	bool left = err != TSOCK_ESTREAM && cudaGetLastError() != 0;

	printf("%d %s%s", err, err ? tsock_errmsg() : "",
	       left ? " (and CUDA's last error is set)" : "");
}

/*
 * A child with env ("NAME=VALUE") in its environment has to print a text that
 * begins with first and contains then, and leave CUDA's last error clear.  The
 * child is "do" with what as its argument, or "count" or "devices" itself.
 */
static inline void expect(const char *env, const char *what, const char *first,
			  const char *then)
{
	const char *envs[] = { env, NULL };
	char *argv[] = { (char *)"do", (char *)what, NULL };
	char out[900];
	int rc;

	if (strcmp(what, "count") == 0 || strcmp(what, "devices") == 0) {
		argv[0] = (char *)what;
		argv[1] = NULL;
	}
	rc = child_run(argv, envs, out, sizeof(out));
	if (rc != 0 || strncmp(out, first, strlen(first)) != 0 ||
	    !strstr(out, then) || strstr(out, "last error is set"))
		fail_msg("%s with %s: exit code %d and \"%s\"; expected "
			 "\"%s...%s\"",
			 what, env, rc, out, first, then);
}

#endif
