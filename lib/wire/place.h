/*
 * place.h - where a stream's sockets are.
 *
 * Folder: $TSOCK_DIR, else $XDG_RUNTIME_DIR/tsock, else /tmp/tsock-UID, mode
 * 0700 and owned by the user.  In it NAME.bus (ZeroMQ), NAME.door, NAME.lock.
 * Consumers look into /run/user/UID/tsock as well: that is where a producer is
 * that was started with another environment, from a login say.
 */
#ifndef TSI_WIRE_PLACE_H
#define TSI_WIRE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "tsock/tsock.h"

#define TSI_PLACES 3 /* where a consumer looks, at most */
#define TSI_PATH 108 /* a unix socket's path, with its NUL */

struct tsi_place {
	char name[64];
	char folder[TSI_PATH];
	char channel[TSI_PATH];
	char fdpass[TSI_PATH];
	char lock[TSI_PATH];
	bool given; /* the user named the folder */
};

/*
 * Producer: where name's sockets go.  Nothing is made; the folder may not be
 * there yet, or not be ours.
 */
int tsi_place_choose(const char *name, struct tsi_place *out);
/* The same when the folder is gone: *out is where it can be made again. */
int tsi_place_move(const struct tsi_place *p, struct tsi_place *out);
/* Could it be made and used?  Fails as a start there would; makes nothing. */
int tsi_place_check(const struct tsi_place *p);
/* Make the folder, and check that it is ours and private. */
int tsi_place_make(const struct tsi_place *p, struct stat *st);

/*
 * Producer: choose and make the folder, take the stream's lock (a record lock:
 * it dies with the process and isn't inherited by fork).  *lock_fd stays open
 * as long as the stream lives.  TSOCK_EEXIST names the pid that holds it.
 */
int tsi_place_take(const char *name, struct tsi_place *out, int *lock_fd);
/* Is the lock that is at the path still the one that we hold? */
bool tsi_place_kept(const struct tsi_place *p, int lock_fd);
/*
 * Make the folder and take the lock again, for who holds it already.  On an
 * error *p and *lock_fd stay as they are; TSOCK_EEXIST: the name is another's
 * by now.
 */
int tsi_place_retake(struct tsi_place *p, int *lock_fd);
/* Unlink the sockets, unless they are another's by now, and give the lock back.
 */
void tsi_place_leave(const struct tsi_place *p, int lock_fd);

/*
 * Consumer: the candidates for name, in order (one if $TSOCK_DIR is set or
 * name is a path, else those of TSI_PLACES that aren't another's).  Returns how
 * many, at most max, or an error for a bad name.
 */
int tsi_place_find(const char *name, struct tsi_place *out, unsigned max);

/* TSOCK_ELOST, for a consumer whose numbers are those of an earlier producer. */
int tsi_place_restarted(const struct tsi_place *p);

/* Their folders, as in "A, B and C". */
void tsi_place_folders(const struct tsi_place *p, unsigned n, char *buf,
		       size_t size);

/* Where the system has the users' folders; for tests to change. */
extern const char *tsi_place_users;

/* fn for every NAME.door in every folder that a consumer would look in. */
int tsi_place_list(void (*fn)(void *arg, const struct tsi_place *p), void *arg);

/* Connections to the message channel there, of whatever process; 0 if it can't be told. */
int tsi_place_connected(const struct tsi_place *p);

#endif
