/* SPDX-License-Identifier: MIT */
/*
 * address.h - where a stream's sockets are.
 *
 * An address is a folder and a name.  The folder is $TSOCK_DIR, else
 * $XDG_RUNTIME_DIR/tsock, else /tmp/tsock-UID; it has mode 0700 and belongs to
 * the user.  It holds NAME.bus (the message channel, zmq.h), NAME.door (the
 * descriptor socket, fdpass.h) and NAME.lock.  Consumers also look in
 * /run/user/UID/tsock, where a producer is that was started with another
 * environment (by a login, for example).
 */
#ifndef TSI_WIRE_ADDRESS_H
#define TSI_WIRE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "tsock/tsock.h"

#define TSI_ADDRESSES 3     /* at most, where a consumer looks */
#define TSI_SOCKET_PATH 108 /* bytes of a unix socket's path, with its NUL */

/* What a stream's name is made of. */
#define TSI_NAME_MAX 63
#define TSI_NAME_CHARS \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Its fields are for address.c and address_lock.c. */
struct tsi_address {
	char name[TSI_NAME_MAX + 1];
	char folder[TSI_SOCKET_PATH];
	char channel[TSI_SOCKET_PATH];
	char fdpass[TSI_SOCKET_PATH];
	char lock[TSI_SOCKET_PATH];
	bool given; /* the user named the folder */
};

static inline const char *tsi_address_name(const struct tsi_address *a)
{
	return a->name;
}

static inline const char *tsi_address_folder(const struct tsi_address *a)
{
	return a->folder;
}

/* The path of the message channel's socket (zmq.h). */
static inline const char *tsi_address_channel(const struct tsi_address *a)
{
	return a->channel;
}

/* The path of the descriptor socket (fdpass.h). */
static inline const char *tsi_address_fdpass(const struct tsi_address *a)
{
	return a->fdpass;
}

/* 1 to TSI_NAME_MAX of TSI_NAME_CHARS, and the first is no '.'. */
bool tsi_address_is_name(const char *name);

/* ---- producer ---- */

/*
 * Where the sockets of name go.  Nothing is made; the folder may not exist yet,
 * or belong to another user.
 */
int tsi_address_choose(const char *name, struct tsi_address *out);
/* Where they go after the folder was removed: where it can be made again. */
int tsi_address_move(const struct tsi_address *a, struct tsi_address *out);
/* Can the folder be made and used?  An error says why not; makes nothing. */
int tsi_address_check(const struct tsi_address *a);
/* Make the folder; check that it is the user's own and has mode 0700. */
int tsi_address_make_folder(const struct tsi_address *a, struct stat *st);

/*
 * Choose an address, make its folder and lock the name.  The lock is a record
 * lock: it ends with the process, and a forked child doesn't have it.  *lock_fd
 * stays open as long as the stream lives.  TSOCK_EEXIST names the pid of the
 * process that holds the lock.
 */
int tsi_address_lock(const char *name, struct tsi_address *out, int *lock_fd);
/*
 * Lock the name before there is anything to serve, so that nobody else can and
 * consumers see that it is coming; tsi_address_lock() of this process takes
 * the lock over.  unreserve: give it up, if nobody has taken it over.
 */
int tsi_address_reserve(const char *name);
void tsi_address_unreserve(const char *name);
/*
 * For a signal handler that ends the process: remove the files of the name that
 * this process has reserved, whether it was taken over or not.
 */
void tsi_address_abandon(void);
/*
 * When the stream of that name, which this process serves, is closed, the name
 * stays reserved for the next one; tsi_address_unlock() gives up the sockets
 * alone.
 */
void tsi_address_keep(const char *name);
/*
 * Has a process locked the name, this one included?  *pid is that process, or 0
 * where it isn't seen from here.  Locks nothing, makes nothing and asks nobody,
 * so a process that is stopped or busy is found, too.
 */
bool tsi_address_is_locked(const struct tsi_address *a, long *pid);

/* Is the file at the lock's path still the one that lock_fd locks? */
bool tsi_address_holds_lock(const struct tsi_address *a, int lock_fd);
/*
 * Lock the name again, after the folder or the lock's file was removed.  On an
 * error *a and *lock_fd stay as they are; TSOCK_EEXIST: another process has
 * locked the name since.
 */
int tsi_address_relock(struct tsi_address *a, int *lock_fd);
/* Unlock the name; unlink the sockets, unless another process locked it. */
void tsi_address_unlock(const struct tsi_address *a, int lock_fd);

/* ---- consumer ---- */

/*
 * The addresses at which name may be, in order: one if $TSOCK_DIR is set or
 * name is a path, else those whose folder doesn't belong to another user.
 * Returns how many, at most max, or an error for a bad name.
 */
int tsi_address_find(const char *name, struct tsi_address *out, unsigned max);

/* TSOCK_ELOST: the stream is a new one, of a producer that was restarted. */
int tsi_address_err_restarted(const struct tsi_address *a);

/* The folders of n addresses, as in "A, B and C". */
void tsi_address_folders(const struct tsi_address *a, unsigned n, char *buf,
			 size_t size);

/* The folder of the users' runtime folders, /run/user; tests change it. */
extern const char *tsi_address_users;

/* Call fn for every NAME.door in every folder in which consumers look. */
int tsi_address_list(void (*fn)(void *arg, const struct tsi_address *a),
		     void *arg);

/* How many connections the message channel has; 0 if /proc can't be read. */
int tsi_address_connections(const struct tsi_address *a);

#endif
