/* SPDX-License-Identifier: MIT */
/*
 * soxr.c - another sample rate, by libsoxr.
 */
#include "audio/soxr.h"

#include <soxr.h>
#include <string.h>

#include "base/err.h"

bool tsi_soxr_is_there(void)
{
	return true;
}

/* libsoxr's handle alone: it needs nothing beside. */
static soxr_t handle(struct tsi_soxr *s)
{
	return (soxr_t)(void *)s;
}

int tsi_soxr_open(uint32_t from, uint32_t to, uint32_t channels,
		  struct tsi_soxr **out)
{
	soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
	soxr_io_spec_t io = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
	soxr_runtime_spec_t runtime = soxr_runtime_spec(1);
	soxr_error_t err = NULL;
	soxr_t s =
		soxr_create(from, to, channels, &err, &io, &quality, &runtime);

	if (!s && err && strstr(err, "malloc"))
		return tsi_err(TSOCK_ENOMEM, "no memory to resample");
	if (!s)
		return tsi_err(TSOCK_EDATA,
			       "can't resample from %u Hz to %u: %s", from, to,
			       err ? err : "no reason is known");
	*out = (struct tsi_soxr *)(void *)s;
	return 0;
}

void tsi_soxr_close(struct tsi_soxr *s)
{
	if (s)
		soxr_delete(handle(s));
}

int tsi_soxr_run(struct tsi_soxr *s, const float *in, size_t *n, float *out,
		 size_t room, size_t *given)
{
	size_t taken = 0;
	soxr_error_t err =
		soxr_process(handle(s), in, *n, &taken, out, room, given);

	if (err)
		return tsi_err(TSOCK_ESYS, "libsoxr: %s", err);
	*n = taken;
	return 0;
}
