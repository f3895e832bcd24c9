/* SPDX-License-Identifier: MIT */
/*
 * preset.h - recipes that have a name.
 *
 * A preset is a line of TSI_PRESETS: its name, whether samples come in the data
 * set's own order unless --order says otherwise, its text, and what --help says
 * of it.  In the text the words SIZE and RESIZE stand for what the options
 * --size and --resize say.
 */
#ifndef TSI_RECIPE_PRESET_H
#define TSI_RECIPE_PRESET_H

#include <stdbool.h>
#include <stdint.h>

#include "recipe/recipe.h"

/* ImageNet's mean and deviation: erased is what is 0, or noise, behind them. */
#define TSI_PRESET_NORMALIZED \
	"ToTensor() Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))"

/* A view of SimCLR. */
#define TSI_PRESET_SIMCLR \
	"RandomResizedCrop(SIZE) RandomHorizontalFlip() " \
	"RandomApply([ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8) " \
	"RandomGrayscale(0.2) PILGaussianBlur(0.5)"

/* A view of DINO, without its blur. */
#define TSI_PRESET_DINO(size, scale) \
	"RandomResizedCrop(" #size ", (" scale "), interpolation=bicubic) " \
	"RandomHorizontalFlip() RandomApply([ColorJitter(0.4, 0.4, 0.2, 0.1)" \
	"], p=0.8) RandomGrayscale(0.2)"
/* All of them, in the order in which --help lists them. */
#define TSI_PRESETS(P) \
	P("train", false, "RandomResizedCrop(SIZE) RandomHorizontalFlip()", \
	  "random resized crop and flip (default)") \
	P("eval", true, "Resize(RESIZE) CenterCrop(SIZE)", \
	  "resize and centre crop (default of --split val)") \
	P("torchvision", false, \
	  "RandomResizedCrop(SIZE) " \
	  "RandomHorizontalFlip() " TSI_PRESET_NORMALIZED, \
	  "torchvision's first recipe: that of train, normalised") \
	P("torchvision-v2", false, \
	  "RandomResizedCrop(SIZE) RandomHorizontalFlip() " \
	  "TrivialAugmentWide(interpolation=bilinear) " TSI_PRESET_NORMALIZED \
	  " RandomErasing(p=0.1)", \
	  "that of torchvision's newer weights (with --size 176 theirs)") \
	P("timm", false, \
	  "RandomResizedCropAndInterpolation(SIZE) RandomHorizontalFlip() " \
	  "ColorJitter(0.4, 0.4, 0.4)", \
	  "the default of timm's train.py") \
	P("timm-rand", false, \
	  "RandomResizedCropAndInterpolation(SIZE, interpolation=bicubic) " \
	  "RandomHorizontalFlip() TimmRandAugment(m=9, mstd=0.5, inc=True, " \
	  "interpolation=bicubic) " TSI_PRESET_NORMALIZED \
	  " RandomErasing(0.25, (0.02, 1/3), (0.3, 1/0.3), value=random)", \
	  "DeiT's: timm's --aa rand-m9-mstd0.5-inc1, bicubic, --reprob 0.25 " \
	  "--remode pixel") \
	P("simclr", false, "Views(2 * [" TSI_PRESET_SIMCLR "])", \
	  "SimCLR's two views") \
	P("dino", false, \
	  "Views([" TSI_PRESET_DINO( \
		  SIZE, \
		  "0.4, 1") " PILGaussianBlur(1)], " \
			    "[" TSI_PRESET_DINO( \
				    SIZE, \
				    "0.4, 1") " PILGaussianBlur(0.1) " \
					      "RandomSolarize(128, 0.2)], 8 " \
					      "* [" TSI_PRESET_DINO( \
						      96, \
						      "0.05, 0.4") " PILGauss" \
								   "ianBlur(" \
								   "0.5)])", \
	  "DINO's two global views and eight local ones of 96 x 96") \
	P("cifar", false, "RandomCrop(32, padding=4) RandomHorizontalFlip()", \
	  "crops of 32 x 32 pixels in a border of 4") \
	P("segmentation", false, \
	  "RandomResize(260, 1040) RandomHorizontalFlip() RandomCrop(480, " \
	  "pad_if_needed=True, mask_fill=255)", \
	  "torchvision's for images with masks") \
	P("segmentation-eval", true, "Resize(520) CenterCrop(520)", \
	  "short edge 520, and its middle")

/* Their numbers, of those that are known by name. */
enum { TSI_PRESET_TRAIN, TSI_PRESET_EVAL };

struct tsi_preset {
	const char *name; /* what --preset calls it */
	bool in_order;
	const char *text;
};

/* Their names, for --preset: "train|eval". */
#define TSI_PRESET_WORD(name, in_order, text, help) "|" name
#define TSI_PRESET_WORDS (&TSI_PRESETS(TSI_PRESET_WORD)[1])

/* A line of --help for each: "train: random ...;\neval: ...". */
#define TSI_PRESET_LINE(name, in_order, text, help) ";\n" name ": " help
#define TSI_PRESET_HELP (&TSI_PRESETS(TSI_PRESET_LINE)[2])

/* Preset k of TSI_PRESETS; NULL behind the last one. */
const struct tsi_preset *tsi_preset_at(unsigned k);

/* Does --size, or --resize, have an effect? */
bool tsi_preset_has_size(const struct tsi_preset *p);
bool tsi_preset_has_resize(const struct tsi_preset *p);

/* Fails as tsi_recipe_read() does. */
int tsi_preset_recipe(const struct tsi_preset *p, uint32_t size,
		      uint32_t resize, struct tsi_recipe **out);

#endif
