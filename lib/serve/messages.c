/* SPDX-License-Identifier: MIT */
/*
 * messages.c - requests of consumers over ZeroMQ, and the replies.
 *
 * A consumer that asks to join gets an offer (offers.h).  It becomes a reader
 * when it connects with the offer's token: handshake.c.
 */
#include "serve/messages.h"

#include <string.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/err.h"
#include "base/log.h"
#include "serve/server.h"
#include "serve/stats.h"
#include "wire/zmq.h"

#define DESCRIPTORS 3 /* of a consumer: process, tail, connection */
#define MESSAGES 64   /* answered before the control thread does other work */

static void answer_error(struct tsi_msg *m, int code)
{
	m->type = TSI_ERROR;
	m->u.error = (struct tsi_msg_error){ .code = code };
	tsi_err_copy(m->u.error.text, sizeof(m->u.error.text));
}

static void answer_meta(struct tsock_server *s, struct tsi_msg *m)
{
	uint32_t at = m->u.meta.offset, total = s->stream.meta_bytes;
	uint32_t len = at < total ? total - at : 0;

	if (len > TSI_CHUNK)
		len = TSI_CHUNK;
	m->type = TSI_META_DATA;
	memset(&m->u.meta_data, 0, sizeof(m->u.meta_data));
	m->u.meta_data.offset = at;
	m->u.meta_data.len = len;
	memcpy(m->u.meta_data.bytes, s->meta + (len ? at : 0), len);
}

/*
 * ZeroMQ ends a process that runs out of descriptors.  Long before that, joining
 * is refused.
 */
static int check_descriptors(struct tsock_server *s,
			     const struct tsi_msg_join *join)
{
	struct tsi_descriptors d;
	uint64_t need = DESCRIPTORS;

	if (tsi_offers_find(&s->offers, join->nonce))
		return 0;
	need += (uint64_t)DESCRIPTORS * tsi_offers_count(&s->offers);
	d = tsi_descriptors();
	if (tsi_descriptors_room(&d, need, 4))
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "the producer has too few descriptors for one more "
		       "consumer: %llu of %llu are in use, %llu are kept "
		       "back, and each consumer takes %d; start it with a "
		       "higher limit (ulimit -n)",
		       (unsigned long long)d.open, (unsigned long long)d.limit,
		       (unsigned long long)d.kept, DESCRIPTORS);
}

static int check_join(struct tsock_server *s, const struct tsi_msg_join *j)
{
	const char *why = tsi_gate_failure(&s->gate);

	/* The sequence numbers in it are those of another stream. */
	if (j->incarnation && j->incarnation != s->stream.incarnation)
		return tsi_address_err_restarted(&s->sockets.address);
	if (why)
		return tsi_err(TSOCK_ESTREAM, "%s", why);
	if (tsi_readers_over(&s->readers))
		return tsi_err(TSOCK_EENDED,
			       "the stream has ended: epoch %llu was its last",
			       (unsigned long long)s->stream.epochs - 1);
	if (!j->batch_size || j->batch_size > s->stream.max_batch)
		return tsi_err(TSOCK_EREFUSED,
			       "batch size %u: the stream allows 1 to %u; "
			       "start the producer with a larger --max-batch",
			       j->batch_size, s->stream.max_batch);
	if (j->join > TSOCK_JOIN_NOW)
		return tsi_err(TSOCK_EREFUSED, "join mode %u is unknown",
			       j->join);
	if (tsi_readers_has(&s->readers, j->nonce))
		return tsi_err(TSOCK_EREFUSED, "that connection has joined");
	return 0;
}

/* How a ring on a GPU is opened; its descriptors come with the reply. */
static void offer_handles(const struct tsi_ring *r, struct tsi_msg_offer *out)
{
	out->transport = tsi_ring_transport(r);
	out->nfields = tsi_ring_handles(r, out->handle);
}

static int offer(struct tsock_server *s, const struct tsi_msg_join *j,
		 struct tsi_msg_offer *out)
{
	const struct tsi_offer *o;
	unsigned view;
	int err = check_join(s, j);

	if (!err)
		err = check_descriptors(s, j);
	if (!err)
		err = tsi_view_table_find(&s->views, &j->view, &view);
	if (!err)
		err = tsi_readers_forecast(&s->readers, j, view,
					   &out->forecast);
	if (err)
		return err;
	o = tsi_offers_find(&s->offers, j->nonce);
	/* A token opens one ring: that which is described beside it. */
	if (o && o->view != view) {
		tsi_offers_withdraw(&s->offers, j->nonce);
		o = NULL;
	}
	if (!o)
		o = tsi_offers_add(&s->offers, j, view, tsi_now_ms());
	if (!o)
		return TSOCK_EAGAIN; /* too many at once: ask again */
	memcpy(out->token, o->token, TSI_TOKEN);
	offer_handles(tsi_gate_ring(&s->gate, view), out);
	return 0;
}

static void answer_join(struct tsock_server *s, struct tsi_msg *m)
{
	struct tsi_msg_join j = m->u.join;
	struct tsi_msg_offer out = { .forecast = 0 };
	int err = offer(s, &j, &out);

	if (err && err != TSOCK_EAGAIN) {
		answer_error(m, err);
		return;
	}
	m->type = err ? TSI_WAIT : TSI_OFFER;
	if (!err)
		m->u.offer = out;
}

static void answer_leave(struct tsock_server *s, struct tsi_msg *m)
{
	struct tsi_msg_leave l = m->u.leave;

	tsi_offers_withdraw(&s->offers, l.nonce);
	tsi_readers_leave(&s->readers, l.nonce);
	m->type = TSI_LEFT;
}

static void answer_stats(struct tsock_server *s, struct tsi_msg *m)
{
	m->type = TSI_STATS_DATA;
	tsi_stats_read(s, &m->u.stats);
}

/* Turn a request into its reply; false when none is due. */
static bool answer(struct tsock_server *s, struct tsi_msg *m)
{
	switch (m->type) {
	case TSI_HELLO:
		m->type = TSI_STREAM;
		m->u.stream = s->stream;
		return true;
	case TSI_META:
		answer_meta(s, m);
		return true;
	case TSI_JOIN:
		answer_join(s, m);
		return true;
	case TSI_LEAVE:
		answer_leave(s, m);
		return true;
	case TSI_STATS:
		answer_stats(s, m);
		return true;
	default:
		return false;
	}
}

void tsi_messages_answer(struct tsock_server *s)
{
	struct tsi_routing_id id;
	struct tsi_msg m;

	for (unsigned i = 0; i < MESSAGES; i++) {
		int err = tsi_zmq_recv(s->sockets.channel, &id, &m);
		bool due;

		if (err == TSOCK_EPROTO) {
			tsi_log(TSOCK_LOG_DEBUG, "a message dropped: %s",
				tsock_errmsg());
			continue;
		}
		if (err)
			return;
		tsi_sync_lock(&s->sync);
		due = answer(s, &m);
		tsi_sync_unlock(&s->sync);
		if (due)
			tsi_zmq_send(s->sockets.channel, &id, &m);
	}
}
