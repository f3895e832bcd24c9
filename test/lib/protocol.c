/* SPDX-License-Identifier: MIT */
/*
 * protocol.c - the machine of protocol.h: its dice, its messages on their way,
 * and the connections to its producer.
 */
#include "test/lib/protocol.h"

#include <string.h>

struct machine machine;

uint64_t machine_random(uint64_t below)
{
	machine.rng ^= machine.rng << 13;
	machine.rng ^= machine.rng >> 7;
	machine.rng ^= machine.rng << 17;
	return machine.rng % below;
}

void machine_post(struct mail *m, const struct letter *l)
{
	unsigned copies = 1;
	int64_t late = (int64_t)machine_random(machine_random(20) ? 5 : 400);

	/* ZeroMQ drops messages while too many wait for a peer; but not a
	 * LEAVE and all of its repetitions. */
	if (!machine.fair && machine_random(machine.loss) == 0)
		copies = machine_random(2) && l->type != TSI_LEAVE ? 0 : 2;
	for (; copies && m->n < LETTERS; copies--) {
		struct letter *at = &m->letter[m->n++];

		*at = *l;
		at->due = machine.now + late;
		/* None overtakes another. */
		if (m->n > 1 && at[-1].due > at->due)
			at->due = at[-1].due;
	}
}

bool machine_fetch(struct mail *m, struct letter *l)
{
	if (!m->n || m->letter[0].due > machine.now)
		return false;
	*l = m->letter[0];
	memmove(m->letter, m->letter + 1, --m->n * sizeof(*l));
	return true;
}

uint64_t *machine_slot(struct ring *r, uint32_t generation, uint64_t since,
		       uint64_t s)
{
	unsigned half = (generation - 1) & 1;

	return &r->slot[s >= since ? half : !half][s % machine.c];
}

uint32_t machine_call(struct consumer *q, const uint8_t *token)
{
	uint32_t number = machine.calls + 1;
	struct call *c = &machine.call[number % CALLS];

	if (!machine.up)
		return NO_CALL;
	*c = (struct call){ .number = number,
			    .person = q->number,
			    .pid = q->pid };
	c->due = machine.now + (int64_t)machine_random(30);
	memcpy(c->token, token, TSI_TOKEN);
	machine.calls = number;
	return number;
}
