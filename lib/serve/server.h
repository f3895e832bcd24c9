/* SPDX-License-Identifier: MIT */
/*
 * server.h - a stream being served: the struct that joins the parts.
 *
 *   sync         the lock, and what threads wait for
 *   membership   the rules of who reads from where: pure
 *   offers       rows kept for consumers that asked to join: pure
 *   conn         the connection to one reader
 *   gate         the rings that consumers read, how far their writers may go
 *   readers      who joins, leaves, is gone or too slow
 *   gpu_table    what is known of each GPU
 *   sockets      the stream's name, and the files of its sockets
 *   server       what worker threads call
 *   view         one view; view_plan what it will be, view_thread its thread,
 *                view_neighbour and view_broadcast its ways from other GPUs,
 *                view_table all views
 *   handshake    connections become readers
 *   messages     requests and replies
 *   control      the control thread, which calls these
 *   options      the options of a server, checked: pure
 *   open         makes all of it, and takes it down
 *   stats        what a server says of itself
 *
 * A part calls those above it.
 */
#ifndef TSI_SERVE_SERVER_H
#define TSI_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "serve/gate.h"
#include "serve/handshake.h"
#include "serve/membership.h"
#include "serve/offers.h"
#include "serve/readers.h"
#include "serve/sockets.h"
#include "serve/sync.h"
#include "serve/view_table.h"
#include "wire/msg.h"

struct tsock_server {
	struct tsi_sync sync;
	pthread_t thread; /* control.c */
	bool has_thread;
	int event; /* an eventfd, by which consumers wake that thread */
	bool stop;

	struct tsi_sockets sockets;
	struct tsi_offers offers;
	struct tsi_handshake handshake;
	struct tsi_msg_stream stream; /* the reply to HELLO */
	uint8_t *meta;                /* class names */

	struct tsi_membership membership;
	uint64_t *bounds; /* of segments */
	struct tsi_gate gate;
	struct tsi_readers readers;

	uint8_t *done; /* by slot of the base: written, not yet published */
	uint64_t produced;
	_Atomic uint64_t read_bytes, bad_samples;

	struct tsi_view_table views;
};

#endif
