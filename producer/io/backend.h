/* SPDX-License-Identifier: MIT */
/*
 * backend.h - how slots are filled: the operations of a backend.
 *
 * A backend serves one array of slots for one reader, whose thread makes all
 * calls.  It knows slots and never the reader: while a slot is QUEUED the
 * backend alone touches it, and it turns the slot DONE in start() and pump()
 * and nowhere else.
 */
#ifndef TSI_IO_BACKEND_H
#define TSI_IO_BACKEND_H

#include <stdbool.h>

#include "io/slot.h"

struct tsi_io_backend {
	const char *name;
	bool built_in; /* false: create() fails with ENOTSUP, always */
	/*
	 * Serve depth slots, which outlive the backend.  Fails with ENOTSUP
	 * (this machine can't), ENOMEM, ESYS.
	 */
	int (*create)(struct tsi_io_slot *slot, unsigned depth, void **out);
	/* Begin to read QUEUED slot i; may be put off until pump(). */
	void (*start)(void *backend, unsigned i);
	/* Turn finished slots DONE; block: wait until something happens. */
	int (*pump)(void *backend, bool block);
	/*
	 * End all reads and free the backend.  False: the kernel may go on
	 * writing into buffers of slots, which must never be freed.
	 */
	bool (*destroy)(void *backend);
};

extern const struct tsi_io_backend tsi_io_uring;
extern const struct tsi_io_backend tsi_io_pread;

#endif
