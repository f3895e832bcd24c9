/* SPDX-License-Identifier: MIT */
/*
 * test_hostile_producer.c - a producer whose messages are wrong, or another
 * run's: every consumer gets a named error, or asks anew.
 */
#include <sys/socket.h>

#include "test/lib/fake_producer.h"

/* ---- replies ---- */

static size_t noise(const struct tsi_msg *q, struct tsi_msg *m, uint8_t *out)
{
	(void)q, (void)m;
	for (unsigned i = 0; i < 900; i++)
		out[i] = (uint8_t)stream_mix(i);
	return 900;
}

static size_t another_version(const struct tsi_msg *q, struct tsi_msg *m,
			      uint8_t *out)
{
	size_t len = tsi_msg_pack(m, out);

	(void)q;
	out[4] = 99;
	return len;
}

static size_t silence(const struct tsi_msg *q, struct tsi_msg *m, uint8_t *out)
{
	(void)q, (void)m, (void)out;
	return 0;
}

static size_t silence_after_hello(const struct tsi_msg *q, struct tsi_msg *m,
				  uint8_t *out)
{
	return q->type == TSI_HELLO ? tsi_msg_pack(m, out) : 0;
}

static size_t wait_for_ever(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	if (q->type == TSI_JOIN)
		m->type = TSI_WAIT;
	return tsi_msg_pack(m, out);
}

static size_t another_type(const struct tsi_msg *q, struct tsi_msg *m,
			   uint8_t *out)
{
	(void)q;
	m->type = TSI_LEFT;
	return tsi_msg_pack(m, out);
}

/* A hundred times, to nobody's question. */
static size_t another_serial(const struct tsi_msg *q, struct tsi_msg *m,
			     uint8_t *out)
{
	(void)q;
	m->serial += 77;
	return TSI_MSG_MAX + tsi_msg_pack(m, out);
}

static size_t strange_error(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	(void)q;
	m->type = TSI_ERROR;
	memset(&m->u, 0, sizeof(m->u));
	m->u.error.code = -40;
	memset(m->u.error.text, '%', 255);
	return tsi_msg_pack(m, out);
}

static size_t again_as_error(const struct tsi_msg *q, struct tsi_msg *m,
			     uint8_t *out)
{
	strange_error(q, m, out);
	m->u.error.code = TSOCK_EAGAIN;
	return tsi_msg_pack(m, out);
}

static size_t lost_as_error(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	strange_error(q, m, out);
	m->u.error.code = TSOCK_ELOST;
	return tsi_msg_pack(m, out);
}

static size_t seventeen_fields(const struct tsi_msg *q, struct tsi_msg *m,
			       uint8_t *out)
{
	size_t len = tsi_msg_pack(m, out), at = 16;
	uint8_t fewer[TSI_MSG_MAX];

	if (q->type != TSI_HELLO)
		return len;
	/* Behind the message's head, their number differs first. */
	m->u.stream.nfields--;
	tsi_msg_pack(m, fewer);
	m->u.stream.nfields++;
	while (out[at] == fewer[at])
		at++;
	out[at] = 17;
	return len;
}

static size_t cut_short(const struct tsi_msg *q, struct tsi_msg *m,
			uint8_t *out)
{
	(void)q;
	return tsi_msg_pack(m, out) - 3;
}

/* The producer dies between its offer and the consumer's connection. */
static size_t no_door(const struct tsi_msg *q, struct tsi_msg *m, uint8_t *out)
{
	struct tsi_address address;
	char away[200];

	need(tsi_address_find("fake_producer", &address, 1) == 1);
	snprintf(away, sizeof(away), "%s/away.door",
		 tsi_address_folder(&address));
	/* A question that isn't answered soon comes again. */
	if (q->type == TSI_JOIN)
		need(!rename(address.fdpass, away) || errno == ENOENT);
	if (q->type == TSI_LEAVE)
		need(!rename(away, address.fdpass) || errno == ENOENT);
	return tsi_msg_pack(m, out);
}

static void nonsense_on_the_channel_is_a_named_error(void **state)
{
	(void)state;
	SURVIVES("noise", .reply = noise, .expect = TSOCK_EPROTO);
	SURVIVES("version", .reply = another_version, .expect = TSOCK_EPROTO);
	SURVIVES("silence", .reply = silence, .expect = TSOCK_ENOPROD);
	SURVIVES("after HELLO", .reply = silence_after_hello,
		 .expect = TSOCK_EAGAIN);
	SURVIVES("WAIT", .reply = wait_for_ever, .expect = TSOCK_EAGAIN);
	SURVIVES("type", .reply = another_type, .expect = TSOCK_EPROTO);
	SURVIVES("serial", .reply = another_serial, .expect = TSOCK_ENOPROD);
	SURVIVES("error -40", .reply = strange_error);
	SURVIVES("error EAGAIN", .reply = again_as_error,
		 .expect = TSOCK_ENOPROD);
	SURVIVES("error ELOST", .reply = lost_as_error);
	SURVIVES("no door", .reply = no_door, .expect = TSOCK_ELOST);
	SURVIVES("17 fields", .reply = seventeen_fields,
		 .expect = TSOCK_EPROTO);
	SURVIVES("cut short", .reply = cut_short, .expect = TSOCK_EPROTO);
}

/* ---- streams ---- */

static void giants(struct tsi_msg_stream *s)
{
	s->nfields = 16;
	for (unsigned i = 0; i < 16; i++) {
		s->field[i] = fake_field[0];
		s->field[i].shape[0] = UINT64_C(1) << 40;
	}
}

static void overflow(struct tsi_msg_stream *s)
{
	s->field[0].ndim = 4;
	for (unsigned d = 0; d < 4; d++)
		s->field[0].shape[d] = UINT64_C(1) << 40;
}

static void no_epoch(struct tsi_msg_stream *s)
{
	s->epoch_len = 0;
}

static void long_epoch(struct tsi_msg_stream *s)
{
	s->epoch_len = UINT64_MAX;
}

static void many_epochs(struct tsi_msg_stream *s)
{
	s->epochs = UINT64_MAX;
}

static void no_capacity(struct tsi_msg_stream *s)
{
	s->capacity = 0;
}

static void no_batch(struct tsi_msg_stream *s)
{
	s->max_batch = 0;
}

static void much_meta(struct tsi_msg_stream *s)
{
	s->meta_bytes = UINT32_MAX;
	s->nclasses = 1;
}

/* Allowed, and sent one byte at a time. */
static void slow_meta(struct tsi_msg_stream *s)
{
	s->meta_bytes = 1 << 24;
	s->nclasses = 1 << 24;
}

static size_t meta_in_order(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	if (q->type == TSI_META)
		m->u.meta_data.offset = q->u.meta.offset;
	return tsi_msg_pack(m, out);
}

static size_t meta_of_another(const struct tsi_msg *q, struct tsi_msg *m,
			      uint8_t *out)
{
	if (q->type == TSI_META)
		m->u.meta_data.offset = q->u.meta.offset + 1;
	return tsi_msg_pack(m, out);
}

static void few_classes(struct tsi_msg_stream *s)
{
	s->meta_bytes = 3;
	s->nclasses = 3;
}

static size_t one_class(const struct tsi_msg *q, struct tsi_msg *m,
			uint8_t *out)
{
	if (q->type == TSI_META) {
		m->u.meta_data.offset = 0;
		m->u.meta_data.len = 3;
		memcpy(m->u.meta_data.bytes, "abc", 3);
	}
	return tsi_msg_pack(m, out);
}

static void image_without_shape(struct tsi_msg_stream *s)
{
	s->field[1].flags = TSOCK_FIELD_IMAGE;
}

static void image_of_one_channel(struct tsi_msg_stream *s)
{
	s->field[0].flags = TSOCK_FIELD_IMAGE;
	s->field[0].ndim = 3;
	s->field[0].shape[0] = s->field[0].shape[1] = 64;
	s->field[0].shape[2] = 1;
}

/* ---- two runs ---- */

/*
 * The first of every two that ask what is served is told by the run before,
 * which had other texts, and has gone by the time that these are asked for.
 */
static size_t run_before_says_hello(const struct tsi_msg *q, struct tsi_msg *m,
				    uint8_t *out)
{
	static bool gone = true;

	if (q->type == TSI_HELLO) {
		gone = !gone;
		if (!gone) {
			m->u.stream.incarnation++;
			m->u.stream.nclasses = 1;
			m->u.stream.meta_bytes = 1;
		}
	} else if (q->type == TSI_META &&
		   q->u.meta.incarnation != FAKE_INCARNATION) {
		return lost_as_error(q, m, out);
	}
	return meta_of_another(q, m, out);
}

static void a_run_that_begins_meanwhile_is_asked_anew(void **state)
{
	(void)state;
	/* The consumer joins; there are no samples. */
	SURVIVES("two runs", .reply = run_before_says_hello,
		 .expect = TSOCK_EAGAIN);
}

static void absurd_streams_are_refused(void **state)
{
	(void)state;
	SURVIVES("giants", .stream = giants);
	SURVIVES("overflow", .stream = overflow, .expect = TSOCK_EPROTO);
	SURVIVES("no epoch", .stream = no_epoch, .expect = TSOCK_EPROTO);
	SURVIVES("epoch", .stream = long_epoch, .expect = TSOCK_EPROTO);
	SURVIVES("epochs", .stream = many_epochs, .expect = TSOCK_EPROTO);
	SURVIVES("capacity", .stream = no_capacity, .expect = TSOCK_EPROTO);
	SURVIVES("max_batch", .stream = no_batch, .expect = TSOCK_EPROTO);
	SURVIVES("4 GiB", .stream = much_meta, .expect = TSOCK_EPROTO);
	SURVIVES("bytewise", .reply = meta_in_order, .stream = slow_meta);
	SURVIVES("another's meta", .reply = meta_of_another,
		 .stream = few_classes, .expect = TSOCK_EPROTO);
	SURVIVES("classes", .reply = one_class, .stream = few_classes,
		 .expect = TSOCK_EPROTO);
	SURVIVES("no image", .stream = image_without_shape, .image = true,
		 .expect = TSOCK_EPROTO);
	SURVIVES("grey image", .stream = image_of_one_channel, .image = true,
		 .expect = TSOCK_EPROTO);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_on_the_channel_is_a_named_error),
		cmocka_unit_test(absurd_streams_are_refused),
		cmocka_unit_test(a_run_that_begins_meanwhile_is_asked_anew),
	};

	proc_own_folder();
	return cmocka_run_group_tests_name("hostile producer", tests, NULL,
					   NULL);
}
