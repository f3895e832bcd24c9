/* SPDX-License-Identifier: MIT */
/*
 * peer.h - which process is at the other end of a unix socket.
 *
 * The kernel is asked, never the peer.
 */
#ifndef TSI_WIRE_PEER_H
#define TSI_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

/* TSOCK_EREFUSED unless the peer is of our uid.  *pid: 0 when it has none. */
int tsi_peer_check(int sock, uint32_t *pid);

/*
 * The peer's pidfd, or -1 where there is none.  sent is a descriptor that the
 * peer sent as its pidfd, or -1; sent may become the result and is never closed
 * here.  *certain: the kernel says that the pidfd is the peer's.
 */
int tsi_peer_pidfd(int sock, uint32_t pid, int sent, bool *certain);

/* Has the process of a pidfd (or, with -1, the one behind sock) ended? */
bool tsi_peer_gone(int pidfd, int sock);

/*
 * The name of a pidfd's process, as ps has it, and of a Python process its
 * script or module, too: any bytes but a newline, of the process's own choice.
 * False: there is no pidfd, or its process has ended, or is in another pid
 * namespace.
 */
#define TSI_PEER_NAME 64
bool tsi_peer_name(int pidfd, char name[TSI_PEER_NAME]);

/* Is the process of that number stopped, by a signal or a debugger? */
bool tsi_peer_stopped(uint32_t pid);

/*
 * When the process of that number began, in the kernel's ticks: with it the
 * number means one process for ever.  0: there is none, or it can't be told.
 */
uint64_t tsi_peer_born(uint32_t pid);

/*
 * Is the process of that number no more that began then?  False if either is 0:
 * nothing was known of it, as in another pid namespace.
 */
static inline bool tsi_peer_ended(uint32_t pid, uint64_t born)
{
	return pid && born && tsi_peer_born(pid) != born;
}

/* CLOEXEC; -1 where the kernel or a filter has none, or pid isn't there. */
int tsi_peer_open_pidfd(uint32_t pid);

#endif
