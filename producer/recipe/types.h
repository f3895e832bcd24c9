/* SPDX-License-Identifier: MIT */
/*
 * types.h - the operations that a recipe may have.
 */
#ifndef TSI_RECIPE_TYPES_H
#define TSI_RECIPE_TYPES_H

#include "transforms/op.h"

/* All of them, in the order in which --transform help lists them. */
#define TSI_OP_TYPES(T) \
	T(resize) \
	T(random_resize) \
	T(random_resized_crop) \
	T(timm_resized_crop) \
	T(center_crop) \
	T(resize_keep_ratio) \
	T(center_crop_or_pad) \
	T(random_crop_or_pad) \
	T(random_crop) \
	T(pad) \
	T(horizontal_flip) \
	T(vertical_flip) \
	T(random_rotation) \
	T(random_affine) \
	T(random_perspective) \
	T(gaussian_blur) \
	T(pil_gaussian_blur) \
	T(color_jitter) \
	T(grayscale) \
	T(random_grayscale) \
	T(random_solarize) \
	T(random_posterize) \
	T(random_invert) \
	T(random_autocontrast) \
	T(random_equalize) \
	T(random_sharpness) \
	T(random_erasing) \
	T(rand_augment) \
	T(trivial_augment) \
	T(auto_augment) \
	T(pil_aug_mix) \
	T(timm_rand_augment) \
	T(timm_auto_augment) \
	T(timm_aug_mix) \
	T(random_apply) \
	T(random_choice) \
	T(random_order) \
	T(to_tensor) \
	T(pil_to_tensor) \
	T(to_image) \
	T(to_dtype) \
	T(convert_dtype) \
	T(to_pure_tensor) \
	T(normalize)

/* Those on audio, which torchaudio-augmentations has; all that choose, too. */
#define TSI_SOUND_TYPES(T) \
	T(sound_resized_crop) \
	T(sound_crop) \
	T(polarity_inversion) \
	T(noise) \
	T(gain) \
	T(high_low_pass) \
	T(high_pass) \
	T(low_pass) \
	T(delay) \
	T(reverse)

#define TSI_OP_EXTERN(name) extern const struct tsi_op_type tsi_op_##name;
TSI_OP_TYPES(TSI_OP_EXTERN)
TSI_SOUND_TYPES(TSI_OP_EXTERN)
#undef TSI_OP_EXTERN

/* Type k of TSI_OP_TYPES, or of TSI_SOUND_TYPES; NULL behind the last one. */
const struct tsi_op_type *tsi_op_type_at(unsigned k);
const struct tsi_op_type *tsi_sound_type_at(unsigned k);

/* The type of this name, of operations on images or audio; NULL: none. */
const struct tsi_op_type *tsi_op_type_of(const char *name, size_t len,
					 bool sound);

/* The name that a misspelt one is near to; NULL: none is. */
const char *tsi_op_type_near(const char *name, size_t len, bool sound);

/*
 * What to write in place of an operation of torchvision or of
 * torchaudio-augmentations that isn't native, and why, as a sentence's end;
 * NULL: there is nothing.
 */
const char *tsi_op_type_instead(const char *name, size_t len);

#endif
