/* SPDX-License-Identifier: MIT */
/*
 * messages.h - requests of consumers over ZeroMQ, and the replies.
 */
#ifndef TSI_SERVE_MESSAGES_H
#define TSI_SERVE_MESSAGES_H

#include <stdint.h>

#include "serve/gate.h"
#include "serve/offers.h"
#include "serve/readers.h"
#include "serve/sockets.h"
#include "serve/stats.h"
#include "serve/tables.h"
#include "serve/view_table.h"
#include "serve/waits.h"
#include "serve/warnings.h"
#include "wire/msg.h"

struct tsi_channel;
struct tsock_serve_opts;

struct tsi_messages {
	struct tsi_sync *sync;
	struct tsi_gate *gate;
	struct tsi_readers *readers;
	struct tsi_offers *offers;
	struct tsi_view_table *views;
	const struct tsi_sockets *sockets;
	const struct tsi_stats *stats;
	struct tsi_waits *waits;
	struct tsi_tables *tables;
	struct tsi_msg_stream stream; /* the reply to HELLO */
	uint64_t padding, last_row;   /* of the epochs of a part: part.h */
	uint8_t *meta;                /* class names and other texts */
	struct tsi_warnings warnings;
};

/* The pointers are set: what HELLO and META are answered. */
int tsi_messages_init(struct tsi_messages *t, const struct tsock_serve_opts *o,
		      const struct tsi_geometry *g);
void tsi_messages_fini(struct tsi_messages *t);

/* The stream ends after so many epochs, counted from 0. */
void tsi_messages_set_epochs(struct tsi_messages *t, uint64_t epochs);

/*
 * Warn all readers, now and later.  With the lock.  False: there are too many
 * warnings already.
 */
bool tsi_messages_warn(struct tsi_messages *t, uint32_t kind, const char *text);

/* Before the first message: the stream's incarnation is known. */
void tsi_messages_begin(struct tsi_messages *t, uint64_t incarnation);

/* It goes on a stream that another one has begun. */
void tsi_messages_set_lineage(struct tsi_messages *t, uint64_t lineage);

/*
 * For the control thread, without the lock: read messages and answer them.  The
 * lock is taken anew for each message, so that a flood of messages does not
 * hold up the workers.
 */
void tsi_messages_answer(struct tsi_messages *t, struct tsi_channel *ch);

#endif
