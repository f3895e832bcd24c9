/* SPDX-License-Identifier: MIT */
/*
 * tsock.h - one data loader for every training job on a server.
 *
 * A producer process reads, decodes and augments a data set once, into rings of
 * samples in shared memory.  Any number of consumer processes read the same
 * bytes without a copy, each with its own batch size, and each joins and leaves
 * when it likes.  Programs include this header, which states the rules that
 * hold for all functions; it includes the others, which are the rest of the
 * manual.
 *
 *     tsock *t;
 *     tsock_batch *b;
 *     struct tsock_opts opts = TSOCK_OPTS_INIT;
 *
 *     opts.batch_size = 256;
 *     if (tsock_open("imagenet", &opts, &t))
 *             die(tsock_errmsg());
 *     for (int epoch = 0; epoch < 90; epoch++) {
 *             if (tsock_begin(t))
 *                     die(tsock_errmsg());
 *             while ((err = tsock_next(t, -1, &b)) == 0) {
 *                     train(tsock_batch_data(b, 0), tsock_batch_count(b));
 *                     tsock_batch_release(b);
 *             }
 *             if (err != TSOCK_EEPOCH)
 *                     die(tsock_errmsg());
 *     }
 *     tsock_close(t);
 *
 * Words      A stream is an endless ordered sequence of samples, numbered from
 *            0 by a 64-bit sequence number.  A sample is one record of named
 *            fields of fixed dtype and shape.  An epoch is N consecutive
 *            sequence numbers: every sample of the data set once.  A batch is
 *            up to batch_size consecutive samples: for each field one
 *            contiguous tensor [count, shape...], row-major, in place.
 * Errors     0 is success, a negative TSOCK_E* is failure; tsock_errmsg()
 *            gives the detail, per thread, until the next failing call.
 * Threads    A consumer or server handle may move between threads but is used
 *            by one at a time, except where a function says "any thread".
 *            Handles are independent of each other.
 * Ownership  What an _open or _next function returns is yours until _close or
 *            _release.  Nothing else is; never free() anything from here.
 * Pointers   Where a call fails, the handle, batch or tensor that it was to
 *            hand out is NULL; other output arguments are left as they were.
 *            NULL where a pointer is needed (handle, batch, name, options,
 *            output, function) never crashes: a function that returns a code
 *            returns TSOCK_EARG, with a message that names the argument; one
 *            that returns a pointer, NULL; a number of batches or samples, 0; a
 *            sequence number or an epoch, UINT64_MAX; one that returns nothing
 *            does nothing.
 * Growth     A struct whose first member is its size may get more members at
 *            its end: set size to sizeof (the _INIT macros do).  Options that
 *            the caller's struct doesn't have are the defaults; one that is set
 *            and that this library doesn't know is TSOCK_EARG.  A result is
 *            written as far as the caller's struct has room for it; members
 *            that this library doesn't know become 0, and size becomes the
 *            number of bytes that it does know.
 * ABI        Before 1.0 each minor version may break it, and has a soname of
 *            its own; from 1.0 on only a major version may.
 * Units      Sizes in bytes, times in milliseconds, shapes in elements.
 * Fork       A handle belongs to the process that opened it.  In a forked
 *            child every call on it fails with TSOCK_EFORK, and releasing is a
 *            no-op.  A batch in host memory that was held at the fork keeps its
 *            bytes in the child until the child exits, whatever the parent does
 *            with it; with TSOCK_WRITABLE the child may write into its own
 *            copy.  For that fork() copies the pages of held batches first (a
 *            batch of 38 MB: about 20 to 60 ms, and its size in memory);
 *            evacuated and small batches, which are copies already, cost
 *            nothing.  Where there is no memory for the copy, reading such a
 *            batch in the child is a SIGSEGV, and the log says so.  GPU memory
 *            can't be used in a child.  vfork(), posix_spawn(), popen(),
 *            system() and Python's subprocess (without preexec_fn) copy and
 *            cost nothing: what they start has none of this memory.  A child
 *            made by clone() or _Fork(), which run no pthread_atfork()
 *            handlers, must not look at batches; its calls fail or do nothing,
 *            as in any other child.
 * Locking    With TSOCK_WRITABLE pages locked by mlockall() would show old
 *            samples.  tsock_next() notices this, unlocks the pages that map
 *            the ring, shows the current samples and logs a warning once; a
 *            batch that is held stays locked and unchanged until it is
 *            released.
 *
 * Environment
 *   TSOCK_LOG  error, warn, info or debug: in a program that sets no logger,
 *              log lines of that level and of more important ones go to
 *              stderr.  For a program that can't find or join a stream:
 *              TSOCK_LOG=debug says where it looks and what it is told.
 *   TSOCK_PATIENCE_MS
 *              how long a consumer waits for samples before it asks its
 *              producer for whom it waits, and logs a warning: 10000 by
 *              default.
 *   TSOCK_DIR  folder of the streams' sockets.  Without it a producer uses
 *              $XDG_RUNTIME_DIR/tsock if $XDG_RUNTIME_DIR is the user's own,
 *              else /tmp/tsock-UID, and a consumer looks in both and, as it may
 *              have been started with another environment, in
 *              /run/user/UID/tsock.  When the folder or a socket in it is
 *              removed under a running producer, the producer makes them again
 *              within about a second, and readers notice nothing; where it
 *              can't, the stream fails.
 */
#ifndef TSOCK_TSOCK_H
#define TSOCK_TSOCK_H

#include "common.h"   /* the version, errors, the log, fields */
#include "consumer.h" /* reading a stream */
#include "serve.h"    /* serving a stream */
#include "stats.h"    /* what streams there are, and how they do */
#include "order.h"    /* orders and ranks' parts, without a stream */
#include "ragged.h"   /* batches with shapes of their own */
#include "table.h"    /* labels and names of all samples */

#endif
