/* SPDX-License-Identifier: MIT */
/*
 * train.c - a training loop in C, on images that other jobs read too.
 *
 *     cc -std=c99 -O2 train.c -o train -ltsock -lm
 *     ./train imagenet 256 3
 *
 * The model is a toy (softmax regression on an 8 x 8 thumbnail of the image);
 * put your own in place of struct model.  The loop is what one is meant to
 * copy: open, and for each epoch begin, next, release.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tsock/tsock.h>

#define GRID 8
#define INPUTS (3 * GRID * GRID + 1) /* and a constant 1 */
#define RATE 0.05f

struct model {
	unsigned nclasses;
	float *weight; /* [nclasses][INPUTS] */
	float *score;  /* [nclasses], scratch */
};

static void die(const char *what)
{
	fprintf(stderr, "train: %s: %s\n", what, tsock_errmsg());
	exit(1);
}

/* The mean of each cell of a grid over a float image [3, height, width]. */
static void thumbnail(const float *image, size_t height, size_t width,
		      float *out)
{
	for (size_t c = 0; c < 3; c++) {
		for (size_t cell = 0; cell < GRID * GRID; cell++) {
			size_t top = cell / GRID * height / GRID;
			size_t end = (cell / GRID + 1) * height / GRID;
			size_t left = cell % GRID * width / GRID;
			size_t right = (cell % GRID + 1) * width / GRID;
			float sum = 0;

			for (size_t y = top; y < end; y++)
				for (size_t x = left; x < right; x++)
					sum += image[(c * height + y) * width +
						     x];
			out[c * GRID * GRID + cell] =
				end > top && right > left
					? sum / (float)((end - top) *
							(right - left))
					: 0;
		}
	}
	out[INPUTS - 1] = 1;
}

/* One step of gradient descent on one sample; returns its loss. */
static float step(struct model *m, const float *in, size_t label)
{
	float most = -INFINITY, sum = 0, loss;

	for (size_t k = 0; k < m->nclasses; k++) {
		m->score[k] = 0;
		for (size_t i = 0; i < INPUTS; i++)
			m->score[k] += m->weight[k * INPUTS + i] * in[i];
		most = fmaxf(most, m->score[k]);
	}
	for (size_t k = 0; k < m->nclasses; k++)
		sum += expf(m->score[k] - most);
	loss = logf(sum) - (m->score[label] - most);
	for (size_t k = 0; k < m->nclasses; k++) {
		float p = expf(m->score[k] - most) / sum;
		float slope = RATE * (p - (k == label)) / INPUTS;

		for (size_t i = 0; i < INPUTS; i++)
			m->weight[k * INPUTS + i] -= slope * in[i];
	}
	return loss;
}

/* The number of the field with that name. */
static unsigned find(tsock *t, const char *name, struct tsock_field *out)
{
	struct tsock_info info = { 0 };

	info.size = sizeof(info);
	if (tsock_get_info(t, &info))
		die("info");
	for (unsigned i = 0; i < info.nfields; i++) {
		if (tsock_get_field(t, i, out))
			die("field");
		if (strcmp(out->name, name) == 0)
			return i;
	}
	fprintf(stderr, "train: the stream has no field %s\n", name);
	exit(1);
}

static double train_on(struct model *m, tsock_batch *b, unsigned image,
		       unsigned label, const struct tsock_field *f)
{
	const float *pixels = tsock_batch_data(b, image);
	const int64_t *labels = tsock_batch_data(b, label);
	size_t stride = f->shape[0] * f->shape[1] * f->shape[2];
	float in[INPUTS];
	double loss = 0;

	for (uint64_t i = 0; i < tsock_batch_count(b); i++) {
		if (labels[i] < 0 || (uint64_t)labels[i] >= m->nclasses)
			continue;
		thumbnail(pixels + i * stride, f->shape[1], f->shape[2], in);
		loss += step(m, in, (size_t)labels[i]);
	}
	return loss;
}

static void train_epoch(struct model *m, tsock *t)
{
	struct tsock_field f, unused;
	unsigned label = find(t, "label", &unused);
	unsigned image = find(t, "image", &f);
	uint64_t samples = 0;
	double loss = 0;
	tsock_batch *b;
	int err;

	if (tsock_begin(t))
		die("begin");
	while ((err = tsock_next(t, -1, &b)) == 0) {
		loss += train_on(m, b, image, label, &f);
		samples += tsock_batch_count(b);
		tsock_batch_release(b);
	}
	if (err != TSOCK_EEPOCH)
		die("next");
	printf("epoch %llu: %llu samples, mean loss %.4f\n",
	       (unsigned long long)tsock_epoch(t), (unsigned long long)samples,
	       samples ? loss / (double)samples : 0);
}

int main(int argc, char **argv)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	static const float mean[3] = { 0.485f, 0.456f, 0.406f };
	static const float std[3] = { 0.229f, 0.224f, 0.225f };
	struct tsock_info info = { 0 };
	struct model m = { 0 };
	tsock *t;

	if (argc != 4) {
		fprintf(stderr, "usage: train NAME BATCH EPOCHS\n");
		return 2;
	}
	opts.batch_size = (uint32_t)strtoul(argv[2], NULL, 10);
	opts.dtype = TSOCK_F32;
	opts.layout = TSOCK_CHW;
	opts.normalize = TSOCK_MEAN_STD;
	memcpy(opts.mean, mean, sizeof(mean));
	memcpy(opts.std, std, sizeof(std));
	if (tsock_open(argv[1], &opts, &t))
		die(argv[1]);

	info.size = sizeof(info);
	if (tsock_get_info(t, &info))
		die("info");
	m.nclasses = info.nclasses ? info.nclasses : 1;
	m.weight = calloc((size_t)m.nclasses * INPUTS, sizeof(*m.weight));
	m.score = calloc(m.nclasses, sizeof(*m.score));
	if (!m.weight || !m.score) {
		fprintf(stderr, "train: no memory for the model\n");
		return 1;
	}
	for (long e = strtol(argv[3], NULL, 10); e > 0; e--)
		train_epoch(&m, t);
	tsock_close(t);
	free(m.weight);
	free(m.score);
	return 0;
}
