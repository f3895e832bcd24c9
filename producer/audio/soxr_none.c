/* SPDX-License-Identifier: MIT */
/*
 * soxr_none.c - in place of soxr.c in a build without libsoxr.
 */
#include "audio/soxr.h"

#include "base/err.h"

bool tsi_soxr_is_there(void)
{
	return false;
}

int tsi_soxr_open(uint32_t from, uint32_t to, uint32_t channels,
		  struct tsi_soxr **out)
{
	(void)channels;
	(void)out;
	return tsi_err(TSOCK_ENOTSUP,
		       "this tsock-producer was built without libsoxr and "
		       "can't resample from %u Hz to %u: install libsoxr's "
		       "headers and build it again",
		       from, to);
}

void tsi_soxr_close(struct tsi_soxr *s)
{
	(void)s;
}

int tsi_soxr_run(struct tsi_soxr *s, const float *in, size_t *n, float *out,
		 size_t room, size_t *given)
{
	(void)s;
	(void)in;
	(void)n;
	(void)out;
	(void)room;
	(void)given;
	return tsi_err(TSOCK_ENOTSUP, "built without libsoxr");
}
