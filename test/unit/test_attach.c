/* SPDX-License-Identifier: MIT */
/*
 * test_attach.c - what a lying producer sends in its reply is refused, and
 * leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "consumer/attach.h"
#include "test/lib/ring_fixture.h"
#include "test/lib/usage.h"
#include "wire/fdpass.h"

static const uint64_t bytes[] = { 24576, 20001 };

/* A producer that means well until a case changes something. */
struct liar {
	struct fixture_ring f;
	struct tsi_memfd tail;
	int event, fdpass;
	struct tsi_address address;
	struct tsi_reply answer;
	int fd[TSI_FDPASS_FDS];
	unsigned nfds;
	int made;  /* in place of one of them; -1: none was */
	bool mute; /* never answers */
	_Atomic bool stop;
	pthread_t thread;
	/* What the consumer expects. */
	uint8_t token[TSI_TOKEN], nonce[TSI_NONCE];
	struct tsi_attach ask;
	struct tsi_connecting connecting;
	struct tsock_field field[2];
};

static void *answer(void *arg)
{
	struct liar *l = arg;
	struct tsi_peer v = { .pidfd = -1 };
	int sock = -1;

	while (!atomic_load(&l->stop) && tsi_fdpass_accept(l->fdpass, &sock))
		poll(NULL, 0, 1);
	while (!atomic_load(&l->stop) && tsi_fdpass_receive(sock, &v))
		poll(NULL, 0, 1);
	if (sock < 0)
		return NULL;
	if (!l->mute)
		tsi_fdpass_reply(sock, &l->answer, l->fd, l->nfds);
	while (!atomic_load(&l->stop))
		poll(NULL, 0, 1);
	if (v.pidfd >= 0)
		close(v.pidfd);
	close(sock);
	return NULL;
}

static void make(struct liar *l)
{
	memset(l, 0, sizeof(*l));
	l->made = -1;
	fixture_ring_make(&l->f, bytes, 2, 64, 16);
	assert_int_equal(tsi_memfd_create("tail", sizeof(struct tsi_tail_page),
					  TSI_MEM_PEER_WRITES, &l->tail),
			 0);
	l->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	assert_int_equal(tsi_address_find("liar", &l->address, 1), 1);
	assert_int_equal(tsi_fdpass_listen(l->address.fdpass, &l->fdpass), 0);
	l->answer.start = 500;
	l->answer.epoch_end = 1000;
	l->answer.row = 3;
	l->answer.incarnation = 7;
	l->fd[0] = l->f.ring.header.fd;
	l->fd[1] = l->tail.fd;
	l->fd[2] = l->event;
	l->fd[3] = l->f.ring.data[0].fd;
	l->fd[4] = l->f.ring.data[1].fd;
	l->nfds = 5;
	for (unsigned i = 0; i < 2; i++)
		l->field[i] = l->f.geometry.field[i].desc;
	l->ask = (struct tsi_attach){
		.address = &l->address,
		.nonce = l->nonce,
		.token = l->token,
		.incarnation = 7,
		.epoch_len = 1000,
		.field = l->field,
		.nfields = 2,
		.batch = 16,
		.mode = TSI_MAP_PRIVATE,
		.connecting = &l->connecting,
		.timeout_ms = 10000,
	};
}

static void unmake(struct liar *l)
{
	close(l->fdpass);
	close(l->event);
	if (l->made >= 0)
		close(l->made);
	unlink(l->address.fdpass);
	tsi_memfd_close(&l->tail);
	fixture_ring_free(&l->f);
}

static int attach(struct liar *l, struct tsi_reader **r)
{
	uint64_t start, end;
	int err;

	assert_int_equal(pthread_create(&l->thread, NULL, answer, l), 0);
	err = tsi_attach(&l->ask, r, &start, &end);
	atomic_store(&l->stop, true);
	pthread_join(l->thread, NULL);
	if (!err) {
		assert_int_equal(start, 500);
		assert_int_equal(end, l->answer.epoch_end);
	}
	return err;
}

/* ---- lies ---- */

static void lie_incarnation(struct liar *l)
{
	l->answer.incarnation = 8;
}

static void lie_row(struct liar *l)
{
	l->answer.row = TSI_MAX_ROWS;
}

static void lie_empty_epoch(struct liar *l)
{
	l->answer.epoch_end = l->answer.start;
}

static void lie_long_epoch(struct liar *l)
{
	l->answer.epoch_end = l->answer.start + 1001;
}

static void lie_far_epoch(struct liar *l)
{
	l->answer.start = UINT64_MAX - 10;
	l->answer.epoch_end = UINT64_MAX;
}

static void lie_few_fds(struct liar *l)
{
	l->nfds = 4;
}

static void lie_no_fds(struct liar *l)
{
	l->nfds = 0;
}

static void lie_swapped(struct liar *l)
{
	int fd = l->fd[3];

	l->fd[3] = l->fd[4];
	l->fd[4] = fd;
}

static void lie_header_is_a_file(struct liar *l)
{
	l->fd[0] = l->made = open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

static void lie_header_is_data(struct liar *l)
{
	l->fd[0] = l->f.ring.data[0].fd;
}

static int unsealed(size_t len)
{
	int fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)len), 0);
	return fd;
}

static void lie_unsealed_header(struct liar *l)
{
	l->fd[0] = l->made = unsealed(sizeof(struct tsi_ring_shared));
	assert_int_equal(pwrite(l->fd[0], l->f.ring.shared,
				sizeof(struct tsi_ring_shared), 0),
			 sizeof(struct tsi_ring_shared));
}

static void lie_unsealed_data(struct liar *l)
{
	l->fd[4] = l->made = unsealed(l->f.geometry.field[1].map_bytes);
}

static void lie_unsealed_tail(struct liar *l)
{
	l->fd[1] = l->made = unsealed(sizeof(struct tsi_tail_page));
}

static void lie_read_only_tail(struct liar *l)
{
	l->fd[1] = l->f.ring.header.fd;
}

static void lie_event_is_a_pipe(struct liar *l)
{
	int fd[2];

	assert_int_equal(pipe(fd), 0);
	close(fd[0]);
	l->fd[2] = l->made = fd[1];
}

static void lie_header_incarnation(struct liar *l)
{
	l->f.ring.shared->incarnation = 9;
}

static void lie_header_fields(struct liar *l)
{
	l->f.ring.shared->nfields = 17;
}

static void lie_header_capacity(struct liar *l)
{
	l->f.ring.shared->capacity = 0;
}

static void lie_header_huge(struct liar *l)
{
	l->f.ring.shared->capacity = UINT64_MAX / 2;
}

static void lie_header_epoch(struct liar *l)
{
	l->f.ring.shared->epoch_len = 0;
}

static void lie_header_window(struct liar *l)
{
	l->f.ring.shared->join_window = l->f.ring.shared->capacity;
}

static void lie_header_margin(struct liar *l)
{
	l->f.ring.shared->field[1].margin = 1;
}

static void lie_header_batch(struct liar *l)
{
	l->f.ring.shared->max_batch = 8;
}

static void lie_sample_bytes(struct liar *l)
{
	l->f.ring.shared->field[0].sample_bytes = 0;
}

static void lie_other_shape(struct liar *l)
{
	l->f.ring.shared->field[0].desc.ndim = 2;
	l->f.ring.shared->field[0].desc.shape[1] = 1;
}

static void lie_other_name(struct liar *l)
{
	l->f.ring.shared->field[0].desc.name[0] = 'x';
}

static const struct lie {
	const char *name;
	void (*tell)(struct liar *l);
	int code;
} lies[] = {
	{ "incarnation", lie_incarnation, TSOCK_ELOST },
	{ "row", lie_row, TSOCK_EPROTO },
	{ "empty epoch", lie_empty_epoch, TSOCK_EPROTO },
	{ "long epoch", lie_long_epoch, TSOCK_EPROTO },
	{ "far epoch", lie_far_epoch, TSOCK_EPROTO },
	{ "few descriptors", lie_few_fds, TSOCK_EPROTO },
	{ "no descriptors", lie_no_fds, TSOCK_EPROTO },
	{ "swapped data", lie_swapped, TSOCK_EPROTO },
	{ "header is a file", lie_header_is_a_file, TSOCK_EPROTO },
	{ "header is data", lie_header_is_data, TSOCK_EPROTO },
	{ "unsealed header", lie_unsealed_header, TSOCK_EPROTO },
	{ "unsealed data", lie_unsealed_data, TSOCK_EPROTO },
	{ "unsealed tail", lie_unsealed_tail, TSOCK_EPROTO },
	{ "read-only tail", lie_read_only_tail, TSOCK_EPROTO },
	{ "event is a pipe", lie_event_is_a_pipe, TSOCK_EPROTO },
	{ "header's incarnation", lie_header_incarnation, TSOCK_EPROTO },
	{ "header's fields", lie_header_fields, TSOCK_EPROTO },
	{ "header's capacity", lie_header_capacity, TSOCK_EPROTO },
	{ "header's huge capacity", lie_header_huge, TSOCK_EPROTO },
	{ "header's epoch", lie_header_epoch, TSOCK_EPROTO },
	{ "header's window", lie_header_window, TSOCK_EPROTO },
	{ "header's margin", lie_header_margin, TSOCK_EPROTO },
	{ "header's batch", lie_header_batch, TSOCK_EPROTO },
	{ "sample bytes", lie_sample_bytes, TSOCK_EPROTO },
	{ "other shape", lie_other_shape, TSOCK_EPROTO },
	{ "other name", lie_other_name, TSOCK_EPROTO },
};

static void lies_are_refused_and_leave_nothing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct tsi_reader *r;
		unsigned before;
		struct liar l;
		int err;

		make(&l);
		lies[i].tell(&l);
		before = usage_descriptors(getpid());
		err = attach(&l, &r);
		if (err != lies[i].code)
			fail_msg("%s: %s: %s", lies[i].name,
				 tsock_strerror(err), tsock_errmsg());
		assert_true(tsock_errmsg()[0]);
		if (usage_descriptors(getpid()) != before)
			fail_msg("%s: %u descriptors left", lies[i].name,
				 usage_descriptors(getpid()) - before);
		unmake(&l);
	}
}

static void the_truth_is_taken_and_given_back(void **state)
{
	struct tsi_reader *r;
	unsigned before;
	struct liar l;

	(void)state;
	for (unsigned mode = 0; mode <= TSI_MAP_COPY; mode++) {
		make(&l);
		l.ask.mode = mode;
		before = usage_descriptors(getpid());
		assert_int_equal(attach(&l, &r), 0);
		assert_int_equal(tsi_reader_pos(r), 500);
		assert_int_equal(tsi_reader_tail(r), 500);
		assert_int_equal(r->claim.row, 3);
		assert_true(tsi_reader_retire(r));
		tsi_reader_unref(r);
		assert_int_equal(usage_descriptors(getpid()), before);
		unmake(&l);
	}
}

/* Where the other ranks of its job have still to begin. */
static void a_rank_begins_epochs_before_where_it_goes_on(void **state)
{
	struct tsi_reader *r;
	struct liar l;

	(void)state;
	make(&l);
	l.ask.position = 2600;
	l.answer.epoch_end = 3000;
	assert_int_equal(attach(&l, &r), 0);
	assert_int_equal(tsi_reader_pos(r), 500);
	assert_true(tsi_reader_retire(r));
	tsi_reader_unref(r);
	unmake(&l);
	make(&l);
	l.ask.position = 2600;
	l.answer.epoch_end = 2600;
	assert_int_equal(attach(&l, &r), TSOCK_EPROTO);
	unmake(&l);
	make(&l);
	l.ask.position = 2600;
	l.answer.epoch_end = 3601;
	assert_int_equal(attach(&l, &r), TSOCK_EPROTO);
	unmake(&l);
}

static void a_silent_producer_is_left(void **state)
{
	struct tsi_reader *r;
	unsigned before;
	struct liar l;

	(void)state;
	make(&l);
	l.mute = true;
	l.ask.timeout_ms = 50;
	before = usage_descriptors(getpid());
	assert_int_equal(attach(&l, &r), TSOCK_EAGAIN);
	tsi_fdpass_abandon(&l.connecting);
	assert_int_equal(usage_descriptors(getpid()), before);
	unmake(&l);
}

static void a_refusal_keeps_its_text(void **state)
{
	struct tsi_reader *r;
	struct liar l;

	(void)state;
	make(&l);
	l.answer.code = TSOCK_EREFUSED;
	strcpy(l.answer.text, "no more than 256 consumers");
	l.nfds = 0;
	assert_int_equal(attach(&l, &r), TSOCK_EREFUSED);
	assert_non_null(strstr(tsock_errmsg(), "no more than 256 consumers"));
	unmake(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lies_are_refused_and_leave_nothing),
		cmocka_unit_test(the_truth_is_taken_and_given_back),
		cmocka_unit_test(a_rank_begins_epochs_before_where_it_goes_on),
		cmocka_unit_test(a_silent_producer_is_left),
		cmocka_unit_test(a_refusal_keeps_its_text),
	};
	char folder[] = "/tmp/tsock-unit-XXXXXX";
	bool own = !getenv("TSOCK_DIR");
	int failed;

	if (own && (!mkdtemp(folder) || setenv("TSOCK_DIR", folder, 1)))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	if (own)
		rmdir(folder);
	return failed;
}
