/* SPDX-License-Identifier: MIT */
/*
 * philox.c - the one file that includes Random123.
 */
#include "base/philox.h"

#include <Random123/philox.h>

struct tsi_philox_ctr tsi_philox(uint64_t key, struct tsi_philox_ctr ctr)
{
	philox4x32_ctr_t c = { { ctr.v[0], ctr.v[1], ctr.v[2], ctr.v[3] } };
	philox4x32_key_t k = { { (uint32_t)key, (uint32_t)(key >> 32) } };
	philox4x32_ctr_t r = philox4x32(c, k);

	return (struct tsi_philox_ctr){ { r.v[0], r.v[1], r.v[2], r.v[3] } };
}
