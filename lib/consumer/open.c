/* SPDX-License-Identifier: MIT */
/*
 * open.c - finding a producer, and learning what it serves.
 *
 * Nobody is held up by a consumer that has only been opened: no ring is
 * mapped here.
 */
#include "consumer/consumer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/sized.h"
#include "consumer/description.h"
#include "consumer/difference.h"
#include "consumer/find.h"
#include "consumer/opts.h"
#include "wire/fdpass.h"

#define LOOK_MS 50    /* between two looks for a producer */
#define SLICE_MS 1000 /* between two looks at how long an answer takes */
#define DEFAULT_TIMEOUT_MS 10000

/* ---- what is served ---- */

/* What is served makes sense, and has the batches that are asked for. */
static int check_stream(const struct tsock *t)
{
	const char *name = tsi_address_name(&t->address);
	int err = tsi_description_check(&t->stream, name);

	if (!err)
		err = tsi_description_allows(&t->stream, &t->opts, name);
	if (!err)
		err = tsi_description_joins(&t->stream, &t->opts, name);
	if (!err)
		err = tsi_description_fills_batch(&t->stream, &t->opts, name);
	return err;
}

/* No answer for a slice: if that lasts, the log says whose is waited for. */
static void name_mute(struct tsock *t)
{
	struct tsi_whom_asks a = { .stream = tsi_address_name(&t->address) };

	/* At once: a stopped process has room for a few connections only. */
	if (!t->stream.pid)
		t->stream.pid =
			tsi_fdpass_listener(tsi_address_fdpass(&t->address));
	a.pid = t->stream.pid;
	tsi_whom_mute(&t->whom, &a, tsi_now_ms());
}

/* The answer, until the deadline, which may be far. */
static int ask_stream(struct tsock *t, const struct tsi_msg *m,
		      int64_t deadline, struct tsi_msg *reply)
{
	for (;;) {
		int64_t slice = tsi_now_ms() + SLICE_MS;
		int err = tsi_request_ask(&t->requests, m,
					  slice < deadline ? slice : deadline,
					  reply);

		if (err != TSOCK_EAGAIN) {
			tsi_whom_end(&t->whom);
			return err;
		}
		name_mute(t);
		if (slice >= deadline)
			return err;
	}
}

static int fetch_meta(struct tsock *t, int64_t deadline)
{
	uint32_t at;

	while (tsi_meta_lacks(&t->meta, &at)) {
		struct tsi_msg m = { .type = TSI_META,
				     .u.meta = { t->stream.incarnation, at } };
		const struct tsi_msg_meta_data *d;
		struct tsi_msg r;
		int err;

		m.serial = tsi_request_under_way(&t->requests);
		err = ask_stream(t, &m, deadline, &r);
		if (err)
			return err;
		d = &r.u.meta_data;
		if (r.type != TSI_META_DATA || d->len > TSI_CHUNK ||
		    !tsi_meta_add(&t->meta, d->offset, d->bytes, d->len))
			return tsi_err(TSOCK_EPROTO,
				       "the producer of '%s' answered with "
				       "class names nobody asked for",
				       tsi_address_name(&t->address));
	}
	if (!tsi_meta_divide(&t->meta))
		return tsi_err(TSOCK_EPROTO,
			       "the producer of '%s' sent fewer class names "
			       "than it has",
			       tsi_address_name(&t->address));
	return 0;
}

static int say_hello(struct tsock *t, int64_t deadline)
{
	struct tsi_msg m = { .type = TSI_HELLO }, r;
	int err;

	m.serial = tsi_request_under_way(&t->requests);
	m.u.hello.pid = (uint32_t)getpid();
	err = ask_stream(t, &m, deadline, &r);
	if (err)
		return err;
	if (r.type != TSI_STREAM)
		return tsi_err(TSOCK_EPROTO,
			       "the producer of '%s' answered HELLO with a "
			       "message of type %u",
			       tsi_address_name(&t->address), r.type);
	t->stream = r.u.stream;
	err = check_stream(t);
	return err ? err
		   : tsi_meta_begin(&t->meta, t->stream.meta_bytes,
				    t->stream.nclasses);
}

/* Learn what is served.  EAGAIN: call it again, and it goes on. */
static int greet(struct tsock *t, int64_t deadline)
{
	int err = tsi_meta_begun(&t->meta) ? 0 : say_hello(t, deadline);

	if (!err)
		err = fetch_meta(t, deadline);
	return err ? err : tsi_negotiate_fields(&t->negotiation, &t->stream);
}

/* The producer is not met after all. */
static void part(struct tsock *t)
{
	tsi_meta_end(&t->meta);
	tsi_request_close(&t->requests);
}

static int meet(struct tsock *t, int64_t deadline)
{
	int err = tsi_request_open(&t->requests, &t->address);

	if (err)
		return err;
	err = greet(t, deadline);
	if (!err)
		return 0;
	part(t);
	if (err == TSOCK_EAGAIN)
		return tsi_err(TSOCK_ENOPROD,
			       "the producer of '%s' at %s is there but "
			       "doesn't answer: it may be stopped",
			       tsi_address_name(&t->address),
			       tsi_address_folder(&t->address));
	return err;
}

/* ---- finding it ---- */

static void log_found(const struct tsock *t)
{
	const struct tsi_msg_stream *s = &t->stream;

	tsi_log(TSOCK_LOG_DEBUG,
		"'%s' is served in %s by process %u: epochs of %llu samples, "
		"%u fields, batches of %u at most, a ring of %u",
		tsi_address_name(&t->address), tsi_address_folder(&t->address),
		s->pid, (unsigned long long)s->epoch_len, s->nfields,
		s->max_batch, s->capacity);
}

static int find_and_meet(struct tsock *t, const struct tsi_address *p, int n)
{
	int64_t begin = tsi_now_ms(), now = begin;
	int64_t deadline = begin + t->opts.timeout_ms;
	bool said = false;

	for (;; now = tsi_now_ms()) {
		int err;
		const struct tsi_address *found =
			tsi_find_listening(p, n, &err);

		if (found) {
			t->address = *found;
			err = meet(t, deadline);
			if (!err)
				log_found(t);
			/* It went away in between: wait for the next. */
			if (err != TSOCK_ELOST)
				return err;
			tsi_log(TSOCK_LOG_DEBUG, "%s", tsock_errmsg());
			err = 0;
		}
		if (now >= deadline)
			return err ? err : tsi_find_err(p, n, now - begin);
		if (!said)
			tsi_find_log(p, n);
		said = true;
		tsi_pause_until(deadline, LOOK_MS);
	}
}

/* What a new producer serves takes the place of what was, if it is the same. */
static int take_over(struct tsock *t, struct tsock *fresh)
{
	struct tsi_said was = { &t->stream, &t->meta },
			is = { &fresh->stream, &fresh->meta };
	char why[512];
	int err = 0;

	if (tsi_difference(&was, &is, why, sizeof(why)))
		err = tsi_err(TSOCK_ELOST,
			      "the producer of '%s' was restarted, and serves "
			      "another stream: %s; close this handle, and open "
			      "another (in Python: make a new DataLoader)",
			      tsi_address_name(&t->address), why);
	if (err)
		return err;
	tsi_request_close(&t->requests);
	t->requests = fresh->requests;
	fresh->requests.channel = NULL;
	t->joining = t->unopened = false;
	t->stream = fresh->stream;
	t->address = fresh->address;
	return tsi_negotiate_fields(&t->negotiation, &t->stream);
}

/* Begin to talk to the next producer, if one is there; else EAGAIN. */
static int approach(struct tsock *t)
{
	const struct tsi_address *found;
	struct tsock *fresh;
	int err;

	found = tsi_find_listening(t->addresses, t->naddresses, &err);
	if (!found)
		return TSOCK_EAGAIN;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return tsi_err(TSOCK_ENOMEM, "no memory for a consumer");
	fresh->opts = t->opts;
	fresh->address = *found;
	err = tsi_request_open(&fresh->requests, &fresh->address);
	if (err) {
		free(fresh);
		return err;
	}
	t->fresh = fresh;
	return 0;
}

int tsi_open_again(struct tsock *t, int64_t deadline)
{
	int err = t->fresh ? 0 : approach(t);

	if (!err)
		err = greet(t->fresh, deadline);
	/* A caller that only polls gets the answer at a later call. */
	if (err == TSOCK_EAGAIN)
		return err;
	if (!err)
		err = take_over(t, t->fresh);
	else if (err == TSOCK_ELOST)
		err = TSOCK_EAGAIN; /* it went away: perhaps the next one */
	tsi_open_forget(t);
	return err;
}

void tsi_open_forget(struct tsock *t)
{
	/* The texts are equal, and callers have pointers to those there are. */
	if (t->fresh)
		part(t->fresh);
	free(t->fresh);
	t->fresh = NULL;
}

int tsock_open(const char *name, const struct tsock_opts *opts, tsock **out)
{
	struct tsi_part part;
	struct tsock *t;
	uint64_t whole;
	int n, err;

	if (out)
		*out = NULL;
	if (!name || !out)
		return tsi_err(TSOCK_EARG, "tsock_open: %s is NULL",
			       name ? "out" : "name");
	t = calloc(1, sizeof(*t));
	if (!t)
		return tsi_err(TSOCK_ENOMEM, "no memory for a consumer");
	t->generation = tsi_fork_generation();
	t->opened_ns = tsi_now_ns();
	t->opts = (struct tsock_opts)TSOCK_OPTS_INIT;
	err = tsi_sized_read("tsock_open", &tsi_sized_opts, opts, &t->opts);
	if (!err)
		err = tsi_opts_check(&t->opts);
	if (!err)
		err = tsi_negotiate_options(&t->negotiation, &t->opts);
	if (err)
		goto err_free;
	if (!t->opts.timeout_ms)
		t->opts.timeout_ms = DEFAULT_TIMEOUT_MS;
	n = tsi_address_find(name, t->addresses, TSI_ADDRESSES);
	t->naddresses = n > 0 ? n : 0;
	err = n > 0 ? find_and_meet(t, t->addresses, n) : n;
	if (!n)
		err = tsi_err(TSOCK_EARG, "there is no folder to look for '%s'",
			      name);
	if (err)
		goto err_free;
	t->leaves =
		t->opts.between == TSOCK_BETWEEN_LEAVE ||
		(t->opts.between == TSOCK_BETWEEN_AUTO && t->stream.sequential);
	tsi_progress_init(&t->progress, t->stream.epoch_len,
			  tsi_opts_ranks(&t->opts, t->stream.sequential));
	tsi_description_part(&t->stream, &part, &whole);
	tsi_progress_set_part(&t->progress, &part, whole);
	*out = t;
	return 0;

err_free:
	free(t);
	return err;
}

int tsock_set_rank(tsock *t, uint32_t rank, uint32_t world, const uint8_t *job)
{
	struct tsock_opts o;
	int err;

	if (!t || (!job && world > 1))
		return tsi_err(TSOCK_EARG, "tsock_set_rank: %s is NULL",
			       t ? "job" : "t");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (t->reader || t->joining)
		return tsi_err(TSOCK_EARG,
			       "tsock_set_rank: an epoch was begun: "
			       "call tsock_leave() first");
	if (t->phase == TSI_PHASE_LOST || tsi_lost_waits(&t->lost))
		return tsi_err(TSOCK_EARG,
			       "tsock_set_rank: an epoch was begun, and waits "
			       "for the next producer: call tsock_leave() "
			       "first");
	o = t->opts;
	o.rank = rank;
	o.world = world;
	if (job)
		memcpy(o.job, job, sizeof(o.job));
	err = tsi_opts_check(&o);
	if (!err)
		err = tsi_description_fills_batch(
			&t->stream, &o, tsi_address_name(&t->address));
	if (err)
		return err;
	t->opts = o;
	tsi_progress_set_ranks(&t->progress,
			       tsi_opts_ranks(&o, t->stream.sequential));
	return 0;
}

/* ---- telling about it ---- */

int tsock_get_info(tsock *t, struct tsock_info *info)
{
	struct tsock_info full;
	int err;

	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_get_info: t is NULL");
	err = tsi_sized_check("tsock_get_info", &tsi_sized_info, info);
	if (err)
		return err;
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	tsi_description_info(&t->stream, &full);
	tsi_sized_write(&tsi_sized_info, &full, info);
	return 0;
}

int tsock_get_field(tsock *t, unsigned i, struct tsock_field *out)
{
	if (!t || !out)
		return tsi_err(TSOCK_EARG, "tsock_get_field: %s is NULL",
			       t ? "out" : "t");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (i >= t->stream.nfields)
		return tsi_err(TSOCK_EARG, "there is no field %u: '%s' has %u",
			       i, tsi_address_name(&t->address),
			       t->stream.nfields);
	*out = *tsi_negotiate_field(&t->negotiation, i);
	return 0;
}

const char *tsock_class_name(tsock *t, uint32_t i)
{
	if (!t)
		tsi_err(TSOCK_EARG, "tsock_class_name: t is NULL");
	return t ? tsi_meta_class(&t->meta, i) : NULL;
}

const char *tsock_identity(tsock *t)
{
	if (!t)
		tsi_err(TSOCK_EARG, "tsock_identity: t is NULL");
	return t ? tsi_meta_identity(&t->meta) : NULL;
}

uint64_t tsock_epoch(tsock *t)
{
	if (!t)
		tsi_err(TSOCK_EARG, "tsock_epoch: t is NULL");
	return t ? tsi_progress_epoch(&t->progress) : TSI_PROGRESS_NONE;
}

uint64_t tsock_epoch_batches(tsock *t)
{
	if (!t) {
		tsi_err(TSOCK_EARG, "tsock_epoch_batches: t is NULL");
		return 0;
	}
	return tsi_ranks_batches(tsi_progress_ranks(&t->progress),
				 t->stream.epoch_len);
}

int tsock_position(tsock *t, uint64_t *start, uint64_t *samples)
{
	if (!t || !start || !samples)
		return tsi_err(TSOCK_EARG, "tsock_position: %s is NULL",
			       !t      ? "t"
			       : start ? "samples"
				       : "start");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	if (tsi_progress_epoch(&t->progress) == TSI_PROGRESS_NONE)
		return tsi_err(TSOCK_EARG,
			       "no epoch was begun: call tsock_begin() before "
			       "tsock_position()");
	tsi_progress_position(&t->progress, t->phase == TSI_PHASE_DONE, start,
			      samples);
	return 0;
}

int tsock_lost(tsock *t)
{
	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_lost: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	return tsi_lost_lacks_producer(&t->lost);
}

uint64_t tsock_missed(const tsock *t)
{
	return t ? t->missed : 0;
}

const char *tsock_warning(tsock *t, int timeout_ms, uint32_t *kind)
{
	struct tsi_heard_from from;
	uint32_t any;

	if (!t || tsi_fork_since(t->generation))
		return NULL;
	from = (struct tsi_heard_from){ &t->requests,
					tsi_address_name(&t->address) };
	tsi_heard_ask(&t->heard, &from, timeout_ms);
	return tsi_heard_take(&t->heard, kind ? kind : &any);
}

int tsock_transport(tsock *t)
{
	if (!t)
		return tsi_err(TSOCK_EARG, "tsock_transport: t is NULL");
	if (tsi_fork_since(t->generation))
		return tsi_fork_err();
	return (int)t->transport;
}
