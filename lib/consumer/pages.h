/* SPDX-License-Identifier: MIT */
/*
 * pages.h - the pages of a private copy-on-write mapping.
 *
 * They show the file until they are written to; from then on a copy that
 * nobody else sees, and that hides what the file becomes.  Everything here
 * takes whole pages, and may be called by any thread.
 */
#ifndef TSI_CONSUMER_PAGES_H
#define TSI_CONSUMER_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* A descriptor for the functions below, the same one for all of this process; -1
 * where there is none to be had. */
int tsi_pages_open(void);
void tsi_pages_close(int fd);

/* Is any of them a private copy?  1 yes, 0 no, -1 can't be told. */
int tsi_pages_private(int fd, const void *addr, size_t len);

/* Make all of them private copies.  -1 with errno, e.g. ENOMEM. */
int tsi_pages_take(void *addr, size_t len);

/* tsi_pages_take() as on a kernel that has no call for it. */
void tsi_pages_touch(void *addr, size_t len);

/*
 * Show the file again, by dropping what is private.  False if that can't be
 * done.
 */
bool tsi_pages_reset(int fd, void *addr, size_t len);

#endif
