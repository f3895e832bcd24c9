/* SPDX-License-Identifier: MIT */
/*
 * claim.c - what a reader and its producer share.
 */
#include "consumer/claim.h"

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "consumer/shared_fd.h"
#include "wire/peer.h"

void tsi_claim_close(struct tsi_claim *c)
{
	int fd[] = { c->event, c->sock, c->page_fd };

	if (c->page)
		munmap(c->page, c->page_len);
	if (c->ring)
		munmap(c->ring, c->ring_len);
	for (unsigned i = 0; i < 3; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	tsi_shared_fd_close(c->producer);
}

void tsi_claim_leave(const struct tsi_claim *c)
{
	tsi_tail_page_leave(c->page);
	eventfd_write(c->event, 1);
}

bool tsi_claim_producer_gone(const struct tsi_claim *c)
{
	return tsi_peer_gone(c->producer, c->sock);
}

bool tsi_claim_abandoned(const struct tsi_claim *c)
{
	return tsi_claim_ring_state(c) == TSI_RING_CLOSED ||
	       tsi_claim_producer_gone(c);
}

/* As long as it needs none of the newest one it stays in the one before. */
bool tsi_claim_enter(struct tsi_claim *c, uint64_t need, unsigned *half,
		     uint64_t *since)
{
	uint32_t g = tsi_header_read_generation(c->ring, since);

	if (g > 1 && need <= *since) {
		g--;
		*since = 0;
	}
	if (g == c->generation)
		return false;
	tsi_tail_page_enter(c->page, g);
	c->generation = g;
	*half = tsi_generation_half(g);
	return true;
}

int tsi_claim_err_stopped(const struct tsi_claim *c, const char *stream)
{
	return tsi_err(TSOCK_ESTREAM, "the producer of '%s' stopped: %.*s",
		       stream, TSI_RING_ERROR, tsi_header_error(c->ring));
}

int tsi_claim_err_ended(const struct tsi_claim *c, const char *stream)
{
	return tsi_err(TSOCK_EENDED, "the stream '%s' was stopped by %.*s",
		       stream, TSI_RING_ERROR, tsi_header_error(c->ring));
}

/* ---- waiting ---- */

void tsi_claim_want(struct tsi_claim *c, uint64_t need)
{
	/* Pairs with the producer's fence between storing head and reading
	 * want: either we see that head, or it sees this. */
	tsi_tail_page_sleep(c->page, need);
	atomic_thread_fence(memory_order_seq_cst);
}

void tsi_claim_want_no_more(struct tsi_claim *c)
{
	tsi_tail_page_sleep(c->page, 0);
}

uint32_t tsi_claim_wakes(const struct tsi_claim *c)
{
	return tsi_header_wakes(c->ring, c->row);
}

void tsi_claim_sleep(const struct tsi_claim *c, uint32_t seen, int timeout_ms)
{
	tsi_header_sleep(c->ring, c->row, seen, timeout_ms);
}

void tsi_claim_spin(struct tsi_claim *c, uint64_t need)
{
	tsi_tail_page_spin(c->page, need);
}

void tsi_claim_count_wait(struct tsi_claim *c, uint64_t wait_ns)
{
	tsi_tail_page_waited(c->page, wait_ns);
}
