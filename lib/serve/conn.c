/* SPDX-License-Identifier: MIT */
/*
 * conn.c - the connection to a reader: its process, and its tail page.
 */
#include "serve/conn.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "ring/tail_page.h"
#include "wire/fdpass.h"
#include "wire/peer.h"

void tsi_conn_init(struct tsi_conn *c)
{
	*c = (struct tsi_conn){ .pidfd = -1, .sock = -1 };
}

int tsi_conn_make(struct tsi_conn *c, const struct tsi_peer *peer,
		  const struct tsi_msg_join *join)
{
	/* Without a pidfd on either side, a hang-up is what tells of a death. */
	bool keep = peer->pidfd < 0 || peer->keep_sock;

	*c = (struct tsi_conn){ .pidfd = peer->pidfd,
				.sock = keep ? peer->sock : -1,
				.may_kill = peer->may_kill,
				.pid = peer->pid ? peer->pid : join->pid,
				.sure_pid = peer->pid,
				.batch = join->batch_size,
				.world = join->world ? join->world : 1,
				.staged = join->staged };
	memcpy(c->nonce, join->nonce, TSI_NONCE);
	memcpy(c->job, join->job, TSOCK_JOB);
	return tsi_memfd_create("tsock-tail", sizeof(struct tsi_tail_page),
				TSI_MEM_PEER_WRITES, &c->tail);
}

void tsi_conn_give_up(struct tsi_conn *c)
{
	tsi_memfd_close(&c->tail);
}

uint32_t tsi_conn_attach(struct tsi_conn *c, struct tsi_ring *r, unsigned row,
			 uint64_t start)
{
	uint32_t reader = tsi_ring_attach(r, row, tsi_memfd_base(&c->tail));

	c->ring = r;
	tsi_log(TSOCK_LOG_INFO, "consumer %u joins: batch size %u, from %llu",
		c->pid, c->batch, (unsigned long long)start);
	return reader;
}

void tsi_conn_detach(const struct tsi_conn *c, unsigned row, const char *why)
{
	tsi_log(TSOCK_LOG_INFO, "consumer %u %s", c->pid, why);
	tsi_ring_detach(c->ring, row);
}

void tsi_conn_set_aside(const struct tsi_conn *c, unsigned row)
{
	tsi_ring_set_aside(c->ring, row);
}

void tsi_conn_undo_set_aside(const struct tsi_conn *c, unsigned row)
{
	tsi_ring_undo_set_aside(c->ring, row, tsi_memfd_base(&c->tail));
}

uint32_t tsi_conn_generation(const struct tsi_conn *c)
{
	return tsi_tail_page_generation(tsi_memfd_base(&c->tail));
}

bool tsi_conn_keeps_sock(const struct tsi_conn *c)
{
	return c->sock >= 0;
}

unsigned tsi_conn_fds(const struct tsi_conn *c, int event, int *fds)
{
	unsigned n = 0;

	fds[n++] = tsi_ring_header_fd(c->ring);
	fds[n++] = tsi_memfd_fd(&c->tail);
	fds[n++] = event;
	/* Legacy handles went with the offer. */
	return n + tsi_ring_data_fds(c->ring, fds + n);
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
	struct tsi_reader_row row = { .pid = c->sure_pid,
				      .born = tsi_peer_born(c->sure_pid),
				      .mark = mark };

	memcpy(row.nonce, c->nonce, TSI_NONCE);
	return row;
}

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

const char *tsi_conn_why_gone(const struct tsi_conn *c)
{
	return c->killed ? "was killed: too slow" : "is gone";
}

bool tsi_conn_left(const struct tsi_conn *c)
{
	return tsi_tail_page_left(tsi_memfd_base(&c->tail));
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

const char *tsi_conn_who(const struct tsi_conn *c, char text[TSI_CONN_WHO])
{
	char name[TSI_PEER_NAME];

	if (tsi_peer_name(c->pidfd, name))
		snprintf(text, TSI_CONN_WHO, "%u (%s)", c->pid, name);
	else
		snprintf(text, TSI_CONN_WHO, "%u", c->pid);
	return text;
}

uint32_t tsi_conn_pid(const struct tsi_conn *c)
{
	return c->pid;
}

bool tsi_conn_stopped(const struct tsi_conn *c)
{
	return tsi_peer_stopped(c->sure_pid);
}

uint32_t tsi_conn_world(const struct tsi_conn *c)
{
	return c->world;
}

bool tsi_conn_is_of_job(const struct tsi_conn *c,
			const struct tsi_msg_join *join)
{
	return c->world > 1 && join->world > 1 &&
	       !memcmp(c->job, join->job, TSOCK_JOB);
}

uint64_t tsi_conn_taken(const struct tsi_conn *c)
{
	return tsi_tail_page_position(tsi_memfd_base(&c->tail));
}

uint64_t tsi_conn_held(const struct tsi_conn *c, uint64_t tail,
		       uint32_t *batches)
{
	uint64_t to = tsi_tail_page_position(tsi_memfd_base(&c->tail));
	/* Between two batches of a rank lie those of the others. */
	uint64_t n = to > tail ? to - tail : 0,
		 step = (uint64_t)c->batch * c->world;
	uint64_t full = step ? n / step : 0, rest = step ? n % step : 0;

	*batches = (uint32_t)(full + (rest > 0));
	return full * c->batch + (rest < c->batch ? rest : c->batch);
}

void tsi_conn_kill(struct tsi_conn *c, const struct tsi_conn *waiter,
		   int64_t held_ms)
{
	char slow[TSI_CONN_WHO], other[TSI_CONN_WHO];

	if (c->killed)
		return;
	c->killed = true;
	tsi_log(TSOCK_LOG_WARN,
		"consumer %s %s: it has held up consumer %s for %.1f s",
		tsi_conn_who(c, slow),
		c->may_kill ? "is killed"
			    : "is too slow, but not killed, since this kernel "
			      "can't tell for certain who it is",
		tsi_conn_who(waiter, other), (double)held_ms / 1000);
	if (c->may_kill)
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
}

void tsi_conn_tell_detached(const struct tsi_conn *c,
			    const struct tsi_conn *waiter, int64_t held_ms)
{
	char slow[TSI_CONN_WHO], other[TSI_CONN_WHO];

	tsi_log(TSOCK_LOG_WARN,
		"consumer %s is detached: it has held up consumer %s for "
		"%.1f s; it goes on where the stream is by then",
		tsi_conn_who(c, slow), tsi_conn_who(waiter, other),
		(double)held_ms / 1000);
}

void tsi_conn_tell_stays(struct tsi_conn *c, const struct tsi_conn *waiter,
			 int64_t held_ms, const char *why)
{
	char slow[TSI_CONN_WHO], other[TSI_CONN_WHO];

	if (c->stays)
		return;
	c->stays = true;
	tsi_log(TSOCK_LOG_WARN,
		"consumer %s has held up consumer %s for %.1f s, and is waited "
		"for: it can't be detached, since %s",
		tsi_conn_who(c, slow), tsi_conn_who(waiter, other),
		(double)held_ms / 1000, why);
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
