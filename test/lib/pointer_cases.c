/* SPDX-License-Identifier: MIT */
/*
 * pointer_cases.c - the functions that need no stream: what is asked of the
 * library, orders and ranks, batches without a fixed shape.
 */
#include "test/lib/pointer_cases.h"

static void no_line(void *arg, const char *line)
{
	(void)arg;
	(void)line;
}

static void no_stream(void *arg, const char *name, const char *folder)
{
	(void)arg;
	(void)name;
	(void)folder;
}

static void tsock_list_case(void)
{
	wrong(tsock_list(NULL, NULL));
	assert_true(tsock_list(no_stream, NULL) >= 0);
}

static void tsock_devices_case(void)
{
	wrong(tsock_devices(NULL, NULL));
	assert_true(tsock_devices(no_line, NULL) >= 0);
}

ONLY(tsock_order_len, wrong_is(tsock_order_len(NULL), 0))

static void tsock_order_case(void)
{
	struct tsock_order_opts o = TSOCK_ORDER_OPTS_INIT;
	uint64_t index[1];

	o.count = 1;
	wrong(tsock_order(NULL, 0, index, 1));
	wrong(tsock_order(&o, 0, NULL, 1));
	o.size = 0;
	wrong(tsock_order(&o, 0, index, 1));
}

static void tsock_order_at_case(void)
{
	struct tsock_order_opts o = TSOCK_ORDER_OPTS_INIT;
	uint64_t index[1];

	o.count = 1;
	wrong(tsock_order_at(NULL, 0, 0, 1, index, 1));
	wrong(tsock_order_at(&o, 0, 0, 1, NULL, 1));
	o.size = 0;
	wrong(tsock_order_at(&o, 0, 0, 1, index, 1));
}

ONLY(tsock_rank_batches, wrong_is(tsock_rank_batches(NULL, 1), 0))

ONLY(tsock_part_len, wrong_is(tsock_part_len(NULL), 0))
ONLY(tsock_part_padding, wrong_is(tsock_part_padding(NULL, 0), 0))
ONLY(tsock_part_last_row, wrong_is(tsock_part_last_row(NULL, 0), 0))

static void tsock_part_position_case(void)
{
	struct tsock_part_opts o = TSOCK_PART_OPTS_INIT;
	uint64_t position;

	o.whole_len = 1;
	wrong(tsock_part_position(NULL, 0, 0, &position));
	wrong(tsock_part_position(&o, 0, 0, NULL));
	o.size = 0;
	wrong(tsock_part_position(&o, 0, 0, &position));
}

static void tsock_part_samples_case(void)
{
	struct tsock_part_opts o = TSOCK_PART_OPTS_INIT;
	uint64_t samples;

	o.whole_len = 1;
	wrong(tsock_part_samples(NULL, 0, 0, &samples));
	wrong(tsock_part_samples(&o, 0, 0, NULL));
	o.size = 0;
	wrong(tsock_part_samples(&o, 0, 0, &samples));
}

ONLY(tsock_ragged_bytes, wrong_is(tsock_ragged_bytes(NULL, NULL, 0), 0))

static void tsock_ragged_write_case(void)
{
	_Alignas(TSOCK_RAGGED_ALIGN) uint8_t slot[256];
	struct tsock_ragged_array a = { TSOCK_RAGGED_U8, 0, { 0 }, 0, NULL };

	wrong(tsock_ragged_write(NULL, 256, "[\"f\",0]", &a, 1));
	wrong(tsock_ragged_write(slot, 256, NULL, &a, 1));
	wrong(tsock_ragged_write(slot, 256, "[\"f\",0]", NULL, 1));
}

/* A batch without arrays. */
static const uint8_t *ragged_slot(void)
{
	_Alignas(TSOCK_RAGGED_ALIGN) static uint8_t slot[64];

	assert_int_equal(tsock_ragged_write(slot, 64, "[\"c\",3]", NULL, 0), 0);
	return slot;
}

static void tsock_ragged_read_case(void)
{
	struct tsock_ragged_array a;

	wrong(tsock_ragged_read(NULL, 64, NULL, &a, 0));
	wrong(tsock_ragged_read(ragged_slot(), 64, NULL, NULL, 1));
}

static void tsock_ragged_nest_case(void)
{
	const char *nest;
	uint32_t n;

	wrong(tsock_ragged_nest(NULL, 64, &nest, &n, &n));
	wrong(tsock_ragged_nest(ragged_slot(), 64, NULL, &n, &n));
	wrong(tsock_ragged_nest(ragged_slot(), 64, &nest, NULL, &n));
	wrong(tsock_ragged_nest(ragged_slot(), 64, &nest, &n, NULL));
}

static void tsock_rank_next_case(void)
{
	struct tsock_rank_opts o = TSOCK_RANK_OPTS_INIT;
	uint64_t n;

	o.batch_size = 1;
	wrong(tsock_rank_next(NULL, 1, &n, &n));
	wrong(tsock_rank_next(&o, 1, NULL, &n));
	wrong(tsock_rank_next(&o, 1, &n, NULL));
	o.size = 0;
	wrong(tsock_rank_next(&o, 1, &n, &n));
}

static void tsock_table_open_case(void)
{
	tsock_table *t = (void *)&t;

	wrong(tsock_table_open(NULL, NULL, 1, 0, &t));
	assert_null(t);
	wrong(tsock_table_open("pointers", NULL, 1, 0, NULL));
	wrong(tsock_table_open("pointers", NULL, 0, 0, &t));
}

static void tsock_table_get_info_case(void)
{
	struct tsock_table_info info = { .size = sizeof(info) };

	wrong(tsock_table_get_info(NULL, &info));
}

ONLY(tsock_table_text, wrong_is(tsock_table_text(NULL, 0, NULL), NULL))
ONLY(tsock_table_close, tsock_table_close(NULL))
ONLY(tsock_set_logger, tsock_set_logger(NULL, NULL))
ONLY(tsock_errmsg, assert_non_null(tsock_errmsg()))
ONLY(tsock_strerror, assert_non_null(tsock_strerror(4711)))
ONLY(tsock_dtype_size, assert_int_equal(tsock_dtype_size(4711), 0))
ONLY(tsock_abi_version, tsock_abi_version())
ONLY(tsock_version_string, assert_non_null(tsock_version_string()))

const struct pointer_case pointer_cases_alone[] = {
	CASE(tsock_abi_version),
	CASE(tsock_version_string),
	CASE(tsock_errmsg),
	CASE(tsock_strerror),
	CASE(tsock_set_logger),
	CASE(tsock_dtype_size),
	CASE(tsock_list),
	CASE(tsock_devices),
	CASE(tsock_order_len),
	CASE(tsock_order),
	CASE(tsock_order_at),
	CASE(tsock_rank_next),
	CASE(tsock_rank_batches),
	CASE(tsock_ragged_bytes),
	CASE(tsock_ragged_write),
	CASE(tsock_ragged_read),
	CASE(tsock_ragged_nest),
	CASE(tsock_table_open),
	CASE(tsock_table_get_info),
	CASE(tsock_table_text),
	CASE(tsock_table_close),
	CASE(tsock_part_len),
	CASE(tsock_part_padding),
	CASE(tsock_part_last_row),
	CASE(tsock_part_position),
	CASE(tsock_part_samples),
	{ NULL, NULL },
};
