/* SPDX-License-Identifier: MIT */
/*
 * test_hostile_ring.c - a producer whose ring is wrong: every consumer gets a
 * named error, or reads nonsense, and none crashes.
 */
#include <stdatomic.h>

#include "test/lib/fake_producer.h"

/* ---- headers ---- */

static void other_magic(struct tsi_ring_shared *s)
{
	s->magic++;
}

static void other_abi(struct tsi_ring_shared *s)
{
	s->abi++;
}

static void too_large(struct tsi_ring_shared *s)
{
	s->capacity *= 2;
}

static void none_at_all(struct tsi_ring_shared *s)
{
	s->capacity = 0;
}

static void beyond_the_file(struct tsi_ring_shared *s)
{
	s->capacity *= 2;
	for (unsigned i = 0; i < 2; i++)
		s->field[i].map_bytes *= 2;
}

static void a_margin(struct tsi_ring_shared *s)
{
	s->field[0].margin = s->max_batch;
}

static void a_huge_margin(struct tsi_ring_shared *s)
{
	s->field[1].margin = UINT64_MAX / 2;
}

static void large_samples(struct tsi_ring_shared *s)
{
	s->field[0].sample_bytes *= 2;
}

static void many_fields(struct tsi_ring_shared *s)
{
	s->nfields = UINT32_MAX;
}

static void all_window(struct tsi_ring_shared *s)
{
	s->join_window = s->capacity;
}

static void another_field(struct tsi_ring_shared *s)
{
	s->field[1].desc.dtype = TSOCK_F32;
	s->field[1].desc.ndim = 1;
	s->field[1].desc.shape[0] = 2;
}

static void lying_headers_are_refused(void **state)
{
	(void)state;
	SURVIVES("magic", .header = other_magic, .expect = TSOCK_EPROTO);
	SURVIVES("abi", .header = other_abi, .expect = TSOCK_EPROTO);
	SURVIVES("capacity", .header = too_large, .expect = TSOCK_EPROTO);
	SURVIVES("0", .header = none_at_all, .expect = TSOCK_EPROTO);
	SURVIVES("length", .header = beyond_the_file, .expect = TSOCK_EPROTO);
	SURVIVES("margin", .header = a_margin, .expect = TSOCK_EPROTO);
	SURVIVES("huge margin", .header = a_huge_margin,
		 .expect = TSOCK_EPROTO);
	SURVIVES("samples", .header = large_samples, .expect = TSOCK_EPROTO);
	SURVIVES("fields", .header = many_fields, .expect = TSOCK_EPROTO);
	SURVIVES("window", .header = all_window, .expect = TSOCK_EPROTO);
	SURVIVES("field", .header = another_field, .expect = TSOCK_EPROTO);
}

/* ---- what is written once the consumer is in ---- */

static void all_at_once(struct tsi_ring_shared *s)
{
	atomic_store(&s->head, UINT64_MAX);
}

static void nothing_ever(struct tsi_ring_shared *s)
{
	(void)s;
}

static void strange_state(struct tsi_ring_shared *s)
{
	atomic_store(&s->state, 99);
}

static void failed_without_end(struct tsi_ring_shared *s)
{
	memset(s->error, '%', sizeof(s->error));
	atomic_store(&s->state, TSI_RING_FAILED);
}

static void strange_row(struct tsi_ring_shared *s)
{
	atomic_store(&s->reader[0], 77);
}

/* All that a consumer reads after the reply. */
static void all_noise(struct tsi_ring_shared *s)
{
	for (unsigned k = 0; k < 40; k++) {
		for (size_t i = offsetof(struct tsi_ring_shared, head);
		     i < offsetof(struct tsi_ring_shared, reader[8]); i += 8)
			*(uint64_t *)((uint8_t *)s + i) =
				stream_mix(k * 65537 + i);
		proc_pause_us(20000);
	}
}

static void lies_in_the_ring_are_no_crash(void **state)
{
	(void)state;
	SURVIVES("all", .ring = all_at_once, .expect = NO_ERROR);
	SURVIVES("nothing", .ring = nothing_ever, .expect = TSOCK_EAGAIN);
	SURVIVES("state", .ring = strange_state, .expect = TSOCK_EAGAIN);
	SURVIVES("error", .ring = failed_without_end, .expect = TSOCK_ESTREAM);
	SURVIVES("row", .ring = strange_row, .expect = TSOCK_ELOST);
	SURVIVES("noise", .ring = all_noise, .expect = NO_MATTER);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(lying_headers_are_refused),
		cmocka_unit_test(lies_in_the_ring_are_no_crash),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("hostile ring", tests, NULL, NULL);
}
