/*
 * peer.h - who is at the other end of a unix socket, asked of the kernel.
 */
#ifndef TSI_WIRE_PEER_H
#define TSI_WIRE_PEER_H

#include <stdbool.h>
#include <stdint.h>

/* TSOCK_EREFUSED unless the peer is of our uid.  *pid: 0 when it has none. */
int tsi_peer_check(int sock, uint32_t *pid);

/*
 * The peer's pidfd, or -1 where none can be had.  sent is a descriptor that
 * the peer sent and calls its pidfd, or -1; it may become the result and is
 * never closed here.  *certain: the kernel vouches for it.
 */
int tsi_peer_pidfd(int sock, uint32_t pid, int sent, bool *certain);

/* CLOEXEC; -1 where the kernel or a filter has none, or pid isn't there. */
int tsi_pidfd_open(uint32_t pid);

#endif
