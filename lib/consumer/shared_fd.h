/* SPDX-License-Identifier: MIT */
/*
 * shared_fd.h - one descriptor for all handles of this process that have the
 * same file: a ring's memory, the producer's process, this one's pagemap.
 *
 * Any thread.  A forked child shares none with its parent's handles.
 */
#ifndef TSI_CONSUMER_SHARED_FD_H
#define TSI_CONSUMER_SHARED_FD_H

/*
 * Takes fd over, and returns what to use in its place: another one, if there is
 * one of the same file; fd itself, also where it is -1, or no more can be
 * shared.
 */
int tsi_shared_fd(int fd);

/* Close it when nobody else uses it.  -1 is allowed. */
void tsi_shared_fd_close(int fd);

#endif
