/* SPDX-License-Identifier: MIT */
/*
 * philox.c - the one file that includes Random123; and many counters at once,
 * by AVX2 where the processor has it.
 */
#include "base/philox.h"

#include <pthread.h>

#include <Random123/philox.h>

#include "base/philox_kernel.h"

static struct tsi_philox_kernel kernel;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct tsi_philox_ctr tsi_philox(uint64_t key, struct tsi_philox_ctr ctr)
{
	philox4x32_ctr_t c = { { ctr.v[0], ctr.v[1], ctr.v[2], ctr.v[3] } };
	philox4x32_key_t k = { { (uint32_t)key, (uint32_t)(key >> 32) } };
	philox4x32_ctr_t r = philox4x32(c, k);

	return (struct tsi_philox_ctr){ { r.v[0], r.v[1], r.v[2], r.v[3] } };
}

static void run(uint64_t key, struct tsi_philox_ctr ctr, unsigned n,
		struct tsi_philox_ctr *out)
{
	for (unsigned i = 0; i < n; i++, ctr.v[0]++)
		out[i] = tsi_philox(key, ctr);
}

void tsi_philox_kernel_init(struct tsi_philox_kernel *k, enum tsi_simd level)
{
	k->run = run;
	TSI_SIMD_INIT(tsi_philox_kernel_init, k, level);
}

static void fill_kernel(void)
{
	tsi_philox_kernel_init(&kernel, tsi_simd_best());
}

void tsi_philox_run(uint64_t key, struct tsi_philox_ctr ctr, unsigned n,
		    struct tsi_philox_ctr *out)
{
	pthread_once(&once, fill_kernel);
	kernel.run(key, ctr, n, out);
}
