/* SPDX-License-Identifier: MIT */
/*
 * test_kernels.cpp - kernels.cu as plain functions, thread by thread, against
 * the host's conversion: every dtype, layout and normalisation, odd sizes, odd
 * addresses, few and many multiprocessors.  Built with sanitizers it also
 * finds what a device would fault on: an access outside of the images, a wide
 * access that isn't aligned.
 *
 * It needs no GPU and says nothing about speed.
 */
#include "lib/convert/kernels.cu"

#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" {
#include "convert/convert.h"
}

dim3 threadIdx, blockIdx, gridDim;
static int multiprocessors, resident; /* blocks on each, at once */

/* What the kernels' own declaration of shared memory means here. */
namespace
{
alignas(16) unsigned table[3 * CHANNEL / 4];
}

int cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

int cudaDeviceGetAttribute(int *value, int, int)
{
	*value = multiprocessors;
	return cudaSuccess;
}

int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *,
						  int, size_t)
{
	*blocks = resident;
	return cudaSuccess;
}

int cudaMemcpyAsync(void *dst, const void *src, size_t bytes, int, cudaStream_t)
{
	memcpy(dst, src, bytes);
	return cudaSuccess;
}

/* The table is made by all threads of a block before any of them goes on. */
int cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args,
		     size_t shared, cudaStream_t)
{
	auto run = reinterpret_cast<void (*)(work, spec)>(
		const_cast<void *>(kernel));
	work w = *static_cast<work *>(args[0]);
	spec s = *static_cast<spec *>(args[1]);

	if (shared && shared != sizeof(table))
		abort();
	/* Blocks that run later than others make the table once more. */
	if (grid.x > 3 &&
	    grid.x > static_cast<unsigned>(multiprocessors * resident))
		abort();
	gridDim = grid;
	for (unsigned t = 0; shared && t < block.x; t++) {
		threadIdx = dim3(t);
		fill(table, s);
	}
	for (unsigned b = 0; b < grid.x; b++) {
		blockIdx = dim3(b);
		for (unsigned t = 0; t < block.x; t++) {
			threadIdx = dim3(t);
			run(w, s);
		}
	}
	return cudaSuccess;
}

static const struct {
	uint64_t n, h, w;
} sizes[] = { { 1, 1, 1 },
	      { 1, 1, 2 },
	      { 1, 1, 3 },
	      { 1, 2, 2 },
	      { 40, 1, 1 },
	      { 100, 2, 2 },
	      { 3, 1, 3 },
	      { 2, 3, 5 },
	      { 5, 4, 4 },
	      { 4, 7, 9 },
	      { 3, 7, 33 },
	      { 7, 16, 20 },
	      { 64, 8, 2 },
	      { 2, 43, 48 },
	      { 3, 1, 4 },
	      { 9, 20, 30 },
	      { 2, 64, 64 },
	      { 1, 61, 61 },
	      /* More than all lanes of one multiprocessor take at once. */
	      { 5, 80, 80 },
	      { 3, 71, 73 } };

static const float mean[] = { 0.485f, 0.456f, 0.406f };
static const float stds[] = { 0.229f, 0.224f, 0.225f };

/* Buffers that end where the images end. */
static bool one(struct tsi_view_spec *sp, unsigned i, unsigned at, unsigned to,
		unsigned channels)
{
	uint64_t pixels = sizes[i].h * sizes[i].w, image = pixels * channels;
	uint64_t shape[] = { sizes[i].h, sizes[i].w, channels };
	unsigned last = channels - 1; /* of one channel: its own for all */
	uint32_t layout = sp->layout;
	uint64_t all = image * sizes[i].n;
	size_t size = tsock_dtype_size(sp->dtype);
	std::vector<uint8_t> want(all * size);
	void *from, *out;
	struct tsi_convert *c;
	bool good;

	if (posix_memalign(&from, 16, at + all) ||
	    posix_memalign(&out, 16, (to + all) * size) ||
	    tsi_convert_create(sp, &c))
		abort();
	uint8_t *src = static_cast<uint8_t *>(from) + at;
	uint8_t *dst = static_cast<uint8_t *>(out) + to * size;
	for (uint64_t k = 0; k < all; k++)
		src[k] = static_cast<uint8_t>(rand() >> 7);
	for (uint64_t k = 0; k < sizes[i].n; k++)
		tsi_convert_image(c, shape, src + k * image,
				  want.data() + k * image * size);
	memset(out, 0xa5, (to + all) * size);
	if (channels == 1)
		layout = TSOCK_HWC;
	struct tsi_kernel_convert k = { src,
					dst,
					sizes[i].n,
					pixels,
					channels,
					sp->dtype,
					layout,
					sp->normalize,
					{ mean[0], mean[last / 2], mean[last] },
					{ stds[0], stds[last / 2],
					  stds[last] } };
	good = tsi_kernel_convert(&k, nullptr) == cudaSuccess &&
	       memcmp(want.data(), dst, all * size) == 0;
	for (size_t b = 0; b < to * size; b++)
		good = good && static_cast<uint8_t *>(out)[b] == 0xa5;
	if (!good)
		printf("# %u images of %u x %u x %u, source at %u, to %u, %d "
		       "multiprocessors\n",
		       static_cast<unsigned>(sizes[i].n),
		       static_cast<unsigned>(sizes[i].h),
		       static_cast<unsigned>(sizes[i].w), channels, at, to,
		       multiprocessors);
	tsi_convert_destroy(c);
	free(from);
	free(out);
	return good;
}

static bool all_of(struct tsi_view_spec *sp)
{
	bool good = true;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (unsigned k = 0; k < 4 * 5; k++) {
			multiprocessors = 1 + static_cast<int>(k % 3) * 3;
			resident = 1 + static_cast<int>(k % 4);
			good = one(sp, i, k % 4, k / 4, 3) && good;
			good = one(sp, i, k % 4, k / 4, 1) && good;
		}
	return good;
}

int main()
{
	static const struct {
		uint32_t dtype;
		const char *name;
	} dtypes[] = { { TSOCK_U8, "u8" },
		       { TSOCK_F16, "f16" },
		       { TSOCK_BF16, "bf16" },
		       { TSOCK_F32, "f32" } };
	static const char *const how[] = { "raw", "unit", "mean_std" };
	unsigned n = 0;
	bool good = true;

	for (unsigned k = 0; k < 4 * 2 * 3; k++) {
		struct tsi_view_spec sp = {};
		bool same;

		sp.dtype = dtypes[k / 6].dtype;
		sp.layout = k / 3 % 2;
		sp.normalize = k % 3;
		memcpy(sp.mean, mean, sizeof(mean));
		memcpy(sp.std, stds, sizeof(stds));
		if (sp.dtype == TSOCK_U8 && sp.normalize)
			continue;
		same = all_of(&sp);
		printf("%sok %u - %s_%s_%s_equals_the_host\n",
		       same ? "" : "not ", ++n, dtypes[k / 6].name,
		       sp.layout == TSOCK_CHW ? "chw" : "hwc", how[k % 3]);
		good = good && same;
	}
	printf("1..%u\n", n);
	return good ? 0 : 1;
}
