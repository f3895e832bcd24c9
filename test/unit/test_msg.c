/* SPDX-License-Identifier: MIT */
/*
 * test_msg.c - what is packed comes out the same, and nothing else comes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/msg.h"

static uint64_t state = 0x9e3779b97f4a7c15;

static uint64_t draw(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static void draw_bytes(void *out, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)out)[i] = (uint8_t)(draw() >> 17);
}

static void draw_text(char *out, size_t size)
{
	size_t len = draw() % size;

	memset(out, 0, size);
	for (size_t i = 0; i < len; i++)
		out[i] = (char)(1 + draw() % 255);
}

static float draw_float(void)
{
	return (float)(draw() % 1000) / 7;
}

static void draw_field(struct tsock_field *f)
{
	draw_text(f->name, sizeof(f->name));
	f->dtype = 1 + (uint32_t)(draw() % 6);
	f->flags = (uint32_t)draw();
	f->ndim = (uint32_t)(draw() % (TSOCK_MAX_DIMS + 1));
	for (unsigned i = 0; i < f->ndim; i++)
		f->shape[i] = 1 + draw() % 400;
}

static void draw_stream(struct tsi_msg_stream *s)
{
	s->incarnation = draw();
	s->lineage = draw();
	s->epoch_len = 1 + draw() / 2;
	s->dataset_len = draw();
	s->epochs = draw();
	s->segments = 1 + (uint32_t)draw() / 2;
	s->max_batch = 1 + (uint32_t)draw() / 2;
	s->capacity = 1 + (uint32_t)draw() / 2;
	s->join_window = (uint32_t)draw();
	s->shard = (uint32_t)draw();
	s->shards = (uint32_t)draw();
	s->shard_ranks = (uint32_t)draw();
	s->whole_len = draw();
	s->start_epoch = draw();
	s->start = draw();
	s->nclasses = (uint32_t)draw();
	s->sequential = (uint32_t)draw();
	s->resumable = (uint32_t)draw();
	s->pid = (uint32_t)draw();
	s->meta_bytes = (uint32_t)draw();
	s->nfields = 1 + (uint32_t)(draw() % TSOCK_MAX_FIELDS);
	for (unsigned i = 0; i < s->nfields; i++)
		draw_field(&s->field[i]);
}

static void draw_join(struct tsi_msg_join *j)
{
	draw_bytes(j->nonce, sizeof(j->nonce));
	j->pid = (uint32_t)draw();
	j->batch_size = (uint32_t)draw();
	j->join = (uint32_t)draw();
	j->between = (uint32_t)draw();
	j->staged = (uint32_t)draw();
	j->incarnation = draw();
	j->after = draw();
	j->view.dtype = (uint32_t)draw();
	j->view.layout = (uint32_t)draw();
	j->view.normalize = (uint32_t)draw();
	for (int i = 0; i < 3; i++) {
		j->view.mean[i] = draw_float();
		j->view.std[i] = draw_float();
	}
	j->view.gpu = (uint32_t)draw();
	j->view.transport = (uint32_t)draw();
	draw_bytes(j->view.uuid, TSI_UUID);
	j->rank = (uint32_t)draw();
	j->world = (uint32_t)draw();
	draw_bytes(j->job, TSOCK_JOB);
	j->position = draw();
	j->epoch_end = draw();
	j->returns = (uint32_t)draw();
	draw_bytes(j->was, TSI_NONCE);
	j->detached = (uint32_t)draw();
	j->read = draw();
	j->read_of = (uint32_t)draw();
	j->own = (uint32_t)draw();
	j->from = draw();
}

static void draw_wait(struct tsock_wait *w)
{
	draw_bytes(w, offsetof(struct tsock_wait, who));
	draw_text(w->who, sizeof(w->who));
	draw_text(w->why, sizeof(w->why));
}

static void draw_stats(struct tsock_stats *s)
{
	uint32_t nrows = (uint32_t)(draw() % (TSOCK_STATS_ROWS + 1));

	draw_bytes(s, offsetof(struct tsock_stats, row));
	s->size = sizeof(*s);
	s->nrows = nrows;
	draw_bytes(s->row, nrows * sizeof(s->row[0]));
	s->nwaits = (uint32_t)(draw() % (TSOCK_STATS_WAITS + 1));
	for (unsigned i = 0; i < s->nwaits; i++)
		draw_wait(&s->wait[i]);
	s->bad_files = draw();
	s->shard = (uint32_t)draw();
	s->shard_ranks = (uint32_t)draw();
	s->shards = (uint32_t)draw();
}

/* A valid message; every byte that isn't set is zero, so memcmp can judge. */
static void draw_message(struct tsi_msg *m, uint16_t type)
{
	memset(m, 0, sizeof(*m));
	m->type = type;
	m->serial = (uint32_t)draw();
	switch (type) {
	case TSI_HELLO:
		m->u.hello.pid = (uint32_t)draw();
		break;
	case TSI_STREAM:
		draw_stream(&m->u.stream);
		break;
	case TSI_META:
		m->u.meta.incarnation = draw();
		m->u.meta.offset = (uint32_t)draw();
		break;
	case TSI_META_DATA:
		m->u.meta_data.offset = (uint32_t)draw();
		m->u.meta_data.len = (uint32_t)(draw() % (TSI_CHUNK + 1));
		draw_bytes(m->u.meta_data.bytes, m->u.meta_data.len);
		break;
	case TSI_JOIN:
		draw_join(&m->u.join);
		break;
	case TSI_OFFER:
		draw_bytes(m->u.offer.token, TSI_TOKEN);
		m->u.offer.forecast = draw();
		m->u.offer.transport = (uint32_t)draw();
		m->u.offer.nfields =
			(uint32_t)(draw() % (TSOCK_MAX_FIELDS + 1));
		for (unsigned i = 0; i < m->u.offer.nfields; i++)
			draw_bytes(m->u.offer.handle[i], TSI_GPU_HANDLE);
		break;
	case TSI_READY:
	case TSI_LEAVE:
	case TSI_LEFT:
		draw_bytes(m->u.leave.nonce, TSI_NONCE);
		break;
	case TSI_STATS_DATA:
		draw_stats(&m->u.stats);
		break;
	case TSI_WHOM:
		draw_bytes(m->u.whom.nonce, TSI_NONCE);
		m->u.whom.pid = (uint32_t)draw();
		m->u.whom.waited_ms = (uint32_t)draw();
		m->u.whom.want = draw();
		break;
	case TSI_WAITS:
		draw_wait(&m->u.wait);
		break;
	case TSI_STOP:
		m->u.stop.force = (uint32_t)draw();
		draw_text(m->u.stop.who, sizeof(m->u.stop.who));
		break;
	case TSI_ERROR:
		m->u.error.code = -1 - (int32_t)(draw() % 100);
		draw_text(m->u.error.text, sizeof(m->u.error.text));
		break;
	case TSI_WARNING:
		m->u.warning.incarnation = draw();
		m->u.warning.number = (uint32_t)draw();
		break;
	case TSI_WARNING_DATA:
		m->u.warning_data.number = (uint32_t)draw();
		m->u.warning_data.kind = (uint32_t)draw();
		draw_text(m->u.warning_data.text,
			  sizeof(m->u.warning_data.text));
		break;
	case TSI_TABLE:
		m->u.table.stream = draw();
		m->u.table.kind = (uint32_t)draw();
		break;
	case TSI_TABLE_DATA:
		draw_bytes(&m->u.table_data,
			   offsetof(struct tsi_msg_table_data, field));
		draw_field(&m->u.table_data.field);
		break;
	}
}

/* A copy that ends where the heap block ends, so ASan sees any overrun. */
static int unpack_tight(const uint8_t *bytes, size_t len, struct tsi_msg *m)
{
	uint8_t *tight = malloc(len ? len : 1);
	int err;

	assert_non_null(tight);
	memcpy(tight, bytes, len);
	err = tsi_msg_unpack(tight, len, m);
	free(tight);
	assert_true(err == 0 || err == TSOCK_EPROTO);
	return err;
}

/* What a reader relies on in whatever unpack lets through. */
static void check_sane(const struct tsi_msg *m)
{
	uint8_t bytes[TSI_MSG_MAX];

	switch (m->type) {
	case TSI_STREAM:
		assert_in_range(m->u.stream.nfields, 1, TSOCK_MAX_FIELDS);
		for (unsigned i = 0; i < m->u.stream.nfields; i++) {
			const struct tsock_field *f = &m->u.stream.field[i];

			assert_in_range(f->ndim, 0, TSOCK_MAX_DIMS);
			assert_non_null(memchr(f->name, 0, sizeof(f->name)));
			assert_true(tsock_dtype_size(f->dtype) > 0);
		}
		break;
	case TSI_META_DATA:
		assert_in_range(m->u.meta_data.len, 0, TSI_CHUNK);
		break;
	case TSI_STATS_DATA:
		assert_in_range(m->u.stats.nrows, 0, TSOCK_STATS_ROWS);
		assert_in_range(m->u.stats.nwaits, 0, TSOCK_STATS_WAITS);
		break;
	case TSI_TABLE_DATA:
		assert_in_range(m->u.table_data.field.ndim, 0, TSOCK_MAX_DIMS);
		assert_true(tsock_dtype_size(m->u.table_data.field.dtype) > 0);
		break;
	case TSI_ERROR:
		assert_true(m->u.error.code < 0);
		assert_non_null(
			memchr(m->u.error.text, 0, sizeof(m->u.error.text)));
		break;
	case TSI_WARNING_DATA:
		assert_non_null(memchr(m->u.warning_data.text, 0,
				       sizeof(m->u.warning_data.text)));
		break;
	}
	assert_in_range(tsi_msg_pack(m, bytes), 16, TSI_MSG_MAX);
}

static void every_message_comes_out_as_it_went_in(void **s)
{
	uint8_t bytes[TSI_MSG_MAX], again[TSI_MSG_MAX];
	struct tsi_msg m, out;

	(void)s;
	for (int i = 0; i < 4000; i++) {
		size_t len;

		draw_message(&m, (uint16_t)(1 + i % TSI_TABLE_DATA));
		len = tsi_msg_pack(&m, bytes);
		assert_in_range(len, 16, TSI_MSG_MAX);
		memset(&out, 0xff, sizeof(out));
		assert_int_equal(unpack_tight(bytes, len, &out), 0);
		assert_memory_equal(&out, &m, sizeof(m));
		assert_int_equal(tsi_msg_pack(&out, again), len);
		assert_memory_equal(again, bytes, len);
	}
}

static void the_largest_messages_fit(void **s)
{
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m, out;

	(void)s;
	draw_message(&m, TSI_META_DATA);
	m.u.meta_data.len = TSI_CHUNK;
	assert_int_equal(tsi_msg_pack(&m, bytes), 16 + 8 + TSI_CHUNK);
	draw_message(&m, TSI_STREAM);
	m.u.stream.nfields = TSOCK_MAX_FIELDS;
	for (int i = 0; i < TSOCK_MAX_FIELDS; i++) {
		draw_field(&m.u.stream.field[i]);
		m.u.stream.field[i].ndim = TSOCK_MAX_DIMS;
		for (int k = 0; k < TSOCK_MAX_DIMS; k++)
			m.u.stream.field[i].shape[k] = 9;
	}
	assert_int_equal(unpack_tight(bytes, tsi_msg_pack(&m, bytes), &out), 0);
	assert_memory_equal(&out, &m, sizeof(m));
	draw_message(&m, TSI_STATS_DATA);
	m.u.stats.nrows = TSOCK_STATS_ROWS;
	m.u.stats.nwaits = TSOCK_STATS_WAITS;
	assert_in_range(tsi_msg_pack(&m, bytes), 1000, TSI_MSG_MAX);
}

static void a_cut_or_lengthened_message_is_refused(void **s)
{
	uint8_t bytes[TSI_MSG_MAX + 8] = { 0 };
	struct tsi_msg m, out;

	(void)s;
	for (int type = 1; type <= TSI_TABLE_DATA; type++) {
		size_t len;

		draw_message(&m, (uint16_t)type);
		len = tsi_msg_pack(&m, bytes);
		for (size_t cut = 0; cut < len; cut++) {
			uint8_t copy[TSI_MSG_MAX];

			assert_int_equal(unpack_tight(bytes, cut, &out),
					 TSOCK_EPROTO);
			/* Once more, with a length that agrees. */
			if (cut < 16)
				continue;
			memcpy(copy, bytes, cut);
			copy[8] = (uint8_t)cut;
			copy[9] = (uint8_t)(cut >> 8);
			assert_int_equal(unpack_tight(copy, cut, &out),
					 TSOCK_EPROTO);
		}
		for (size_t more = 1; more <= 8; more++) {
			bytes[8] = (uint8_t)(len + more);
			bytes[9] = (uint8_t)((len + more) >> 8);
			assert_int_equal(unpack_tight(bytes, len + more, &out),
					 TSOCK_EPROTO);
		}
	}
}

static void a_flipped_bit_is_refused_or_harmless(void **s)
{
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m, out;
	int refused = 0;

	(void)s;
	for (int type = 1; type <= TSI_TABLE_DATA; type++) {
		size_t len;

		draw_message(&m, (uint16_t)type);
		len = tsi_msg_pack(&m, bytes);
		for (size_t bit = 0; bit < len * 8; bit++) {
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (!unpack_tight(bytes, len, &out))
				check_sane(&out);
			else
				refused++;
			bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
	}
	/* At least magic, version, and length of each. */
	assert_true(refused >= TSI_TABLE_DATA * 80);
}

static void random_bytes_are_refused_or_harmless(void **s)
{
	uint8_t bytes[TSI_MSG_MAX + 64], good[TSI_MSG_MAX];
	struct tsi_msg m, out;

	(void)s;
	for (int i = 0; i < 20000; i++) {
		size_t len = draw() % (i % 10 ? 200 : sizeof(bytes));

		draw_bytes(bytes, len);
		/* Mostly with a good header, to get further. */
		draw_message(&m, (uint16_t)(1 + i % TSI_TABLE_DATA));
		tsi_msg_pack(&m, good);
		if (i % 4 && len >= 16) {
			memcpy(bytes, good, 16);
			bytes[8] = (uint8_t)len;
			bytes[9] = (uint8_t)(len >> 8);
		}
		if (!unpack_tight(bytes, len, &out))
			check_sane(&out);
	}
}

static void another_version_is_named(void **s)
{
	struct tsi_msg m = { .type = TSI_HELLO }, out;
	uint8_t bytes[TSI_MSG_MAX];
	size_t len = tsi_msg_pack(&m, bytes);

	(void)s;
	bytes[4] = 99;
	assert_int_equal(unpack_tight(bytes, len, &out), TSOCK_EPROTO);
	assert_non_null(strstr(tsock_errmsg(), "version 99"));
	assert_non_null(strstr(tsock_errmsg(), "version 8"));
}

static void a_refused_message_leaves_the_output_alone(void **s)
{
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m, out, before;
	size_t len;

	(void)s;
	draw_message(&m, TSI_STREAM);
	len = tsi_msg_pack(&m, bytes);
	memset(&before, 0x5a, sizeof(before));
	out = before;
	assert_int_equal(tsi_msg_unpack(bytes, len - 1, &out), TSOCK_EPROTO);
	assert_memory_equal(&out, &before, sizeof(out));
}

/* Pack a stream with one thing wrong. */
static int with_stream(void (*spoil)(struct tsi_msg_stream *s))
{
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m, out;

	draw_message(&m, TSI_STREAM);
	m.u.stream.nfields = 1;
	m.u.stream.field[0].ndim = 2;
	m.u.stream.field[0].shape[0] = m.u.stream.field[0].shape[1] = 3;
	if (spoil)
		spoil(&m.u.stream);
	return unpack_tight(bytes, tsi_msg_pack(&m, bytes), &out);
}

static void spoil_dtype(struct tsi_msg_stream *s)
{
	s->field[0].dtype = 99;
}

static void spoil_shape(struct tsi_msg_stream *s)
{
	s->field[0].shape[0] = s->field[0].shape[1] = (uint64_t)1 << 33;
}

static void spoil_zero_shape(struct tsi_msg_stream *s)
{
	s->field[0].shape[1] = 0;
}

static void spoil_epoch(struct tsi_msg_stream *s)
{
	s->epoch_len = 0;
}

static void spoil_capacity(struct tsi_msg_stream *s)
{
	s->capacity = 0;
}

static void spoil_nfields(struct tsi_msg_stream *s)
{
	s->nfields = 0;
}

static void an_impossible_stream_is_refused(void **s)
{
	(void)s;
	assert_int_equal(with_stream(NULL), 0);
	assert_int_equal(with_stream(spoil_dtype), TSOCK_EPROTO);
	assert_int_equal(with_stream(spoil_shape), TSOCK_EPROTO);
	assert_int_equal(with_stream(spoil_zero_shape), TSOCK_EPROTO);
	assert_int_equal(with_stream(spoil_epoch), TSOCK_EPROTO);
	assert_int_equal(with_stream(spoil_capacity), TSOCK_EPROTO);
	assert_int_equal(with_stream(spoil_nfields), TSOCK_EPROTO);
}

static void an_error_that_says_success_is_refused(void **s)
{
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m = { .type = TSI_ERROR }, out;
	size_t len;

	(void)s;
	m.u.error.code = TSOCK_EARG;
	len = tsi_msg_pack(&m, bytes);
	assert_int_equal(unpack_tight(bytes, len, &out), 0);
	memset(bytes + 16, 0, 4);
	assert_int_equal(unpack_tight(bytes, len, &out), TSOCK_EPROTO);
	bytes[16] = 1;
	assert_int_equal(unpack_tight(bytes, len, &out), TSOCK_EPROTO);
}

static void text_behind_its_end_doesnt_travel(void **s)
{
	uint8_t bytes[TSI_MSG_MAX];
	struct tsi_msg m = { .type = TSI_ERROR };
	size_t len;

	(void)s;
	m.u.error.code = TSOCK_EARG;
	memset(m.u.error.text, 'x', sizeof(m.u.error.text) - 1);
	m.u.error.text[2] = 0;
	len = tsi_msg_pack(&m, bytes);
	assert_int_equal(len, 16 + 4 + sizeof(m.u.error.text));
	assert_int_equal(bytes[21], 'x');
	for (size_t i = 22; i < len; i++)
		assert_int_equal(bytes[i], 0);
}

static void the_layout_on_the_wire_is_fixed(void **s)
{
	static const uint8_t want[] = {
		'T', 'S', 'O', 'K', 8, 0, 6, 0, 48, 0, 0, 0, 4, 3, 2, 1,
		9,   9,   9,   9,   9, 9, 9, 9, 9,  9, 9, 9, 9, 9, 9, 9,
		8,   7,   6,   5,   4, 3, 2, 1, 2,  0, 0, 0, 0, 0, 0, 0,
	};
	struct tsi_msg m = { .type = TSI_OFFER, .serial = 0x01020304 };
	uint8_t bytes[TSI_MSG_MAX];

	(void)s;
	memset(m.u.offer.token, 9, TSI_TOKEN);
	m.u.offer.forecast = 0x0102030405060708;
	m.u.offer.transport = TSOCK_TRANSPORT_LEGACY;
	assert_int_equal(tsi_msg_pack(&m, bytes), sizeof(want));
	assert_memory_equal(bytes, want, sizeof(want));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_comes_out_as_it_went_in),
		cmocka_unit_test(the_largest_messages_fit),
		cmocka_unit_test(a_cut_or_lengthened_message_is_refused),
		cmocka_unit_test(a_flipped_bit_is_refused_or_harmless),
		cmocka_unit_test(random_bytes_are_refused_or_harmless),
		cmocka_unit_test(another_version_is_named),
		cmocka_unit_test(a_refused_message_leaves_the_output_alone),
		cmocka_unit_test(an_impossible_stream_is_refused),
		cmocka_unit_test(an_error_that_says_success_is_refused),
		cmocka_unit_test(text_behind_its_end_doesnt_travel),
		cmocka_unit_test(the_layout_on_the_wire_is_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
