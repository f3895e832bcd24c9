/* SPDX-License-Identifier: MIT */
/*
 * test_view_plan.c - what a view will be, from what is asked and what its GPU
 * can do.
 */
#include "serve/view_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct tsi_view_spec floats = { .dtype = TSOCK_F32,
					     .layout = TSOCK_CHW,
					     .normalize = TSOCK_UNIT };

static struct tsi_gpu_entry gpu_with(bool vmm, bool legacy)
{
	struct tsi_gpu_entry e = {
		.phase = TSI_GPU_KNOWN,
		.uuid = "0123456789abcde",
		.device = 3,
		.info = { .name = "a GPU",
			  .granularity = 2 << 20,
			  .vmm_fd = vmm,
			  .legacy_ipc = legacy },
	};

	return e;
}

static struct tsi_view_spec on_gpu(const struct tsi_gpu_entry *e,
				   const struct tsi_view_spec *spec)
{
	struct tsi_view_spec s = *spec;

	s.gpu = 1;
	memcpy(s.uuid, e->uuid, TSI_UUID);
	return s;
}

static struct tsi_view_spec stored_on(const struct tsi_gpu_entry *e)
{
	static const struct tsi_view_spec stored = { .dtype = TSOCK_U8,
						     .layout = TSOCK_HWC };

	return on_gpu(e, &stored);
}

static void a_view_in_host_memory_is_made_of_the_base(void **state)
{
	struct tsi_view_plan p;

	(void)state;
	assert_int_equal(tsi_view_plan_make(&floats, NULL, 0, &p), 0);
	assert_true(tsi_view_spec_equal(&p.spec, &floats));
	assert_int_equal(p.kind, TSI_STAGE_CONVERT);
	assert_int_equal(p.granularity, tsi_geometry_page());
	assert_false(p.has_source);
}

static void stored_samples_are_uploaded(void **state)
{
	struct tsi_gpu_entry e = gpu_with(true, true);
	struct tsi_view_spec asked = stored_on(&e);
	struct tsi_view_plan p;

	(void)state;
	assert_int_equal(tsi_view_plan_make(&asked, &e, 0, &p), 0);
	assert_int_equal(p.kind, TSI_STAGE_UPLOAD);
	assert_int_equal(p.device, 3);
	assert_int_equal(p.spec.transport, TSOCK_TRANSPORT_VMM);
	assert_int_equal(p.granularity, 2 << 20);
	assert_false(p.has_source);
}

static void floats_on_a_gpu_are_made_of_stored_samples_there(void **state)
{
	struct tsi_gpu_entry e = gpu_with(false, true);
	struct tsi_view_spec asked = on_gpu(&e, &floats), source;
	struct tsi_view_plan p;

	(void)state;
	assert_int_equal(tsi_view_plan_make(&asked, &e, 0, &p), 0);
	assert_int_equal(p.kind, TSI_STAGE_GPU_CONVERT);
	assert_int_equal(p.spec.transport, TSOCK_TRANSPORT_LEGACY);
	assert_int_equal(p.granularity, 0);
	assert_true(p.has_source);
	source = stored_on(&e);
	source.transport = TSOCK_TRANSPORT_LEGACY;
	assert_true(tsi_view_spec_equal(&p.source, &source));
	/* The source's own plan changes nothing, and needs no other source. */
	assert_int_equal(tsi_view_plan_make(&source, &e, 0, &p), 0);
	assert_true(tsi_view_spec_equal(&p.spec, &source));
	assert_false(p.has_source);
}

static void a_transport_that_failed_is_passed_over(void **state)
{
	struct tsi_gpu_entry e = gpu_with(true, true);
	struct tsi_view_spec asked = stored_on(&e);
	struct tsi_view_plan p;

	(void)state;
	strcpy(e.refused[TSOCK_TRANSPORT_VMM], "no memory");
	assert_int_equal(tsi_view_plan_make(&asked, &e, 0, &p), 0);
	assert_int_equal(p.spec.transport, TSOCK_TRANSPORT_LEGACY);
	strcpy(e.refused[TSOCK_TRANSPORT_LEGACY], "no such call");
	assert_int_equal(tsi_view_plan_make(&asked, &e, 0, &p), TSOCK_ENOTSUP);
	assert_non_null(strstr(tsock_errmsg(), "vmm: no memory; "
					       "legacy: no such call"));
	/* A consumer that insists on it may try again. */
	asked.transport = TSOCK_TRANSPORT_VMM;
	assert_int_equal(tsi_view_plan_make(&asked, &e, 0, &p), 0);
}

static void the_producer_may_offer_one_transport_alone(void **state)
{
	struct tsi_gpu_entry e = gpu_with(true, false);
	struct tsi_view_spec asked = stored_on(&e);
	struct tsi_view_plan p;

	(void)state;
	assert_int_equal(
		tsi_view_plan_make(&asked, &e, TSOCK_TRANSPORT_VMM, &p), 0);
	assert_int_equal(
		tsi_view_plan_make(&asked, &e, TSOCK_TRANSPORT_LEGACY, &p),
		TSOCK_ENOTSUP);
	assert_non_null(strstr(tsock_errmsg(), "a GPU can't share its memory"));
	assert_int_equal(
		tsi_view_plan_make(&asked, &e, TSOCK_TRANSPORT_STAGED, &p),
		TSOCK_ENOTSUP);
	assert_non_null(strstr(tsock_errmsg(), "no rings on GPUs"));
	asked.transport = TSOCK_TRANSPORT_LEGACY;
	assert_int_equal(
		tsi_view_plan_make(&asked, &e, TSOCK_TRANSPORT_VMM, &p),
		TSOCK_ENOTSUP);
	assert_non_null(strstr(tsock_errmsg(), "another transport"));
}

static void a_ring_without_images_has_no_other_dtype(void **state)
{
	struct tsock_field label = { .name = "label",
				     .dtype = TSOCK_I64,
				     .ndim = 0 };
	struct tsi_gpu_entry e = gpu_with(true, true);
	struct tsi_view_spec stored = stored_on(&e);
	struct tsi_geometry base, g;
	struct tsi_view_plan p;

	(void)state;
	assert_int_equal(tsi_geometry_make(&label, 1,
					   &(struct tsi_geometry_wish){
						   .ring = 1000,
						   .join_window = 100,
						   .max_batch = 16 },
					   &base),
			 0);
	assert_int_equal(tsi_view_plan_make(&floats, NULL, 0, &p), 0);
	assert_int_equal(tsi_view_plan_geometry(&p, &base, &g), TSOCK_EREFUSED);
	/* As stored, but on a GPU, they have a ring like any others. */
	assert_int_equal(tsi_view_plan_make(&stored, &e, 0, &p), 0);
	assert_int_equal(tsi_view_plan_geometry(&p, &base, &g), 0);
	assert_int_equal(g.granularity, 2 << 20);
	assert_true(g.capacity >= base.capacity);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_view_in_host_memory_is_made_of_the_base),
		cmocka_unit_test(stored_samples_are_uploaded),
		cmocka_unit_test(
			floats_on_a_gpu_are_made_of_stored_samples_there),
		cmocka_unit_test(a_transport_that_failed_is_passed_over),
		cmocka_unit_test(the_producer_may_offer_one_transport_alone),
		cmocka_unit_test(a_ring_without_images_has_no_other_dtype),
	};

	return cmocka_run_group_tests_name("view_plan", tests, NULL, NULL);
}
