/* SPDX-License-Identifier: MIT */
/*
 * fuzz_msg.c - whatever unpack lets through can be packed again, to as many
 * bytes, and means the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What stands behind a text's NUL is ignored, so compare messages. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[TSI_MSG_MAX], again[TSI_MSG_MAX];
	static struct tsi_msg m, n;
	size_t len;

	if (tsi_msg_unpack(data, size, &m))
		return 0;
	len = tsi_msg_pack(&m, bytes);
	if (len != size || tsi_msg_unpack(bytes, len, &n) ||
	    tsi_msg_pack(&n, again) != len || memcmp(bytes, again, len))
		abort();
	return 0;
}
