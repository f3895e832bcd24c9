/* SPDX-License-Identifier: MIT */
/*
 * zmtp_peer.h - a hostile peer on a channel, without libzmq.
 *
 * It writes ZeroMQ's protocol (ZMTP 3.0) on a socket of its own, so a message
 * may stop wherever it likes.  A DEALER of libzmq aborts its process when the
 * connection ends while the socket is being closed half way through a message
 * of several frames (session_base.cpp, clean_pipes()).
 *
 * What isn't as it should be ends the process: see proc.h.
 */
#ifndef TEST_LIB_ZMTP_PEER_H
#define TEST_LIB_ZMTP_PEER_H

#include <stdbool.h>
#include <stddef.h>

struct zmtp_peer {
	const char *path;
	int fd;
};

/* Connect, and say what a DEALER says. */
void zmtp_open(struct zmtp_peer *p, const char *path);

/*
 * Send a frame; with more, its message has another one.  For a frame that is
 * longer than any message the other side has to end the connection; then a new
 * one is made.
 */
void zmtp_send(struct zmtp_peer *p, const void *bytes, size_t len, bool more);

/* Close once the other side has read all of it. */
void zmtp_close(struct zmtp_peer *p);

#endif
