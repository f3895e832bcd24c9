/* SPDX-License-Identifier: MIT */
/*
 * test_schema.c - the fields of a sample: which there are, and in what order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/schema.h"
#include "test/lib/recipes.h"

static struct tsi_columns columns;
static struct tsi_schema schema;

static void set(struct tsi_column *c, const char *name, uint32_t dtype,
		uint64_t length)
{
	memset(c, 0, sizeof(*c));
	strcpy(c->field.name, name);
	c->field.dtype = dtype;
	c->field.ndim = length > 1;
	c->field.shape[0] = length;
	c->bytes = length * tsock_dtype_size(dtype);
}

/* Two fields, and a label that is a float. */
static void set_columns(void)
{
	memset(&columns, 0, sizeof(columns));
	set(&columns.column[0], "dense", TSOCK_F16, 13);
	set(&columns.column[1], "id", TSOCK_U32, 1);
	set(&columns.label, "label", TSOCK_F32, 1);
	columns.n = 2;
	columns.imageless = true;
}

static void has(const char *names)
{
	char is[400] = "";

	for (unsigned k = 0; k < schema.n; k++)
		sprintf(is + strlen(is), "%s%s", k ? " " : "",
			schema.field[k].name);
	assert_string_equal(is, names);
}

static void make(const char *recipe, bool masks,
		 const struct tsi_schema_extras *x)
{
	const struct tsi_pipeline_opts o = {
		.format = &tsi_format_imagenet,
		.recipe = recipe ? recipes_of("%s", recipe) : NULL,
		.masks = masks ? "masks" : NULL,
	};

	tsi_schema_make(&o, x, &schema);
}

static void an_image_comes_first_and_what_the_data_set_has_last(void **state)
{
	struct tsi_schema_extras x = { .key_width = 0 };

	(void)state;
	make("CenterCrop((3, 5)) Grayscale(1)", false, &x);
	has("image label index box");
	assert_int_equal(schema.field[0].shape[0], 3);
	assert_int_equal(schema.field[0].shape[1], 5);
	assert_int_equal(schema.field[0].shape[2], 1);
	assert_int_equal(schema.field[1].dtype, TSOCK_I64);
	assert_int_equal(schema.weight, -1);
	assert_int_equal(schema.key, -1);
	assert_int_equal(schema.draws, -1);
	assert_int_equal(schema.mask, -1);
	assert_int_equal(schema.views, 1);
	assert_int_equal(schema.columns, 0);
	assert_int_equal(tsi_schema_bytes(&schema), 15 + 8 + 8 + 20);
	set_columns();
	x = (struct tsi_schema_extras){ .weight = true,
					.key_width = 24,
					.columns = &columns };
	make("RandomCrop(8)", true, &x);
	has("image label index box weight key draws mask dense id");
	assert_int_equal(schema.field[schema.key].shape[0], 24);
	assert_int_equal(schema.key_width, 24);
	assert_int_equal(schema.field[schema.draws].shape[0], 2);
	assert_int_equal(schema.field[schema.mask].shape[1], 8);
	/* The label is the data set's own. */
	assert_int_equal(schema.field[schema.label].dtype, TSOCK_F32);
	assert_int_equal(schema.column, 8);
	assert_int_equal(schema.columns, 2);
	assert_int_equal(tsi_schema_bytes(&schema),
			 192 + 4 + 8 + 20 + 4 + 24 + 16 + 64 + 26 + 4);
}

static void views_have_their_sizes_between_draws_and_columns(void **state)
{
	struct tsi_schema_extras x = { .columns = &columns };

	(void)state;
	set_columns();
	make("Views([CenterCrop(4)], 2 * [CenterCrop(2)])", false, &x);
	has("image label index box image2 image3 dense id");
	assert_int_equal(schema.views, 3);
	assert_int_equal(schema.more, 4);
	assert_int_equal(schema.column, 6);
	assert_int_equal(schema.field[0].shape[0], 4);
	assert_int_equal(schema.field[5].shape[0], 2);
	assert_int_equal(schema.field[5].flags, schema.field[0].flags);
}

static void without_an_image_the_data_set_s_fields_come_first(void **state)
{
	struct tsi_schema_extras x = { .columns = &columns };

	(void)state;
	set_columns();
	make(NULL, false, &x);
	has("dense id label index");
	assert_int_equal(schema.image, -1);
	assert_int_equal(schema.box, -1);
	assert_int_equal(schema.column, 0);
	assert_int_equal(schema.label, 2);
	assert_int_equal(schema.views, 0);
	assert_int_equal(tsi_schema_bytes(&schema), 26 + 4 + 4 + 8);
	/* One without labels has none, not a number that means nothing. */
	columns.label.bytes = 0;
	x.weight = true;
	make(NULL, false, &x);
	has("dense id index weight");
	assert_int_equal(schema.label, -1);
	assert_int_equal(schema.weight, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			an_image_comes_first_and_what_the_data_set_has_last),
		cmocka_unit_test(
			views_have_their_sizes_between_draws_and_columns),
		cmocka_unit_test(
			without_an_image_the_data_set_s_fields_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
