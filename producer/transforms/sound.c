/* SPDX-License-Identifier: MIT */
/*
 * sound.c - the operations on audio.
 *
 * Formula: torchaudio_augmentations 0.2.4.
 */
#include "ops/wave.h"
#include "transforms/op.h"
#include "transforms/sizes.h"

#define FRAMES_MAX 4294967295.0
#define RATE_MAX 1000000

#define ARG_RATE \
	{ \
		.name = "sample_rate", .kind = TSI_ARG_WHOLE, .min = 1, \
		.max = RATE_MAX \
	}
#define ARG_NUMBER(what, default, least_, most_) \
	{ \
		.name = what, .kind = TSI_ARG_NUMBER, .value = default, \
		.min = least_, .max = most_ \
	}

/* The range of two arguments that follow each other. */
static bool is_range(const struct tsi_op *op, unsigned arg)
{
	return tsi_op_number(op, arg) <= tsi_op_number(op, arg + 1);
}

static double between(struct tsi_words *w, const struct tsi_op *op,
		      unsigned arg)
{
	return tsi_words_between(w, tsi_op_number(op, arg),
				 tsi_op_number(op, arg + 1));
}

static unsigned two(const struct tsi_op *op)
{
	(void)op;
	return 2;
}

/* ---- crops ---- */

static const struct tsi_arg crop_args[] = {
	{ .name = "n_samples",
	  .kind = TSI_ARG_WHOLE,
	  .min = 1,
	  .max = FRAMES_MAX },
	{ 0 },
};

const struct tsi_op_type tsi_op_sound_resized_crop = {
	.name = "RandomResizedCrop",
	.args = crop_args,
	.help = "the crop itself: the frames that --schema says; of the middle "
		"with --split val",
	.crops = true,
};

const struct tsi_op_type tsi_op_sound_crop = {
	.name = "RandomCrop",
	.args = crop_args,
	.help = "another name for it",
	.crops = true,
};

/* ---- numbers alone ---- */

static int invert(const struct tsi_op *op, const double *draws,
		  struct tsi_wave *w)
{
	(void)op;
	(void)draws;
	tsi_wave_invert(w);
	return 0;
}

const struct tsi_op_type tsi_op_polarity_inversion = {
	.name = "PolarityInversion",
	.help = "the sign of all numbers",
	.sound = invert,
};

static int reverse(const struct tsi_op *op, const double *draws,
		   struct tsi_wave *w)
{
	(void)op;
	(void)draws;
	tsi_wave_reverse(w);
	return 0;
}

const struct tsi_op_type tsi_op_reverse = {
	.name = "Reverse",
	.help = "backward in time",
	.sound = reverse,
};

/* ---- Noise ---- */

static const struct tsi_arg noise_args[] = {
	ARG_NUMBER("min_snr", "0.0001", 0, 1e6),
	ARG_NUMBER("max_snr", "0.01", 0, 1e6),
	{ 0 },
};

static bool check_noise(struct tsi_op *op, const char **why)
{
	*why = "min_snr is above max_snr";
	return is_range(op, 0);
}

static int draw_noise(const struct tsi_op *op, struct tsi_words *w,
		      uint32_t width, uint32_t height, double *draws)
{
	uint32_t high, low;

	(void)width;
	(void)height;
	draws[0] = between(w, op, 0);
	/* 53 bits, as many as a double holds. */
	high = tsi_words_next(w) >> 11;
	low = tsi_words_next(w);
	draws[1] = high * 0x1p32 + low;
	return 0;
}

static int add_noise(const struct tsi_op *op, const double *draws,
		     struct tsi_wave *w)
{
	(void)op;
	tsi_wave_noise(w, draws[0], (uint64_t)draws[1]);
	return 0;
}

const struct tsi_op_type tsi_op_noise = {
	.name = "Noise",
	.args = noise_args,
	.help = "normal noise, of a part of the sample's standard deviation",
	.check = check_noise,
	.count = two,
	.draws = "the part, and the key of the noise",
	.draw = draw_noise,
	.sound = add_noise,
};

/* ---- Gain ---- */

static const struct tsi_arg gain_args[] = {
	ARG_NUMBER("min_gain", "-20", -1000, 1000),
	ARG_NUMBER("max_gain", "-1", -1000, 1000),
	{ 0 },
};

static bool check_gain(struct tsi_op *op, const char **why)
{
	*why = "min_gain is above max_gain";
	return is_range(op, 0);
}

static int draw_gain(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = between(w, op, 0);
	return 0;
}

static int gain(const struct tsi_op *op, const double *draws,
		struct tsi_wave *w)
{
	(void)op;
	tsi_wave_gain(w, draws[0]);
	return 0;
}

const struct tsi_op_type tsi_op_gain = {
	.name = "Gain",
	.args = gain_args,
	.help = "louder by decibels, and limited to -1 to 1",
	.check = check_gain,
	.count = tsi_sizes_one,
	.draws = "decibels",
	.draw = draw_gain,
	.sound = gain,
};

/* ---- filters ---- */

#define ARG_LOW_PASS(from, to) \
	ARG_NUMBER(from, "2200", 1, RATE_MAX), \
		ARG_NUMBER(to, "4000", 1, RATE_MAX)
#define ARG_HIGH_PASS(from, to) \
	ARG_NUMBER(from, "200", 1, RATE_MAX), \
		ARG_NUMBER(to, "1200", 1, RATE_MAX)

static const struct tsi_arg both_args[] = {
	ARG_RATE,
	ARG_LOW_PASS("lowpass_freq_low", "lowpass_freq_high"),
	ARG_HIGH_PASS("highpass_freq_low", "highpass_freq_high"),
	{ 0 },
};
static const struct tsi_arg high_args[] = {
	ARG_RATE,
	ARG_HIGH_PASS("freq_low", "freq_high"),
	{ 0 },
};
static const struct tsi_arg low_args[] = {
	ARG_RATE,
	ARG_LOW_PASS("freq_low", "freq_high"),
	{ 0 },
};

/* Frequencies up to half of the rate, whose filters aren't longer than this. */
#define CUTOFF_LEAST 1e-4

static bool check_filter(struct tsi_op *op, const char **why)
{
	const double rate = tsi_op_number(op, 0);

	*why = "frequencies are (low, high), from a ten thousandth of the "
	       "sample rate to a half of it";
	for (unsigned k = 1; k < 5 && op->type->args[k].name; k += 2)
		if (!is_range(op, k) ||
		    tsi_op_number(op, k) < rate * CUTOFF_LEAST ||
		    tsi_op_number(op, k + 1) > rate / 2)
			return false;
	return true;
}

static int draw_both(const struct tsi_op *op, struct tsi_words *w,
		     uint32_t width, uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = tsi_words_below(w, 2);
	draws[1] = between(w, op, draws[0] != 0 ? 1 : 3);
	return 0;
}

static int draw_filter(const struct tsi_op *op, struct tsi_words *w,
		       uint32_t width, uint32_t height, double *draws)
{
	(void)width;
	(void)height;
	draws[0] = between(w, op, 1);
	return 0;
}

static int filter_low(const struct tsi_op *op, const double *draws,
		      struct tsi_wave *w)
{
	return tsi_wave_lowpass(w, draws[0] / tsi_op_number(op, 0));
}

static int filter_high(const struct tsi_op *op, const double *draws,
		       struct tsi_wave *w)
{
	return tsi_wave_highpass(w, draws[0] / tsi_op_number(op, 0));
}

static int filter_one(const struct tsi_op *op, const double *draws,
		      struct tsi_wave *w)
{
	return draws[0] != 0 ? filter_low(op, draws + 1, w)
			     : filter_high(op, draws + 1, w);
}

const struct tsi_op_type tsi_op_high_low_pass = {
	.name = "HighLowPass",
	.args = both_args,
	.help = "the high frequencies, or the low ones, as julius has them",
	.check = check_filter,
	.count = two,
	.draws = "0 for the high ones, 1 for the low ones; the frequency",
	.draw = draw_both,
	.sound = filter_one,
};

const struct tsi_op_type tsi_op_high_pass = {
	.name = "HighPassFilter",
	.args = high_args,
	.help = "the high frequencies, as julius has them",
	.check = check_filter,
	.count = tsi_sizes_one,
	.draws = "the frequency",
	.draw = draw_filter,
	.sound = filter_high,
};

const struct tsi_op_type tsi_op_low_pass = {
	.name = "LowPassFilter",
	.args = low_args,
	.help = "the low frequencies, as julius has them",
	.check = check_filter,
	.count = tsi_sizes_one,
	.draws = "the frequency",
	.draw = draw_filter,
	.sound = filter_low,
};

/* ---- Delay ---- */

enum { RATE, VOLUME, LEAST, MOST, STEP };

static const struct tsi_arg delay_args[] = {
	[RATE] = ARG_RATE,
	[VOLUME] = ARG_NUMBER("volume_factor", "0.5", 0, 1e3),
	[LEAST] = ARG_NUMBER("min_delay", "200", 1, 1e6),
	[MOST] = ARG_NUMBER("max_delay", "500", 1, 1e6),
	[STEP] = ARG_NUMBER("delay_interval", "50", 1, 1e6),
	{ 0 },
};

static bool check_delay(struct tsi_op *op, const char **why)
{
	*why = "max_delay, which isn't one of the delays, is above min_delay";
	return tsi_op_number(op, LEAST) < tsi_op_number(op, MOST);
}

/* NumPy's arange(min_delay, max_delay, delay_interval). */
static int draw_delay(const struct tsi_op *op, struct tsi_words *w,
		      uint32_t width, uint32_t height, double *draws)
{
	const double least = tsi_op_number(op, LEAST);
	const double step = tsi_op_number(op, STEP);
	const double n = (tsi_op_number(op, MOST) - least) / step;
	uint32_t delays = (uint32_t)n;

	(void)width;
	(void)height;
	if (delays < n)
		delays++;
	draws[0] = least + step * tsi_words_below(w, delays);
	return 0;
}

static int delay(const struct tsi_op *op, const double *draws,
		 struct tsi_wave *w)
{
	tsi_wave_delay(w,
		       (uint32_t)(draws[0] * (tsi_op_number(op, RATE) / 1000)),
		       tsi_op_number(op, VOLUME));
	return 0;
}

const struct tsi_op_type tsi_op_delay = {
	.name = "Delay",
	.args = delay_args,
	.help = "the mean of the sample and what it was some time before",
	.check = check_delay,
	.count = tsi_sizes_one,
	.draws = "milliseconds",
	.draw = draw_delay,
	.sound = delay,
};
