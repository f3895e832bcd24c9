/*
 * test_hostile_producer.c - whatever a producer answers, sends over the
 * descriptor socket and writes into its ring: a consumer gets a named error
 * within its time, and never a crash, a hang or a SIGBUS.
 *
 * The producer is a child that speaks the protocol but for one lie; the
 * consumer is a child too, so that a signal is seen.
 */
#include "test/lib/reader.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <zmq.h>

#include "ring/ring.h"
#include "wire/fdpass.h"
#include "wire/msg.h"
#include "wire/address.h"

#define NAME "fake_producer"
#define INCARNATION 4711
#define N 1000
#define LONG_MS 60000

/* What a producer of this kind sends, to be made a lie by its hooks. */
struct fake_producer {
	const char *what;
	/* Change the reply; the number of bytes to send, 0: nothing. */
	size_t (*reply)(const struct tsi_msg *question, struct tsi_msg *m,
			uint8_t *bytes);
	/* Before the ring is sealed into place, and what comes with it. */
	void (*stream)(struct tsi_msg_stream *s);
	void (*header)(struct tsi_ring_shared *s);
	void (*fds)(int *fd, unsigned *n);
	void (*answer)(struct tsi_reply *a);
	/* Handles a connection; false: reply as usual. */
	bool (*fdpass)(int sock);
	/* After the consumer is in. */
	void (*ring)(struct tsi_ring_shared *s);
	bool no_accept, image;
	int expect; /* the error; 0: any; or one of the two below */
};

enum { NO_ERROR = 1, NO_MATTER = 2 };

static struct tsi_ring ring;
static struct tsi_memfd tail;
static int event;

/* ---- the fake producer ---- */

static const struct tsock_field field[2] = {
	{ .name = "payload", .dtype = TSOCK_U8, .ndim = 1, .shape = { 4096 } },
	{ .name = "label", .dtype = TSOCK_I64 },
};

static void make_ring(const struct fake_producer *r)
{
	struct tsi_ring_ident id = { INCARNATION, N, TSI_NEVER };
	struct tsi_geometry g;

	need(!tsi_geometry_make(field, 2, 64, 32, 16, &g));
	need(!tsi_ring_create(&g, &id, &ring));
	need(!tsi_memfd_create("tail", sizeof(struct tsi_tail_page),
			       TSI_MEM_PEER_WRITES, &tail));
	event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	atomic_store(&ring.shared->row[0].state, TSI_ROW_READER);
	if (r->header)
		r->header(ring.shared);
}

static struct tsi_msg_stream true_stream(void)
{
	struct tsi_msg_stream s = { .incarnation = INCARNATION,
				    .epoch_len = N,
				    .dataset_len = N,
				    .segments = 1,
				    .max_batch = 16,
				    .capacity = 64,
				    .join_window = 32,
				    .pid = (uint32_t)getpid(),
				    .nfields = 2 };

	memcpy(s.field, field, sizeof(field));
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
	struct tsi_reply a = {
		.row = 0, .start = 0, .epoch_end = N, .incarnation = INCARNATION
	};
	int fd[64] = { ring.header.fd, tail.fd, event };
	unsigned n = 5;
	uint8_t request[64];

	if (recv(sock, request, sizeof(request), 0) <= 0)
		return; /* somebody who only looks whether we are there */
	if (r->fdpass && r->fdpass(sock))
		return;
	fd[3] = ring.data[0].fd;
	fd[4] = ring.data[1].fd;
	if (r->answer)
		r->answer(&a);
	if (r->fds)
		r->fds(fd, &n);
	tsi_fdpass_reply(sock, &a, fd, n);
	if (r->ring)
		r->ring(ring.shared);
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

			poll(&p, 1, 1000);
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

static int first_batches(tsock *t)
{
	tsock_batch *b;
	int err = 0;

	for (unsigned i = 0; i < 12 && !err; i++) {
		err = tsock_next(t, 500, &b);
		if (err)
			break;
		/* It may be nonsense; but it can be read and written. */
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
	bool silent = r->expect == TSOCK_EAGAIN || r->expect == TSOCK_ENOPROD ||
		      !r->expect;
	struct timespec a;
	tsock *t = NULL;
	int err;

	clock_gettime(CLOCK_MONOTONIC, &a);
	o.batch_size = 7;
	o.timeout_ms = silent ? 1000 : LONG_MS;
	o.flags = flags;
	if (r->image)
		o.dtype = TSOCK_F32;
	err = tsock_open(NAME, &o, &t);
	need(!err == (t != NULL));
	if (!err)
		err = tsock_begin_timed(t, r->expect == TSOCK_EPROTO ? LONG_MS
								     : 600);
	if (!err)
		err = first_batches(t);
	if (err && err != TSOCK_EAGAIN)
		need(*tsock_errmsg() && strlen(tsock_errmsg()) < 600);
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

static void survives(const struct fake_producer *r)
{
	static const uint32_t flags[2] = { 0, TSOCK_WRITABLE };
	struct timespec t0;
	pid_t fake_producer = spawn();

	clock_gettime(CLOCK_MONOTONIC, &t0);
	if (fake_producer == 0)
		run_fake_producer(r);
	for (unsigned i = 0; i < 2; i++) {
		pid_t pid = spawn();
		int rc;

		if (pid == 0)
			_exit(meet_fake_producer(r, flags[i]));
		rc = ended(pid);
		if (rc >= 100 || (r->expect < 0 && rc != -r->expect) ||
		    (r->expect == 0 && rc == 0) ||
		    (r->expect == NO_ERROR && rc))
			fail_msg("%s: the consumer ended with %d", r->what, rc);
		assert_int_equal(waitpid(fake_producer, NULL, WNOHANG), 0);
	}
	kill_and_reap(fake_producer);
	if (getenv("TEST_VERBOSE"))
		fprintf(stderr, "%s took %ld ms\n", r->what, since(&t0));
}

#define SURVIVES(name, ...) \
	survives(&(struct fake_producer){ .what = name, __VA_ARGS__ })

/* ---- replies ---- */

static size_t noise(const struct tsi_msg *q, struct tsi_msg *m, uint8_t *out)
{
	(void)q, (void)m;
	for (unsigned i = 0; i < 900; i++)
		out[i] = (uint8_t)mix(i);
	return 900;
}

static size_t another_version(const struct tsi_msg *q, struct tsi_msg *m,
			      uint8_t *out)
{
	size_t len = tsi_msg_pack(m, out);

	(void)q;
	out[4] = 99;
	return len;
}

static size_t silence(const struct tsi_msg *q, struct tsi_msg *m, uint8_t *out)
{
	(void)q, (void)m, (void)out;
	return 0;
}

static size_t silence_after_hello(const struct tsi_msg *q, struct tsi_msg *m,
				  uint8_t *out)
{
	return q->type == TSI_HELLO ? tsi_msg_pack(m, out) : 0;
}

static size_t wait_for_ever(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	if (q->type == TSI_JOIN)
		m->type = TSI_WAIT;
	return tsi_msg_pack(m, out);
}

static size_t another_type(const struct tsi_msg *q, struct tsi_msg *m,
			   uint8_t *out)
{
	(void)q;
	m->type = TSI_LEFT;
	return tsi_msg_pack(m, out);
}

/* A hundred times, to nobody's question. */
static size_t another_serial(const struct tsi_msg *q, struct tsi_msg *m,
			     uint8_t *out)
{
	(void)q;
	m->serial += 77;
	return TSI_MSG_MAX + tsi_msg_pack(m, out);
}

static size_t strange_error(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	(void)q;
	m->type = TSI_ERROR;
	memset(&m->u, 0, sizeof(m->u));
	m->u.error.code = -40;
	memset(m->u.error.text, '%', 255);
	return tsi_msg_pack(m, out);
}

static size_t again_as_error(const struct tsi_msg *q, struct tsi_msg *m,
			     uint8_t *out)
{
	strange_error(q, m, out);
	m->u.error.code = TSOCK_EAGAIN;
	return tsi_msg_pack(m, out);
}

static size_t lost_as_error(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	strange_error(q, m, out);
	m->u.error.code = TSOCK_ELOST;
	return tsi_msg_pack(m, out);
}

static size_t seventeen_fields(const struct tsi_msg *q, struct tsi_msg *m,
			       uint8_t *out)
{
	size_t len = tsi_msg_pack(m, out), at = 16;
	uint8_t fewer[TSI_MSG_MAX];

	if (q->type != TSI_HELLO)
		return len;
	/* Behind the message's head, their number differs first. */
	m->u.stream.nfields--;
	tsi_msg_pack(m, fewer);
	m->u.stream.nfields++;
	while (out[at] == fewer[at])
		at++;
	out[at] = 17;
	return len;
}

static size_t cut_short(const struct tsi_msg *q, struct tsi_msg *m,
			uint8_t *out)
{
	(void)q;
	return tsi_msg_pack(m, out) - 3;
}

static void nonsense_on_the_channel_is_a_named_error(void **state)
{
	(void)state;
	SURVIVES("noise", .reply = noise, .expect = TSOCK_EPROTO);
	SURVIVES("version", .reply = another_version, .expect = TSOCK_EPROTO);
	SURVIVES("silence", .reply = silence, .expect = TSOCK_ENOPROD);
	SURVIVES("after HELLO", .reply = silence_after_hello,
		 .expect = TSOCK_EAGAIN);
	SURVIVES("WAIT", .reply = wait_for_ever, .expect = TSOCK_EAGAIN);
	SURVIVES("type", .reply = another_type, .expect = TSOCK_EPROTO);
	SURVIVES("serial", .reply = another_serial, .expect = TSOCK_ENOPROD);
	SURVIVES("error -40", .reply = strange_error);
	SURVIVES("error EAGAIN", .reply = again_as_error,
		 .expect = TSOCK_ENOPROD);
	SURVIVES("error ELOST", .reply = lost_as_error);
	SURVIVES("17 fields", .reply = seventeen_fields,
		 .expect = TSOCK_EPROTO);
	SURVIVES("cut short", .reply = cut_short, .expect = TSOCK_EPROTO);
}

/* ---- streams ---- */

static void giants(struct tsi_msg_stream *s)
{
	s->nfields = 16;
	for (unsigned i = 0; i < 16; i++) {
		s->field[i] = field[0];
		s->field[i].shape[0] = UINT64_C(1) << 40;
	}
}

static void overflow(struct tsi_msg_stream *s)
{
	s->field[0].ndim = 4;
	for (unsigned d = 0; d < 4; d++)
		s->field[0].shape[d] = UINT64_C(1) << 40;
}

static void no_epoch(struct tsi_msg_stream *s)
{
	s->epoch_len = 0;
}

static void long_epoch(struct tsi_msg_stream *s)
{
	s->epoch_len = UINT64_MAX;
}

static void many_epochs(struct tsi_msg_stream *s)
{
	s->epochs = UINT64_MAX;
}

static void no_capacity(struct tsi_msg_stream *s)
{
	s->capacity = 0;
}

static void no_batch(struct tsi_msg_stream *s)
{
	s->max_batch = 0;
}

static void much_meta(struct tsi_msg_stream *s)
{
	s->meta_bytes = UINT32_MAX;
	s->nclasses = 1;
}

/* Allowed, and sent one byte at a time. */
static void slow_meta(struct tsi_msg_stream *s)
{
	s->meta_bytes = 1 << 24;
	s->nclasses = 1 << 24;
}

static size_t meta_in_order(const struct tsi_msg *q, struct tsi_msg *m,
			    uint8_t *out)
{
	if (q->type == TSI_META)
		m->u.meta_data.offset = q->u.meta.offset;
	return tsi_msg_pack(m, out);
}

static size_t meta_of_another(const struct tsi_msg *q, struct tsi_msg *m,
			      uint8_t *out)
{
	if (q->type == TSI_META)
		m->u.meta_data.offset = q->u.meta.offset + 1;
	return tsi_msg_pack(m, out);
}

static void few_classes(struct tsi_msg_stream *s)
{
	s->meta_bytes = 3;
	s->nclasses = 3;
}

static size_t one_class(const struct tsi_msg *q, struct tsi_msg *m,
			uint8_t *out)
{
	if (q->type == TSI_META) {
		m->u.meta_data.offset = 0;
		m->u.meta_data.len = 3;
		memcpy(m->u.meta_data.bytes, "abc", 3);
	}
	return tsi_msg_pack(m, out);
}

static void image_without_shape(struct tsi_msg_stream *s)
{
	s->field[1].flags = TSOCK_FIELD_IMAGE;
}

static void image_of_one_channel(struct tsi_msg_stream *s)
{
	s->field[0].flags = TSOCK_FIELD_IMAGE;
	s->field[0].ndim = 3;
	s->field[0].shape[0] = s->field[0].shape[1] = 64;
	s->field[0].shape[2] = 1;
}

static void absurd_streams_are_refused(void **state)
{
	(void)state;
	SURVIVES("giants", .stream = giants);
	SURVIVES("overflow", .stream = overflow, .expect = TSOCK_EPROTO);
	SURVIVES("no epoch", .stream = no_epoch, .expect = TSOCK_EPROTO);
	SURVIVES("epoch", .stream = long_epoch, .expect = TSOCK_EPROTO);
	SURVIVES("epochs", .stream = many_epochs, .expect = TSOCK_EPROTO);
	SURVIVES("capacity", .stream = no_capacity, .expect = TSOCK_EPROTO);
	SURVIVES("max_batch", .stream = no_batch, .expect = TSOCK_EPROTO);
	SURVIVES("4 GiB", .stream = much_meta, .expect = TSOCK_EPROTO);
	SURVIVES("bytewise", .reply = meta_in_order, .stream = slow_meta);
	SURVIVES("another's meta", .reply = meta_of_another,
		 .stream = few_classes, .expect = TSOCK_EPROTO);
	SURVIVES("classes", .reply = one_class, .stream = few_classes,
		 .expect = TSOCK_EPROTO);
	SURVIVES("no image", .stream = image_without_shape, .image = true,
		 .expect = TSOCK_EPROTO);
	SURVIVES("grey image", .stream = image_of_one_channel, .image = true,
		 .expect = TSOCK_EPROTO);
}

/* ---- the descriptor socket ---- */

static bool say_nothing(int sock)
{
	(void)sock;
	return true;
}

static bool say_noise(int sock)
{
	send(sock, "not an answer", 13, MSG_NOSIGNAL);
	return true;
}

static bool say_much(int sock)
{
	uint8_t bytes[4096] = { 'D', 'O', 'O', 'R', TSI_MSG_VERSION };

	send(sock, bytes, sizeof(bytes), MSG_NOSIGNAL);
	return true;
}

static bool hang_up(int sock)
{
	close(sock);
	return true;
}

static void no_fds(int *fd, unsigned *n)
{
	(void)fd;
	*n = 0;
}

static void one_fd_less(int *fd, unsigned *n)
{
	(void)fd;
	*n -= 1;
}

static void all_fds(int *fd, unsigned *n)
{
	for (unsigned i = *n; i < TSI_FDPASS_FDS; i++)
		fd[i] = fd[0];
	*n = TSI_FDPASS_FDS;
}

static int plain_memfd(size_t len, int seals)
{
	int fd = memfd_create("fake_producer", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	need(fd >= 0 && !ftruncate(fd, (off_t)len));
	need(!fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

#define DATA_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | 0x10)

static void unsealed_data(int *fd, unsigned *n)
{
	(void)n;
	fd[3] = plain_memfd(ring.shared->field[0].map_bytes, F_SEAL_GROW);
}

static void unsealed_header(int *fd, unsigned *n)
{
	(void)n;
	fd[0] = plain_memfd(sizeof(*ring.shared), F_SEAL_GROW);
	need(pwrite(fd[0], ring.shared, sizeof(*ring.shared), 0) > 0);
}

static void unsealed_tail(int *fd, unsigned *n)
{
	(void)n;
	fd[1] = plain_memfd(sizeof(struct tsi_tail_page), F_SEAL_GROW);
}

static void short_data(int *fd, unsigned *n)
{
	(void)n;
	fd[3] = plain_memfd(4096, DATA_SEALS);
}

/* Nothing is behind it, yet it has the right length and seals. */
static void hollow_data(int *fd, unsigned *n)
{
	(void)n;
	fd[3] = plain_memfd(ring.shared->field[0].map_bytes, DATA_SEALS);
}

/* Pages that the system may not have: a touch would be a SIGBUS. */
static void huge_pages(int *fd, unsigned *n)
{
	int huge = memfd_create("fake_producer",
				MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

	(void)n;
	if (huge < 0 || ftruncate(huge, 2 << 20))
		huge = plain_memfd(4096, DATA_SEALS);
	else
		need(!fcntl(huge, F_ADD_SEALS, DATA_SEALS));
	fd[3] = huge;
}

static void for_huge_pages(struct tsi_ring_shared *s)
{
	s->field[0].desc.shape[0] = s->field[0].sample_bytes =
		(2 << 20) / s->capacity;
	s->field[0].map_bytes = 2 << 20;
	s->field[0].margin = 0;
}

static void for_huge_stream(struct tsi_msg_stream *s)
{
	s->field[0].shape[0] = (2 << 20) / 64;
}

static void pipes(int *fd, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++) {
		int p[2];

		need(!pipe(p));
		fd[i] = p[0];
	}
}

static void folders(int *fd, unsigned *n)
{
	for (unsigned i = 0; i < *n; i++)
		fd[i] = open("/", O_RDONLY | O_CLOEXEC);
}

static void a_pipe_for_an_event(int *fd, unsigned *n)
{
	int p[2];

	(void)n;
	need(!pipe(p));
	fd[2] = p[1];
}

/* Full, and blocking: to write into it is to sleep for ever. */
static void a_trap_for_an_event(int *fd, unsigned *n)
{
	(void)n;
	fd[2] = eventfd(0, 0);
	need(!eventfd_write(fd[2], UINT64_MAX - 1));
	atomic_store(&ring.shared->head, 1000);
	atomic_store(&ring.shared->gate_want, 3);
	atomic_store(&ring.shared->front_want, 20);
}

static void swapped(int *fd, unsigned *n)
{
	int header = fd[0];

	(void)n;
	fd[0] = fd[3];
	fd[3] = header;
}

static void row_300(struct tsi_reply *a)
{
	a->row = 300;
}

static void an_endless_epoch(struct tsi_reply *a)
{
	a->epoch_end = UINT64_MAX;
}

static void an_epoch_backwards(struct tsi_reply *a)
{
	a->start = 10;
	a->epoch_end = 5;
}

static void another_incarnation(struct tsi_reply *a)
{
	a->incarnation++;
}

static void come_again(struct tsi_reply *a)
{
	a->code = TSOCK_EAGAIN;
}

static void a_code_of_its_own(struct tsi_reply *a)
{
	a->code = -45;
	memset(a->text, 'x', sizeof(a->text) - 1);
}

static void a_bad_descriptor_socket_is_a_named_error(void **state)
{
	(void)state;
	SURVIVES("no accept", .no_accept = true, .expect = TSOCK_EAGAIN);
	SURVIVES("silent", .fdpass = say_nothing, .expect = TSOCK_EAGAIN);
	SURVIVES("noise", .fdpass = say_noise, .expect = TSOCK_EPROTO);
	SURVIVES("much", .fdpass = say_much, .expect = TSOCK_EPROTO);
	SURVIVES("hangs up", .fdpass = hang_up);
	SURVIVES("row", .answer = row_300, .expect = TSOCK_EPROTO);
	SURVIVES("endless", .answer = an_endless_epoch, .expect = TSOCK_EPROTO);
	SURVIVES("back", .answer = an_epoch_backwards, .expect = TSOCK_EPROTO);
	SURVIVES("incarnation", .answer = another_incarnation,
		 .expect = TSOCK_ELOST);
	SURVIVES("again", .answer = come_again, .expect = TSOCK_EAGAIN);
	SURVIVES("code", .answer = a_code_of_its_own);
}

static void bad_descriptors_are_refused(void **state)
{
	(void)state;
	SURVIVES("none", .fds = no_fds, .expect = TSOCK_EPROTO);
	SURVIVES("one less", .fds = one_fd_less, .expect = TSOCK_EPROTO);
	SURVIVES("too many", .fds = all_fds, .expect = TSOCK_EPROTO);
	SURVIVES("data", .fds = unsealed_data, .expect = TSOCK_EPROTO);
	SURVIVES("header", .fds = unsealed_header, .expect = TSOCK_EPROTO);
	SURVIVES("tail", .fds = unsealed_tail, .expect = TSOCK_EPROTO);
	SURVIVES("short", .fds = short_data, .expect = TSOCK_EPROTO);
	SURVIVES("hollow", .fds = hollow_data, .expect = TSOCK_EPROTO);
	SURVIVES("huge pages", .fds = huge_pages, .header = for_huge_pages,
		 .stream = for_huge_stream, .expect = TSOCK_EPROTO);
	SURVIVES("pipes", .fds = pipes, .expect = TSOCK_EPROTO);
	SURVIVES("folders", .fds = folders, .expect = TSOCK_EPROTO);
	SURVIVES("pipe", .fds = a_pipe_for_an_event, .expect = TSOCK_EPROTO);
	SURVIVES("trap", .fds = a_trap_for_an_event, .expect = TSOCK_EPROTO);
	SURVIVES("swapped", .fds = swapped, .expect = TSOCK_EPROTO);
}

/* ---- headers ---- */

static void other_magic(struct tsi_ring_shared *s)
{
	s->magic++;
}

static void other_abi(struct tsi_ring_shared *s)
{
	s->abi++;
}

static void too_large(struct tsi_ring_shared *s)
{
	s->capacity *= 2;
}

static void none_at_all(struct tsi_ring_shared *s)
{
	s->capacity = 0;
}

static void beyond_the_file(struct tsi_ring_shared *s)
{
	s->capacity *= 2;
	for (unsigned i = 0; i < 2; i++)
		s->field[i].map_bytes *= 2;
}

static void a_margin(struct tsi_ring_shared *s)
{
	s->field[0].margin = s->max_batch;
}

static void a_huge_margin(struct tsi_ring_shared *s)
{
	s->field[1].margin = UINT64_MAX / 2;
}

static void large_samples(struct tsi_ring_shared *s)
{
	s->field[0].sample_bytes *= 2;
}

static void many_fields(struct tsi_ring_shared *s)
{
	s->nfields = UINT32_MAX;
}

static void all_window(struct tsi_ring_shared *s)
{
	s->join_window = s->capacity;
}

static void another_field(struct tsi_ring_shared *s)
{
	s->field[1].desc.dtype = TSOCK_F32;
	s->field[1].desc.ndim = 1;
	s->field[1].desc.shape[0] = 2;
}

static void lying_headers_are_refused(void **state)
{
	(void)state;
	SURVIVES("magic", .header = other_magic, .expect = TSOCK_EPROTO);
	SURVIVES("abi", .header = other_abi, .expect = TSOCK_EPROTO);
	SURVIVES("capacity", .header = too_large, .expect = TSOCK_EPROTO);
	SURVIVES("0", .header = none_at_all, .expect = TSOCK_EPROTO);
	SURVIVES("length", .header = beyond_the_file, .expect = TSOCK_EPROTO);
	SURVIVES("margin", .header = a_margin, .expect = TSOCK_EPROTO);
	SURVIVES("huge margin", .header = a_huge_margin,
		 .expect = TSOCK_EPROTO);
	SURVIVES("samples", .header = large_samples, .expect = TSOCK_EPROTO);
	SURVIVES("fields", .header = many_fields, .expect = TSOCK_EPROTO);
	SURVIVES("window", .header = all_window, .expect = TSOCK_EPROTO);
	SURVIVES("field", .header = another_field, .expect = TSOCK_EPROTO);
}

/* ---- what is written once the consumer is in ---- */

static void all_at_once(struct tsi_ring_shared *s)
{
	atomic_store(&s->head, UINT64_MAX);
}

static void nothing_ever(struct tsi_ring_shared *s)
{
	(void)s;
}

static void strange_state(struct tsi_ring_shared *s)
{
	atomic_store(&s->state, 99);
}

static void failed_without_end(struct tsi_ring_shared *s)
{
	memset(s->error, '%', sizeof(s->error));
	atomic_store(&s->state, TSI_RING_FAILED);
}

static void strange_row(struct tsi_ring_shared *s)
{
	atomic_store(&s->row[0].state, 77);
}

/* All that a consumer reads after the reply. */
static void all_noise(struct tsi_ring_shared *s)
{
	for (unsigned k = 0; k < 40; k++) {
		for (size_t i = offsetof(struct tsi_ring_shared, head);
		     i < offsetof(struct tsi_ring_shared, row[8]); i += 8)
			*(uint64_t *)((uint8_t *)s + i) = mix(k * 65537 + i);
		pause_us(20000);
	}
}

static void lies_in_the_ring_are_no_crash(void **state)
{
	(void)state;
	SURVIVES("all", .ring = all_at_once, .expect = NO_ERROR);
	SURVIVES("nothing", .ring = nothing_ever, .expect = TSOCK_EAGAIN);
	SURVIVES("state", .ring = strange_state, .expect = TSOCK_EAGAIN);
	SURVIVES("error", .ring = failed_without_end, .expect = TSOCK_ESTREAM);
	SURVIVES("row", .ring = strange_row, .expect = TSOCK_ELOST);
	SURVIVES("noise", .ring = all_noise, .expect = NO_MATTER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_on_the_channel_is_a_named_error),
		cmocka_unit_test(absurd_streams_are_refused),
		cmocka_unit_test(a_bad_descriptor_socket_is_a_named_error),
		cmocka_unit_test(bad_descriptors_are_refused),
		cmocka_unit_test(lying_headers_are_refused),
		cmocka_unit_test(lies_in_the_ring_are_no_crash),
	};

	own_folder();
	return cmocka_run_group_tests_name("hostile producer", tests, NULL,
					   NULL);
}
