/* SPDX-License-Identifier: MIT */
/*
 * kernels.cu - images from u8 HWC to a view's dtype and layout, on the GPU.
 *
 * A value depends on its channel and its byte alone, so that every block first
 * makes the 3 x 256 values that there are, by the same rounded float32 steps
 * as the host (true divisions, nothing fused), and then looks them up: equal
 * bit for bit by construction, and memory is all that there is to wait for.
 * The table is in shared memory TABLE times, interleaved, a lane using copy
 * lane % TABLE: lanes that look up different values rarely meet in a bank.
 *
 * Source bytes are read as 32-bit words, shifted together where the source is
 * not aligned, and neighbouring lanes store neighbouring elements, four each,
 * by __stcs(): nothing here reads them again, and a store by assignment came out
 * of the compiler's unrolling in four parts.  What a lane reads for several
 * units it reads before it stores the first, since the compiler can't know that
 * source and destination are apart.
 * Images of one channel are elements of HWC whose table has three equal
 * channels.
 * Planes that can't be stored so (a number of pixels that four doesn't divide)
 * get one pixel per lane.
 *
 * Never reads a byte outside the images, but for those of the 32-bit word that
 * the first one is in; never writes one outside of dst.
 */
#include "convert/kernels.h"

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "tsock/tsock.h"

namespace
{

constexpr unsigned THREADS = 512;
constexpr unsigned TABLE = 8;        /* copies */
constexpr unsigned STEP = TABLE * 4; /* bytes from one value to the next */
constexpr unsigned CHANNEL = 256 * STEP;
constexpr unsigned AHEAD = 4; /* words that a lane reads before it stores */
constexpr unsigned PLANES_AHEAD = 2; /* of CHW: units of three words */

struct spec {
	unsigned dtype, normalize;
	float mean[3], std[3];
};

struct work {
	const unsigned char *src;
	void *dst;
	unsigned long long pixels; /* of an image */
	unsigned long long units;  /* of the kernel's own kind */
	unsigned long long total;  /* elements or pixels, the rest included */
	unsigned head;             /* elements before the first unit */
	unsigned shift;            /* bits from a word's start to a unit's */
};

/* ---- the table ---- */

__device__ unsigned value_of(const spec &s, int ch, int v)
{
	float x = static_cast<float>(v);
	unsigned u;

	if (s.normalize != TSOCK_RAW)
		x = __fdiv_rn(x, 255.0f);
	if (s.normalize == TSOCK_MEAN_STD) {
		x = __fsub_rn(x, s.mean[ch]);
		x = __fdiv_rn(x, s.std[ch]);
	}
	u = __float_as_uint(x);
	if (s.dtype == TSOCK_F32)
		return u;
	if (s.dtype == TSOCK_F16)
		return __half_as_ushort(__float2half_rn(x));
	return (u + 0x7fff + (u >> 16 & 1)) >> 16; /* nearest, ties to even */
}

/*
 * A value's copies by stores of 16 bytes: eight lanes at a time write 256 bytes
 * in a row's banks twice.  Single words, 32 bytes apart, would meet eightfold.
 */
__device__ void fill(unsigned *table, const spec &s)
{
	static_assert(TABLE == 8, "two stores of four copies");

	for (unsigned i = threadIdx.x; i < 3 * 256; i += THREADS) {
		unsigned u = value_of(s, static_cast<int>(i / 256),
				      static_cast<int>(i % 256));

		uint4 *at = reinterpret_cast<uint4 *>(table + i * TABLE);

		at[0] = at[1] = make_uint4(u, u, u, u);
	}
	__syncthreads();
}

/* The value of byte b of w: at is the channel's part of a lane's own copy. */
template <int b> __device__ unsigned look(const char *at, unsigned w)
{
	constexpr unsigned mask = 255 * STEP;
	constexpr int right = 8 * b - 5;
	static_assert(STEP == 1 << 5, "what the shift is for");
	unsigned off = (right < 0 ? w << (right < 0 ? -right : 0)
				  : w >> (right < 0 ? 0 : right)) &
		       mask;

	return *reinterpret_cast<const unsigned *>(at + off);
}

/* ---- elements ---- */

template <int size>
__device__ void put(void *dst, unsigned long long i, unsigned u)
{
	if (size == 4)
		__stcs(static_cast<unsigned *>(dst) + i, u);
	else if (size == 2)
		__stcs(static_cast<unsigned short *>(dst) + i,
		       static_cast<unsigned short>(u));
	else
		__stcs(static_cast<unsigned char *>(dst) + i,
		       static_cast<unsigned char>(u));
}

/* Four elements, the first one at a multiple of four. */
template <int size>
__device__ void put4(void *dst, unsigned long long i, unsigned a, unsigned b,
		     unsigned c, unsigned d)
{
	if (size == 4)
		__stcs(reinterpret_cast<uint4 *>(static_cast<unsigned *>(dst) +
						 i),
		       make_uint4(a, b, c, d));
	else
		__stcs(reinterpret_cast<uint2 *>(
			       static_cast<unsigned short *>(dst) + i),
		       make_uint2(__byte_perm(a, b, 0x5410),
				  __byte_perm(c, d, 0x5410)));
}

template <bool shifted>
__device__ unsigned word(const unsigned *p, unsigned shift)
{
	unsigned w = __ldg(p);

	return shifted ? __funnelshift_r(w, __ldg(p + 1), shift) : w;
}

/* ---- HWC: a unit is four elements ---- */

template <int size, bool shifted>
__device__ void hwc_unit(const work &w, unsigned long long u, unsigned x,
			 const char *c0, const char *c1, const char *c2)
{
	put4<size>(static_cast<char *>(w.dst) + w.head * size, u * 4,
		   look<0>(c0, x), look<1>(c1, x), look<2>(c2, x),
		   look<3>(c0, x));
}

template <int size, bool shifted>
__global__ void __launch_bounds__(THREADS, 2) hwc(work w, spec s)
{
	extern __shared__ __align__(16) unsigned table[];
	const unsigned long long stride =
		static_cast<unsigned long long>(gridDim.x) * THREADS;
	unsigned long long u =
		static_cast<unsigned long long>(blockIdx.x) * THREADS +
		threadIdx.x;
	const unsigned long long rest = w.total - w.units * 4;
	const unsigned *src = reinterpret_cast<const unsigned *>(
		w.src + w.head - w.shift / 8);
	const char *own =
		reinterpret_cast<const char *>(table + threadIdx.x % TABLE);
	/* stride is a multiple of 3: a lane's channels stay the same. */
	const unsigned ph = static_cast<unsigned>((u + w.head) % 3);
	const char *c0 = own + ph * CHANNEL;
	const char *c1 = own + (ph + 1) % 3 * CHANNEL;
	const char *c2 = own + (ph + 2) % 3 * CHANNEL;

	fill(table, s);
	if (u < rest) {
		unsigned long long i = u < w.head ? u : u + w.units * 4;

		put<size>(w.dst, i, table[(i % 3 * 256 + w.src[i]) * TABLE]);
	}
	for (; u + (AHEAD - 1) * stride < w.units; u += AHEAD * stride) {
		unsigned x[AHEAD];

#pragma unroll
		for (unsigned k = 0; k < AHEAD; k++)
			x[k] = word<shifted>(src + u + k * stride, w.shift);
#pragma unroll
		for (unsigned k = 0; k < AHEAD; k++)
			hwc_unit<size, shifted>(w, u + k * stride, x[k], c0, c1,
						c2);
	}
	for (; u < w.units; u += stride)
		hwc_unit<size, shifted>(w, u, word<shifted>(src + u, w.shift),
					c0, c1, c2);
}

/* ---- CHW: a unit is four pixels, twelve bytes ---- */

template <bool shifted>
__device__ void planes(const unsigned *p, unsigned shift, unsigned out[3])
{
	unsigned a = __ldg(p), b = __ldg(p + 1), c = __ldg(p + 2);

	if (shifted) {
		unsigned d = __ldg(p + 3);

		a = __funnelshift_r(a, b, shift);
		b = __funnelshift_r(b, c, shift);
		c = __funnelshift_r(c, d, shift);
	}
	out[0] = __byte_perm(__byte_perm(a, b, 0x0630), c, 0x5210);
	out[1] = __byte_perm(__byte_perm(a, b, 0x0741), c, 0x6210);
	out[2] = __byte_perm(__byte_perm(a, b, 0x0052), c, 0x7410);
}

template <int size>
__device__ void put_plane(void *dst, unsigned long long i, const char *at,
			  unsigned x)
{
	if (size == 1)
		__stcs(reinterpret_cast<unsigned *>(static_cast<char *>(dst) +
						    i),
		       x);
	else
		put4<size>(dst, i, look<0>(at, x), look<1>(at, x),
			   look<2>(at, x), look<3>(at, x));
}

/* Where a lane is: unit r of image n, and what a stride adds to it. */
struct place {
	unsigned long long n, r, dn, dr, each;
};

__device__ void step(place &at)
{
	at.n += at.dn;
	at.r += at.dr;
	if (at.r >= at.each) {
		at.r -= at.each;
		at.n++;
	}
}

template <int size>
__device__ void chw_unit(const work &w, place &at, const char *own,
			 const unsigned x[3])
{
#pragma unroll
	for (unsigned ch = 0; ch < 3; ch++)
		put_plane<size>(w.dst, (at.n * 3 + ch) * w.pixels + at.r * 4,
				own + ch * CHANNEL, x[ch]);
	step(at);
}

/* A pixel of all images, byte by byte. */
__device__ void load_pixel(const work &w, unsigned long long i,
			   unsigned char v[3])
{
	const unsigned char *src = w.src + i * 3;

	v[0] = __ldg(src);
	v[1] = __ldg(src + 1);
	v[2] = __ldg(src + 2);
}

/* Pixel p of image n. */
template <int size>
__device__ void put_pixel(const work &w, const unsigned *table,
			  unsigned long long n, unsigned long long p,
			  const unsigned char v[3])
{
#pragma unroll
	for (unsigned ch = 0; ch < 3; ch++)
		put<size>(w.dst, (n * 3 + ch) * w.pixels + p,
			  size == 1 ? v[ch]
				    : table[(ch * 256 + v[ch]) * TABLE +
					    threadIdx.x % TABLE]);
}

template <int size, bool shifted>
__global__ void __launch_bounds__(THREADS, 2) chw(work w, spec s)
{
	extern __shared__ __align__(16) unsigned table[];
	const unsigned long long stride =
		static_cast<unsigned long long>(gridDim.x) * THREADS;
	unsigned long long u =
		static_cast<unsigned long long>(blockIdx.x) * THREADS +
		threadIdx.x;
	const unsigned long long each = w.pixels / 4; /* units of an image */
	place at = { u / each, u % each, stride / each, stride % each, each };
	const unsigned *src =
		reinterpret_cast<const unsigned *>(w.src - w.shift / 8);
	const char *own =
		reinterpret_cast<const char *>(table + threadIdx.x % TABLE);

	if (size > 1)
		fill(table, s);
	if (u < w.total - w.units * 4) {
		unsigned long long p = u + w.units * 4;
		unsigned char v[3];

		load_pixel(w, p, v);
		put_pixel<size>(w, table, p / w.pixels, p % w.pixels, v);
	}
	for (; u + (PLANES_AHEAD - 1) * stride < w.units;
	     u += PLANES_AHEAD * stride) {
		unsigned x[PLANES_AHEAD][3];

#pragma unroll
		for (unsigned k = 0; k < PLANES_AHEAD; k++)
			planes<shifted>(src + (u + k * stride) * 3, w.shift,
					x[k]);
#pragma unroll
		for (unsigned k = 0; k < PLANES_AHEAD; k++)
			chw_unit<size>(w, at, own, x[k]);
	}
	for (; u < w.units; u += stride) {
		unsigned x[3];

		planes<shifted>(src + u * 3, w.shift, x);
		chw_unit<size>(w, at, own, x);
	}
}

/* ---- CHW of planes at any address: a unit is a pixel ---- */

template <int size>
__global__ void __launch_bounds__(THREADS, 2) chw_any(work w, spec s)
{
	extern __shared__ __align__(16) unsigned table[];
	const unsigned long long stride =
		static_cast<unsigned long long>(gridDim.x) * THREADS;
	unsigned long long u =
		static_cast<unsigned long long>(blockIdx.x) * THREADS +
		threadIdx.x;
	place at = { u / w.pixels, u % w.pixels, stride / w.pixels,
		     stride % w.pixels, w.pixels };

	if (size > 1)
		fill(table, s);
	for (; u + (AHEAD - 1) * stride < w.units; u += AHEAD * stride) {
		unsigned char v[AHEAD][3];

#pragma unroll
		for (unsigned k = 0; k < AHEAD; k++)
			load_pixel(w, u + k * stride, v[k]);
#pragma unroll
		for (unsigned k = 0; k < AHEAD; k++) {
			put_pixel<size>(w, table, at.n, at.r, v[k]);
			step(at);
		}
	}
	for (; u < w.units; u += stride) {
		unsigned char v[3];

		load_pixel(w, u, v);
		put_pixel<size>(w, table, at.n, at.r, v);
		step(at);
	}
}

/* ---- launching ---- */

int launch(const void *kernel, const work &w, const spec &s, bool with_table,
	   cudaStream_t stream)
{
	work a = w;
	spec b = s;
	void *args[] = { &a, &b };
	unsigned long long blocks = (w.units + THREADS - 1) / THREADS;
	const size_t shared = with_table ? 3 * CHANNEL : 0;
	unsigned long long most;
	int device, count, each;
	cudaError_t e = cudaGetDevice(&device);

	if (e == cudaSuccess)
		e = cudaDeviceGetAttribute(
			&count, cudaDevAttrMultiProcessorCount, device);
	if (e == cudaSuccess)
		e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
			&each, kernel, THREADS, shared);
	if (e != cudaSuccess)
		return e;
	/*
	 * All blocks run at once: one that waits for another's end would make
	 * the table once more.  A lane's channels stay the same when three
	 * divides the stride.
	 */
	most = static_cast<unsigned long long>(count) *
	       static_cast<unsigned>(each);
	blocks = (blocks + 2) / 3 * 3;
	if (blocks > most)
		blocks = most / 3 * 3;
	if (!blocks)
		blocks = 3;
	return cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
				dim3(THREADS), args, shared, stream);
}

template <int size>
int run_hwc(const struct tsi_kernel_convert &k, work w, const spec &s,
	    cudaStream_t stream)
{
	const unsigned long long at =
		reinterpret_cast<unsigned long long>(w.dst);
	unsigned long long begin;

	w.total = k.count * k.pixels * k.channels;
	w.head = static_cast<unsigned>((4 * size - at % (4 * size)) %
				       (4 * size) / size);
	if (w.head > w.total)
		w.head = static_cast<unsigned>(w.total);
	begin = reinterpret_cast<unsigned long long>(w.src) + w.head;
	w.shift = static_cast<unsigned>(begin % 4) * 8;
	w.units = (w.total - w.head) / 4;
	/* The word after the last unit's may not be ours. */
	if (w.shift && w.units)
		w.units--;
	return launch(
		w.shift ? reinterpret_cast<const void *>(hwc<size, true>)
			: reinterpret_cast<const void *>(hwc<size, false>),
		w, s, true, stream);
}

template <int size>
int run_chw(const struct tsi_kernel_convert &k, work w, const spec &s,
	    cudaStream_t stream)
{
	const unsigned long long at =
		reinterpret_cast<unsigned long long>(w.dst);

	w.total = k.count * k.pixels;
	if (k.pixels % 4 || at % (4 * size)) {
		w.units = w.total;
		return launch(reinterpret_cast<const void *>(chw_any<size>), w,
			      s, size > 1, stream);
	}
	w.units = w.total / 4;
	w.shift = static_cast<unsigned>(
			  reinterpret_cast<unsigned long long>(w.src) % 4) *
		  8;
	if (w.shift && w.units)
		w.units--;
	return launch(
		w.shift ? reinterpret_cast<const void *>(chw<size, true>)
			: reinterpret_cast<const void *>(chw<size, false>),
		w, s, size > 1, stream);
}

} // namespace

extern "C" int tsi_kernel_convert(const struct tsi_kernel_convert *k,
				  void *stream)
{
	cudaStream_t on = static_cast<cudaStream_t>(stream);
	bool planar = k->layout == TSOCK_CHW;
	spec s = { k->dtype,
		   k->normalize,
		   { k->mean[0], k->mean[1], k->mean[2] },
		   { k->std[0], k->std[1], k->std[2] } };
	work w = {};

	w.src = static_cast<const unsigned char *>(k->src);
	w.dst = k->dst;
	w.pixels = k->pixels;
	if (!k->count || !k->pixels)
		return cudaSuccess;
	if (k->dtype == TSOCK_F32)
		return planar ? run_chw<4>(*k, w, s, on)
			      : run_hwc<4>(*k, w, s, on);
	if (k->dtype != TSOCK_U8)
		return planar ? run_chw<2>(*k, w, s, on)
			      : run_hwc<2>(*k, w, s, on);
	if (planar)
		return run_chw<1>(*k, w, s, on);
	return cudaMemcpyAsync(k->dst, k->src,
			       k->count * k->pixels * k->channels,
			       cudaMemcpyDeviceToDevice, on);
}

#ifdef __CUDA_ARCH_LIST__
#define TEXT(...) #__VA_ARGS__
#define LIST(...) TEXT(__VA_ARGS__)
#define GPUS LIST(__CUDA_ARCH_LIST__)
#else
#define GPUS ""
#endif

extern "C" const char *tsi_kernel_gpus(void)
{
	return GPUS;
}
