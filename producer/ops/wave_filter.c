/* SPDX-License-Identifier: MIT */
/*
 * wave_filter.c - low and high frequencies of audio.
 *
 * Formula: julius.lowpass.LowPassFilters.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "ops/wave.h"

#define PI 3.141592653589793
#define ZEROS 8

/* Numbers that are made at once, by vector code where there is some. */
#define LANES 4
#define STEP (4 * LANES)

typedef float floats __attribute__((vector_size(4 * LANES)));

/*
 * A half of the taps, which are symmetric: the one in the middle, and those
 * behind it.  Their sum is 1.
 */
static void make_taps(double cutoff, uint32_t half, float *tap)
{
	double sum = 0;

	for (int pass = 0; pass < 2; pass++) {
		const double total = sum;

		for (uint32_t k = 0; k <= half; k++) {
			double x = 2 * cutoff * PI * k;
			double window = .5 + .5 * cos(PI * k / half);
			double v = window * (k ? sin(x) / x : 1);

			if (pass)
				tap[k] = (float)(v / total);
			sum += k ? 2 * v : v;
		}
	}
}

/* Frames in the scratch: the channel, and to either side its ends. */
static void pad(const float *x, uint32_t frames, uint32_t half, float *to,
		size_t room)
{
	for (uint32_t i = 0; i < half; i++)
		to[i] = x[0];
	memcpy(to + half, x, frames * sizeof(*x));
	for (size_t i = half + (size_t)frames; i < room; i++)
		to[i] = x[frames - 1];
}

/* LANES products of what lies k before and behind, added to those before. */
static inline void add_pair(floats *sum, const float *at, uint32_t k, float tap)
{
	floats before, behind;

	memcpy(&before, at - k, sizeof(before));
	memcpy(&behind, at + k, sizeof(behind));
	*sum += (before + behind) * tap;
}

/* STEP numbers around at, half of which lies before it. */
static void filter_some(const float *at, const float *tap, uint32_t half,
			float *to)
{
	floats a, b, c, d;

	/* Four by name, which stay in registers. */
	memcpy(&a, at, sizeof(a));
	memcpy(&b, at + LANES, sizeof(b));
	memcpy(&c, at + 2 * LANES, sizeof(c));
	memcpy(&d, at + 3 * LANES, sizeof(d));
	a *= tap[0];
	b *= tap[0];
	c *= tap[0];
	d *= tap[0];
	for (uint32_t k = 1; k <= half; k++) {
		add_pair(&a, at, k, tap[k]);
		add_pair(&b, at + LANES, k, tap[k]);
		add_pair(&c, at + 2 * LANES, k, tap[k]);
		add_pair(&d, at + 3 * LANES, k, tap[k]);
	}
	memcpy(to, &a, sizeof(a));
	memcpy(to + LANES, &b, sizeof(b));
	memcpy(to + 2 * LANES, &c, sizeof(c));
	memcpy(to + 3 * LANES, &d, sizeof(d));
}

static int make_room(struct tsi_wave *w, size_t room)
{
	if (room <= w->room)
		return 0;
	free(w->scratch);
	w->scratch = malloc(room * sizeof(float));
	w->room = w->scratch ? room : 0;
	return w->scratch ? 0 : tsi_err(TSOCK_ENOMEM, "no memory for a filter");
}

static int filter(struct tsi_wave *w, double cutoff, bool high)
{
	const uint32_t half = (uint32_t)(ZEROS / cutoff / 2);
	const size_t room = (size_t)w->frames + 2 * (size_t)half + STEP;
	float *padded, *tap, some[STEP];
	int err = make_room(w, room + half + 1);

	if (err)
		return err;
	padded = w->scratch;
	tap = padded + room;
	make_taps(cutoff, half, tap);
	for (uint32_t c = 0; c < w->channels; c++) {
		float *x = w->data + (size_t)c * w->frames;

		pad(x, w->frames, half, padded, room);
		for (uint32_t i = 0; i < w->frames; i += STEP) {
			uint32_t n = w->frames - i;

			filter_some(padded + half + i, tap, half, some);
			for (uint32_t j = 0; j < STEP && j < n; j++)
				x[i + j] = high ? x[i + j] - some[j] : some[j];
		}
	}
	return 0;
}

int tsi_wave_lowpass(struct tsi_wave *w, double cutoff)
{
	return filter(w, cutoff, false);
}

int tsi_wave_highpass(struct tsi_wave *w, double cutoff)
{
	return filter(w, cutoff, true);
}
