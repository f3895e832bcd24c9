/* SPDX-License-Identifier: MIT */
/*
 * find.c - at which of the addresses of a stream's name a producer listens.
 */
#include "consumer/find.h"

#include "base/err.h"
#include "base/log.h"
#include "consumer/running.h"
#include "wire/fdpass.h"

#define FOLDERS (TSI_ADDRESSES * (TSI_SOCKET_PATH + 5))
#define RUNNING 256

const struct tsi_address *tsi_find_listening(const struct tsi_address *p, int n,
					     int *err)
{
	*err = 0;
	for (int i = 0; i < n; i++) {
		int there = tsi_fdpass_listening(tsi_address_fdpass(&p[i]));

		if (there > 0)
			return &p[i];
		if (there < 0)
			*err = there;
	}
	return NULL;
}

void tsi_find_log(const struct tsi_address *p, int n)
{
	char folders[FOLDERS], running[RUNNING];

	tsi_address_folders(p, (unsigned)n, folders, sizeof(folders));
	tsi_running(running, sizeof(running));
	tsi_log(TSOCK_LOG_INFO, "waiting for producer %s at %s%s",
		tsi_address_name(p), folders, running);
}

int tsi_find_err(const struct tsi_address *p, int n, int64_t waited_ms)
{
	char folders[FOLDERS], running[RUNNING];

	tsi_address_folders(p, (unsigned)n, folders, sizeof(folders));
	tsi_running(running, sizeof(running));
	return tsi_err(TSOCK_ENOPROD,
		       "no producer serves '%s' (looked in %s for %.1f s): "
		       "start one with tsock-producer --name %s%s",
		       tsi_address_name(&p[0]), folders,
		       (double)waited_ms / 1e3, tsi_address_name(&p[0]),
		       running);
}
