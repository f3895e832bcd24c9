/*
 * listen.h - a unix socket that somebody can connect to.
 */
#ifndef TSI_WIRE_LISTEN_H
#define TSI_WIRE_LISTEN_H

/*
 * Listen at path, in the place of whatever socket is there: call it with the
 * stream's lock held.  Non-blocking and CLOEXEC; the file stays when the
 * descriptor is closed.  -1 with errno: it can't.
 */
int tsi_listen(const char *path, int type, int backlog);

#endif
