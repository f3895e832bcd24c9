/* SPDX-License-Identifier: MIT */
/*
 * sizes.c - arguments that several operations have.
 */
#include "transforms/sizes.h"

#include <math.h>
#include <string.h>

#include "ops/pad.h"

bool tsi_sizes_pair(struct tsi_arg_value *v)
{
	if (v->n == 1)
		v->v[v->n++] = v->v[0];
	return true;
}

int64_t tsi_sizes_centre(uint32_t edge, uint32_t size)
{
	if (edge < size)
		return -(int64_t)((size - edge) / 2);
	return (int64_t)rint((double)(edge - size) / 2.0);
}

unsigned tsi_sizes_draw_filter(const struct tsi_op *op, unsigned arg,
			       struct tsi_words *w)
{
	static const enum tsi_filter either[] = { TSI_FILTER_BILINEAR,
						  TSI_FILTER_BICUBIC };
	const unsigned word = (unsigned)tsi_op_number(op, arg);

	return word ? word - 1 : either[tsi_words_below(w, 2)];
}

bool tsi_sizes_antialias(struct tsi_arg_value *v, const char **why)
{
	if (v->n && !v->v[0]) {
		*why = "antialias=False is for tensors; images are resized as "
		       "by Pillow, always with antialiasing";
		return false;
	}
	*v = (struct tsi_arg_value){ .n = 1, .v = { 1 } };
	return true;
}

void tsi_sizes_fill(const struct tsi_arg_value *v, uint8_t *fill)
{
	for (unsigned k = 0; k < 3; k++)
		fill[k] = v->n ? (uint8_t)v->v[v->n == 3 ? k : 0] : 0;
}

uint8_t tsi_sizes_mask_fill(const struct tsi_arg_value *v,
			    const struct tsi_arg_value *fill)
{
	uint8_t bytes[3];

	if (v->n)
		return (uint8_t)v->v[0];
	tsi_sizes_fill(fill, bytes);
	return fill->n == 3 ? 0 : bytes[0];
}

const char *tsi_sizes_unboxed(const struct tsi_op *op)
{
	const struct tsi_arg *arg = op->type->args;
	unsigned k = 0;

	while (strcmp(arg[k].name, "padding_mode") != 0)
		k++;
	return tsi_op_number(op, k) == TSI_PAD_CONSTANT
		       ? NULL
		       : "with another padding_mode than constant";
}

void tsi_sizes_fixed(const struct tsi_arg_value *v, struct tsi_op_size *size)
{
	size->known = true;
	size->height = (uint32_t)v->v[0];
	size->width = (uint32_t)v->v[1];
}

unsigned tsi_sizes_one(const struct tsi_op *op)
{
	(void)op;
	return 1;
}
