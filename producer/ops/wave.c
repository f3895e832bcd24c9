/* SPDX-License-Identifier: MIT */
/*
 * wave.c - signs, volumes, noise and delays of audio.
 */
#include "ops/wave.h"

#include <math.h>

#include "base/philox.h"

static size_t count(const struct tsi_wave *w)
{
	return (size_t)w->channels * w->frames;
}

void tsi_wave_invert(struct tsi_wave *w)
{
	for (size_t i = 0, n = count(w); i < n; i++)
		w->data[i] = -w->data[i];
}

void tsi_wave_reverse(struct tsi_wave *w)
{
	for (uint32_t c = 0; c < w->channels; c++) {
		float *a = w->data + (size_t)c * w->frames;
		float *b = a + w->frames - 1;

		for (; a < b; a++, b--) {
			float was = *a;

			*a = *b;
			*b = was;
		}
	}
}

void tsi_wave_gain(struct tsi_wave *w, double db)
{
	const float ratio = (float)pow(10, db / 20);

	for (size_t i = 0, n = count(w); i < n; i++) {
		float v = w->data[i] * ratio;

		w->data[i] = v < -1 ? -1 : v > 1 ? 1 : v;
	}
}

/* ---- noise ---- */

/* torch.std(), of one number more than one; 0 of one, where it has none. */
static double deviation(const struct tsi_wave *w)
{
	const size_t n = count(w);
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++)
		sum += w->data[i];
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (w->data[i] - mean) * (w->data[i] - mean);
	return n > 1 ? sqrt(squares / (double)(n - 1)) : 0;
}

/* Two normal numbers of two words. */
static void normals(uint32_t a, uint32_t b, double *to)
{
	const double r = sqrt(-2 * log((a + 0.5) * 0x1p-32));
	const double angle = 6.283185307179586 * (b * 0x1p-32);

	to[0] = r * cos(angle);
	to[1] = r * sin(angle);
}

void tsi_wave_noise(struct tsi_wave *w, double part, uint64_t key)
{
	const double std = deviation(w) * part;

	for (size_t i = 0, n = count(w); i < n; i += 4) {
		struct tsi_philox_ctr c = { { (uint32_t)(i / 4), 0, 0, 0 } };
		double four[4];

		c = tsi_philox(key, c);
		normals(c.v[0], c.v[1], four);
		normals(c.v[2], c.v[3], four + 2);
		for (size_t j = 0; j < 4 && i + j < n; j++)
			w->data[i + j] += (float)(std * four[j]);
	}
}

/* ---- delays ---- */

void tsi_wave_delay(struct tsi_wave *w, uint32_t frames, double volume)
{
	const float by = (float)volume;

	for (uint32_t c = 0; c < w->channels; c++) {
		float *x = w->data + (size_t)c * w->frames;

		/* From the end on: what is before isn't changed yet. */
		for (uint32_t i = w->frames; i-- > 0;) {
			float late = i >= frames ? x[i - frames] * by : 0;

			x[i] = (x[i] + late) / 2;
		}
	}
}
