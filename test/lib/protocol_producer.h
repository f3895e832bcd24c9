/* SPDX-License-Identifier: MIT */
/*
 * protocol_producer.h - the producer of protocol.h: the library's own parts put
 * together as server.c does, its control thread, its workers and its stages.
 *
 * For one program, as protocol_around.h.
 */
#ifndef TEST_LIB_PROTOCOL_PRODUCER_H
#define TEST_LIB_PROTOCOL_PRODUCER_H

#include "base/sequence.h"
#include "serve/handshake.h"
#include "serve/production.h"
#include "test/lib/protocol_around.h"
#include "test/lib/protocol_rings.h"

/* Samples that a view's stage reads and writes. */
struct run {
	uint64_t first;
	unsigned n;
	uint32_t opening;
};

static struct {
	struct tsi_sync sync;
	struct tsi_gate gate;
	struct tsi_membership membership;
	struct tsi_offers offers;
	struct tsi_readers readers;
	struct tsi_handshake handshake;
	struct tsi_messages messages;
	struct tsi_waits waits;
	struct tsi_tables tables;
	struct tsi_production production;
	uint64_t pending[MOST_C]; /* claimed, and not yet written */
	unsigned npending;
	struct run run[VIEWS];
} p;
static char folder[] = "/tmp/tsock-protocol-XXXXXX";

static void start_membership(void)
{
	struct tsi_membership_config config = { .epoch_len = machine.n,
						.join_window = machine.w,
						.capacity = machine.c,
						.end = TSI_NEVER,
						.segments = machine.segments,
						.bounds = machine.bounds,
						.min_members = 1 };

	tsi_membership_init(&p.membership, &config);
	for (unsigned i = 1; i < VIEWS; i++)
		tsi_membership_source(&p.membership, i, i - 1, machine.c,
				      false);
}

/* The producer listens already, and is ready at the end of this. */
static void start(void)
{
	start_membership();
	tsi_gate_init(&p.gate, &p.sync, &p.membership);
	tsi_readers_init(&p.readers, &p.sync, &p.gate, &p.membership, &p.offers,
			 machine.n);
	if (machine.detaches)
		tsi_readers_set_slow(&p.readers, TSOCK_SLOW_DETACH, SLOW_MS);
	for (unsigned i = 0; i < (machine.detaches ? VIEWS : 1); i++)
		tsi_gate_add_ring(&p.gate, i, &server_ring[i]);
	check(!tsi_production_init(&p.production, machine.c, &p.sync,
				   &p.membership, &p.gate));
	tsi_waits_init(&p.waits, &p.readers, &p.membership);
	p.messages = (struct tsi_messages){ .sync = &p.sync,
					    .gate = &p.gate,
					    .readers = &p.readers,
					    .offers = &p.offers,
					    .waits = &p.waits };
	p.messages.stream.epoch_len = machine.n;
	p.messages.stream.max_batch = MOST_C;
	p.messages.stream.resumable = 1;
	tsi_messages_begin(&p.messages, machine.incarnation);
	tsi_readers_keep_record(&p.readers, folder, "model", machine.seed, 1);
	tsi_handshake_init(&p.handshake, &p.readers, &p.offers, &p.tables);
	tsi_handshake_begin(&p.handshake, 0, machine.incarnation);
	machine.up = true;
}

/* ---- the control thread: control.c ---- */

static void mind_slow(void)
{
	int view = tsi_readers_mind_slow(&p.readers, machine.now);

	if (view < 0)
		return;
	if (machine_random(4))
		machine.ring[machine.nring][view].spare = true;
	else
		tsi_readers_no_memory(&p.readers, machine.now);
}

/* While it stood still nobody could be heard. */
static void note_pause(int64_t now)
{
	if (now - machine.looked_ms > STOOD_MS)
		machine.began_ms += now - machine.looked_ms;
	machine.looked_ms = now;
}

static void control(void)
{
	int64_t now = machine.now;

	note_pause(now);

	tsi_sync_lock(&p.sync);
	tsi_readers_reap(&p.readers);
	tsi_readers_refresh(&p.readers);
	tsi_handshake_serve(&p.handshake, 0, now);
	tsi_readers_expire(&p.readers, now);
	mind_slow();
	tsi_gate_changed(&p.gate);
	tsi_readers_save_record(&p.readers);
	tsi_sync_unlock(&p.sync);
	tsi_messages_answer(&p.messages, NULL);
}

/* ---- workers and stages ---- */

/* Is it a reader of that ring, as its producer sees it? */
static bool reads(const struct consumer *q, unsigned view)
{
	const struct claim *c = &q->claim;

	return q->phase == READS && c->incarnation == machine.incarnation &&
	       c->view == view &&
	       machine.ring[machine.nring][view].row[c->row] == c->reader;
}

static void spoil(unsigned view, uint64_t s)
{
	for (unsigned i = 0; i < PEOPLE; i++) {
		const struct consumer *q = &machine.who[i];

		if (reads(q, view) && q->claim.tail <= s)
			check(s < q->claim.tail + machine.c);
	}
	*slot_of(&machine.ring[machine.nring][view], s) = SPOILT;
}

static void claim(void)
{
	unsigned want = 1 + (unsigned)machine_random(6);
	uint64_t first;
	unsigned n = tsi_production_claim(&p.production, want, &first);

	if (!n) {
		tsi_sync_lock(&p.sync);
		n = tsi_membership_claim(&p.membership, 0, want, &first);
		if (!n) {
			tsi_readers_refresh(&p.readers);
			n = tsi_membership_claim(&p.membership, 0, want,
						 &first);
		}
		tsi_sync_unlock(&p.sync);
	}
	for (unsigned i = 0; i < n; i++) {
		spoil(0, first + i);
		check(p.npending < MOST_C);
		p.pending[p.npending++] = first + i;
	}
}

static void commit_one(void)
{
	unsigned i;
	uint64_t s;

	if (!p.npending)
		return;
	i = (unsigned)machine_random(p.npending);
	s = p.pending[i];
	p.pending[i] = p.pending[--p.npending];
	*slot_of(&machine.ring[machine.nring][0], s) = s;
	tsi_production_commit(&p.production, s, 1);
}

/* Where readers are detached rings are full sooner. */
static void commit(void)
{
	for (unsigned i = 0; i < (machine.detaches ? 6 : 1); i++)
		commit_one();
}

/* As view_thread.c, one run at a time. */
static void begin_run(unsigned view, struct run *run)
{
	struct tsi_membership *m = &p.membership;

	if (!tsi_membership_active(m, view))
		return;
	run->n = tsi_membership_claim(m, view, 1 + (unsigned)machine_random(6),
				      &run->first);
	if (!run->n)
		return;
	run->opening = tsi_membership_opening(m, view);
	tsi_membership_reading(m, view, run->first);
	for (uint64_t s = run->first; s < run->first + run->n; s++)
		spoil(view, s);
}

static void end_run(unsigned view, struct run *run)
{
	struct tsi_membership *m = &p.membership;
	struct ring *to = &machine.ring[machine.nring][view], *from = to - 1;
	bool live = tsi_membership_active(m, view) &&
		    tsi_membership_opening(m, view) == run->opening;

	for (uint64_t s = run->first; s < run->first + run->n; s++) {
		/* One of before the view ended may read anything. */
		check(!live || *slot_of(from, s) == s);
		*slot_of(to, s) = *slot_of(from, s);
	}
	tsi_membership_reading(m, view, TSI_NEVER);
	if (tsi_membership_done(m, view, run->opening, run->first,
				run->first + run->n))
		tsi_ring_publish(&server_ring[view], run->first + run->n);
	run->n = 0;
}

static void stage(void)
{
	unsigned view = 1 + (unsigned)machine_random(VIEWS - 1);
	struct run *run = &p.run[view];

	tsi_sync_lock(&p.sync);
	if (run->n)
		end_run(view, run);
	else
		begin_run(view, run);
	tsi_sync_unlock(&p.sync);
}

#endif
