/* SPDX-License-Identifier: MIT */
/*
 * devices.c - the GPUs of this process, for people.
 */
#include <stdio.h>

#include "base/err.h"
#include "mem/gpu.h"

static void describe(unsigned device, const struct tsi_gpu_info *g, char *line,
		     size_t size)
{
	char uuid[2 * TSI_UUID + 1];

	for (unsigned i = 0; i < TSI_UUID; i++)
		snprintf(uuid + 2 * i, 3, "%02x", g->uuid[i]);
	snprintf(line, size,
		 "GPU %u  %s  %s  %llu MiB, %llu MiB free  shared by %s%s",
		 device, g->name, uuid,
		 (unsigned long long)(g->total_bytes >> 20),
		 (unsigned long long)(g->free_bytes >> 20),
		 g->vmm_fd       ? "vmm"
		 : g->legacy_ipc ? "legacy"
				 : "staged copies",
		 g->mig ? "  MIG (a process sees one instance, and no "
			  "other GPU)"
			: "");
}

int tsock_devices(void (*fn)(void *arg, const char *line), void *arg)
{
	unsigned n = 0;
	char line[256];

	if (!fn)
		return tsi_err(TSOCK_EARG, "tsock_devices: fn is NULL");
	if (tsi_gpu_count(&n)) {
		fn(arg, tsock_errmsg());
		return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		struct tsi_gpu_info info;

		if (tsi_gpu_info(i, &info))
			snprintf(line, sizeof(line), "GPU %u  %s", i,
				 tsock_errmsg());
		else
			describe(i, &info, line, sizeof(line));
		fn(arg, line);
	}
	return (int)n;
}
