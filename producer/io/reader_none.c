/*
 * reader_none.c - in place of reader_uring.c in a build without liburing.
 */
#include "io/reader_impl.h"

#include "base/err.h"

int tsi_file_reader_uring_create(unsigned depth, struct tsi_file_reader **out)
{
	(void)depth;
	(void)out;
	return tsi_err(TSOCK_ENOTSUP, "built without liburing");
}

bool tsi_file_reader_has_uring(void)
{
	return false;
}
