/* SPDX-License-Identifier: MIT */
/*
 * listen.h - a unix socket that accepts connections.
 */
#ifndef TSI_WIRE_LISTEN_H
#define TSI_WIRE_LISTEN_H

/*
 * Listen at path, after removing a socket that is there: call it with the
 * stream's lock held.  The descriptor is non-blocking and CLOEXEC; closing it
 * leaves the file.  On an error -1, with errno set.
 */
int tsi_listen(const char *path, int type, int backlog);

#endif
