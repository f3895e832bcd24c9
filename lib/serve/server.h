/* SPDX-License-Identifier: MIT */
/*
 * server.h - a stream being served: the struct that joins the parts.
 *
 *   sync         the lock, and what threads wait for
 *   membership   the rules of who reads from where: pure
 *   offers       rows kept for consumers that asked to join: pure
 *   jobs         jobs of several ranks, which begin together: pure
 *   returners    readers of the producer before, which are waited for: pure
 *   record       who reads, in a file that a producer's death leaves behind
 *   conn         the connection to one reader
 *   gate         the rings that consumers read, how far their writers may go
 *   readers      who joins, leaves, is gone or too slow
 *   gpu_table    what is known of each GPU
 *   sockets      the stream's name, and the files of its sockets
 *   view         one view; view_plan what it will be, view_thread its thread,
 *                view_neighbour and view_broadcast its ways from other GPUs,
 *                view_table all views
 *   grant        samples that are claimed without the lock
 *   production   what workers have written into the base ring
 *   waits        for whom consumers wait that have waited long
 *   stats        what a server says of itself
 *   tables       labels and names of all samples, for consumers
 *   handshake    connections become readers
 *   messages     requests and replies
 *   control      the control thread, which calls these
 *   options      the options of a server, checked: pure
 *   server       what the program and its workers call
 *   open         makes all of it, and takes it down
 *
 * A part calls those above it.
 */
#ifndef TSI_SERVE_SERVER_H
#define TSI_SERVE_SERVER_H

#include <pthread.h>
#include <stdbool.h>

#include "serve/gate.h"
#include "serve/handshake.h"
#include "serve/membership.h"
#include "serve/messages.h"
#include "serve/offers.h"
#include "serve/production.h"
#include "serve/readers.h"
#include "serve/sockets.h"
#include "serve/stats.h"
#include "serve/sync.h"
#include "serve/tables.h"
#include "serve/view_table.h"
#include "serve/waits.h"

struct tsock_server {
	struct tsi_sync sync;
	pthread_t thread; /* control.c */
	bool has_thread;
	int event; /* an eventfd, by which consumers wake that thread */
	bool stop;

	struct tsi_sockets sockets;
	struct tsi_offers offers;
	struct tsi_handshake handshake;
	struct tsi_messages messages;

	struct tsi_membership membership;
	uint64_t *bounds; /* of segments */
	struct tsi_gate gate;
	struct tsi_readers readers;

	struct tsi_production production;
	struct tsi_view_table views;
	struct tsi_waits waits;
	struct tsi_tables tables;
	struct tsi_stats stats;
};

#endif
