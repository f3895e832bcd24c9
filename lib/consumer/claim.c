/* SPDX-License-Identifier: MIT */
/*
 * claim.c - what a reader and its producer share.
 */
#include "consumer/claim.h"

#include <sys/mman.h>
#include <unistd.h>

#include "wire/peer.h"

void tsi_claim_close(struct tsi_claim *c)
{
	int fd[] = { c->event, c->producer, c->sock };

	if (c->page)
		munmap(c->page, c->page_len);
	if (c->ring)
		munmap(c->ring, c->ring_len);
	for (unsigned i = 0; i < 3; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

bool tsi_claim_producer_gone(const struct tsi_claim *c)
{
	return tsi_peer_gone(c->producer, c->sock);
}
