/* SPDX-License-Identifier: MIT */
/*
 * cuda_fp16.h - float16 for kernels.cu as plain functions.
 */
#ifndef ONHOST_CUDA_FP16_H
#define ONHOST_CUDA_FP16_H

#include <cmath>
#include <unordered_map>

/* Nearest of all, ties to even: by trying, so that it can't be wrong alike. */
static inline unsigned short __float2half_rn(float f)
{
	static std::unordered_map<float, unsigned short> known;
	double x = std::fabs(static_cast<double>(f)), best = INFINITY;
	unsigned found = 0;
	auto before = known.find(f);

	if (before != known.end())
		return before->second;
	for (unsigned bits = 0; bits <= 0x7c00; bits++) {
		int exp = static_cast<int>(bits >> 10);
		double mant = bits & 0x3ff;
		double v = exp ? std::ldexp(1024 + mant, exp - 25)
			       : std::ldexp(mant, -24);
		double off = std::fabs(v - x);

		if (off < best || (off == best && !(bits & 1))) {
			best = off;
			found = bits;
		}
	}
	return known[f] = static_cast<unsigned short>(
		       found | (std::signbit(f) ? 0x8000 : 0));
}

static inline unsigned short __half_as_ushort(unsigned short h)
{
	return h;
}

#endif
