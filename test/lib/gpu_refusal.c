/* SPDX-License-Identifier: MIT */
/*
 * gpu_refusal.c - children whose GPU refuses a call.
 */
#include "test/lib/gpu_refusal.h"

bool gpu_refusal_lacks_simulation(void)
{
	if (simcuda_live && !tsi_gpu_count(&gpu_child_gpus))
		return false;
	puts("needs the simulation, on which a GPU fails on demand: make "
	     "CUDA=sim");
	return true;
}

void gpu_refusal_say(int err)
{
	bool left = err != TSOCK_ESTREAM && cudaGetLastError() != 0;

	printf("%d %s%s", err, err ? tsock_errmsg() : "",
	       left ? " (and CUDA's last error is set)" : "");
}

void gpu_refusal_expect(const char *env, const char *what, const char *first,
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
	rc = gpu_child_run(argv, envs, out, sizeof(out));
	if (rc != 0 || strncmp(out, first, strlen(first)) != 0 ||
	    !strstr(out, then) || strstr(out, "last error is set"))
		fail_msg("%s with %s: exit code %d and \"%s\"; expected "
			 "\"%s...%s\"",
			 what, env, rc, out, first, then);
}
