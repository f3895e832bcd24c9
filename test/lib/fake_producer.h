/* SPDX-License-Identifier: MIT */
/*
 * fake_producer.h - a producer that is right but for one lie, and a consumer
 * that has to survive it.
 */
#ifndef TEST_LIB_FAKE_PRODUCER_H
#define TEST_LIB_FAKE_PRODUCER_H

#include "ring/ring.h"
#include "wire/fdpass.h"
#include "wire/msg.h"
#include "wire/address.h"
#include "test/lib/reader.h"

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

/* What the fake producer serves; the event is of the reader that joins. */
extern struct tsi_ring fake_ring;
extern struct tsi_memfd fake_tail;
extern int fake_event;
extern const struct tsock_field fake_field[2];

/* Two consumers meet it, one of them writes, and end as expected. */
void fake_survives(const struct fake_producer *r);

/* The run that it says it is. */
#define FAKE_INCARNATION 4711

#define SURVIVES(name, ...) \
	fake_survives(&(struct fake_producer){ .what = name, __VA_ARGS__ })

#endif
