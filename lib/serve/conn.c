/* SPDX-License-Identifier: MIT */
/*
 * conn.c - the connection to a reader: its process, and its tail page.
 */
#include "serve/conn.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "ring/tail_page.h"
#include "wire/peer.h"

void tsi_conn_close(struct tsi_conn *c)
{
	tsi_memfd_close(&c->tail);
	if (c->pidfd >= 0)
		close(c->pidfd);
	if (c->sock >= 0)
		close(c->sock);
	c->pidfd = c->sock = -1;
}

bool tsi_conn_gone(const struct tsi_conn *c)
{
	return tsi_peer_gone(c->pidfd, c->sock);
}

struct pollfd tsi_conn_poll(const struct tsi_conn *c)
{
	bool process = c->pidfd >= 0;

	return (struct pollfd){ .fd = process ? c->pidfd : c->sock,
				.events = process ? POLLIN : POLLRDHUP };
}

uint64_t tsi_conn_tail(const struct tsi_conn *c)
{
	return tsi_tail_page_tail(tsi_memfd_base(&c->tail));
}

uint64_t tsi_conn_want(const struct tsi_conn *c)
{
	return tsi_tail_page_waits_for(tsi_memfd_base(&c->tail));
}

void tsi_conn_kill(struct tsi_conn *c)
{
	if (c->killed)
		return;
	c->killed = true;
	if (!c->may_kill)
		tsi_log(TSOCK_LOG_WARN,
			"consumer %u is too slow, but this kernel can't tell "
			"for certain who it is: not killed",
			c->pid);
	else
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

void tsi_conn_stats(const struct tsi_conn *c, struct tsock_stats_row *row)
{
	const struct tsi_tail_page *page = tsi_memfd_base(&c->tail);

	row->pid = c->pid;
	row->batch_size = c->batch;
	row->samples = tsi_tail_page_samples(page);
	row->wait_ns = tsi_tail_page_wait_ns(page);
	row->waiting = tsi_conn_want(c) != 0;
	row->transport = c->staged ? TSOCK_TRANSPORT_STAGED
				   : tsi_ring_transport(c->ring);
}
