/* SPDX-License-Identifier: MIT */
/*
 * fuzz_audio.c - any bytes are a sample of audio or an error, within bounds of
 * memory; and where it is an error is what the length of the file's good part
 * says.
 *
 * The last byte says what samples are.
 */
#include "audio/length.h"
#include "audio/load.h"
#include "audio/wav.h"
#include "corpus.h"
#include "tsock/tsock.h"

#define FRAMES 300

#define KINDS 8

static const struct tsi_audio_opts kind[KINDS] = {
	{ .channels = 1, .frames = FRAMES, .views = 1 },
	{ .channels = 2, .frames = FRAMES, .views = 2, .seed = 1 },
	{ .channels = 1, .frames = FRAMES, .views = 1, .centre = true },
	{ .channels = 1,
	  .frames = FRAMES,
	  .views = 2,
	  .rate = 8000,
	  .resamples = true },
	{ .channels = 2,
	  .frames = FRAMES,
	  .clips = TSI_AUDIO_WHOLE,
	  .views = 1 },
	{ .channels = 1, .frames = FRAMES, .clips = TSI_AUDIO_CUT, .views = 1 },
	{ .channels = 1,
	  .frames = FRAMES,
	  .clips = TSI_AUDIO_WHOLE,
	  .views = 1,
	  .rate = 8000,
	  .resamples = true },
	{ .channels = 2,
	  .frames = FRAMES,
	  .clips = TSI_AUDIO_CUT,
	  .views = 1,
	  .rate = 8000,
	  .resamples = true },
};
static struct tsi_audio *audio[KINDS];

static void seed(const char *folder)
{
	static uint8_t file[44 + 2000 + 1] =
		"RIFF\xf8\x07\0\0WAVEfmt \x10\0\0\0\1\0\2\0\x40\x1f\0\0"
		"\0\x7d\0\0\4\0\x10\0data\xd0\x07";
	static const char *const magic[] = { "fLaC", "OggS", "ID3", "FORM" };

	for (unsigned k = 44; k < sizeof(file) - 1; k++)
		file[k] = (uint8_t)(k * k);
	for (unsigned k = 0; k < KINDS; k++) {
		char name[8] = { 'w', 'a', 'v', (char)('0' + k) };

		file[sizeof(file) - 1] = (uint8_t)k;
		corpus_put(folder, name, file, sizeof(file));
	}
	for (unsigned k = 0; k < 4; k++)
		corpus_put(folder, magic[k], magic[k], strlen(magic[k]) + 1);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *folder = corpus_folder(*argc, *argv);

	if (folder)
		seed(folder);
	for (unsigned k = 0; k < KINDS; k++)
		never(tsi_audio_create(&kind[k], &audio[k]));
	return 0;
}

/* As tsi_audio_load(), twice, to memory that was filled with other bytes. */
static int load(unsigned k, const uint8_t *data, size_t size)
{
	size_t bytes = sizeof(float) * kind[k].channels * FRAMES;
	float *to[2][2];
	uint32_t last;
	int err[2];

	for (unsigned i = 0; i < 2; i++) {
		for (unsigned v = 0; v < 2; v++) {
			to[i][v] = malloc(bytes);
			never(!to[i][v]);
			memset(to[i][v], i ? 0x57 : 0xa8, bytes);
		}
		err[i] = tsi_audio_load(audio[k], data, size, 0, 7, to[i]);
	}
	never(err[0] != err[1]);
	last = tsi_audio_last(audio[k]);
	never(!err[0] && last > FRAMES);
	/* A crop may be zeros alone, of a frame that resamples to none. */
	never(!err[0] && !last && kind[k].clips != TSI_AUDIO_CROP);
	for (size_t at = last; !err[0] && at < FRAMES; at++)
		never(to[0][0][at] != 0);
	for (unsigned v = 0; v < 2; v++) {
		never(!err[0] && v < kind[k].views &&
		      memcmp(to[0][v], to[1][v], bytes));
		free(to[0][v]);
		free(to[1][v]);
	}
	return err[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t frames = 0, there = 0, rate = 0;
	struct tsi_wav w;
	uint8_t *copy;
	unsigned k;
	int err, lost;

	if (size < 1)
		return 0;
	k = data[--size] % KINDS;
	/* A block of its own, so that each byte behind it is found. */
	copy = malloc(size ? size : 1);
	never(!copy);
	memcpy(copy, data, size);
	err = tsi_audio_sniff(copy, size, true);
	never(err && err != TSOCK_EDATA);
	err = tsi_audio_length_sniff(&kind[k], copy, size);
	never(err && err != TSOCK_EDATA);
	err = tsi_audio_rate(copy, size, &rate);
	never(err && err != TSOCK_EDATA);
	err = load(k, copy, size);
	never(err && err != TSOCK_EDATA && err != TSOCK_ENOTSUP);
	lost = tsi_audio_measure(audio[k], copy, size, &frames, &there);
	never(lost && lost != TSOCK_EDATA);
	never(!lost && there > frames);
	/* Decoders of compressed files may stop sooner where they seek. */
	if (!lost && !kind[k].resamples && tsi_wav_claims(copy, size) &&
	    !tsi_wav_head(copy, size, size, &w) && !w.coding)
		never((err != 0) !=
		      (tsi_audio_end(audio[k], frames, 0, 7) > there));
	free(copy);
	return 0;
}
