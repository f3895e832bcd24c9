/* SPDX-License-Identifier: MIT */
/*
 * field.c - the memory of a field's values.
 */
#include "base/field.h"

#include "tsock/common.h"

uint64_t tsi_field_bytes(const struct tsock_field *f)
{
	uint64_t n = tsock_dtype_size(f->dtype);

	if (f->ndim > TSOCK_MAX_DIMS)
		return 0;
	for (unsigned i = 0; i < f->ndim; i++)
		if (__builtin_mul_overflow(n, f->shape[i], &n))
			return 0;
	return n;
}
