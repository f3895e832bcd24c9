/* SPDX-License-Identifier: MIT */
/*
 * test_dlpack.c - DLPack tensors that share a batch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>

#include "consumer/dlpack.h"
#include "consumer/reader.h"
#include "test/lib/reader_fixture.h"

static void a_tensor_describes_its_field(void **state)
{
	struct tsi_dl_versioned *v;
	struct tsi_dl_managed *m;
	struct tsock_batch *b;
	struct fixture g;
	void *none;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_PRIVATE);
	/* As if it were f32 [2, 3, 512]. */
	g.r->field[0].dtype = TSOCK_F32;
	g.r->field[0].ndim = 3;
	g.r->field[0].shape[0] = 2;
	g.r->field[0].shape[1] = 3;
	g.r->field[0].shape[2] = 512;
	g.r->field[1].dtype = TSOCK_I64;
	g.r->field[1].ndim = 0;
	b = fixture_take(&g, 5);
	assert_int_equal(tsock_batch_dlpack(b, 0, 1, (void **)&v), 0);
	assert_int_equal(v->version.major, 1);
	assert_int_equal(v->version.minor, 1);
	assert_int_equal(v->flags, 0);
	assert_ptr_equal(v->tensor.data, tsock_batch_data(b, 0));
	assert_int_equal(v->tensor.device.type, 1);
	assert_int_equal(v->tensor.device.id, 0);
	assert_int_equal(v->tensor.ndim, 4);
	assert_int_equal(v->tensor.dtype.code, 2);
	assert_int_equal(v->tensor.dtype.bits, 32);
	assert_int_equal(v->tensor.dtype.lanes, 1);
	assert_int_equal(v->tensor.byte_offset, 0);
	for (int i = 0; i < 4; i++) {
		static const int64_t shape[] = { 5, 2, 3, 512 };
		static const int64_t stride[] = { 3072, 1536, 512, 1 };

		assert_int_equal(v->tensor.shape[i], shape[i]);
		assert_int_equal(v->tensor.strides[i], stride[i]);
	}
	assert_int_equal(tsock_batch_dlpack(b, 1, 0, (void **)&m), 0);
	assert_int_equal(m->tensor.ndim, 1);
	assert_int_equal(m->tensor.dtype.code, 0);
	assert_int_equal(m->tensor.dtype.bits, 64);
	assert_int_equal(m->tensor.shape[0], 5);
	assert_int_equal(m->tensor.strides[0], 1);
	m->deleter(m);
	v->deleter(v);
	assert_int_equal(tsock_batch_dlpack(b, 2, 1, &none), TSOCK_EARG);
	assert_int_equal(tsock_batch_dlpack(NULL, 0, 1, &none), TSOCK_EARG);
	tsock_batch_release(b);
	fixture_close(&g);
}

static void read_only_tensors_say_so(void **state)
{
	struct tsi_dl_versioned *v;
	struct tsock_batch *b;
	struct fixture g;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_SHARED);
	b = fixture_take(&g, 5);
	assert_int_equal(tsock_batch_dlpack(b, 0, 1, (void **)&v), 0);
	assert_int_equal(v->flags, 1);
	v->deleter(v);
	tsock_batch_release(b);
	fixture_close(&g);
}

static void *delete_it(void *arg)
{
	struct tsi_dl_versioned *v = arg;

	v->deleter(v);
	return NULL;
}

static void tensors_keep_their_batch_alive(void **state)
{
	struct tsi_dl_versioned *v[3];
	struct tsi_dl_managed *m;
	struct tsock_batch *b, *next;
	struct fixture g;
	pthread_t t;

	(void)state;
	fixture_make(&g, fixture_big, TSI_MAP_PRIVATE);
	b = fixture_take(&g, 8);
	/* One field more than once, too. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(
			tsock_batch_dlpack(b, i / 2, 1, (void **)&v[i]), 0);
	assert_int_equal(tsock_batch_dlpack(b, 0, 0, (void **)&m), 0);
	tsock_batch_release(b);
	next = fixture_take(&g, 8);
	assert_ptr_not_equal(next, b);
	v[0]->deleter(v[0]);
	m->deleter(m);
	assert_int_equal(fixture_tail(&g), 0);
	assert_true(fixture_ring_equal(&g.f, 0, v[1]->tensor.data, 0, 8));
	assert_int_equal(pthread_create(&t, NULL, delete_it, v[1]), 0);
	pthread_join(t, NULL);
	assert_int_equal(fixture_tail(&g), 0);
	v[2]->deleter(v[2]);
	assert_int_equal(fixture_tail(&g), 8);
	/* Even when everything else is gone. */
	assert_int_equal(tsock_batch_dlpack(next, 0, 1, (void **)&v[0]), 0);
	tsock_batch_release(next);
	assert_int_equal(tsi_reader_make_all_private(g.r), 0);
	assert_true(tsi_reader_retire(g.r));
	tsi_reader_unref(g.r);
	assert_true(fixture_ring_equal(&g.f, 0, v[0]->tensor.data, 8, 8));
	assert_int_equal(g.gone, 0);
	v[0]->deleter(v[0]);
	fixture_free(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tensor_describes_its_field),
		cmocka_unit_test(read_only_tensors_say_so),
		cmocka_unit_test(tensors_keep_their_batch_alive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
