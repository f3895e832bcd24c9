/* SPDX-License-Identifier: MIT */
/*
 * version.c - what the library says of itself: constants, no state.
 */
#include "tsock/tsock.h"

#define TEXT(x) #x
#define DOTTED(a, b, c) TEXT(a) "." TEXT(b) "." TEXT(c)

uint32_t tsock_abi_version(void)
{
	return (uint32_t)TSOCK_VERSION_MAJOR << 16 | TSOCK_VERSION_MINOR << 8 |
	       TSOCK_VERSION_PATCH;
}

const char *tsock_version_string(void)
{
	return DOTTED(TSOCK_VERSION_MAJOR, TSOCK_VERSION_MINOR,
		      TSOCK_VERSION_PATCH);
}

size_t tsock_dtype_size(uint32_t dtype)
{
	switch (dtype) {
	case TSOCK_U8:
	case TSOCK_I8:
	case TSOCK_BOOL:
		return 1;
	case TSOCK_F16:
	case TSOCK_BF16:
	case TSOCK_I16:
	case TSOCK_U16:
		return 2;
	case TSOCK_I32:
	case TSOCK_U32:
	case TSOCK_F32:
		return 4;
	case TSOCK_I64:
	case TSOCK_U64:
	case TSOCK_F64:
		return 8;
	default:
		return 0;
	}
}
