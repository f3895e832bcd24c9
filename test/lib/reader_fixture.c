/* SPDX-License-Identifier: MIT */
/*
 * reader_fixture.c - a reader of a fixture's ring, and its tail page.
 */
#include "test/lib/reader_fixture.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

const uint64_t fixture_big[2] = { 12288, 8 };
const uint64_t fixture_small[2] = { 16, 8 };

static void on_over(void *context, const struct tsi_claim *c)
{
	(void)c;
	atomic_fetch_add(&((struct fixture *)context)->over, 1);
}

static void on_gone(void *context)
{
	atomic_fetch_add(&((struct fixture *)context)->gone, 1);
}

static void *map(const struct tsi_memfd *m, int prot)
{
	void *p = mmap(NULL, m->len, prot, MAP_SHARED, m->fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

void fixture_make(struct fixture *g, const uint64_t *bytes,
		  enum tsi_mapping_mode mode)
{
	struct tsi_reader_parts p = { .claim = tsi_claim_none() };
	int fd[TSOCK_MAX_FIELDS];

	memset(g, 0, sizeof(*g));
	fixture_ring_make(&g->f, bytes, 2, CAPACITY, 16);
	assert_int_equal(g->f.geometry.join_window, CAPACITY / 2);
	assert_int_equal(tsi_memfd_create("tail", sizeof(struct tsi_tail_page),
					  TSI_MEM_PEER_WRITES, &g->tail),
			 0);
	g->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_true(g->event >= 0);
	fixture_ring_fds(&g->f, fd);
	p.claim.ring = map(&g->f.ring.header, PROT_READ);
	p.claim.ring_len = g->f.ring.header.len;
	p.claim.page = map(&g->tail, PROT_READ | PROT_WRITE);
	p.claim.page_len = g->tail.len;
	p.claim.event = dup(g->event);
	p.ring = &g->f.geometry;
	p.ident = g->f.ident;
	p.batch = BATCH;
	assert_int_equal(
		tsi_host_backend_create(mode, p.ring, BATCH, fd, &p.backend),
		0);
	p.claim_ended = on_over;
	p.free_context = on_gone;
	p.context = g;
	assert_int_equal(tsi_reader_create(&p, &g->r), 0);
}

void fixture_free(struct fixture *g)
{
	assert_int_equal(g->gone, 1);
	close(g->event);
	tsi_memfd_close(&g->tail);
	fixture_ring_free(&g->f);
}

void fixture_close(struct fixture *g)
{
	assert_true(tsi_reader_retire(g->r));
	tsi_reader_unref(g->r);
	fixture_free(g);
}

uint64_t fixture_tail(const struct fixture *g)
{
	const struct tsi_tail_page *page = g->tail.base;

	return atomic_load(&((struct tsi_tail_page *)(uintptr_t)page)->tail);
}

bool fixture_rang(const struct fixture *g)
{
	uint64_t n;

	return read(g->event, &n, sizeof(n)) == sizeof(n);
}

struct tsock_batch *fixture_take(struct fixture *g, uint64_t n)
{
	struct tsock_batch *b;

	fixture_ring_publish(&g->f, g->head, n);
	g->head += n;
	assert_int_equal(tsi_reader_acquire(g->r, n, &b), 0);
	assert_int_equal(tsock_batch_count(b), n);
	assert_int_equal(tsock_batch_seq(b), g->head - n);
	return b;
}

bool fixture_good(const struct fixture *g, const struct tsock_batch *b)
{
	for (unsigned i = 0; i < 2; i++)
		if (!fixture_ring_equal(&g->f, i, tsock_batch_data(b, i),
					tsock_batch_seq(b),
					tsock_batch_count(b)))
			return false;
	return true;
}
