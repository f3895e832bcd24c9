/* SPDX-License-Identifier: MIT */
/*
 * ends.c - ToTensor, ToImage, ToDtype, Normalize and the like: they say what
 * tensors a job wants, which its view makes of the samples' bytes.
 */
#include "transforms/op.h"

static void nothing(const struct tsi_op *op, struct tsi_ends *ends)
{
	(void)op;
	(void)ends;
}

static void to_floats(const struct tsi_op *op, struct tsi_ends *ends)
{
	(void)op;
	ends->floats = true;
}

const struct tsi_op_type tsi_op_to_tensor = {
	.name = "ToTensor",
	.help = "floats from 0 to 1: made by the job's view",
	.end = to_floats,
};

const struct tsi_op_type tsi_op_pil_to_tensor = {
	.name = "PILToTensor",
	.help = "bytes: a job's dtype=\"uint8\"",
	.end = nothing,
};

const struct tsi_op_type tsi_op_to_image = {
	.name = "ToImage",
	.help = "bytes: a job's dtype=\"uint8\"",
	.end = nothing,
};

const struct tsi_op_type tsi_op_to_pure_tensor = {
	.name = "ToPureTensor",
	.help = "nothing: tensors are plain ones",
	.end = nothing,
};

/* ------------------------------------------------------------------------
 * ToDtype, ConvertImageDtype
 */

#define DTYPES "float32|float16|bfloat16|uint8|float|half"
#define UINT8 3

static const struct tsi_arg dtype_args[] = {
	{ .name = "dtype",
	  .kind = TSI_ARG_WORD,
	  .value = "float32",
	  .words = DTYPES },
	{ .name = "scale", .kind = TSI_ARG_SWITCH, .value = "True" },
	{ 0 },
};

static bool check_dtype(struct tsi_op *op, const char **why)
{
	if (tsi_op_number(op, 0) == UINT8 || tsi_op_number(op, 1))
		return true;
	*why = "without scale=True floats are from 0 to 255, which no view has";
	return false;
}

static void end_dtype(const struct tsi_op *op, struct tsi_ends *ends)
{
	if (tsi_op_number(op, 0) != UINT8)
		ends->floats = true;
}

const struct tsi_op_type tsi_op_to_dtype = {
	.name = "ToDtype",
	.args = dtype_args,
	.help = "floats from 0 to 1: made by the job's view",
	.check = check_dtype,
	.end = end_dtype,
};

const struct tsi_op_type tsi_op_convert_dtype = {
	.name = "ConvertImageDtype",
	.args = dtype_args,
	.help = "floats from 0 to 1: made by the job's view",
	.check = check_dtype,
	.end = end_dtype,
};

/* ------------------------------------------------------------------------
 * Normalize
 */

static const struct tsi_arg normalize_args[] = {
	{ .name = "mean",
	  .kind = TSI_ARG_NUMBER,
	  .least = 1,
	  .most = 3,
	  .min = -1e6,
	  .max = 1e6 },
	{ .name = "std",
	  .kind = TSI_ARG_NUMBER,
	  .least = 1,
	  .most = 3,
	  .min = 1e-6,
	  .max = 1e6 },
	{ 0 },
};

static void end_normalize(const struct tsi_op *op, struct tsi_ends *ends)
{
	const struct tsi_arg_value *mean = &op->arg[0], *std = &op->arg[1];

	ends->floats = true;
	ends->normalize = true;
	for (unsigned k = 0; k < 3; k++) {
		ends->mean[k] = mean->v[mean->n == 3 ? k : 0];
		ends->std[k] = std->v[std->n == 3 ? k : 0];
	}
}

static bool is_one(const double *v)
{
	return v[0] == v[1] && v[0] == v[2];
}

bool tsi_op_ends_are_one(const struct tsi_ends *ends)
{
	return !ends->normalize || (is_one(ends->mean) && is_one(ends->std));
}

const struct tsi_op_type tsi_op_normalize = {
	.name = "Normalize",
	.args = normalize_args,
	.help = "(x - mean) / std: made by the job's view",
	.end = end_normalize,
};
