/* SPDX-License-Identifier: MIT */
/*
 * simd.c - the processor's levels of vector instructions, asked for once.
 */
#include "base/simd.h"

#include <pthread.h>

#include "base/err.h"

static struct tsi_simd_levels levels = {
	.best = TSI_SIMD_SCALAR,
	.name = { "scalar" },
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void ask_processor(void)
{
	TSI_SIMD_INIT(tsi_simd_init, &levels, TSI_SIMD_BEST);
}

enum tsi_simd tsi_simd_best(void)
{
	pthread_once(&once, ask_processor);
	return levels.best;
}

const char *tsi_simd_name(enum tsi_simd level)
{
	return level <= tsi_simd_best() ? levels.name[level] : "none";
}

int tsi_simd_choose(enum tsi_simd wish, enum tsi_simd *level)
{
	enum tsi_simd best = tsi_simd_best();

	if (wish != TSI_SIMD_BEST && wish > best)
		return tsi_err(TSOCK_ENOTSUP,
			       "this processor or this build lacks the vector "
			       "instructions that were asked for");
	*level = wish == TSI_SIMD_BEST ? best : wish;
	return 0;
}
