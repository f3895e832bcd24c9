/* SPDX-License-Identifier: MIT */
/*
 * train_cuda.cu - a training loop in C++ whose batches are on the GPU.
 *
 *     nvcc -std=c++17 -O2 train_cuda.cu -o train_cuda -ltsock
 *     ./train_cuda imagenet 256 3 [DEVICE]
 *
 * The kernels read the batch where it lies, in memory that all jobs on that
 * GPU share: name the stream that they run in, launch, release.  Nothing
 * waits for the GPU but the end of an epoch.  The model is a toy (a perceptron
 * on the image's mean colour); batch_on and the loop are what one is meant to
 * copy.
 */
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <cuda_runtime.h>

#include <tsock/tsock.h>

namespace
{

constexpr int threads = 256;

void check(int code)
{
	if (code < 0)
		throw std::runtime_error(std::string(tsock_strerror(code)) +
					 ": " + tsock_errmsg());
}

void check(cudaError_t e)
{
	if (e != cudaSuccess)
		throw std::runtime_error(std::string(cudaGetErrorName(e)) +
					 ": " + cudaGetErrorString(e));
}

struct closer {
	void operator()(tsock *t) const
	{
		tsock_close(t);
	}
	void operator()(tsock_batch *b) const
	{
		tsock_batch_release(b);
	}
};

/* A batch that work in a stream will use; it may go as soon as that is queued:
 * its memory is written to only after the work is done. */
class batch_on
{
      public:
	batch_on(tsock_batch *b, cudaStream_t s) : b_(b)
	{
		check(tsock_batch_use(b, s));
	}
	unsigned size() const
	{
		return static_cast<unsigned>(tsock_batch_count(b_.get()));
	}
	template <typename T> const T *field(unsigned i) const
	{
		return static_cast<const T *>(tsock_batch_data(b_.get(), i));
	}

      private:
	std::unique_ptr<tsock_batch, closer> b_;
};

template <typename T> struct device_array {
	explicit device_array(std::size_t n)
	{
		check(cudaMalloc(&at, n * sizeof(T)));
		check(cudaMemset(at, 0, n * sizeof(T)));
	}
	device_array(const device_array &) = delete;
	~device_array()
	{
		cudaFree(at);
	}
	T *at = nullptr;
};

/* The mean of each channel; a block for each image [3, plane]. */
__global__ void mean_colour(const float *image, unsigned plane, float *mean)
{
	__shared__ float sum[threads];
	const float *channel = image + (blockIdx.x * 3ULL + blockIdx.y) * plane;
	float own = 0;

	for (unsigned i = threadIdx.x; i < plane; i += threads)
		own += channel[i];
	sum[threadIdx.x] = own;
	for (unsigned half = threads / 2; half; half /= 2) {
		__syncthreads();
		if (threadIdx.x < half)
			sum[threadIdx.x] += sum[threadIdx.x + half];
	}
	if (threadIdx.x == 0)
		mean[blockIdx.x * 3 + blockIdx.y] =
			sum[0] / static_cast<float>(plane);
}

/* A step of the perceptron for each sample, one after the other. */
__global__ void learn(const float *mean, const std::int64_t *label, unsigned n,
		      unsigned nclasses, float *weight,
		      unsigned long long *right)
{
	for (unsigned i = 0; i < n; i++) {
		const float *in = mean + 3 * i;
		unsigned want = static_cast<unsigned>(label[i]), best = 0;
		float most = -INFINITY;

		for (unsigned k = 0; k < nclasses; k++) {
			const float *w = weight + 3 * k;
			float score =
				w[0] * in[0] + w[1] * in[1] + w[2] * in[2];

			if (score > most) {
				most = score;
				best = k;
			}
		}
		*right += best == want;
		for (int c = 0; c < 3 && best != want && want < nclasses; c++) {
			weight[3 * want + c] += in[c];
			weight[3 * best + c] -= in[c];
		}
	}
}

unsigned find(tsock *t, const std::string &name, tsock_field &out)
{
	tsock_info info{};

	info.size = sizeof(info);
	check(tsock_get_info(t, &info));
	for (unsigned i = 0; i < info.nfields; i++) {
		check(tsock_get_field(t, i, &out));
		if (name == out.name)
			return i;
	}
	throw std::runtime_error("the stream has no field " + name);
}

void train(tsock *t, unsigned batch_size, long epochs)
{
	tsock_info info{};
	tsock_field image, label;
	unsigned image_at = find(t, "image", image);
	unsigned label_at = find(t, "label", label);
	unsigned plane = static_cast<unsigned>(image.shape[1] * image.shape[2]);
	cudaStream_t stream;

	info.size = sizeof(info);
	check(tsock_get_info(t, &info));
	unsigned nclasses = info.nclasses ? info.nclasses : 1;
	device_array<float> weight(3ULL * nclasses), mean(3ULL * batch_size);
	device_array<unsigned long long> right(1);
	check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (; epochs > 0; epochs--) {
		unsigned long long samples = 0, known = 0;
		tsock_batch *b;
		int code;

		check(tsock_begin(t));
		while ((code = tsock_next(t, -1, &b)) == 0) {
			batch_on batch(b, stream);

			mean_colour<<<dim3(batch.size(), 3), threads, 0,
				      stream>>>(batch.field<float>(image_at),
						plane, mean.at);
			learn<<<1, 1, 0, stream>>>(
				mean.at, batch.field<std::int64_t>(label_at),
				batch.size(), nclasses, weight.at, right.at);
			check(cudaGetLastError());
			samples += batch.size();
		}
		if (code != TSOCK_EEPOCH)
			check(code);
		check(cudaMemcpyAsync(&known, right.at, sizeof(known),
				      cudaMemcpyDeviceToHost, stream));
		check(cudaMemsetAsync(right.at, 0, sizeof(known), stream));
		check(cudaStreamSynchronize(stream));
		std::printf("epoch %llu: %llu samples, %.2f %% right\n",
			    static_cast<unsigned long long>(tsock_epoch(t)),
			    samples,
			    100.0 * static_cast<double>(known) /
				    static_cast<double>(samples));
	}
	check(cudaStreamDestroy(stream));
}

} // namespace

int main(int argc, char **argv)
try {
	static const char *const transport[] = { "host memory", "VMM",
						 "a legacy handle",
						 "own copies" };
	tsock_opts opts = TSOCK_OPTS_INIT;
	tsock *t;

	if (argc != 4 && argc != 5) {
		std::fprintf(stderr,
			     "usage: train_cuda NAME BATCH EPOCHS [DEVICE]\n");
		return 2;
	}
	opts.batch_size =
		static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
	opts.device = argc == 5 ? std::atoi(argv[4]) : 0;
	opts.dtype = TSOCK_F32;
	opts.layout = TSOCK_CHW;
	opts.normalize = TSOCK_UNIT;
	check(tsock_open(argv[1], &opts, &t));
	std::unique_ptr<tsock, closer> own(t);
	check(cudaSetDevice(opts.device));
	train(t, opts.batch_size, std::strtol(argv[3], nullptr, 10));
	std::printf("batches came by %s\n", transport[tsock_transport(t)]);
	return 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "train_cuda: %s\n", e.what());
	return 1;
}
