/* SPDX-License-Identifier: MIT */
/*
 * test_recipe.c - texts of recipes, what is said of wrong ones, and geometry
 * that is planned beside the same done step by step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recipe/types.h"
#include "resample/resample.h"
#include "test/lib/image_gen.h"
#include "test/lib/recipes.h"
#include "tsock/tsock.h"

static void is_text(const char *given, const char *full)
{
	assert_string_equal(recipes_of("%s", given)->text, full);
	/* What is printed reads as itself. */
	assert_string_equal(recipes_of("%s", full)->text, full);
}

static void texts_get_all_their_arguments(void **state)
{
	(void)state;
	is_text("CenterCrop(224)", "CenterCrop(size=(224, 224))");
	is_text("Resize(256), CenterCrop((288, 512))",
		"Resize(size=256, interpolation=bilinear, max_size=None, "
		"antialias=True) CenterCrop(size=(288, 512))");
	is_text("RandomResizedCrop(32, ratio=(1/2, 2.5), "
		"interpolation=InterpolationMode.BICUBIC)",
		"RandomResizedCrop(size=(32, 32), scale=(0.08, 1), ratio=(0.5, "
		"2.5), interpolation=bicubic, antialias=True)");
	is_text("Resize((8, 8), 3) RandomApply([RandomVerticalFlip(1)], 0.3)",
		"Resize(size=(8, 8), interpolation=bicubic, max_size=None, "
		"antialias=True) RandomApply([RandomVerticalFlip(p=1)], "
		"p=0.3)");
}

static void a_list_among_choices_is_one_of_them(void **state)
{
	static const char choice[] =
		"RandomChoice([RandomApply([RandomInvert(p=1) "
		"RandomVerticalFlip(p=1)], p=1) RandomEqualize(p=1)], p=None) "
		"CenterCrop(size=(8, 8))";

	(void)state;
	is_text("RandomChoice([Compose([RandomInvert(1), RandomVerticalFlip(1)]"
		"), RandomEqualize(1)]) CenterCrop(8)",
		choice);
	is_text("RandomChoice(\n    Compose(\n    RandomInvert(p=1)\n    "
		"RandomVerticalFlip(p=1)\n)\n    RandomEqualize(p=1)\n)(p=None)"
		"CenterCrop(8)",
		choice);
	is_text("RandomChoice([[RandomInvert(1), [RandomVerticalFlip(1)]], "
		"Sequential(RandomEqualize(1))]) CenterCrop(8)",
		"RandomChoice([RandomApply([RandomInvert(p=1) "
		"RandomVerticalFlip(p=1)], p=1) RandomApply([RandomEqualize("
		"p=1)], p=1)], p=None) CenterCrop(size=(8, 8))");
	/* Where all are done, and of a list that holds what is chosen from. */
	is_text("RandomApply([Compose([RandomInvert(1), RandomEqualize(1)])]) "
		"CenterCrop(8)",
		"RandomApply([RandomInvert(p=1) RandomEqualize(p=1)], p=0.5) "
		"CenterCrop(size=(8, 8))");
	is_text("RandomOrder(ModuleList((0): RandomInvert(1) (1): "
		"RandomEqualize(1))) CenterCrop(8)",
		"RandomOrder([RandomInvert(p=1) RandomEqualize(p=1)]) "
		"CenterCrop(size=(8, 8))");
}

/* What print() shows of torchvision's Compose, of both versions. */
static void texts_are_what_print_shows(void **state)
{
	static const char v1[] =
		"Compose(\n    Resize(size=256, interpolation=bilinear, "
		"max_size=None, antialias=True)\n    CenterCrop(size=(224, "
		"224))\n    ToTensor()\n    Normalize(mean=[0.485, 0.456, "
		"0.406], std=[0.229, 0.224, 0.225])\n)";
	static const char v2[] =
		"Compose(\n      Resize(size=[256], interpolation="
		"InterpolationMode.BILINEAR, antialias=True)\n      "
		"CenterCrop(size=(224, 224))\n      ToImage()\n      "
		"ToDtype(scale=True)\n      Normalize(mean=[0.485, 0.456, "
		"0.406], std=[0.229, 0.224, 0.225], inplace=False)\n)";
	static const char nn[] =
		"Sequential(\n  (0): RandomApply(\n    p=0.5\n    "
		"RandomHorizontalFlip(p=0.25)\n)\n  (1): CenterCrop(8)\n)";
	const struct tsi_recipe *r = recipes_of("%s", v1);

	(void)state;
	assert_string_equal(r->text, recipes_eval(256, 224)->text);
	assert_string_equal(recipes_of("%s", v2)->text, r->text);
	assert_true(r->ends.normalize && r->ends.floats);
	assert_true(r->ends.mean[1] == 0.456 && r->ends.std[2] == 0.225);
	is_text("Compose(\n    RandomChoice(\n    Pad(padding=3, fill=0, "
		"padding_mode=constant)\n    RandomInvert(p=0.5)\n)(p=[1, "
		"2])\n    CenterCrop(size=(8, 8))\n)",
		"RandomChoice([Pad(padding=3, fill=0, padding_mode=constant, "
		"mask_fill=None) "
		"RandomInvert(p=0.5)], p=(1, 2)) CenterCrop(size=(8, 8))");
	is_text(nn, "RandomApply([RandomHorizontalFlip(p=0.25)], p=0.5) "
		    "CenterCrop(size=(8, 8))");
}

static void views_have_operations_and_draws_of_their_own(void **state)
{
	const struct tsi_recipe *r =
		recipes_of("Views([CenterCrop(3)], 2 * [RandomCrop(5)], "
			   "Compose([RandomCrop(5)])) ToTensor()");

	(void)state;
	assert_int_equal(r->views, 4);
	assert_int_equal(r->view[0].width, 3);
	assert_int_equal(r->view[3].width, 5);
	assert_int_equal(r->draws, 6);
	assert_true(r->ends.floats);
	assert_string_equal(
		r->text,
		"Views([CenterCrop(size=(3, 3))], 3 * [RandomCrop(size=(5, 5), "
		"padding=None, pad_if_needed=False, fill=0, "
		"padding_mode=constant, mask_fill=None)])");
	assert_string_equal(recipes_of("%s", r->text)->text, r->text);
}

static void
an_operation_that_gives_no_size_keeps_the_one_that_all_have(void **state)
{
	static const struct {
		const char *text;
		uint32_t width, height;
	} all[] = {
		{ "RandomHorizontalFlip()", 30, 20 },
		{ "Pad(4)", 38, 28 },
		{ "Resize(40)", 60, 40 },
		{ "RandomCrop((20, 30), padding=4)", 30, 20 },
		{ "RandomApply([RandomVerticalFlip()])", 30, 20 },
		{ "Views([Pad(1)], [CenterCrop(8)])", 32, 22 },
	};
	struct tsi_recipe *r;

	(void)state;
	for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
		assert_int_equal(tsi_recipe_read_of(all[k].text, 30, 20, &r),
				 0);
		assert_int_equal(r->view[0].width, all[k].width);
		assert_int_equal(r->view[0].height, all[k].height);
		tsi_recipe_free(r);
	}
	/* Of what is drawn none follows. */
	assert_int_equal(tsi_recipe_read_of("RandomResize(8, 16)", 30, 20, &r),
			 TSOCK_EARG);
	assert_int_equal(tsi_recipe_read_of("Resize(2)", 4000, 1, &r),
			 TSOCK_EARG);
	assert_non_null(
		strstr(tsock_errmsg(), "their edges must be 1 to 4096"));
}

static void refused(const char *text, const char *why, const char *marked)
{
	struct tsi_recipe *r = NULL;
	char mark[100];

	if (tsi_recipe_read(text, &r) != TSOCK_EARG)
		fail_msg("%s is taken", text);
	snprintf(mark, sizeof(mark), ">>%s<<", marked);
	if (!strstr(tsock_errmsg(), why) ||
	    (*marked && !strstr(tsock_errmsg(), mark)))
		fail_msg("%s: %s", text, tsock_errmsg());
}

static void wrong_texts_are_marked(void **state)
{
	(void)state;
	refused("", "no operation", "");
	refused("RandomResizeCrop(224)", "did you mean RandomResizedCrop",
		"RandomResizeCrop");
	refused("ElasticTransform(2) CenterCrop(8)",
		"ElasticTransform isn't native", "ElasticTransform");
	refused("v2.AugMix(severity=3) CenterCrop(8)",
		"PILAugMix has its arguments", "v2.AugMix");
	refused("TimmAutoAugment(4a) CenterCrop(8)", "policy is one of v0|v0r|",
		"4a");
	refused("TimmAugMix(fill=(1, 2)) CenterCrop(8)",
		"fill has 1 number or 3", "(");
	refused("RandomRotation(9, fill=(1, 2)) CenterCrop(8)",
		"fill has 1 number or 3", "(");
	refused("RandomErasing(value=(1, 2)) CenterCrop(8)",
		"value has 1 number or 3", "(");
	refused("CenterCrop(8) Normalize((0.5, 0.5), 0.5)",
		"mean has 1 number or 3", "(");
	refused("CenterCrop()", "CenterCrop needs size", "CenterCrop");
	refused("CenterCrop(0)", "size is from 1 to 4096", "0");
	refused("CenterCrop(2.5)", "size is a whole number", "2.5");
	refused("CenterCrop(nan)", "size is a number", "nan");
	refused("CenterCrop(1/0)", "size is from 1", "1/0");
	refused("CenterCrop((1, 2, 3))", "no more than 2", "3");
	refused("CenterCrop(8, 9)", "CenterCrop has the arguments size", "9");
	refused("CenterCrop(8, color=1)", "has the arguments size", "color");
	refused("CenterCrop(size=8, size=9)", "size is given twice", "size");
	refused("CenterCrop(8", "a ')' is missing", "CenterCrop");
	refused("CenterCrop(8))", "name of an operation is wanted", ")");
	refused("CenterCrop(8) !", "name of an operation is wanted", "!");
	refused("CenterCrop('8)", "size is a number", "'8)");
	refused("RandomHorizontalFlip(1.5) CenterCrop(8)", "p is from 0 to 1",
		"1.5");
	refused("Resize(8, interpolation=cubic)", "interpolation is one of",
		"cubic");
	refused("Resize((8, 8), max_size=9)", "max_size is for a size of one",
		"Resize");
	refused("Resize((8, 8), antialias=False)", "antialias=False is for",
		"Resize");
	refused("RandomResizedCrop(8, scale=(1, 0.5))", "(least, most)",
		"RandomResizedCrop");
	refused("RandomApply() CenterCrop(8)", "needs operations",
		"RandomApply");
	refused("RandomChoice([Compose([])]) CenterCrop(8)", "a list is empty",
		"(");
	refused("RandomApply([ToTensor()]) CenterCrop(8)", "can't be in",
		"ToTensor");
	refused("CenterCrop(8) Normalize(0, 1) RandomHorizontalFlip()",
		"stands behind Normalize", "RandomHorizontalFlip");
	refused("CenterCrop(8) Views([CenterCrop(9)])", "it stands first",
		"Views");
	refused("Views([CenterCrop(9)]) CenterCrop(8)", "stands behind Views",
		"CenterCrop");
	refused("Views()", "Views has lists of operations", ")");
	refused("Views([])", "no operation", "");
	refused("Views(13 * [CenterCrop(9)])", "from 1 to 12", "13");
	refused("Views(2 [CenterCrop(9)])", "2 * [...]", "2");
	refused("Views(7 * [CenterCrop(9)], 6 * [CenterCrop(9)])",
		"at most 12 views", "[");
	refused("RandomApply([Views([CenterCrop(9)])])", "not in another one",
		"Views");
	refused("Views([CenterCrop(9), ToTensor()])", "can't be in",
		"ToTensor");
	refused("Resize(256)", "samples would differ in size", "");
	refused("CenterCrop(8) RandomApply([CenterCrop(9)])",
		"samples would differ in size", "");
	refused("RandomChoice([CenterCrop(8), CenterCrop(9)])",
		"samples would differ in size", "");
	refused("RandomChoice([CenterCrop(8), RandomVerticalFlip()])",
		"samples would differ in size", "");
	refused("CenterCrop(8) RandomErasing(value=random)",
		"it stands behind Normalize", "RandomErasing");
	refused("CenterCrop(8) RandomErasing(value=noise)",
		"value is one of random|color", "noise");
	refused("CenterCrop(8) RandomErasing(noise=(1, 2))",
		"noise is for value=random", "RandomErasing");
	refused("CenterCrop(8) RandomErasing(value=color, noise=(1, 2, 3))",
		"three means and three stds", "RandomErasing");
	refused("CenterCrop(8) RandomErasing(value=random, noise=(1, 0))",
		"deviations are above 0", "RandomErasing");
	refused("CenterCrop(8) Grayscale(2)", "is 1 or 3", "Grayscale");
	refused("CenterCrop(8) RandomApply([Grayscale(1)])",
		"some samples would have one channel", "");
	refused("CenterCrop(8) RandomChoice([Grayscale(1), Grayscale(3)])",
		"some samples would have one channel", "");
	refused("Grayscale(1) Pad(1, fill=(7, 8, 9)) CenterCrop(8)",
		"Pad's fill has three numbers", "");
	refused("CenterCrop(8) Grayscale(1) RandomApply([TimmRandAugment()])",
		"give one number, as in fill=124", "");
	refused("CenterCrop(8) Grayscale() Normalize((0, 0.5, 0), 1)",
		"give one mean and one std", "");
	refused("RandomOrder([CenterCrop(8)])", "samples would differ in size",
		"");
}

static void words_may_begin_with_a_digit(void **state)
{
	(void)state;
	is_text("TimmAutoAugment(3a) CenterCrop(8)",
		"TimmAutoAugment(policy=3a, mstd=0, interpolation=random, "
		"fill=(124, 116, 104)) CenterCrop(size=(8, 8))");
	is_text("TimmAutoAugment('v0r', mstd=None, fill=7) CenterCrop(8)",
		"TimmAutoAugment(policy=v0r, mstd=None, interpolation=random, "
		"fill=7) CenterCrop(size=(8, 8))");
}

/* A weight for the whole and for each chain, and so many for an operation. */
static void mixes_draw_for_every_operation_they_may_have(void **state)
{
	(void)state;
	assert_int_equal(recipes_of("PILAugMix() CenterCrop(8)")->draws,
			 1 + 3 * (1 + 3 * 2));
	assert_int_equal(recipes_of("PILAugMix(3, 5, 7) CenterCrop(8)")->draws,
			 1 + 5 * (1 + 7 * 2));
	assert_int_equal(recipes_of("TimmAugMix() CenterCrop(8)")->draws,
			 1 + 3 * (1 + 3 * 3));
	assert_int_equal(
		recipes_of("TimmAugMix(w=2, d=1) CenterCrop(8)")->draws,
		1 + 2 * (1 + 1 * 3));
	assert_int_equal(recipes_of("TimmAutoAugment() CenterCrop(8)")->draws,
			 1 + 2 * 3);
	assert_true(
		recipes_of("RandomApply([PILAugMix()]) CenterCrop(8)")->mixes);
	assert_false(recipes_of("TimmAutoAugment() CenterCrop(8)")->mixes);
}

static void choices_of_one_size_give_samples_of_it(void **state)
{
	const struct tsi_recipe *r;

	(void)state;
	r = recipes_of("RandomChoice([RandomResizedCrop((8, 9)), "
		       "CenterCrop((8, 9))])");
	assert_int_equal(r->view[0].width, 9);
	r = recipes_of("CenterCrop(30) RandomChoice([CenterCrop(8), "
		       "Resize((8, 8))])");
	assert_int_equal(r->view[0].height, 8);
}

static void channels_are_those_of_the_last_grayscale(void **state)
{
	const struct tsi_recipe *r;

	(void)state;
	assert_int_equal(recipes_of("CenterCrop(8)")->view[0].channels, 3);
	assert_int_equal(recipes_of("Grayscale() Pad(1, fill=9) CenterCrop(8) "
				    "RandomGrayscale()")
				 ->view[0]
				 .channels,
			 1);
	assert_int_equal(recipes_of("RandomChoice([Grayscale(1), Grayscale(1)])"
				    " CenterCrop(8)")
				 ->view[0]
				 .channels,
			 1);
	assert_int_equal(recipes_of("Grayscale(1) Grayscale(3) Pad(1, fill="
				    "(1, 2, 3)) CenterCrop(8)")
				 ->view[0]
				 .channels,
			 3);
	r = recipes_of("Views([CenterCrop(8) Grayscale(1)], [CenterCrop(8)])");
	assert_int_equal(r->view[0].channels, 1);
	assert_int_equal(r->view[1].channels, 3);
	/* One byte for all channels is one number. */
	assert_string_equal(recipes_of("CenterCrop(8) Grayscale() ToTensor() "
				       "RandomErasing(value=0.5)")
				    ->text,
			    "CenterCrop(size=(8, 8)) "
			    "Grayscale(num_output_channels=1) RandomErasing("
			    "p=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), "
			    "value=128)");
}

static void deep_and_long_texts_are_refused(void **state)
{
	char text[TSI_RECIPE_TEXT + 8], *at = text;

	(void)state;
	for (int i = 0; i < 200; i++)
		at += sprintf(at, "RandomApply(");
	refused(text, "in each other", "");
	at = text;
	for (int i = 0; i < TSI_OPS + 1; i++)
		at += sprintf(at, "RandomVerticalFlip()");
	refused(text, "at most 64 operations", "RandomVerticalFlip");
	memset(text, ' ', sizeof(text));
	text[sizeof(text) - 1] = 0;
	refused(text, "bytes", "");
	at = text;
	for (int i = 0; i < 20; i++)
		at += sprintf(at, "RandomChoice([Resize(9)])");
	refused(text, "differ in size", "");
}

static void every_type_is_whole(void **state)
{
	const struct tsi_op_type *type;

	(void)state;
	for (unsigned k = 0; (type = tsi_op_type_at(k)) != NULL; k++) {
		assert_ptr_equal(
			tsi_op_type_of(type->name, strlen(type->name), false),
			type);
		assert_non_null(type->help);
		assert_int_equal(!type->count, !type->draws);
		assert_true(type->plan || type->apply || type->chosen ||
			    type->end);
	}
}

/* ------------------------------------------------------------------------
 * Geometry, planned and step by step
 */

/* Operations on geometry, of which any may follow any. */
static const char *const steps[] = {
	"CenterCrop((%u, %u))",        "Resize((%u, %u))",
	"RandomResizedCrop((%u, %u))", "RandomHorizontalFlip()",
	"RandomVerticalFlip()",        "Resize(%u, max_size=200)",
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void fill(struct tsi_canvas *c, uint32_t width, uint32_t height,
		 uint64_t *r)
{
	assert_int_equal(tsi_canvas_begin(c, width, height, 3), 0);
	for (size_t i = 0; i < tsi_canvas_bytes(c); i++)
		c->pixels[i] = (uint8_t)image_gen_random(r);
}

static void make_text(uint64_t *r, char *text, size_t size)
{
	size_t len = 0;

	for (unsigned i = 0, n = 1 + image_gen_random(r) % 4; i < n; i++) {
		unsigned a = 1 + image_gen_random(r) % 40;
		unsigned b = 1 + image_gen_random(r) % 40;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		len += (size_t)snprintf(text + len, size - len,
					steps[image_gen_random(r) % STEPS], a,
					b);
#pragma GCC diagnostic pop
	}
	snprintf(text + len, size - len, "CenterCrop(%u)",
		 1 + (unsigned)image_gen_random(r) % 40);
}

static void planned_geometry_is_that_of_each_step(void **state)
{
	struct tsi_canvas one = { 0 }, all = { 0 };
	struct tsi_resample *resample;
	uint64_t r = 1;

	(void)state;
	assert_int_equal(tsi_resample_create(TSI_SIMD_BEST, &resample), 0);
	tsi_canvas_init(&one, tsi_simd_best());
	tsi_canvas_init(&all, tsi_simd_best());
	one.resample = all.resample = resample;
	for (unsigned i = 0; i < 3000; i++) {
		struct tsi_op_sample s = {
			.index = i,
			.width = 1 + image_gen_random(&r) % 60,
			.height = 1 + image_gen_random(&r) % 60
		};
		uint64_t seed = image_gen_random(&r), same = seed;
		const struct tsi_recipe *recipe;
		double draws[64];
		char text[300];

		make_text(&r, text, sizeof(text));
		recipe = recipes_of("%s", text);
		fill(&one, s.width, s.height, &seed);
		fill(&all, s.width, s.height, &same);
		assert_int_equal(tsi_recipe_draw(recipe, &s, draws), 0);
		assert_int_equal(
			tsi_recipe_apply(recipe->view[0].first, draws, &all),
			0);
		for (const struct tsi_op *op = recipe->view[0].first; op;
		     op = op->next)
			assert_int_equal(tsi_op_apply(op, draws, &one), 0);
		assert_int_equal(one.width, recipe->view[0].width);
		assert_int_equal(all.width, one.width);
		assert_int_equal(all.height, one.height);
		if (memcmp(one.pixels, all.pixels, tsi_canvas_bytes(&one)))
			fail_msg("round %u: %s", i, text);
	}
	tsi_canvas_fini(&one);
	tsi_canvas_fini(&all);
	tsi_resample_destroy(resample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_get_all_their_arguments),
		cmocka_unit_test(texts_are_what_print_shows),
		cmocka_unit_test(views_have_operations_and_draws_of_their_own),
		cmocka_unit_test(a_list_among_choices_is_one_of_them),
		cmocka_unit_test(
			an_operation_that_gives_no_size_keeps_the_one_that_all_have),
		cmocka_unit_test(wrong_texts_are_marked),
		cmocka_unit_test(words_may_begin_with_a_digit),
		cmocka_unit_test(mixes_draw_for_every_operation_they_may_have),
		cmocka_unit_test(choices_of_one_size_give_samples_of_it),
		cmocka_unit_test(channels_are_those_of_the_last_grayscale),
		cmocka_unit_test(deep_and_long_texts_are_refused),
		cmocka_unit_test(every_type_is_whole),
		cmocka_unit_test(planned_geometry_is_that_of_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
