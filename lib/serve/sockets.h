/*
 * sockets.h - the stream's name and its sockets: taken, watched, made again.
 */
#ifndef TSI_SERVE_SOCKETS_H
#define TSI_SERVE_SOCKETS_H

#include "serve/server.h"

/* Take the name, and make what consumers and the workers reach us by. */
int tsi_sockets_open(struct tsock_server *s, const char *name);

/* Was one of the files removed or replaced?  Looks about once a second; for
 * the desk's thread, without the lock. */
bool tsi_sockets_gone(struct tsock_server *s, int64_t now_ms);

/*
 * Make them again, and say so; those who are connected notice nothing.  The
 * stream fails if another process has the name by now, or after some tries.
 * With the lock held.
 */
void tsi_sockets_again(struct tsock_server *s);

/* Connections to the message channel.  Takes the lock. */
int tsi_sockets_connected(struct tsock_server *s);

#endif
