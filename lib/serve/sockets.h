/* SPDX-License-Identifier: MIT */
/*
 * sockets.h - the stream's name and its sockets: taken, watched, made again.
 */
#ifndef TSI_SERVE_SOCKETS_H
#define TSI_SERVE_SOCKETS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/address.h"

struct tsi_channel;

/* The file of a socket that we made. */
struct tsi_socket_file {
	dev_t dev;
	ino_t ino;
};

struct tsi_sockets {
	struct tsi_address address, first; /* first: at the start */
	int lock_fd, fdpass;               /* or -1 */
	struct tsi_channel *channel;
	struct tsi_socket_file channel_file, fdpass_file;
	int64_t looked_ms; /* when the files were looked at */
	unsigned failed;   /* tries to make them again */
};

/* Nothing is open. */
void tsi_sockets_init(struct tsi_sockets *k);

/* The stream's name is taken, and the sockets listen. */
int tsi_sockets_open(struct tsi_sockets *k, const char *name);

/* Close them, and give the name back; what open got before it failed, too. */
void tsi_sockets_close(struct tsi_sockets *k);

/*
 * Was one of the files removed or replaced?  Looks about once a second.  For
 * the control thread, which alone changes the sockets.
 */
bool tsi_sockets_gone(struct tsi_sockets *k, int64_t now_ms);

/*
 * Make the files again, and log it; consumers that are connected notice
 * nothing.  TSOCK_EAGAIN: not this time, try again.  Any other error: another
 * process has the name by now, or it failed too often.
 */
int tsi_sockets_again(struct tsi_sockets *k);

/* The stream's name, and where its sockets are. */
const struct tsi_address *tsi_sockets_address(const struct tsi_sockets *k);

/* A consumer knows this name from a stream before this one: TSOCK_ELOST. */
int tsi_sockets_err_restarted(const struct tsi_sockets *k);

/* How many processes are connected to the channel. */
int tsi_sockets_connected(const struct tsi_sockets *k);

#endif
