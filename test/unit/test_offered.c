/* SPDX-License-Identifier: MIT */
/*
 * test_offered.c - what an offer promises: the ring that was asked for last,
 * and only while the producer has it.
 *
 * The joins are sent by hand: a consumer of the library asks for one view in
 * each join.
 */
#include "test/lib/inproc.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring/layout.h"
#include "serve/server.h"
#include "wire/address.h"
#include "wire/fdpass.h"
#include "wire/zmq.h"

#define FIRST_VIEW 1 /* of those that are made on demand */

static struct inproc st;
static struct tsi_address address;
static struct tsi_channel *channel;

/* What is sent before the connection stands is dropped: ask until it does. */
static void await_connection(void)
{
	struct tsi_msg m = { .type = TSI_HELLO };
	bool ready;

	do {
		assert_int_equal(tsi_zmq_send(channel, NULL, &m), 0);
		assert_int_equal(tsi_zmq_poll(channel, NULL, 0, 100, &ready),
				 0);
	} while (!ready);
}

static int begin(void **state)
{
	(void)state;
	inproc_serve_n(&st, 300);
	assert_int_equal(tsi_address_find("unit", &address, 1), 1);
	assert_int_equal(tsi_zmq_connect(address.channel, &channel), 0);
	await_connection();
	return 0;
}

static int stop_serving(void **state)
{
	(void)state;
	tsi_zmq_close(channel);
	inproc_stop(&st);
	return 0;
}

/* A JOIN of that connection, for images of that dtype. */
static struct tsi_msg join_of(uint8_t nonce, uint32_t dtype)
{
	struct tsi_msg m = { .type = TSI_JOIN };
	struct tsi_msg_join *j = &m.u.join;

	memset(j->nonce, nonce, TSI_NONCE);
	j->pid = (uint32_t)getpid();
	j->batch_size = 8;
	assert_int_equal(
		tsi_view_spec_make(dtype, TSOCK_HWC, 0, NULL, NULL, &j->view),
		0);
	return m;
}

/* Ask until there is an offer, and take its token. */
static void get_token(const struct tsi_msg *join, uint8_t *token)
{
	static uint32_t serial;
	struct tsi_msg m = *join, r;
	bool ready;

	do {
		m.serial = ++serial;
		assert_int_equal(tsi_zmq_send(channel, NULL, &m), 0);
		do {
			assert_int_equal(
				tsi_zmq_poll(channel, NULL, 0, -1, &ready), 0);
		} while (tsi_zmq_recv(channel, NULL, &r) ||
			 r.serial != m.serial);
		assert_true(r.type == TSI_OFFER || r.type == TSI_WAIT);
		sched_yield();
	} while (r.type != TSI_OFFER);
	memcpy(token, r.u.offer.token, TSI_TOKEN);
}

/* The dtype of the images in the ring that a token opens; or an error. */
static int opens(const uint8_t *token)
{
	struct tsi_ring_shared *ring;
	struct tsi_connecting c = { .open = false };
	struct tsi_passed p;
	int dtype, err;

	err = tsi_fdpass_connect(address.fdpass, token, 10000, &c, &p);
	tsi_fdpass_abandon(&c);
	if (err)
		return err;
	ring = mmap(NULL, sizeof(*ring), PROT_READ, MAP_SHARED, p.fd[0], 0);
	assert_true(ring != MAP_FAILED);
	dtype = (int)ring->field[0].desc.dtype;
	munmap(ring, sizeof(*ring));
	for (unsigned i = 0; i < p.nfds; i++)
		close(p.fd[i]);
	if (p.producer >= 0)
		close(p.producer);
	if (p.sock >= 0)
		close(p.sock);
	return dtype;
}

static void who_asks_again_gets_the_same_offer(void **state)
{
	struct tsi_msg join = join_of(1, TSOCK_F32);
	uint8_t token[TSI_TOKEN], again[TSI_TOKEN];

	(void)state;
	get_token(&join, token);
	get_token(&join, again);
	assert_memory_equal(token, again, TSI_TOKEN);
	assert_int_equal(opens(token), TSOCK_F32);
}

static void who_asks_for_another_view_gets_an_offer_of_that_one(void **state)
{
	struct tsi_msg stored = join_of(2, TSOCK_U8);
	struct tsi_msg float32 = join_of(2, TSOCK_F32);
	uint8_t token[TSI_TOKEN], other[TSI_TOKEN];

	(void)state;
	get_token(&stored, token);
	get_token(&float32, other);
	assert_memory_not_equal(token, other, TSI_TOKEN);
	assert_int_equal(opens(token), TSOCK_EAGAIN);
	assert_int_equal(opens(other), TSOCK_F32);
}

/* As a GPU's failure does, which no view on the host has. */
static void fail_view(struct tsi_view *v)
{
	assert_int_equal(v->phase, TSI_VIEW_READY);
	tsi_view_fail(v, "this test says so");
}

static void an_offer_for_a_view_that_failed_opens_nothing(void **state)
{
	struct tsi_msg join = join_of(3, TSOCK_F32);
	uint8_t token[TSI_TOKEN], again[TSI_TOKEN];

	(void)state;
	get_token(&join, token);
	tsi_sync_lock(&st.s->sync);
	fail_view(&st.s->views.view[FIRST_VIEW]);
	tsi_sync_unlock(&st.s->sync);
	assert_int_equal(opens(token), TSOCK_EAGAIN);
	/* The view is made anew for whoever asks. */
	get_token(&join, again);
	assert_memory_not_equal(token, again, TSI_TOKEN);
	assert_int_equal(opens(again), TSOCK_F32);
}

/* As view_broadcast.c waits for the view of another thread. */
static void *wait_while_ready(void *arg)
{
	struct tsi_view *v = arg;

	tsi_sync_lock(&st.s->sync);
	while (v->phase == TSI_VIEW_READY)
		tsi_readers_wait(&st.s->readers, FIRST_VIEW, INT64_MAX);
	tsi_sync_unlock(&st.s->sync);
	return NULL;
}

static void who_waits_for_a_view_outlives_its_ring(void **state)
{
	struct tsi_msg join = join_of(4, TSOCK_F32);
	struct tsi_view *v = &st.s->views.view[FIRST_VIEW];
	uint8_t token[TSI_TOKEN];
	pthread_t thread;

	(void)state;
	get_token(&join, token);
	assert_int_equal(pthread_create(&thread, NULL, wait_while_ready, v), 0);
	tsi_sync_lock(&st.s->sync);
	while (!st.s->gate.waiters[FIRST_VIEW]) {
		tsi_sync_unlock(&st.s->sync);
		sched_yield();
		tsi_sync_lock(&st.s->sync);
	}
	/* The thread sleeps, and finds no header any more when it wakes. */
	fail_view(v);
	tsi_sync_unlock(&st.s->sync);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(st.s->gate.waiters[FIRST_VIEW], 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, stop_serving)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_asks_again_gets_the_same_offer),
		TEST(who_asks_for_another_view_gets_an_offer_of_that_one),
		TEST(an_offer_for_a_view_that_failed_opens_nothing),
		TEST(who_waits_for_a_view_outlives_its_ring),
	};
	int failed;

	inproc_open_folder();
	failed = cmocka_run_group_tests_name("offered", tests, NULL, NULL);
	inproc_close_folder();
	return failed;
}
