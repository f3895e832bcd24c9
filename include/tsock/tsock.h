/*
 * tsock.h - one data loader for every training job on a server.
 *
 * A producer process reads, decodes and augments a data set once, into rings
 * of samples in shared memory.  Any number of consumer processes read the same
 * bytes without a copy, each with its own batch size, and each joins and
 * leaves when it likes.  This header is the whole interface and its manual.
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
 *            Output arguments are set only on success.
 * Units      Sizes in bytes, times in milliseconds, shapes in elements.
 * Fork       A handle belongs to the process that opened it.  In a forked
 *            child every call on it fails with TSOCK_EFORK, and releasing is
 *            a no-op.
 *
 * Environment
 *   TSOCK_DIR  folder of the streams' sockets.  Without it a producer uses
 *              $XDG_RUNTIME_DIR/tsock, else /tmp/tsock-UID, and a consumer
 *              looks in both.
 */
#ifndef TSOCK_TSOCK_H
#define TSOCK_TSOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TSOCK_API __attribute__((visibility("default")))
#else
#define TSOCK_API
#endif

#define TSOCK_VERSION_MAJOR 0 /* the Makefile reads these three lines */
#define TSOCK_VERSION_MINOR 1
#define TSOCK_VERSION_PATCH 0

/* Values are ABI: append, never renumber. */
enum tsock_err {
	TSOCK_OK = 0,
	TSOCK_EAGAIN = -1,   /* nothing yet; try again (carries no message) */
	TSOCK_EEPOCH = -2,   /* no more batches in this epoch (no message) */
	TSOCK_EENDED = -3,   /* the stream has ended: its last epoch is over */
	TSOCK_ELOST = -4,    /* the producer is gone, or gave this consumer up */
	TSOCK_EARG = -5,     /* an argument is wrong; the message names it */
	TSOCK_ENOMEM = -6,   /* memory, address space or a cgroup's limit */
	TSOCK_ESYS = -7,     /* a system call failed; the message names it */
	TSOCK_ENOPROD = -8,  /* no producer serves that name */
	TSOCK_EREFUSED = -9, /* the producer refused; the message says why */
	TSOCK_EPROTO = -10,  /* the peer speaks another version, or nonsense */
	TSOCK_EFORK = -11,   /* the handle was opened before a fork */
	TSOCK_EHELD = -12,   /* batches that are still held block the stream */
	TSOCK_ESTREAM = -13, /* the producer stopped the stream on an error */
	TSOCK_EDATA = -14,   /* bad data: a file or an image; says which */
	TSOCK_ENOTSUP = -15, /* this build or this kernel can't do that */
	TSOCK_EEXIST = -16,  /* another producer serves that name already */
};

/* Version of the library at run time; the major part is the soname's. */
TSOCK_API uint32_t tsock_abi_version(void);
TSOCK_API const char *tsock_version_string(void);

/* The detail of this thread's latest failure; never NULL.  Any thread. */
TSOCK_API const char *tsock_errmsg(void);

/* A constant name such as "TSOCK_ELOST"; never NULL.  Any thread. */
TSOCK_API const char *tsock_strerror(int err);

enum tsock_log_level {
	TSOCK_LOG_ERROR = 0,
	TSOCK_LOG_WARN = 1,
	TSOCK_LOG_INFO = 2,
	TSOCK_LOG_DEBUG = 3,
};

/*
 * Send log lines (one line, no newline) to fn; NULL, the default, drops them.
 * fn may be called from any thread.  Set it before anything is opened.
 */
TSOCK_API void tsock_set_logger(void (*fn)(void *arg, int level,
					   const char *line),
				void *arg);
