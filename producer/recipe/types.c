/* SPDX-License-Identifier: MIT */
/*
 * types.c - the table of operations.
 */
#include "recipe/types.h"

#include <string.h>
#include <strings.h>

#include "base/text.h"

#define TYPE(name) &tsi_op_##name,
static const struct tsi_op_type *const types[] = { TSI_OP_TYPES(TYPE) };

const struct tsi_op_type *tsi_op_type_at(unsigned k)
{
	return k < sizeof(types) / sizeof(types[0]) ? types[k] : NULL;
}

const struct tsi_op_type *tsi_op_type_of(const char *name, size_t len)
{
	const struct tsi_op_type *type;

	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++)
		if (strlen(type->name) == len && !memcmp(type->name, name, len))
			return type;
	return NULL;
}

const char *tsi_op_type_instead(const char *name, size_t len)
{
	static const char aug_mix[] = "AugMix";

	return len == strlen(aug_mix) && !memcmp(name, aug_mix, len)
		       ? "torchvision's runs its operations on tensors; "
			 "PILAugMix has its arguments, and Pillow's operations"
		       : NULL;
}

const char *tsi_op_type_near(const char *name, size_t len)
{
	const struct tsi_op_type *type;

	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++)
		if (tsi_text_near(name, len, type->name,
				      strlen(type->name)))
			return type->name;
	return NULL;
}
