/* SPDX-License-Identifier: MIT */
/*
 * protocol_rings.h - the rings of protocol.h as the producer has them, and its
 * connections to their readers: what ring.c and conn.c do, for lib/serve.
 *
 * For one program, as protocol_around.h.
 */
#ifndef TEST_LIB_PROTOCOL_RINGS_H
#define TEST_LIB_PROTOCOL_RINGS_H

#include "test/lib/protocol.h"

#include <string.h>

#include "ring/ring.h"
#include "serve/conn.h"
#include "serve/last_tail.h"
#include "wire/peer.h"

/* The producer may die now; the program that includes this says how. */
static void moment(void);

/* Only their addresses are used. */
static struct tsi_ring server_ring[VIEWS];

static struct ring *ring_of(const struct tsi_ring *r)
{
	return &machine.ring[machine.nring][r - server_ring];
}

/* Where the producer writes sample s. */
static uint64_t *slot_of(struct ring *r, uint64_t s)
{
	return machine_slot(r, r->generation, r->since[r->generation & 1], s);
}

static void make_ring(struct ring *r)
{
	*r = (struct ring){ .incarnation = machine.incarnation,
			    .generation = 1 };
	memset(r->slot, 0xff, sizeof(r->slot));
}

/* ---- connections: conn.c ---- */

void tsi_conn_init(struct tsi_conn *c)
{
	*c = (struct tsi_conn){ .pidfd = -1, .sock = -1 };
}

int tsi_conn_make(struct tsi_conn *c, const struct tsi_peer *peer,
		  const struct tsi_msg_join *join)
{
	unsigned i = 0;

	while (i < PAGES && machine.page[i].used)
		i++;
	check(i < PAGES);
	machine.names++;
	machine.page[i] = (struct page){ .used = true,
					 .number = (uint32_t)machine.names };
	machine.made = i;
	*c = (struct tsi_conn){ .pid = peer->pid, .batch = i };
	memcpy(c->nonce, join->nonce, TSI_NONCE);
	return 0;
}

void tsi_conn_give_up(struct tsi_conn *c)
{
	machine.page[c->batch].used = false;
}

uint32_t tsi_conn_attach(struct tsi_conn *c, struct tsi_ring *r, unsigned row,
			 uint64_t first)
{
	struct ring *ring = ring_of(r);

	(void)first;
	check(row < ROWS);
	c->ring = r;
	ring->row[row] = ++ring->readers;
	moment();
	return ring->row[row];
}

void tsi_conn_detach(const struct tsi_conn *c, unsigned row, const char *why)
{
	uint32_t *reader = &ring_of(c->ring)->row[row];

	(void)why;
	if (!(*reader & DETACHED))
		*reader = 0;
	moment();
}

void tsi_conn_set_aside(const struct tsi_conn *c, unsigned row)
{
	ring_of(c->ring)->row[row] |= DETACHED;
	moment();
}

void tsi_conn_undo_set_aside(const struct tsi_conn *c, unsigned row)
{
	moment();
	ring_of(c->ring)->row[row] &= ~DETACHED;
}

uint32_t tsi_conn_generation(const struct tsi_conn *c)
{
	moment();
	return machine.page[c->batch].generation;
}

uint64_t tsi_conn_want(const struct tsi_conn *c)
{
	return machine.page[c->batch].want;
}

uint64_t tsi_conn_tail(const struct tsi_conn *c)
{
	return machine.page[c->batch].tail;
}

/* What is taken is given back at once. */
uint64_t tsi_conn_taken(const struct tsi_conn *c)
{
	return machine.page[c->batch].tail;
}

bool tsi_conn_keeps_sock(const struct tsi_conn *c)
{
	(void)c;
	return false;
}

unsigned tsi_conn_fds(const struct tsi_conn *c, int event, int *fds)
{
	(void)c;
	(void)event;
	(void)fds;
	return 0;
}

bool tsi_conn_is(const struct tsi_conn *c, const uint8_t *nonce)
{
	return !memcmp(c->nonce, nonce, TSI_NONCE);
}

const uint8_t *tsi_conn_nonce(const struct tsi_conn *c)
{
	return c->nonce;
}

struct tsi_reader_row tsi_conn_row(const struct tsi_conn *c, uint64_t mark)
{
	struct tsi_reader_row row = { .pid = c->pid,
				      .born = c->pid,
				      .mark = mark };

	memcpy(row.nonce, c->nonce, TSI_NONCE);
	return row;
}

void tsi_conn_close(struct tsi_conn *c)
{
	machine.page[c->batch].used = false;
}

bool tsi_conn_gone(const struct tsi_conn *c)
{
	return !tsi_peer_born(c->pid);
}

bool tsi_conn_left(const struct tsi_conn *c)
{
	return machine.page[c->batch].left;
}

const char *tsi_conn_why_gone(const struct tsi_conn *c)
{
	(void)c;
	return "is gone";
}

struct pollfd tsi_conn_poll(const struct tsi_conn *c)
{
	(void)c;
	return (struct pollfd){ .fd = -1 };
}

void tsi_conn_kill(struct tsi_conn *c, const struct tsi_conn *waiter,
		   int64_t held_ms)
{
	(void)c;
	(void)waiter;
	(void)held_ms;
	check(!"none is killed");
}

void tsi_conn_tell_detached(const struct tsi_conn *c,
			    const struct tsi_conn *waiter, int64_t held_ms)
{
	(void)waiter;
	check(held_ms >= SLOW_MS);
	machine.detachments++;
	/* The consumer may not know yet that it is a reader again. */
	for (unsigned i = 0; i < PEOPLE; i++)
		if (machine.who[i].pid == c->pid)
			machine.who[i].owed = false;
}

void tsi_conn_tell_stays(struct tsi_conn *c, const struct tsi_conn *waiter,
			 int64_t held_ms, const char *why)
{
	(void)c;
	(void)waiter;
	(void)held_ms;
	(void)why;
}

/* Nobody asks there for whom a wait is. */
const char *tsi_conn_who(const struct tsi_conn *c, char text[TSI_CONN_WHO])
{
	(void)c;
	return strcpy(text, "1");
}

uint32_t tsi_conn_pid(const struct tsi_conn *c)
{
	return c->pid;
}

bool tsi_conn_stopped(const struct tsi_conn *c)
{
	(void)c;
	return false;
}

uint32_t tsi_conn_world(const struct tsi_conn *c)
{
	(void)c;
	return 1;
}

/* Asked where a JOIN says from; here none does. */
bool tsi_conn_is_of_job(const struct tsi_conn *c,
			const struct tsi_msg_join *join)
{
	(void)c;
	(void)join;
	return false;
}

uint64_t tsi_conn_held(const struct tsi_conn *c, uint64_t tail,
		       uint32_t *batches)
{
	(void)c;
	(void)tail;
	*batches = 0;
	return 0;
}

void tsi_conn_stats(const struct tsi_conn *c, struct tsock_stats_row *row)
{
	(void)c;
	(void)row;
}

/* ---- readers of the producer before: last_tail.c ---- */

void tsi_last_tail_find(struct tsi_last_tail *l,
			const struct tsi_reader_row *row)
{
	l->page = NULL;
	for (unsigned i = 0; machine.sees && i < PEOPLE; i++) {
		struct consumer *q = &machine.who[i];

		if (q->phase == READS &&
		    !memcmp(q->claim.nonce, row->nonce, TSI_NONCE))
			l->page = q;
	}
}

/* Nothing of its next claim is seen by that page. */
uint64_t tsi_last_tail_read(const struct tsi_last_tail *l)
{
	const struct consumer *q = l->page;

	return q->phase == READS && q->claim.incarnation != machine.incarnation
		       ? q->claim.tail
		       : 0;
}

void tsi_last_tail_close(struct tsi_last_tail *l)
{
	l->page = NULL;
}

/* ---- the rings: ring.c ---- */

void tsi_ring_publish(struct tsi_ring *r, uint64_t head)
{
	moment();
	ring_of(r)->head = head;
	moment();
}

uint64_t tsi_ring_head(const struct tsi_ring *r)
{
	return ring_of(r)->head;
}

void tsi_ring_set_generation(struct tsi_ring *r, uint32_t generation,
			     uint64_t since)
{
	struct ring *ring = ring_of(r);

	if (ring->generation == generation)
		return;
	machine.turns++;
	ring->since[generation & 1] = since;
	moment();
	ring->generation = generation;
	moment();
}

bool tsi_ring_has_spare(const struct tsi_ring *r)
{
	return ring_of(r)->spare;
}

void tsi_ring_finish(struct tsi_ring *r, enum tsi_ring_state state,
		     const char *error)
{
	(void)r;
	(void)state;
	(void)error;
}

void tsi_ring_want_gate(struct tsi_ring *r, uint64_t gate)
{
	(void)r;
	(void)gate;
}

void tsi_ring_want_front(struct tsi_ring *r, uint64_t front)
{
	(void)r;
	(void)front;
}

void tsi_ring_want_start(struct tsi_ring *r, uint64_t first)
{
	(void)r;
	(void)first;
}

void tsi_ring_set_held(struct tsi_ring *r, uint64_t from)
{
	(void)r;
	(void)from;
}

void tsi_ring_set_warnings(struct tsi_ring *r, uint32_t n)
{
	(void)r;
	(void)n;
}

void tsi_ring_set_end(struct tsi_ring *r, uint64_t end)
{
	(void)r;
	(void)end;
}

unsigned tsi_ring_handles(const struct tsi_ring *r,
			  uint8_t (*handle)[TSI_GPU_HANDLE])
{
	(void)r;
	(void)handle;
	return 0;
}

#endif
