/* SPDX-License-Identifier: MIT */
/*
 * mt19937.c - the 32-bit Mersenne Twister.
 */
#include "order/mt19937.h"

#define N TSI_MT_WORDS
#define M 397

static uint32_t twist(uint32_t upper, uint32_t lower, uint32_t far)
{
	uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);

	return far ^ (y >> 1) ^ (0x9908b0dfu & (0u - (y & 1)));
}

static void refill(struct tsi_mt19937 *mt)
{
	uint32_t *s = mt->state;
	unsigned i;

	for (i = 0; i < N - M; i++)
		s[i] = twist(s[i], s[i + 1], s[i + M]);
	for (; i < N - 1; i++)
		s[i] = twist(s[i], s[i + 1], s[i + M - N]);
	s[N - 1] = twist(s[N - 1], s[0], s[M - 1]);
	mt->next = 0;
}

void tsi_mt19937_seed(struct tsi_mt19937 *mt, uint32_t seed)
{
	mt->state[0] = seed;
	for (uint32_t i = 1; i < N; i++) {
		uint32_t prev = mt->state[i - 1];

		mt->state[i] = 1812433253u * (prev ^ (prev >> 30)) + i;
	}
	mt->next = N;
}

uint32_t tsi_mt19937_next(struct tsi_mt19937 *mt)
{
	uint32_t y;

	if (mt->next >= N)
		refill(mt);
	y = mt->state[mt->next++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

void tsi_mt19937_skip(struct tsi_mt19937 *mt, uint64_t count)
{
	while (count > 0) {
		uint64_t left = N - mt->next;
		uint64_t step = count < left ? count : left;

		mt->next += (uint32_t)step;
		count -= step;
		if (count > 0)
			refill(mt);
	}
}
