/* SPDX-License-Identifier: MIT */
/*
 * share.c - how several producers divide the CPUs that they may use.
 */
#include "run/share.h"

#include <string.h>

#define CPUS (TSI_SHARE_WORDS * 64)

struct division {
	const struct tsi_share_stream *s;
	unsigned n;
	unsigned me;
	uint32_t most[TSI_SHARE_STREAMS]; /* by wish and quota; 0: none */
	uint32_t has[TSI_SHARE_STREAMS];
};

static bool takes_part(const struct division *d, unsigned i)
{
	return i == d->me || d->s[i].readers > 0;
}

static bool may_use(const struct tsi_share_stream *s, unsigned cpu)
{
	return s->cpu[cpu / 64] >> cpu % 64 & 1;
}

/* Does stream i come before stream k, which may be n: none yet? */
static bool precedes(const struct division *d, const uint32_t *has, unsigned i,
		     unsigned k)
{
	if (k == d->n || has[i] != has[k])
		return k == d->n || has[i] < has[k];
	return d->s[i].key < d->s[k].key;
}

/* The quota of a cgroup is divided between its streams, one CPU at a time. */
static void divide_quota(struct division *d, unsigned first)
{
	uint64_t group = d->s[first].group;
	uint32_t got[TSI_SHARE_STREAMS] = { 0 }, quota = d->s[first].quota;

	for (unsigned i = first; i < d->n; i++)
		if (takes_part(d, i) && d->s[i].group == group &&
		    d->s[i].quota < quota)
			quota = d->s[i].quota;
	for (; quota > 0; quota--) {
		unsigned to = d->n;

		for (unsigned i = first; i < d->n; i++)
			if (takes_part(d, i) && d->s[i].group == group &&
			    got[i] < d->s[i].wants && precedes(d, got, i, to))
				to = i;
		if (to == d->n)
			break;
		got[to]++;
	}
	for (unsigned i = first; i < d->n; i++)
		if (takes_part(d, i) && d->s[i].group == group)
			d->most[i] = got[i];
}

static void divide_quotas(struct division *d)
{
	for (unsigned i = 0; i < d->n; i++) {
		bool done = false;

		for (unsigned k = 0; k < i && !done; k++)
			done = takes_part(d, k) &&
			       d->s[k].group == d->s[i].group;
		if (takes_part(d, i) && !done)
			divide_quota(d, i);
	}
}

/* Give this CPU to the stream that has fewest, of those that may use it. */
static void give(struct division *d, unsigned cpu)
{
	unsigned to = d->n;

	for (unsigned i = 0; i < d->n; i++)
		if (d->most[i] > d->has[i] && may_use(&d->s[i], cpu) &&
		    precedes(d, d->has, i, to))
			to = i;
	if (to < d->n)
		d->has[to]++;
}

/* How many streams may use each CPU. */
static unsigned count_users(const struct division *d, uint16_t *users)
{
	unsigned most = 0;

	for (unsigned cpu = 0; cpu < CPUS; cpu++) {
		users[cpu] = 0;
		for (unsigned i = 0; i < d->n; i++)
			users[cpu] += d->most[i] > 0 && may_use(&d->s[i], cpu);
		if (users[cpu] > most)
			most = users[cpu];
	}
	return most;
}

unsigned tsi_share_count(const struct tsi_share_stream *s, unsigned n,
			 unsigned me)
{
	struct division d = { .s = s, .n = n, .me = me };
	uint16_t users[CPUS];
	unsigned most;

	divide_quotas(&d);
	most = count_users(&d, users);
	/* CPUs with few users first: a user that gets these needs no others. */
	for (unsigned k = 1; k <= most; k++)
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			if (users[cpu] == k)
				give(&d, cpu);
	return d.has[me] ? d.has[me] : 1;
}

unsigned tsi_share_rivals(const struct tsi_share_stream *s, unsigned n,
			  unsigned me)
{
	unsigned rivals = 0;

	for (unsigned i = 0; i < n; i++) {
		bool common = s[i].group == s[me].group;

		for (unsigned w = 0; w < TSI_SHARE_WORDS && !common; w++)
			common = s[i].cpu[w] & s[me].cpu[w];
		rivals += i != me && s[i].readers > 0 && common;
	}
	return rivals;
}
