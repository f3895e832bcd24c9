/* SPDX-License-Identifier: MIT */
/*
 * msg.c - the control messages, as bytes.
 *
 * The body of every type is described once, in visit_*, and walked in either
 * direction.  Values that would make a reader divide by zero, overflow or read
 * beyond an array are refused here.  What a value means (an unknown join mode,
 * a batch that is too large) is for the receiver to judge, which can reply.
 */
#include "wire/msg.h"

#include <assert.h>

#include "base/err.h"
#include "wire/pack.h"

#define MAGIC 0x4b4f5354u /* "TSOK" */

/* Most bytes of a field's sample: above any real one, below an overflow. */
#define SAMPLE_MAX ((uint64_t)1 << 40)

static void visit_field(struct tsi_pack *k, struct tsock_field *f)
{
	uint64_t bytes;

	tsi_pack_text(k, f->name, sizeof(f->name));
	tsi_pack_u32(k, &f->dtype);
	tsi_pack_u32(k, &f->flags);
	tsi_pack_count(k, &f->ndim, TSOCK_MAX_DIMS);
	for (unsigned i = 0; i < f->ndim; i++)
		tsi_pack_u64(k, &f->shape[i]);
	if (k->why || k->packing)
		return;
	bytes = tsock_dtype_size(f->dtype);
	if (!bytes)
		k->why = "a field in it is of an unknown dtype";
	for (unsigned i = 0; i < f->ndim && !k->why; i++) {
		if (!f->shape[i] || f->shape[i] > SAMPLE_MAX / bytes)
			k->why = "a field in it has an impossible shape";
		else
			bytes *= f->shape[i];
	}
}

static void visit_stream(struct tsi_pack *k, struct tsi_msg_stream *s)
{
	tsi_pack_u64(k, &s->incarnation);
	tsi_pack_u64(k, &s->lineage);
	tsi_pack_u64(k, &s->epoch_len);
	tsi_pack_u64(k, &s->dataset_len);
	tsi_pack_u64(k, &s->epochs);
	tsi_pack_u32(k, &s->segments);
	tsi_pack_u32(k, &s->max_batch);
	tsi_pack_u32(k, &s->capacity);
	tsi_pack_u32(k, &s->join_window);
	tsi_pack_u32(k, &s->nclasses);
	tsi_pack_u32(k, &s->sequential);
	tsi_pack_u32(k, &s->pid);
	tsi_pack_u32(k, &s->shard);
	tsi_pack_u32(k, &s->shard_ranks);
	tsi_pack_u32(k, &s->shards);
	tsi_pack_u64(k, &s->whole_len);
	tsi_pack_u64(k, &s->start_epoch);
	tsi_pack_u64(k, &s->start);
	tsi_pack_u32(k, &s->resumable);
	tsi_pack_u32(k, &s->meta_bytes);
	tsi_pack_count(k, &s->nfields, TSOCK_MAX_FIELDS);
	for (unsigned i = 0; i < s->nfields; i++)
		visit_field(k, &s->field[i]);
	if (!k->why && !k->packing &&
	    (!s->epoch_len || !s->segments || !s->max_batch || !s->capacity ||
	     !s->nfields))
		k->why = "it describes an empty stream";
}

static void visit_meta_data(struct tsi_pack *k, struct tsi_msg_meta_data *d)
{
	tsi_pack_u32(k, &d->offset);
	tsi_pack_count(k, &d->len, TSI_CHUNK);
	tsi_pack_bytes(k, d->bytes, d->len);
}

static void visit_join(struct tsi_pack *k, struct tsi_msg_join *j)
{
	tsi_pack_bytes(k, j->nonce, TSI_NONCE);
	tsi_pack_u32(k, &j->pid);
	tsi_pack_u32(k, &j->batch_size);
	tsi_pack_u32(k, &j->join);
	tsi_pack_u32(k, &j->between);
	tsi_pack_u64(k, &j->incarnation);
	tsi_pack_u64(k, &j->after);
	tsi_pack_u32(k, &j->staged);
	tsi_pack_u32(k, &j->view.dtype);
	tsi_pack_u32(k, &j->view.layout);
	tsi_pack_u32(k, &j->view.normalize);
	for (int i = 0; i < 3; i++)
		tsi_pack_f32(k, &j->view.mean[i]);
	for (int i = 0; i < 3; i++)
		tsi_pack_f32(k, &j->view.std[i]);
	tsi_pack_u32(k, &j->view.gpu);
	tsi_pack_u32(k, &j->view.transport);
	tsi_pack_bytes(k, j->view.uuid, TSI_UUID);
	tsi_pack_u32(k, &j->rank);
	tsi_pack_u32(k, &j->world);
	tsi_pack_bytes(k, j->job, TSOCK_JOB);
	tsi_pack_u64(k, &j->position);
	tsi_pack_u64(k, &j->epoch_end);
	tsi_pack_u32(k, &j->returns);
	tsi_pack_bytes(k, j->was, TSI_NONCE);
	tsi_pack_u32(k, &j->detached);
	tsi_pack_u64(k, &j->read);
	tsi_pack_u32(k, &j->read_of);
	tsi_pack_u32(k, &j->own);
	tsi_pack_u64(k, &j->from);
}

static void visit_offer(struct tsi_pack *k, struct tsi_msg_offer *o)
{
	tsi_pack_bytes(k, o->token, TSI_TOKEN);
	tsi_pack_u64(k, &o->forecast);
	tsi_pack_u32(k, &o->transport);
	tsi_pack_count(k, &o->nfields, TSOCK_MAX_FIELDS);
	for (unsigned i = 0; i < o->nfields; i++)
		tsi_pack_bytes(k, o->handle[i], TSI_GPU_HANDLE);
}

static void visit_row(struct tsi_pack *k, struct tsock_stats_row *r)
{
	tsi_pack_u32(k, &r->pid);
	tsi_pack_u32(k, &r->batch_size);
	tsi_pack_u64(k, &r->tail);
	tsi_pack_u64(k, &r->samples);
	tsi_pack_u64(k, &r->wait_ns);
	tsi_pack_u32(k, &r->view);
	tsi_pack_u32(k, &r->waiting);
	tsi_pack_u32(k, &r->transport);
	tsi_pack_u32(k, &r->reserved);
}

static void visit_wait(struct tsi_pack *k, struct tsock_wait *w)
{
	tsi_pack_u32(k, &w->kind);
	tsi_pack_u32(k, &w->pid);
	tsi_pack_u32(k, &w->for_pid);
	tsi_pack_u32(k, &w->waited_ms);
	tsi_pack_u32(k, &w->held_batches);
	tsi_pack_u32(k, &w->reserved);
	tsi_pack_u64(k, &w->held_samples);
	tsi_pack_text(k, w->who, sizeof(w->who));
	tsi_pack_text(k, w->why, sizeof(w->why));
}

static void visit_stats(struct tsi_pack *k, struct tsock_stats *s)
{
	s->size = sizeof(*s);
	tsi_pack_u32(k, &s->pid);
	tsi_pack_u64(k, &s->epoch_len);
	tsi_pack_u64(k, &s->head);
	tsi_pack_u64(k, &s->claimed);
	tsi_pack_u64(k, &s->limit);
	tsi_pack_u64(k, &s->capacity);
	tsi_pack_u64(k, &s->produced);
	tsi_pack_u64(k, &s->read_bytes);
	tsi_pack_u64(k, &s->bad_samples);
	tsi_pack_u64(k, &s->memory);
	tsi_pack_u32(k, &s->views);
	tsi_pack_u32(k, &s->consumers);
	tsi_pack_u32(k, &s->detached);
	tsi_pack_count(k, &s->nrows, TSOCK_STATS_ROWS);
	for (unsigned i = 0; i < s->nrows; i++)
		visit_row(k, &s->row[i]);
	tsi_pack_count(k, &s->nwaits, TSOCK_STATS_WAITS);
	for (unsigned i = 0; i < s->nwaits; i++)
		visit_wait(k, &s->wait[i]);
	tsi_pack_u64(k, &s->bad_files);
	tsi_pack_u32(k, &s->shard);
	tsi_pack_u32(k, &s->shard_ranks);
	tsi_pack_u32(k, &s->shards);
}

static void visit_table_data(struct tsi_pack *k, struct tsi_msg_table_data *t)
{
	tsi_pack_bytes(k, t->token, TSI_TOKEN);
	tsi_pack_u32(k, &t->kind);
	tsi_pack_u32(k, &t->text);
	tsi_pack_u64(k, &t->count);
	tsi_pack_u64(k, &t->length);
	tsi_pack_u64(k, &t->bytes);
	tsi_pack_u64(k, &t->data_at);
	tsi_pack_u64(k, &t->start_at);
	tsi_pack_u64(k, &t->folders_at);
	tsi_pack_u64(k, &t->folders);
	visit_field(k, &t->field);
}

static void visit_body(struct tsi_pack *k, struct tsi_msg *m)
{
	switch (m->type) {
	case TSI_HELLO:
		tsi_pack_u32(k, &m->u.hello.pid);
		break;
	case TSI_STREAM:
		visit_stream(k, &m->u.stream);
		break;
	case TSI_META:
		tsi_pack_u64(k, &m->u.meta.incarnation);
		tsi_pack_u32(k, &m->u.meta.offset);
		break;
	case TSI_META_DATA:
		visit_meta_data(k, &m->u.meta_data);
		break;
	case TSI_WARNING:
		tsi_pack_u64(k, &m->u.warning.incarnation);
		tsi_pack_u32(k, &m->u.warning.number);
		break;
	case TSI_WARNING_DATA:
		tsi_pack_u32(k, &m->u.warning_data.number);
		tsi_pack_u32(k, &m->u.warning_data.kind);
		tsi_pack_text(k, m->u.warning_data.text,
			      sizeof(m->u.warning_data.text));
		break;
	case TSI_JOIN:
		visit_join(k, &m->u.join);
		break;
	case TSI_OFFER:
		visit_offer(k, &m->u.offer);
		break;
	case TSI_READY:
	case TSI_LEAVE:
	case TSI_LEFT:
		tsi_pack_bytes(k, m->u.leave.nonce, TSI_NONCE);
		break;
	case TSI_STATS_DATA:
		visit_stats(k, &m->u.stats);
		break;
	case TSI_WHOM:
		tsi_pack_bytes(k, m->u.whom.nonce, TSI_NONCE);
		tsi_pack_u32(k, &m->u.whom.pid);
		tsi_pack_u32(k, &m->u.whom.waited_ms);
		tsi_pack_u64(k, &m->u.whom.want);
		break;
	case TSI_WAITS:
		visit_wait(k, &m->u.wait);
		break;
	case TSI_STOP:
		tsi_pack_u32(k, &m->u.stop.force);
		tsi_pack_text(k, m->u.stop.who, sizeof(m->u.stop.who));
		break;
	case TSI_TABLE:
		tsi_pack_u64(k, &m->u.table.stream);
		tsi_pack_u32(k, &m->u.table.kind);
		break;
	case TSI_TABLE_DATA:
		visit_table_data(k, &m->u.table_data);
		break;
	case TSI_ERROR:
		tsi_pack_code(k, &m->u.error.code, -1);
		tsi_pack_text(k, m->u.error.text, sizeof(m->u.error.text));
		break;
	case TSI_WAIT:
	case TSI_STATS:
	case TSI_STOPPED:
	case TSI_CONFIGURE:
		break;
	default:
		k->why = "its type is unknown";
	}
}

size_t tsi_msg_pack(const struct tsi_msg *m, uint8_t *out)
{
	struct tsi_pack k = tsi_pack_to(out, TSI_MSG_MAX);
	struct tsi_msg copy = *m; /* the walk takes pointers both ways */
	uint32_t magic = MAGIC, length = 0;
	uint16_t version = TSI_MSG_VERSION;
	size_t end;

	tsi_pack_u32(&k, &magic);
	tsi_pack_u16(&k, &version);
	tsi_pack_u16(&k, &copy.type);
	tsi_pack_u32(&k, &length);
	tsi_pack_u32(&k, &copy.serial);
	visit_body(&k, &copy);
	assert(!k.why);
	end = k.at;
	length = (uint32_t)end;
	k.at = 8;
	tsi_pack_u32(&k, &length);
	return end;
}

int tsi_msg_unpack(const uint8_t *bytes, size_t len, struct tsi_msg *m)
{
	struct tsi_pack k = tsi_unpack_from(bytes, len);
	struct tsi_msg t = { 0 };
	uint32_t magic = 0, length = 0;
	uint16_t version = 0;

	tsi_pack_u32(&k, &magic);
	tsi_pack_u16(&k, &version);
	tsi_pack_u16(&k, &t.type);
	tsi_pack_u32(&k, &length);
	tsi_pack_u32(&k, &t.serial);
	if (k.why || magic != MAGIC)
		return tsi_err(TSOCK_EPROTO,
			       "%zu bytes that aren't a libtsock message", len);
	if (version != TSI_MSG_VERSION)
		return tsi_err(TSOCK_EPROTO,
			       "the peer speaks version %u of the protocol, "
			       "this libtsock version %u: use the same release "
			       "on both sides",
			       version, TSI_MSG_VERSION);
	if (length != len || len > TSI_MSG_MAX)
		return tsi_err(TSOCK_EPROTO,
			       "a message of type %u has %zu bytes and says %u",
			       t.type, len, length);
	visit_body(&k, &t);
	if (!k.why && k.at != len)
		k.why = "it goes on after its end";
	if (k.why)
		return tsi_err(TSOCK_EPROTO,
			       "a malformed message of type %u: %s", t.type,
			       k.why);
	*m = t;
	return 0;
}
