/* SPDX-License-Identifier: MIT */
/*
 * train_raii.cpp - the training loop of train.c in C++17: errors are exceptions,
 * streams and batches give themselves back.
 *
 *     c++ -std=c++17 -O2 train_raii.cpp -o train -ltsock
 *     ./train imagenet 256 3
 *
 * The model is a toy (one step of the perceptron per sample, on the image's
 * mean colour); the classes stream and batch are what one is meant to copy.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tsock/tsock.h>

namespace
{

/* What the library said of the call that failed. */
struct error : std::runtime_error {
	explicit error(int code)
	    : std::runtime_error(std::string(tsock_strerror(code)) + ": " +
				 tsock_errmsg())
	{
	}
};

void check(int code)
{
	if (code < 0)
		throw error(code);
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

class batch
{
      public:
	explicit batch(tsock_batch *b) : b_(b)
	{
	}
	std::size_t size() const
	{
		return static_cast<std::size_t>(tsock_batch_count(b_.get()));
	}
	template <typename T> const T *field(unsigned i) const
	{
		return static_cast<const T *>(tsock_batch_data(b_.get(), i));
	}

      private:
	std::unique_ptr<tsock_batch, closer> b_;
};

class stream
{
      public:
	stream(const char *name, const tsock_opts &opts)
	{
		tsock *t;

		check(tsock_open(name, &opts, &t));
		t_.reset(t);
	}

	/* fn(batch) for every batch of an epoch. */
	template <typename Fn> void each(Fn fn)
	{
		tsock_batch *b;
		int code;

		check(tsock_begin(t_.get()));
		while ((code = tsock_next(t_.get(), -1, &b)) == 0)
			fn(batch(b));
		if (code != TSOCK_EEPOCH)
			throw error(code);
	}

	tsock_info info() const
	{
		tsock_info out{};

		out.size = sizeof(out);
		check(tsock_get_info(t_.get(), &out));
		return out;
	}

	/* The number of the field with that name, and what it is. */
	unsigned find(const std::string &name, tsock_field &out) const
	{
		for (unsigned i = 0; i < info().nfields; i++) {
			check(tsock_get_field(t_.get(), i, &out));
			if (name == out.name)
				return i;
		}
		throw std::runtime_error("the stream has no field " + name);
	}

	std::uint64_t epoch() const
	{
		return tsock_epoch(t_.get());
	}

      private:
	std::unique_ptr<tsock, closer> t_;
};

struct colour {
	double of[3];
};

/* The mean of each channel of a float image [3, height, width]. */
colour mean_colour(const float *image, std::size_t plane)
{
	colour out{};

	for (std::size_t c = 0; c < 3; c++) {
		for (std::size_t i = 0; i < plane; i++)
			out.of[c] += image[c * plane + i];
		out.of[c] /= static_cast<double>(plane);
	}
	return out;
}

class perceptron
{
      public:
	explicit perceptron(std::size_t nclasses) : weight_(nclasses)
	{
	}

	/* Learn from one sample; true if it was known already. */
	bool learn(const colour &in, std::size_t label)
	{
		std::size_t best = 0;

		for (std::size_t k = 1; k < weight_.size(); k++)
			if (score(k, in) > score(best, in))
				best = k;
		for (int c = 0; c < 3 && best != label; c++) {
			weight_[label].of[c] += in.of[c];
			weight_[best].of[c] -= in.of[c];
		}
		return best == label;
	}

      private:
	double score(std::size_t k, const colour &in) const
	{
		const colour &w = weight_[k];

		return w.of[0] * in.of[0] + w.of[1] * in.of[1] +
		       w.of[2] * in.of[2];
	}

	std::vector<colour> weight_;
};

void train(stream &s, long epochs)
{
	tsock_field image, label;
	unsigned image_at = s.find("image", image);
	unsigned label_at = s.find("label", label);
	std::size_t plane = image.shape[1] * image.shape[2];
	std::size_t nclasses = s.info().nclasses;
	perceptron model(nclasses ? nclasses : 1);

	for (; epochs > 0; epochs--) {
		std::uint64_t samples = 0, right = 0;

		s.each([&](const batch &b) {
			auto pixels = b.field<float>(image_at);
			auto labels = b.field<std::int64_t>(label_at);

			for (std::size_t i = 0; i < b.size(); i++)
				right += model.learn(
					mean_colour(pixels + i * 3 * plane,
						    plane),
					static_cast<std::size_t>(labels[i]));
			samples += b.size();
		});
		std::printf("epoch %llu: %llu samples, %.2f %% right\n",
			    static_cast<unsigned long long>(s.epoch()),
			    static_cast<unsigned long long>(samples),
			    100.0 * static_cast<double>(right) /
				    static_cast<double>(samples));
	}
}

} // namespace

int main(int argc, char **argv)
try {
	tsock_opts opts = TSOCK_OPTS_INIT;

	if (argc != 4) {
		std::fprintf(stderr, "usage: train NAME BATCH EPOCHS\n");
		return 2;
	}
	opts.batch_size =
		static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10));
	opts.dtype = TSOCK_F32;
	opts.layout = TSOCK_CHW;
	opts.normalize = TSOCK_UNIT;
	stream s(argv[1], opts);
	train(s, std::strtol(argv[3], nullptr, 10));
	return 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "train: %s\n", e.what());
	return 1;
}
