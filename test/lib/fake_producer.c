/* SPDX-License-Identifier: MIT */
/*
 * fake_producer.c - a producer that is right but for one lie.
 */
#include "test/lib/fake_producer.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <zmq.h>

#include "base/err.h"

#define NAME "fake_producer"
#define N 1000 /* samples an epoch */
#define LONG_MS 60000

struct tsi_ring fake_ring;
struct tsi_memfd fake_tail;
int fake_event;

/* ---- the fake producer ---- */

const struct tsock_field fake_field[2] = {
	{ .name = "payload", .dtype = TSOCK_U8, .ndim = 1, .shape = { 4096 } },
	{ .name = "label", .dtype = TSOCK_I64 },
};

static void make_ring(const struct fake_producer *r)
{
	struct tsi_ring_ident id = { FAKE_INCARNATION, N, TSI_NEVER };
	struct tsi_geometry g;

	need(!tsi_geometry_make(fake_field, 2,
				&(struct tsi_geometry_wish){ .ring = 64,
							     .join_window = 32,
							     .max_batch = 16 },
				&g));
	need(!tsi_ring_create(&g, &id, &fake_ring));
	need(!tsi_memfd_create("tail", sizeof(struct tsi_tail_page),
			       TSI_MEM_PEER_WRITES, &fake_tail));
	fake_event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	atomic_store(&fake_ring.shared->reader[0], 1);
	if (r->header)
		r->header(fake_ring.shared);
}

static struct tsi_msg_stream true_stream(void)
{
	struct tsi_msg_stream s = { .incarnation = FAKE_INCARNATION,
				    .epoch_len = N,
				    .dataset_len = N,
				    .segments = 1,
				    .max_batch = 16,
				    .capacity = 64,
				    .join_window = 32,
				    .pid = (uint32_t)getpid(),
				    .nfields = 2 };

	memcpy(s.field, fake_field, sizeof(fake_field));
	return s;
}

static void make_reply(const struct fake_producer *r, struct tsi_msg *m)
{
	switch (m->type) {
	case TSI_HELLO:
		m->type = TSI_STREAM;
		m->u.stream = true_stream();
		if (r->stream)
			r->stream(&m->u.stream);
		break;
	case TSI_META:
		m->type = TSI_META_DATA;
		m->u.meta_data.len = 1;
		break;
	case TSI_JOIN:
		memset(&m->u, 0, sizeof(m->u.offer));
		memset(m->u.offer.token, 7, TSI_TOKEN);
		m->type = TSI_OFFER;
		break;
	default:
		m->type = TSI_LEFT;
	}
}

static void serve_channel(const struct fake_producer *r, void *router)
{
	uint8_t id[64], in[8192], out[2 * TSI_MSG_MAX];
	int n = zmq_recv(router, id, sizeof(id), ZMQ_DONTWAIT), len, more;
	struct tsi_msg question, m;
	size_t size = sizeof(more), bytes;

	if (n <= 0)
		return;
	len = zmq_recv(router, in, sizeof(in), ZMQ_DONTWAIT);
	zmq_getsockopt(router, ZMQ_RCVMORE, &more, &size);
	if (len <= 0 || tsi_msg_unpack(in, (size_t)len, &question))
		return;
	m = question;
	make_reply(r, &m);
	bytes = tsi_msg_pack(&m, out);
	if (r->reply)
		bytes = r->reply(&question, &m, out);
	for (unsigned i = 0; bytes && i < (bytes > TSI_MSG_MAX ? 100u : 1u);
	     i++) {
		zmq_send(router, id, (size_t)n, ZMQ_SNDMORE);
		zmq_send(router, out,
			 bytes > TSI_MSG_MAX ? bytes - TSI_MSG_MAX : bytes, 0);
	}
}

static void serve_fdpass(const struct fake_producer *r, int sock)
{
	struct tsi_reply a = { .row = 0,
			       .reader = 1,
			       .start = 0,
			       .epoch_end = N,
			       .incarnation = FAKE_INCARNATION };
	int fd[64] = { fake_ring.header.fd, fake_tail.fd, fake_event };
	unsigned n = 5;
	uint8_t request[64];

	if (recv(sock, request, sizeof(request), 0) <= 0)
		return; /* somebody who only looks whether we are there */
	if (r->fdpass && r->fdpass(sock))
		return;
	fd[3] = fake_ring.data[0].fd;
	fd[4] = fake_ring.data[1].fd;
	if (r->answer)
		r->answer(&a);
	if (r->fds)
		r->fds(fd, &n);
	tsi_fdpass_reply(sock, &a, fd, n);
	if (r->ring)
		r->ring(fake_ring.shared);
}

static void run_fake_producer(const struct fake_producer *r)
{
	void *ctx = zmq_ctx_new(), *router = zmq_socket(ctx, ZMQ_ROUTER);
	struct tsi_address address;
	char endpoint[200];
	int fdpass, sock;

	need(tsi_address_find(NAME, &address, 1) == 1);
	unlink(address.channel);
	snprintf(endpoint, sizeof(endpoint), "ipc://%s", address.channel);
	need(!zmq_bind(router, endpoint));
	make_ring(r);
	need(!tsi_fdpass_listen(address.fdpass, &fdpass));
	for (;;) {
		zmq_pollitem_t item[2] = {
			{ .socket = router, .events = ZMQ_POLLIN },
			{ .fd = fdpass,
			  .events = r->no_accept ? 0 : ZMQ_POLLIN },
		};

		zmq_poll(item, 2, 50);
		serve_channel(r, router);
		if (item[1].revents && !tsi_fdpass_accept(fdpass, &sock)) {
			struct pollfd p = { .fd = sock, .events = POLLIN };

			poll(&p, 1, LONG_MS);
			serve_fdpass(r, sock);
			/* The silent keep it open. */
			if (!r->fdpass)
				close(sock);
		}
	}
}

/* ---- the victim ---- */

static long since(const struct timespec *a)
{
	struct timespec b;

	clock_gettime(CLOCK_MONOTONIC, &b);
	return (b.tv_sec - a->tv_sec) * 1000 +
	       (b.tv_nsec - a->tv_nsec) / 1000000;
}

static int first_batches(tsock *t, int patience_ms)
{
	tsock_batch *b;
	int err = 0;

	for (unsigned i = 0; i < 12 && !err; i++) {
		err = tsock_next(t, patience_ms, &b);
		if (err)
			break;
		/* The bytes may be nonsense, but can be read and written. */
		for (unsigned f = 0; f < 2; f++) {
			const uint8_t *p = tsock_batch_data(b, f);
			volatile uint8_t sum = 0;

			for (uint64_t k = 0; k < tsock_batch_count(b) * 8; k++)
				sum = (uint8_t)(sum + p[k]);
		}
		if (tsock_batch_data_mut(b, 0))
			memset(tsock_batch_data_mut(b, 0), 1,
			       tsock_batch_count(b) * 4096);
		tsock_batch_release(b);
	}
	return err;
}

/* Exit code: the error's number; 100 and more: it took too long. */
static int meet_fake_producer(const struct fake_producer *r, uint32_t flags)
{
	struct tsock_opts o = TSOCK_OPTS_INIT;
	struct tsock_stats st = { .size = sizeof(st) };
	/* Where an answer is expected, it may come late. */
	bool any = !r->expect || r->expect == NO_MATTER;
	bool nobody = any || r->expect == TSOCK_ENOPROD;
	bool silent = nobody || r->expect == TSOCK_EAGAIN;
	int patience_ms = silent ? 600 : LONG_MS;
	struct timespec a;
	tsock *t = NULL;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &a);
	o.batch_size = 7;
	o.timeout_ms = nobody ? 1000 : LONG_MS;
	o.flags = flags;
	if (r->image)
		o.dtype = TSOCK_F32;
	err = tsock_open(NAME, &o, &t);
	need(!err == (t != NULL));
	if (!err)
		err = tsock_begin_timed(t, patience_ms);
	if (!err)
		err = first_batches(t, patience_ms);
	if (err && err != TSOCK_EAGAIN)
		need(*tsock_errmsg() && strlen(tsock_errmsg()) < TSI_ERR_BYTES);
	if (getenv("TEST_VERBOSE"))
		fprintf(stderr, "%s: %s: %s\n", r->what, tsock_strerror(err),
			err ? tsock_errmsg() : "");
	tsock_close(t);
	/* And a stranger who only asks. */
	if (r->reply)
		tsock_query(NAME, 300, &st);
	need(err <= 0 && err > -50);
	return -err + (since(&a) > LONG_MS ? 100 : 0);
}

void fake_survives(const struct fake_producer *r)
{
	static const uint32_t flags[2] = { 0, TSOCK_WRITABLE };
	struct timespec t0;
	pid_t fake_producer = proc_spawn();

	clock_gettime(CLOCK_MONOTONIC, &t0);
	if (fake_producer == 0)
		run_fake_producer(r);
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = proc_spawn();
		int rc;

		if (pid == 0)
			_exit(meet_fake_producer(r, flags[i]));
		rc = proc_ended(pid);
		if (rc >= 100 || (r->expect < 0 && rc != -r->expect) ||
		    (r->expect == 0 && rc == 0) ||
		    (r->expect == NO_ERROR && rc))
			fail_msg("%s: the consumer ended with %d", r->what, rc);
		assert_int_equal(waitpid(fake_producer, NULL, WNOHANG), 0);
	}
	proc_kill_and_reap(fake_producer);
	if (getenv("TEST_VERBOSE"))
		fprintf(stderr, "%s took %ld ms\n", r->what, since(&t0));
}
