/* SPDX-License-Identifier: MIT */
/*
 * tables.h - tables of all samples, made when a consumer first asks for one and
 * kept: sealed memory, of which consumers get the descriptor.
 *
 * A table is made by the program's function, in a thread of its own, since that
 * may take a second for many samples.
 */
#ifndef TSI_SERVE_TABLES_H
#define TSI_SERVE_TABLES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/memfd.h"
#include "serve/sync.h"
#include "tsock/serve.h"
#include "wire/msg.h"

#define TSI_TABLES 3 /* kinds: enum tsock_table_kind, from 1 on */

enum tsi_tables_state {
	TSI_TABLES_NONE,
	TSI_TABLES_ASKED, /* it is to be made */
	TSI_TABLES_READY,
	TSI_TABLES_FAILED, /* the next consumer that asks is told why */
};

struct tsi_tables {
	struct tsi_sync *sync;
	int (*make)(void *arg, struct tsock_serve_table *t);
	void *arg;
	uint64_t stream; /* tsi_hash() of the identity */
	pthread_t thread;
	bool running;  /* thread was started, and is to be joined */
	bool finished; /* and has nothing more to make */
	struct tsi_tables_made {
		enum tsi_tables_state state;
		struct tsi_msg_table_data
			said;         /* its token, and where it lies */
		struct tsi_memfd mem; /* if the server made it */
		int fd;               /* else; -1: none */
		int code;
		char why[256];
	} made[TSI_TABLES];
};

void tsi_tables_init(struct tsi_tables *t, struct tsi_sync *sync,
		     const struct tsock_serve_opts *o);

/* Without the lock, when no thread asks for a table any more. */
void tsi_tables_close(struct tsi_tables *t);

/*
 * A consumer asks for a table: 0 and *out; EAGAIN while it is being made; ELOST
 * if the consumer knows another stream; ENOTSUP, and what the program's
 * function fails with.  With the lock.
 */
int tsi_tables_find(struct tsi_tables *t, const struct tsi_msg_table *q,
		    struct tsi_msg_table_data *out);

/* The descriptor of the table with this token; -1: there is none.  With the
 * lock. */
int tsi_tables_fd(const struct tsi_tables *t, const uint8_t *token);

#endif
