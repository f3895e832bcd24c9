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
static const struct tsi_op_type *const sounds[] = { TSI_SOUND_TYPES(TYPE) };

const struct tsi_op_type *tsi_op_type_at(unsigned k)
{
	return k < sizeof(types) / sizeof(types[0]) ? types[k] : NULL;
}

const struct tsi_op_type *tsi_sound_type_at(unsigned k)
{
	return k < sizeof(sounds) / sizeof(sounds[0]) ? sounds[k] : NULL;
}

/* The first that matches, of those on images, or on audio and what chooses. */
static const struct tsi_op_type *
find(const char *name, size_t len, bool sound,
     bool (*matches)(const char *name, size_t len, const char *type))
{
	const struct tsi_op_type *type;

	for (unsigned k = 0; sound && (type = tsi_sound_type_at(k)); k++)
		if (matches(name, len, type->name))
			return type;
	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++)
		if ((!sound || type->chosen) && matches(name, len, type->name))
			return type;
	return NULL;
}

static bool is(const char *name, size_t len, const char *type)
{
	return strlen(type) == len && !memcmp(type, name, len);
}

static bool is_near(const char *name, size_t len, const char *type)
{
	return tsi_text_near(name, len, type, strlen(type));
}

const struct tsi_op_type *tsi_op_type_of(const char *name, size_t len,
					 bool sound)
{
	return find(name, len, sound, is);
}

const char *tsi_op_type_near(const char *name, size_t len, bool sound)
{
	const struct tsi_op_type *type = find(name, len, sound, is_near);

	return type ? type->name : NULL;
}

const char *tsi_op_type_instead(const char *name, size_t len)
{
	static const char sox[] =
		"it is what SoX's effects make of a sample, which has no other "
		"definition; leave it out and do it in the job, or serve "
		"samples from Python (tsock.serve)";
	static const struct {
		const char *name, *why;
	} known[] = {
		{ "AugMix",
		  "torchvision's runs its operations on tensors; PILAugMix has "
		  "its arguments, and Pillow's operations" },
		{ "PitchShift", sox },
		{ "Reverb", sox },
	};

	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
		if (is(name, len, known[k].name))
			return known[k].why;
	return NULL;
}
