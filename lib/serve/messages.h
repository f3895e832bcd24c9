/* SPDX-License-Identifier: MIT */
/*
 * messages.h - requests of consumers over ZeroMQ, and the replies.
 */
#ifndef TSI_SERVE_MESSAGES_H
#define TSI_SERVE_MESSAGES_H

struct tsock_server;

/*
 * For the control thread, without the lock: read messages and answer them.  The
 * lock is taken anew for each message, so that a flood of messages does not
 * hold up the workers.
 */
void tsi_messages_answer(struct tsock_server *s);

#endif
