/* SPDX-License-Identifier: MIT */
/*
 * whom.c - whom a long wait is for.
 */
#include "consumer/whom.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

#define GAP_MS 2000  /* without a look: another wait */
#define MUTE_MS 2000 /* without an answer: that is what is said */
#define AGAIN 6      /* times the patience, until the same is said again */

static void begin_wait(struct tsi_whom *w, uint64_t want, int64_t now_ms)
{
	w->want = want;
	w->since_ms = now_ms;
	w->asked_ms = 0;
	w->serial = 0;
	w->known[0] = '\0';
}

/* Ask, or go on asking, until then. */
static int ask_whom(struct tsi_whom *w, const struct tsi_whom_asks *a,
		    int64_t deadline_ms, struct tsock_wait *out)
{
	struct tsi_err_saved saved = tsi_err_save(0);
	struct tsi_msg q = { .type = TSI_WHOM }, reply;
	int err;

	if (!w->serial) {
		w->serial = tsi_request_serial(a->requests);
		w->asked_ms = tsi_now_ms();
	}
	q.serial = w->serial;
	memcpy(q.u.whom.nonce, a->nonce, TSI_NONCE);
	q.u.whom.pid = (uint32_t)getpid();
	q.u.whom.waited_ms = (uint32_t)(tsi_now_ms() - w->since_ms);
	q.u.whom.want = w->want;
	err = tsi_request_ask(a->requests, &q, deadline_ms, &reply);
	if (err != TSOCK_EAGAIN)
		w->serial = 0;
	if (!err && reply.type != TSI_WAITS)
		err = TSOCK_EPROTO;
	if (!err)
		*out = reply.u.wait;
	/* If the producer is gone, the wait itself notices that. */
	tsi_err_restore(&saved);
	return err;
}

static void warn_of(struct tsi_whom *w, const struct tsi_whom_asks *a,
		    const struct tsock_wait *out, int64_t now_ms)
{
	if (!out->who[0] ||
	    (w->said_ms && now_ms - w->said_ms < AGAIN * tsi_patience_ms() &&
	     !strcmp(out->who, w->who)))
		return;
	w->said_ms = now_ms;
	memcpy(w->who, out->who, sizeof(w->who));
	tsi_log(TSOCK_LOG_WARN,
		"'%s': this consumer has waited %lld s for %s%s", a->stream,
		(long long)(now_ms - w->since_ms) / 1000, out->who, out->why);
}

static void mute(const struct tsi_whom_asks *a, struct tsock_wait *out)
{
	*out = (struct tsock_wait){ .kind = TSOCK_FOR_PRODUCER };
	if (a->pid)
		snprintf(out->who, sizeof(out->who),
			 "its producer (process %u)", a->pid);
	else
		snprintf(out->who, sizeof(out->who), "its producer");
	snprintf(out->why, sizeof(out->why),
		 ", which doesn't answer: is it stopped?");
}

void tsi_whom_look(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   uint64_t want, int64_t now_ms)
{
	struct tsock_wait out;
	int err;

	if (!w->since_ms || w->want != want || now_ms - w->seen_ms > GAP_MS)
		begin_wait(w, want, now_ms);
	w->seen_ms = now_ms;
	w->known[0] = '\0';
	if (now_ms - w->since_ms < tsi_patience_ms() ||
	    (!w->serial && w->asked_ms &&
	     now_ms - w->asked_ms < tsi_patience_ms()))
		return;
	err = ask_whom(w, a, a->wait_ms ? now_ms + a->wait_ms : 0, &out);
	if (err == TSOCK_EAGAIN && now_ms - w->asked_ms > MUTE_MS)
		mute(a, &out);
	else if (err)
		return;
	warn_of(w, a, &out, now_ms);
}

void tsi_whom_mute(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   int64_t now_ms)
{
	struct tsock_wait out;

	if (!w->since_ms || now_ms - w->seen_ms > GAP_MS)
		begin_wait(w, TSI_WHOM_JOIN, now_ms);
	w->seen_ms = now_ms;
	if (now_ms - w->since_ms < tsi_patience_ms())
		return;
	mute(a, &out);
	warn_of(w, a, &out, now_ms);
}

void tsi_whom_know(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   uint64_t want, int64_t now_ms, const char *who,
		   const char *why)
{
	struct tsock_wait out = { 0 };

	if (!w->since_ms || w->want != want || now_ms - w->seen_ms > GAP_MS)
		begin_wait(w, want, now_ms);
	w->seen_ms = now_ms;
	snprintf(out.who, sizeof(out.who), "%s", who);
	snprintf(out.why, sizeof(out.why), "%s", why);
	snprintf(w->known, sizeof(w->known), "%s%s", out.who, out.why);
	if (now_ms - w->since_ms >= tsi_patience_ms())
		warn_of(w, a, &out, now_ms);
}

void tsi_whom_tell(struct tsi_whom *w, const struct tsi_whom_asks *a,
		   int64_t deadline_ms, char *buf, size_t size)
{
	struct tsock_wait out = { .kind = TSOCK_FOR_NOTHING };

	if (w->since_ms && w->known[0]) {
		snprintf(buf, size, "%s", w->known);
		return;
	}
	/* The answer to a question of before may be on its way, and old. */
	w->serial = 0;
	if (w->since_ms && ask_whom(w, a, deadline_ms, &out) == TSOCK_EAGAIN)
		mute(a, &out);
	snprintf(buf, size, "%s%s", out.who, out.why);
}
