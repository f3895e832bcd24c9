/* SPDX-License-Identifier: MIT */
/*
 * budget.c - the memory that all large images of a process share: a counter
 * and a line of waiting threads under one lock.
 */
#include "pixel/budget.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

/* A thread in line, on its own stack. */
struct waiter {
	struct waiter *next;
	uint64_t bytes;
	bool granted;
	pthread_cond_t turn;
};

struct tsi_budget {
	uint64_t size;
	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t left;
	bool closed;
	struct waiter *first;
	struct waiter **last; /* where the next one is hung */
};

int tsi_budget_create(uint64_t bytes, struct tsi_budget **out)
{
	struct tsi_budget *b = calloc(1, sizeof(*b));

	if (!b)
		return tsi_err(TSOCK_ENOMEM, "no memory for a budget");
	b->size = bytes;
	b->left = bytes;
	b->last = &b->first;
	pthread_mutex_init(&b->lock, NULL);
	*out = b;
	return 0;
}

void tsi_budget_destroy(struct tsi_budget *b)
{
	if (!b)
		return;
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* Called with the lock held: grant to the front of the line what fits. */
static void serve_line(struct tsi_budget *b)
{
	while (b->first && b->first->bytes <= b->left) {
		struct waiter *w = b->first;

		b->left -= w->bytes;
		b->first = w->next;
		if (!b->first)
			b->last = &b->first;
		w->granted = true;
		pthread_cond_signal(&w->turn);
	}
}

void tsi_budget_close(struct tsi_budget *b)
{
	pthread_mutex_lock(&b->lock);
	b->closed = true;
	for (struct waiter *w = b->first; w; w = w->next)
		pthread_cond_signal(&w->turn);
	b->first = NULL;
	b->last = &b->first;
	pthread_mutex_unlock(&b->lock);
}

/* Called with the lock held: wait in line.  False: closed. */
static bool wait_in_line(struct tsi_budget *b, uint64_t bytes)
{
	struct waiter w = { .bytes = bytes };

	pthread_cond_init(&w.turn, NULL);
	*b->last = &w;
	b->last = &w.next;
	while (!w.granted && !b->closed)
		pthread_cond_wait(&w.turn, &b->lock);
	pthread_cond_destroy(&w.turn);
	return w.granted;
}

static int closed(void)
{
	return tsi_err(TSOCK_ESTREAM, "the stream is being closed");
}

static int too_large(const struct tsi_budget *b, uint64_t bytes)
{
	return tsi_err(TSOCK_EDATA,
		       "it takes %.1f MB of memory to read and decode, and "
		       "--image-memory is %.1f MB",
		       (double)bytes / 1e6, (double)b->size / 1e6);
}

int tsi_budget_claim_grow(struct tsi_budget_claim *c, uint64_t total)
{
	struct tsi_budget *b = c->budget;
	uint64_t more;
	int err = 0;

	if (!b || total <= c->held)
		return 0;
	if (total > b->size)
		return too_large(b, total);
	more = total - c->held;
	pthread_mutex_lock(&b->lock);
	if (b->closed)
		err = closed();
	else if (!b->first && more <= b->left)
		b->left -= more;
	else if (c->held)
		err = TSOCK_EAGAIN;
	else if (!wait_in_line(b, more))
		err = closed();
	pthread_mutex_unlock(&b->lock);
	if (err == TSOCK_EAGAIN)
		c->wanted = total;
	if (!err)
		c->held = total;
	return err;
}

int tsi_budget_claim_file(struct tsi_budget_claim *c, uint64_t bytes)
{
	c->file += bytes;
	return tsi_budget_claim_grow(c, c->file);
}

int tsi_budget_claim_all(struct tsi_budget_claim *c)
{
	return c->budget ? tsi_budget_claim_grow(c, c->budget->size) : 0;
}

void tsi_budget_claim_end(struct tsi_budget_claim *c)
{
	struct tsi_budget *b = c->budget;

	if (b && c->held) {
		pthread_mutex_lock(&b->lock);
		b->left += c->held;
		serve_line(b);
		pthread_mutex_unlock(&b->lock);
	}
	c->held = 0;
	c->file = 0;
}
