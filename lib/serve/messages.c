/* SPDX-License-Identifier: MIT */
/*
 * messages.c - requests of consumers over ZeroMQ, and the replies.
 *
 * A consumer that asks to join gets an offer (offers.h).  It becomes a reader
 * when it connects with the offer's token: handshake.c.
 */
#include "serve/messages.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/err.h"
#include "base/log.h"
#include "serve/options.h"
#include "wire/stop_file.h"
#include "wire/zmq.h"

#define DESCRIPTORS 3 /* of a consumer: process, tail, connection */
#define MESSAGES 64   /* answered before the control thread does other work */

/* ---- what is said of the stream ---- */

/* The texts that META asks for: the class names, then the identity, then what
 * else the producer can do. */
static int copy_texts(struct tsi_messages *t, const struct tsock_serve_opts *o)
{
	const char *identity = o->identity ? o->identity : "";
	size_t can = o->table ? sizeof(TSI_CAN_TABLES) : 0;
	size_t said = strlen(identity) + 1, at = 0, bytes = said + can;

	for (uint32_t i = 0; i < o->nclasses; i++)
		bytes += strlen(o->classes[i]) + 1;
	if (bytes > (1u << 28))
		return tsi_err(TSOCK_EARG,
			       "the class names and the identity are too long: "
			       "they have %zu bytes, and may have %u",
			       bytes, 1u << 28);
	t->meta = malloc(bytes);
	if (!t->meta)
		return tsi_err(TSOCK_ENOMEM, "no memory for the class names");
	for (uint32_t i = 0; i < o->nclasses; i++) {
		size_t len = strlen(o->classes[i]) + 1;

		memcpy(t->meta + at, o->classes[i], len);
		at += len;
	}
	memcpy(t->meta + at, identity, said);
	memcpy(t->meta + at + said, TSI_CAN_TABLES, can);
	t->stream.nclasses = o->nclasses;
	t->stream.meta_bytes = (uint32_t)bytes;
	return 0;
}

static void fill_part(struct tsi_messages *t, const struct tsock_serve_opts *o)
{
	struct tsi_part part = tsi_options_part(o);
	struct tsi_msg_stream *m = &t->stream;

	m->shard = part.first;
	m->shards = part.world;
	if (part.world)
		m->shard_ranks = part.ranks ? part.ranks : 1;
	m->whole_len = o->whole_len;
	m->start_epoch = part.start_epoch;
	m->start = part.start;
	if (!o->whole_len)
		return;
	t->padding =
		tsi_part_padding(&part, o->whole_len, part.start_epoch + 1);
	t->last_row =
		tsi_part_last_row(&part, o->whole_len, part.start_epoch + 1);
}

static void fill_stream(struct tsi_messages *t,
			const struct tsock_serve_opts *o,
			const struct tsi_geometry *g)
{
	struct tsi_msg_stream *m = &t->stream;

	m->epoch_len = o->epoch_len;
	m->dataset_len = o->dataset_len ? o->dataset_len : o->epoch_len;
	m->epochs = o->epochs;
	m->segments = o->segments ? o->segments : 1;
	m->max_batch = o->max_batch;
	m->capacity = (uint32_t)g->capacity;
	m->join_window = (uint32_t)g->join_window;
	m->sequential = o->sequential != 0;
	m->resumable = o->resumable != 0;
	m->pid = (uint32_t)getpid();
	m->nfields = g->nfields;
	for (unsigned i = 0; i < g->nfields; i++)
		m->field[i] = *tsi_geometry_field(g, i);
}

int tsi_messages_init(struct tsi_messages *t, const struct tsock_serve_opts *o,
		      const struct tsi_geometry *g)
{
	int err = copy_texts(t, o);

	if (!err)
		fill_stream(t, o, g);
	if (!err)
		fill_part(t, o);
	return err;
}

void tsi_messages_fini(struct tsi_messages *t)
{
	tsi_warnings_fini(&t->warnings);
	free(t->meta);
}

void tsi_messages_begin(struct tsi_messages *t, uint64_t incarnation)
{
	t->stream.incarnation = t->stream.lineage = incarnation;
}

void tsi_messages_set_lineage(struct tsi_messages *t, uint64_t lineage)
{
	t->stream.lineage = lineage;
}

void tsi_messages_set_epochs(struct tsi_messages *t, uint64_t epochs)
{
	t->stream.epochs = epochs;
}

bool tsi_messages_warn(struct tsi_messages *t, uint32_t kind, const char *text)
{
	if (!tsi_warnings_add(&t->warnings, kind, text))
		return false;
	tsi_gate_state_warnings(t->gate, t->warnings.n);
	return true;
}

/* ---- replies ---- */

static void answer_error(struct tsi_msg *m, int code)
{
	m->type = TSI_ERROR;
	m->u.error = (struct tsi_msg_error){ .code = code };
	tsi_err_copy(m->u.error.text, sizeof(m->u.error.text));
}

static void answer_meta(struct tsi_messages *t, struct tsi_msg *m)
{
	uint32_t at = m->u.meta.offset, total = t->stream.meta_bytes;
	uint32_t len = at < total ? total - at : 0;

	/* The consumer that asks was told of a stream of another run. */
	if (m->u.meta.incarnation != t->stream.incarnation) {
		answer_error(m, tsi_sockets_err_restarted(t->sockets));
		return;
	}
	if (len > TSI_CHUNK)
		len = TSI_CHUNK;
	m->type = TSI_META_DATA;
	memset(&m->u.meta_data, 0, sizeof(m->u.meta_data));
	m->u.meta_data.offset = at;
	m->u.meta_data.len = len;
	memcpy(m->u.meta_data.bytes, t->meta + (len ? at : 0), len);
}

static void answer_warning(struct tsi_messages *t, struct tsi_msg *m)
{
	struct tsi_msg_warning q = m->u.warning;

	if (q.incarnation != t->stream.incarnation)
		answer_error(m, tsi_sockets_err_restarted(t->sockets));
	else if (tsi_warnings_get(&t->warnings, q.number, &m->u.warning_data))
		m->type = TSI_WARNING_DATA;
	else
		answer_error(m, tsi_err(TSOCK_EARG, "there is no warning %u",
					q.number));
}

/*
 * ZeroMQ ends a process that runs out of descriptors.  Long before that,
 * joining is refused.
 */
static int check_descriptors(struct tsi_messages *t,
			     const struct tsi_msg_join *join)
{
	char text[TSI_DESCRIPTORS_TEXT];
	struct tsi_descriptors d;
	uint64_t need = DESCRIPTORS;

	if (tsi_offers_find(t->offers, join->nonce))
		return 0;
	need += (uint64_t)DESCRIPTORS * tsi_offers_count(t->offers);
	d = tsi_descriptors();
	if (tsi_descriptors_room(&d, need, 4))
		return 0;
	return tsi_err(TSOCK_EREFUSED,
		       "the producer has too few descriptors for one more "
		       "consumer: %s, and each consumer takes %d; start it "
		       "with a higher limit (ulimit -n)",
		       tsi_descriptors_text(&d, text), DESCRIPTORS);
}

static int check_join(struct tsi_messages *t, const struct tsi_msg_join *j)
{
	int err = tsi_gate_stopped(t->gate)
			  ? tsi_stop_file_err(tsi_sockets_address(t->sockets),
					      tsi_gate_failure(t->gate))
			  : tsi_gate_err(t->gate);

	/* The sequence numbers in it are those of another stream. */
	if (j->incarnation && j->incarnation != t->stream.incarnation)
		return tsi_sockets_err_restarted(t->sockets);
	if (err)
		return err;
	if (tsi_readers_over(t->readers))
		return tsi_err(TSOCK_EENDED,
			       "the stream has ended: epoch %llu was its last",
			       (unsigned long long)t->stream.epochs - 1);
	if (!j->batch_size || j->batch_size > t->stream.max_batch)
		return tsi_err(TSOCK_EREFUSED,
			       "batch size %u: the stream allows 1 to %u; "
			       "start the producer with a larger --max-batch",
			       j->batch_size, t->stream.max_batch);
	if (j->join > TSOCK_JOIN_NOW)
		return tsi_err(TSOCK_EREFUSED, "join mode %u is unknown",
			       j->join);
	if (j->world > 1 && tsi_readers_detaches(t->readers))
		return tsi_err(TSOCK_EREFUSED,
			       "ranks go on together, and this stream detaches "
			       "slow consumers one by one: start its producer "
			       "with another --slow");
	if (j->epoch_end && ((!t->stream.resumable && !j->detached) ||
			     j->epoch_end <= j->position ||
			     j->epoch_end - j->position > t->stream.epoch_len))
		return tsi_err(TSOCK_EREFUSED,
			       "a consumer can't go on at sample %llu of an "
			       "epoch that ends at %llu",
			       (unsigned long long)j->position,
			       (unsigned long long)j->epoch_end);
	if (tsi_readers_has(t->readers, j->nonce))
		return tsi_err(TSOCK_EREFUSED, "that connection has joined");
	return 0;
}

/* How a ring on a GPU is opened; its descriptors come with the reply. */
static void offer_handles(const struct tsi_ring *r, struct tsi_msg_offer *out)
{
	out->transport = tsi_ring_transport(r);
	out->nfields = tsi_ring_handles(r, out->handle);
}

/* What the consumer will look at; world 1: at all samples. */
static struct tsi_ranks part_of(const struct tsi_messages *t,
				const struct tsi_msg_join *j)
{
	if (!(j->own & TSI_OWN) || j->rank >= j->world ||
	    j->world > TSI_MAX_MEMBERS)
		return (struct tsi_ranks){ .world = 1 };
	return (struct tsi_ranks){
		.rank = j->rank,
		.world = j->world,
		.once = j->own & TSI_OWN_ONCE,
		.drop_last = j->own & TSI_OWN_DROP_LAST,
		.batch = j->batch_size,
		.padding =
			j->own & TSI_OWN_DROP_LAST ? t->last_row : t->padding,
	};
}

static int offer(struct tsi_messages *t, const struct tsi_msg_join *j,
		 struct tsi_msg_offer *out)
{
	struct tsi_ranks part = part_of(t, j);
	const struct tsi_offer *o;
	unsigned view;
	int err = check_join(t, j);

	if (!err)
		tsi_readers_note_return(t->readers, j);
	if (!err)
		err = check_descriptors(t, j);
	if (!err)
		err = tsi_view_table_find(t->views, &j->view, &part, &view);
	if (!err)
		err = tsi_readers_forecast(t->readers, j, view, &out->forecast);
	if (err)
		return err;
	o = tsi_offers_find(t->offers, j->nonce);
	/* A token opens one ring, the one that its offer describes. */
	if (o && o->view != view) {
		tsi_offers_withdraw(t->offers, j->nonce);
		o = NULL;
	}
	if (!o)
		o = tsi_offers_add(t->offers, j, view, tsi_now_ms());
	if (!o)
		return TSOCK_EAGAIN; /* too many at once: ask again */
	memcpy(out->token, o->token, TSI_TOKEN);
	offer_handles(tsi_gate_ring(t->gate, view), out);
	return 0;
}

static void answer_join(struct tsi_messages *t, struct tsi_msg *m)
{
	struct tsi_msg_join j = m->u.join;
	struct tsi_msg_offer out = { .forecast = 0 };
	int err = offer(t, &j, &out);

	if (err && err != TSOCK_EAGAIN) {
		answer_error(m, err);
		return;
	}
	m->type = err ? TSI_WAIT : TSI_OFFER;
	if (!err)
		m->u.offer = out;
}

static void answer_leave(struct tsi_messages *t, struct tsi_msg *m)
{
	struct tsi_msg_leave l = m->u.leave;

	tsi_offers_withdraw(t->offers, l.nonce);
	tsi_readers_leave(t->readers, l.nonce);
	tsi_waits_forget(t->waits, l.nonce);
	m->type = TSI_LEFT;
}

static void answer_table(struct tsi_messages *t, struct tsi_msg *m)
{
	struct tsi_msg_table q = m->u.table;
	struct tsi_msg_table_data out;
	int err = tsi_tables_find(t->tables, &q, &out);

	if (err && err != TSOCK_EAGAIN) {
		answer_error(m, err);
		return;
	}
	m->type = err ? TSI_WAIT : TSI_TABLE_DATA;
	if (!err)
		m->u.table_data = out;
}

static void answer_stats(struct tsi_messages *t, struct tsi_msg *m)
{
	m->type = TSI_STATS_DATA;
	tsi_stats_read(t->stats, &m->u.stats);
}

static void answer_whom(struct tsi_messages *t, struct tsi_msg *m)
{
	struct tsi_msg_whom q = m->u.whom;

	m->type = TSI_WAITS;
	tsi_waits_answer(t->waits, &q, tsi_now_ms(), &m->u.wait);
}

/* May the stream be stopped for good? */
static int check_stop(struct tsi_messages *t, const struct tsi_msg_stop *q)
{
	char who[128];
	unsigned n = tsi_readers_names(t->readers, who, sizeof(who));

	if (!n || q->force || tsi_gate_stopped(t->gate))
		return 0;
	return tsi_err(TSOCK_EREFUSED, "%u process%s read%s the stream: %s", n,
		       n == 1 ? "" : "es", n == 1 ? "s" : "", who);
}

/* The file first: a consumer that finds the stream gone looks for it.  A file
 * system may be slow, so the lock is given up meanwhile. */
static void answer_stop(struct tsi_messages *t, struct tsi_msg *m)
{
	struct tsi_msg_stop q = m->u.stop;
	int err = check_stop(t, &q);

	if (!err && !tsi_gate_stopped(t->gate)) {
		tsi_sync_unlock(t->sync);
		err = tsi_stop_file_write(tsi_sockets_address(t->sockets),
					  q.who);
		tsi_sync_lock(t->sync);
	}
	if (err) {
		answer_error(m, err);
		return;
	}
	if (!tsi_gate_stopped(t->gate))
		tsi_log(TSOCK_LOG_INFO, "the stream is stopped by %s", q.who);
	tsi_gate_stop(t->gate, q.who);
	m->type = TSI_STOPPED;
}

/* Turn a request into its reply; false when none is due. */
static bool answer(struct tsi_messages *t, struct tsi_msg *m)
{
	switch (m->type) {
	case TSI_HELLO:
		m->type = TSI_STREAM;
		m->u.stream = t->stream;
		return true;
	case TSI_META:
		answer_meta(t, m);
		return true;
	case TSI_WARNING:
		answer_warning(t, m);
		return true;
	case TSI_JOIN:
		answer_join(t, m);
		return true;
	case TSI_LEAVE:
		answer_leave(t, m);
		return true;
	case TSI_STATS:
		answer_stats(t, m);
		return true;
	case TSI_STOP:
		answer_stop(t, m);
		return true;
	case TSI_TABLE:
		answer_table(t, m);
		return true;
	case TSI_WHOM:
		answer_whom(t, m);
		return true;
	default:
		return false;
	}
}

void tsi_messages_answer(struct tsi_messages *t, struct tsi_channel *ch)
{
	struct tsi_routing_id id;
	struct tsi_msg m;

	for (unsigned i = 0; i < MESSAGES; i++) {
		int err = tsi_zmq_recv(ch, &id, &m);
		bool due;

		if (err == TSOCK_EPROTO) {
			tsi_log(TSOCK_LOG_DEBUG, "a message dropped: %s",
				tsock_errmsg());
			continue;
		}
		if (err)
			return;
		tsi_sync_lock(t->sync);
		due = answer(t, &m);
		/* A reader that hears that it has left is not waited for. */
		tsi_readers_save_record(t->readers);
		tsi_sync_unlock(t->sync);
		if (due)
			tsi_zmq_send(ch, &id, &m);
	}
}
