/* SPDX-License-Identifier: MIT */
/*
 * kernels_sim.c - stands for lib/convert/kernels.cu on the simulated GPU: the
 * host's own conversion, run in stream order, an image at a step.
 *
 * Reads the images when it runs, not when it is launched.
 */
#include "convert/kernels.h"

#include <stdlib.h>

#include "simcuda.h"
#include "convert/convert.h"

struct launch {
	struct tsi_kernel_convert k;
	struct tsi_convert *convert;
	size_t in, out; /* bytes of an image */
};

static void convert_one(void *arg, char *const *range, unsigned step)
{
	const struct launch *l = arg;

	const uint64_t shape[] = { 1, l->k.pixels, l->k.channels };

	tsi_convert_image(l->convert, shape,
			  (const uint8_t *)range[0] + step * l->in,
			  range[1] + step * l->out);
}

static void fini(void *arg)
{
	struct launch *l = arg;

	tsi_convert_destroy(l->convert);
	free(l);
}

static size_t width(uint32_t dtype)
{
	if (dtype == TSOCK_U8)
		return 1;
	return dtype == TSOCK_F32 ? 4 : 2;
}

static int prepare(const struct tsi_kernel_convert *k, struct launch **out)
{
	struct tsi_view_spec spec = { .dtype = k->dtype,
				      .layout = k->layout,
				      .normalize = k->normalize };
	struct launch *l = calloc(1, sizeof(*l));

	if (!l)
		return cudaErrorMemoryAllocation;
	for (int c = 0; c < 3; c++) {
		spec.mean[c] = k->mean[c];
		spec.std[c] = k->std[c];
	}
	if (tsi_convert_create(&spec, &l->convert)) {
		free(l);
		return cudaErrorInvalidValue;
	}
	l->k = *k;
	l->in = (size_t)(k->pixels * k->channels);
	l->out = l->in * width(k->dtype);
	*out = l;
	return 0;
}

int tsi_kernel_convert(const struct tsi_kernel_convert *k, void *stream)
{
	struct simcuda_kernel kernel = { .nranges = 2,
					 .steps = (unsigned)k->count,
					 .run = convert_one,
					 .fini = fini };
	struct launch *l;
	int err;

	if (!k->count || !k->pixels)
		return 0;
	if ((uintptr_t)k->dst % width(k->dtype))
		return cudaErrorMisalignedAddress;
	err = prepare(k, &l);
	if (err)
		return err;
	kernel.range[0] =
		(struct simcuda_range){ k->src, k->count * l->in, false };
	kernel.range[1] =
		(struct simcuda_range){ k->dst, k->count * l->out, true };
	kernel.arg = l;
	err = (int)simcuda_launch(stream, &kernel);
	if (err)
		fini(l);
	return err;
}

const char *tsi_kernel_gpus(void)
{
	return "750,800,900";
}
