/* SPDX-License-Identifier: MIT */
/*
 * reader_none.c - in place of reader_uring.c in a build without liburing.
 */
#include "io/backend.h"

#include "base/err.h"

static int none_create(struct tsi_io_slot *slot, unsigned depth, void **out)
{
	(void)slot;
	(void)depth;
	(void)out;
	return tsi_err(TSOCK_ENOTSUP, "built without liburing");
}

const struct tsi_io_backend tsi_io_uring = {
	.name = "io_uring",
	.create = none_create,
};
