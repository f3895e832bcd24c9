/* SPDX-License-Identifier: MIT */
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
 * Pointers   Where a call fails, the handle, batch or tensor that it was to
 *            hand out is NULL; other output arguments are left as they were.
 *            A pointer that is NULL and may not be (handle, batch, name,
 *            options, output, function) never crashes: a function that returns
 *            a code gives TSOCK_EARG, with a message that names it, and one
 *            that returns a pointer NULL, a number of batches or samples 0, a
 *            sequence number or an epoch UINT64_MAX; one that returns nothing
 *            does nothing.
 * Growth     A struct whose first member is its size may get more members at
 *            its end: set size to sizeof (the _INIT macros do).  Options that
 *            the caller's struct doesn't have are the defaults; one that is
 *            set and that this library doesn't know is TSOCK_EARG.  Of a result
 *            as much is written as the caller's struct has room for; members
 *            that this library doesn't know become 0, and size becomes the
 *            number of bytes that it does know.
 * ABI        Before 1.0 each minor version may break it, and has a soname of
 *            its own; from 1.0 on only a major version may.
 * Units      Sizes in bytes, times in milliseconds, shapes in elements.
 * Fork       A handle belongs to the process that opened it.  In a forked
 *            child every call on it fails with TSOCK_EFORK, and releasing is
 *            a no-op.  A batch in host memory that was held at the fork stays
 *            in the child, until it exits, what it was then, whatever the
 *            parent does with it; with TSOCK_WRITABLE the child may write into
 *            its own.  For that fork() copies the pages of held batches first
 *            (a batch of 38 MB: about 20 to 60 ms, and its size in memory);
 *            evacuated and small batches, which are copies already, cost
 *            nothing.  Where there is no memory for it the child has no bytes
 *            there (SIGSEGV), and the log says so.  GPU memory can't be used
 *            in a child.  vfork(), posix_spawn(), popen(), system() and
 *            Python's subprocess (without preexec_fn) copy and cost nothing:
 *            what they start has none of this memory.  A child made by clone()
 *            or _Fork(), which run no pthread_atfork() handlers, must not
 *            look at batches; what it calls fails or does nothing like any
 *            other child's.
 * Locking    With TSOCK_WRITABLE pages locked by mlockall() would show old
 *            samples.  tsock_next() notices, unlocks what maps the ring, shows
 *            the samples that are due and logs a warning once; a batch in hand
 *            stays locked, and as it is, until it is released.
 *
 * Environment
 *   TSOCK_LOG  error, warn, info or debug: in a program that sets no logger,
 *              log lines of that level and of more important ones go to
 *              stderr.  For a program that can't find or join a stream:
 *              TSOCK_LOG=debug says where it looks and what it is told.
 *   TSOCK_DIR  folder of the streams' sockets.  Without it a producer uses
 *              $XDG_RUNTIME_DIR/tsock if $XDG_RUNTIME_DIR is the user's own,
 *              else /tmp/tsock-UID, and a consumer looks in both and, as it
 *              may have been started with another environment, in
 *              /run/user/UID/tsock.  When the folder or a socket in it is
 *              removed under a running producer, it makes them again within
 *              about a second, and those who read notice nothing; the stream
 *              fails where it can't.
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
	TSOCK_EAGAIN = -1,  /* nothing yet; try again (carries no message) */
	TSOCK_EEPOCH = -2,  /* no more batches in this epoch (no message) */
	TSOCK_EENDED = -3,  /* the stream has ended: its last epoch is over */
	TSOCK_ELOST = -4,   /* the producer is gone, or dropped this consumer */
	TSOCK_EARG = -5,    /* an argument is wrong; the message names it */
	TSOCK_ENOMEM = -6,  /* memory, address space or a cgroup's limit */
	TSOCK_ESYS = -7,    /* a system call failed; the message names it */
	TSOCK_ENOPROD = -8, /* no producer serves that name */
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
 * Send log lines (one line, no newline) to fn; NULL, the default, drops them
 * unless $TSOCK_LOG is set.
 * fn may be called from any thread.  Set it before anything is opened.
 *
 * While this process serves a stream, one thread of the library's own calls
 * fn, and nothing waits for it: when fn blocks, lines are dropped, and their
 * number is the next line.
 */
TSOCK_API void
tsock_set_logger(void (*fn)(void *arg, int level, const char *line), void *arg);

/* ------------------------------------------------------------------------
 * Fields
 */

/* Values are ABI: append, never renumber. */
enum tsock_dtype {
	TSOCK_U8 = 1,
	TSOCK_I32 = 2,
	TSOCK_I64 = 3,
	TSOCK_F16 = 4,
	TSOCK_BF16 = 5,
	TSOCK_F32 = 6,
};

enum tsock_layout {
	TSOCK_HWC = 0,
	TSOCK_CHW = 1,
};

/* What a float image holds, from its 8-bit value v and channel c. */
enum tsock_normalize {
	TSOCK_RAW = 0,      /* v itself */
	TSOCK_UNIT = 1,     /* v / 255 */
	TSOCK_MEAN_STD = 2, /* (v / 255 - mean[c]) / std[c], in float32 */
};

#define TSOCK_MAX_DIMS 4
#define TSOCK_MAX_FIELDS 16
#define TSOCK_FIELD_IMAGE 1u /* u8 [height, width, 3]: views convert it */

struct tsock_field {
	char name[32];
	uint32_t dtype; /* enum tsock_dtype */
	uint32_t flags; /* TSOCK_FIELD_* */
	uint32_t ndim;  /* of one sample; 0 is a scalar */
	uint32_t reserved;
	uint64_t shape[TSOCK_MAX_DIMS];
};

/* Bytes of one element; 0 for an unknown dtype. */
TSOCK_API size_t tsock_dtype_size(uint32_t dtype);

/* ------------------------------------------------------------------------
 * Consumers
 */

enum tsock_join {
	TSOCK_JOIN_EPOCH = 0,   /* from an epoch's first sample */
	TSOCK_JOIN_SEGMENT = 1, /* from a segment's; N samples from there */
	TSOCK_JOIN_NOW = 2,     /* from the newest sample; first epoch short */
};

/* How a consumer on a GPU gets at the samples. */
enum tsock_transport {
	TSOCK_TRANSPORT_AUTO = 0,   /* the first of these that works there */
	TSOCK_TRANSPORT_VMM = 1,    /* the producer's ring, by a descriptor */
	TSOCK_TRANSPORT_LEGACY = 2, /* that ring, by a legacy IPC handle */
	TSOCK_TRANSPORT_STAGED = 3, /* the host ring, copied by this process */
};

enum tsock_between {
	TSOCK_BETWEEN_AUTO = 0,  /* leave sequential streams, hold others */
	TSOCK_BETWEEN_HOLD = 1,  /* stay a reader between two epochs */
	TSOCK_BETWEEN_LEAVE = 2, /* leave at an epoch's end, join again */
};

#define TSOCK_WRITABLE 1u   /* batches may be written into and kept */
#define TSOCK_DROP_LAST 2u  /* skip an epoch's last batch if it is short */
#define TSOCK_SPIN 4u       /* wait by spinning: a core for lower latency */
#define TSOCK_GPU_STORED 8u /* batches as stored: tsock_batch_convert() */
#define TSOCK_EVEN 16u      /* ranks have equally many samples: see below */

/*
 * Ranks: a job may be several processes that train one model together, world of
 * them, each with its own rank from 0 and the same job (random bytes that one
 * of them makes, or a hash of what all know).  tsock_begin() waits until all
 * ranks have called it; they start at the same sample, and each reads another
 * part of the epoch: of each world * batch_size samples the rank's own
 * batch_size.  The last samples, which are fewer, are cut into equal parts,
 * some samples in two of them, so that all ranks have equally many batches and
 * samples, ceil(N / world); on an evaluation stream (tsock_info.sequential)
 * each sample comes once, and some ranks have one less, unless all ranks ask
 * for TSOCK_EVEN.  Every rank has to leave and to begin epochs as the others
 * do.
 */
#define TSOCK_JOB 16       /* bytes */
#define TSOCK_MAX_RANKS 64 /* of a job */

struct tsock_opts {
	uint32_t size;       /* sizeof(struct tsock_opts), by the macro */
	uint32_t batch_size; /* samples per batch, 1 to the stream's max */
	uint32_t timeout_ms; /* wait for a producer; 0 means 10 s */
	int32_t device;      /* -1: host memory; else CUDA's ordinal here */
	uint32_t dtype;      /* of image fields; 0 means as stored (u8) */
	uint32_t layout;     /* of image fields; HWC is as stored */
	uint32_t normalize;  /* enum tsock_normalize; RAW for u8 */
	float mean[3];       /* for TSOCK_MEAN_STD, in [0, 1] units */
	float std[3];
	uint32_t join;          /* enum tsock_join */
	uint32_t between;       /* enum tsock_between */
	uint32_t flags;         /* TSOCK_WRITABLE and so on */
	uint32_t transport;     /* enum tsock_transport, for a device */
	uint32_t rank;          /* of this process in its job: see below */
	uint32_t world;         /* processes of the job; 0 means 1 */
	uint8_t job[TSOCK_JOB]; /* the same bytes in all of them */
};
#define TSOCK_OPTS_INIT \
	{ \
		sizeof(struct tsock_opts), 0, 0, -1, 0, 0, 0, { 0, 0, 0 }, \
			{ 1, 1, 1 }, 0, 0, 0, 0, 0, 0, \
		{ \
			0 \
		} \
	}

struct tsock_info {
	uint32_t size;         /* set it to sizeof(struct tsock_info) */
	uint32_t nfields;      /* fields of a batch */
	uint64_t epoch_len;    /* N, samples per epoch of the stream */
	uint64_t dataset_len;  /* samples in the data set */
	uint64_t epochs;       /* after which the stream ends; 0 is never */
	uint32_t segments;     /* an epoch's segments */
	uint32_t max_batch;    /* largest batch_size */
	uint32_t capacity;     /* C, samples in a ring */
	uint32_t join_window;  /* W: late joiners still get the epoch */
	uint32_t nclasses;     /* names, see tsock_class_name() */
	uint32_t sequential;   /* 1: an evaluation stream */
	uint32_t producer_pid; /* in the producer's own pid namespace */
	uint32_t shard;        /* part of the data set that the stream is ... */
	uint32_t shards;       /* ... of so many; 0: it is all of it */
	uint32_t reserved;
};

typedef struct tsock tsock;
typedef struct tsock_batch tsock_batch;

/*
 * Connect to the stream called name, or at a path (a name with a '/': the
 * folder of the sockets and the stream's name).  Waits at most timeout_ms for
 * a producer and logs once what it waits for.  Nobody is held up yet: a
 * consumer becomes a reader at tsock_begin().
 * Fails with EARG, ENOPROD, EREFUSED (batch_size beyond the stream's maximum,
 * or beyond an epoch with TSOCK_DROP_LAST), EPROTO.
 */
TSOCK_API int tsock_open(const char *name, const struct tsock_opts *opts,
			 tsock **out);

/*
 * What rank, world and job of tsock_opts say, for a program that learns of its
 * ranks, or that the stream is its rank's part already, after tsock_open().
 * job may be NULL where world is 0 or 1.  Not in an epoch: after tsock_open()
 * or tsock_leave().  Fails with EARG, and EREFUSED (the ranks' batches are
 * larger than an epoch, with TSOCK_DROP_LAST); all stays as it was then.
 */
TSOCK_API int tsock_set_rank(tsock *t, uint32_t rank, uint32_t world,
			     const uint8_t *job);

/* About the stream. */
TSOCK_API int tsock_get_info(tsock *t, struct tsock_info *info);

/* Field i of a batch as this consumer gets it: dtype and layout applied. */
TSOCK_API int tsock_get_field(tsock *t, unsigned i, struct tsock_field *out);

/* Name of class i; NULL beyond nclasses.  Lives until tsock_close(). */
TSOCK_API const char *tsock_class_name(tsock *t, uint32_t i);

/*
 * What decides the stream's samples, as its producer says it: lines of
 * "key=value", each with its newline; tsock-producer's begin with
 * "dataset=".  Two streams with equal identities serve equal samples in equal
 * order.  "" if the producer says nothing.  Lives until tsock_close(); NULL
 * only without a handle.
 */
TSOCK_API const char *tsock_identity(tsock *t);

/*
 * Begin an epoch: join the stream, or go on as a reader of the next epoch.
 * An epoch that was begun and not finished is left first.  Returns once the
 * start is fixed; its first sample may lie in the future.
 * A producer that was started again serves another stream, even under the same
 * name: that is ELOST, and a new handle is needed.
 * Fails with EENDED, ELOST, EREFUSED, ENOMEM, ESTREAM, EAGAIN when timeout_ms
 * (-1 waits for ever) passed while the producer was preparing: call again.
 */
TSOCK_API int tsock_begin_timed(tsock *t, int timeout_ms);
TSOCK_API int tsock_begin(tsock *t);

/*
 * For an epoch that was left before its end (tsock_leave()): it doesn't count
 * as begun, so that the next tsock_begin() gives it again, from its first
 * sample, if that is still held, and a later one otherwise.  Without this it
 * begins the next.  Nothing happens where no epoch was left so.
 */
TSOCK_API void tsock_rewind(tsock *t);

/*
 * Go on so many samples further on in the epoch that was begun, at most to its
 * end, without waiting for them: to where a job that was interrupted had come.
 */
TSOCK_API int tsock_skip(tsock *t, uint64_t samples);

/*
 * Take the next batch in order, waiting at most timeout_ms (0 polls, -1
 * waits).  Its bytes don't change, and its addresses stay, until
 * tsock_batch_release().  The last batch of an epoch is short, or skipped with
 * TSOCK_DROP_LAST.  Without TSOCK_WRITABLE the memory is read-only, and a
 * batch held too long stalls every other consumer; with it, batches may be
 * written into and kept: what nobody else sees is made private in place.
 * With data at hand it makes no system call, takes no lock and allocates
 * nothing, with two exceptions, both with TSOCK_WRITABLE.  Where all fields of
 * a batch are copied (below 64 KiB each), its samples are given back by the
 * taking, and a producer that sleeps until then is woken by one write, as
 * tsock_batch_release() does for other batches.  And batches that are kept so
 * long that the stream would have to wait are made private, which takes calls
 * of the kernel's and, at worst, the time of copying them.
 * EHELD: what this thread does itself stands in the way.  Either it holds
 * batches of read-only memory, and must release some (those that other threads
 * hold are waited for; before another thread has ever released one of this
 * handle's batches, for 10 s at most).  Or it reads another handle of the same
 * stream, which must go on first; the message names both.  The handle stays as
 * it is, and can be used again.
 * Fails with EAGAIN, EEPOCH (tsock_begin() for the next epoch), EHELD, ELOST,
 * ESTREAM, EARG (no epoch begun).
 */
TSOCK_API int tsock_next(tsock *t, int timeout_ms, tsock_batch **out);

/* Samples in the batch. */
TSOCK_API uint64_t tsock_batch_count(const tsock_batch *b);

/* Sequence number of its first sample, and that sample's epoch. */
TSOCK_API uint64_t tsock_batch_seq(const tsock_batch *b);
TSOCK_API uint64_t tsock_batch_epoch(const tsock_batch *b);

/* First byte of field i, [count, shape...]; NULL if there is no field i. */
TSOCK_API const void *tsock_batch_data(const tsock_batch *b, unsigned i);

/* First byte of field i, to be written to; NULL without TSOCK_WRITABLE. */
TSOCK_API void *tsock_batch_data_mut(tsock_batch *b, unsigned i);

/*
 * Lend field i as a DLPack tensor: a DLManagedTensorVersioned (1.1) when
 * versioned is 1, a DLManagedTensor when it is 0.  It shares the batch's
 * bytes and keeps the batch alive: the batch is given back when it was
 * released and every such tensor's deleter ran (any thread, no lock held).
 */
TSOCK_API int tsock_batch_dlpack(tsock_batch *b, unsigned i, int versioned,
				 void **out);

/*
 * On a GPU, batch data are device addresses, to be read by work that is queued
 * after tsock_next() returned.  A batch is given back when it was released and
 * all work queued until then on the streams that were named for it is done: no
 * stream is ever synchronised for that.  Name every stream that uses it, NULL
 * being CUDA's default stream; a batch for which none was named is given back
 * at its release, as on the host.  A stream that is being captured can't be
 * named (TSOCK_ENOTSUP): convert outside the graph, into memory that the graph
 * reads.
 *
 * A stream that was named must live until the batch was released (if it is
 * being captured then, until its capture ended): its end is looked for there.
 * One that was destroyed before, where the driver finds it out, is TSOCK_EARG
 * here, and after a release ends the reader: tsock_next() says so, and those
 * samples are nobody else's before all work of this process on the GPU is done.
 * What a driver doesn't find out is undefined.
 */
TSOCK_API int tsock_batch_use(tsock_batch *b, void *stream);

/*
 * Write field i into dst, device memory of the caller's with room for
 * [count, shape...] of tsock_get_field(), in the order of stream, which is
 * named by this.  With TSOCK_GPU_STORED a batch holds the samples as stored,
 * shared by all consumers of that GPU, and this converts images to this
 * consumer's dtype, layout and normalisation; the memory at dst is the caller's
 * own to write into and to keep.  Without it, and for other fields, a plain copy.
 * Once it has returned, the batch may be released; a stream that only this has
 * named may then be destroyed, too.
 */
TSOCK_API int tsock_batch_convert(tsock_batch *b, unsigned i, void *dst,
				  void *stream);

/* In use once an epoch was begun; AUTO before that, and on the host. */
TSOCK_API int tsock_transport(tsock *t);

/*
 * Give a batch back: takes no lock and allocates nothing; makes a system call
 * where a sleeping producer waits for just this batch, and, in a handle with
 * TSOCK_WRITABLE, one to see whether the batch was written into.  NULL is
 * allowed.  Any thread.  Cannot fail.  A batch that was given back stays known
 * as such: a second release does nothing but log an error, and other functions
 * treat that batch as NULL.
 */
TSOCK_API void tsock_batch_release(tsock_batch *b);

/* The stream's epoch that tsock_begin() began; UINT64_MAX before. */
TSOCK_API uint64_t tsock_epoch(tsock *t);

/* Batches in an epoch of N samples: ceil(N/b), floor with TSOCK_DROP_LAST. */
TSOCK_API uint64_t tsock_epoch_batches(tsock *t);

/*
 * Stop reading, in the middle of an epoch or between two.  Batches that are
 * still held stay valid; without TSOCK_WRITABLE they go on holding the stream
 * until they are released.
 */
TSOCK_API void tsock_leave(tsock *t);

/* Leave, and close.  NULL is allowed.  Held batches stay valid as above. */
TSOCK_API void tsock_close(tsock *t);

/* ------------------------------------------------------------------------
 * Statistics of a running stream, asked from outside
 */

#define TSOCK_STATS_ROWS 32

struct tsock_stats_row {
	uint32_t pid;
	uint32_t batch_size;
	uint64_t tail;      /* first sample that it still needs */
	uint64_t samples;   /* taken so far, on this connection */
	uint64_t wait_ns;   /* spent waiting for data */
	uint32_t view;      /* 0: as stored; else one of the derived views */
	uint32_t waiting;   /* 1 while it waits for data */
	uint32_t transport; /* enum tsock_transport; 0: host memory */
	uint32_t reserved;
};

struct tsock_stats {
	uint32_t size; /* set it to sizeof(struct tsock_stats) */
	uint32_t pid;
	uint64_t epoch_len;
	uint64_t head;     /* first sample not yet published */
	uint64_t claimed;  /* first sample that no worker has begun */
	uint64_t limit;    /* first sample that may not be begun yet */
	uint64_t capacity; /* of a ring */
	uint64_t produced; /* samples made by this process */
	uint64_t read_bytes;
	uint64_t bad_samples; /* places filled by a substitute */
	uint64_t memory;      /* bytes in rings */
	uint32_t views;       /* derived views in use */
	uint32_t consumers;   /* readers; may exceed TSOCK_STATS_ROWS */
	uint32_t nrows;
	uint32_t reserved;
	/* Of the consumers with the lowest tails, if there are more of them. */
	struct tsock_stats_row row[TSOCK_STATS_ROWS];
};

/* Statistics of the stream called name; waits timeout_ms.  Any thread. */
TSOCK_API int tsock_query(const char *name, int timeout_ms,
			  struct tsock_stats *out);

/*
 * Call fn(arg, name, folder) for every stream of this user on this machine.
 * Its producer lives, but may be stopped: tsock_query() tells.  Returns how
 * many.
 */
TSOCK_API int tsock_list(void (*fn)(void *arg, const char *name,
				    const char *folder),
			 void *arg);

/*
 * Call fn(arg, line) for every GPU that this process can use, or once with the
 * reason why there is none.  Returns how many.
 */
TSOCK_API int tsock_devices(void (*fn)(void *arg, const char *line), void *arg);

/* ------------------------------------------------------------------------
 * Serving a stream
 *
 * The program that makes the samples owns a server.  Its worker threads, as
 * many as it likes, each repeat: claim sequence numbers, write every field of
 * those samples into their slots, commit.  They may finish out of order.  The
 * server does the rest on a thread of its own.
 */

/* How samples reach a GPU when another one has them already. */
enum tsock_fanout {
	TSOCK_FANOUT_AUTO = 0, /* peer where there is access, else host */
	TSOCK_FANOUT_PEER = 1, /* from the GPU that was staged first */
	TSOCK_FANOUT_NCCL = 2, /* broadcast inside the producer */
	TSOCK_FANOUT_HOST = 3, /* each from host memory */
};

enum tsock_slow {
	TSOCK_SLOW_BLOCK = 0, /* all go at the pace of the slowest */
	TSOCK_SLOW_KILL = 1,  /* SIGKILL a reader that others wait for */
};

struct tsock_serve_opts {
	uint32_t size;    /* sizeof(struct tsock_serve_opts), by the macro */
	uint32_t nfields; /* 1 to TSOCK_MAX_FIELDS */
	const struct tsock_field *fields;
	uint64_t epoch_len;   /* N, at least 1 */
	uint64_t dataset_len; /* 0 means N */
	uint64_t epochs;      /* after which the stream ends; 0 is never */
	const uint64_t *segment_bounds; /* segments + 1 of them, or NULL */
	uint32_t segments;              /* 0 means 1 */
	uint32_t ring;              /* samples; 0 means 2048; grows as needed */
	uint32_t join_window;       /* samples; 0 means ring / 2 */
	uint32_t max_batch;         /* samples; 0 means 512 */
	uint32_t min_consumers;     /* nothing is made before; 0 means 1 */
	uint32_t sequential;        /* 1: consumers leave between epochs */
	uint32_t slow;              /* enum tsock_slow */
	uint32_t slow_ms;           /* so long, for TSOCK_SLOW_KILL */
	uint64_t memory;            /* bytes for all rings; 0: what there is */
	const char *const *classes; /* nclasses names, or NULL */
	uint32_t nclasses;
	uint32_t fanout;        /* enum tsock_fanout */
	uint32_t gpu_transport; /* enum tsock_transport: offered; AUTO: all */
	uint32_t reserved;
	uint64_t gpu_memory;  /* bytes for all rings on one GPU; 0: any */
	uint32_t shard;       /* consumers are told that the stream is ... */
	uint32_t shards;      /* ... this part of so many; 0: all of it */
	const char *identity; /* for tsock_identity(), UTF-8; NULL is "" */
};
#define TSOCK_SERVE_OPTS_INIT \
	{ \
		sizeof(struct tsock_serve_opts), 0, NULL, 0, 0, 0, NULL, 0, 0, \
			0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0, 0, 0, 0, 0, NULL \
	}

typedef struct tsock_server tsock_server;

/* Sizes that a server with these options will have, without making it. */
struct tsock_geometry {
	uint32_t size; /* set it to sizeof(struct tsock_geometry) */
	uint32_t reserved;
	uint64_t capacity;    /* C */
	uint64_t join_window; /* W */
	uint64_t max_batch;
	uint64_t ring_bytes; /* of the base view, all fields */
	uint64_t f32_bytes;  /* of a float32 view, the same samples */
	uint64_t f16_bytes;  /* of a float16 or bfloat16 view */
};
TSOCK_API int tsock_serve_geometry(const struct tsock_serve_opts *opts,
				   struct tsock_geometry *out);

/*
 * Serve a stream.  Fails with EARG, ENOMEM (naming what is needed and what
 * there is), EEXIST (another producer has that name), ENOTSUP, ESYS.
 */
TSOCK_API int tsock_serve_open(const char *name,
			       const struct tsock_serve_opts *opts,
			       tsock_server **out);

/*
 * Claim up to want consecutive samples to make, waiting at most timeout_ms
 * (-1 waits).  Returns how many, from *first on; or EAGAIN, EENDED (nothing
 * is left to make, or the server is closing), ESTREAM.  Any thread.
 */
TSOCK_API int tsock_serve_claim(tsock_server *s, unsigned want, int timeout_ms,
				uint64_t *first);

/* Where field f of a claimed sample goes.  Any thread. */
TSOCK_API void *tsock_serve_slot(tsock_server *s, unsigned f, uint64_t seq);

/*
 * The samples first .. first+count-1, all of one claim, are written: publish
 * them as soon as all before them are.  Any thread.
 */
TSOCK_API void tsock_serve_commit(tsock_server *s, uint64_t first,
				  unsigned count);

/*
 * Stop the stream: every consumer gets TSOCK_ESTREAM and why, of which 4 KB are
 * passed on, with line ends and other control characters escaped (and 256
 * bytes to consumers that come later).  Any thread.
 */
TSOCK_API void tsock_serve_fail(tsock_server *s, const char *why);

/* Count what the server can't see by itself.  Any thread. */
TSOCK_API void tsock_serve_count(tsock_server *s, uint64_t read_bytes,
				 uint64_t bad_samples);

TSOCK_API int tsock_serve_stats(tsock_server *s, struct tsock_stats *out);

/*
 * Consumers that are connected, whether they read or have only been opened; a
 * process that asks for statistics counts while it asks.  0 where the system
 * doesn't tell.
 */
TSOCK_API int tsock_serve_connected(tsock_server *s);

/*
 * 1 when the stream is over: no reader needs a sample any more, no consumer has
 * an offer that it may still take, and a new one could get no epoch.  From then
 * on nobody can join.
 */
TSOCK_API int tsock_serve_drained(tsock_server *s);

/* Wake every claimer with EENDED: call it before joining worker threads. */
TSOCK_API void tsock_serve_stop(tsock_server *s);

/* Consumers find the producer gone.  NULL is allowed. */
TSOCK_API void tsock_serve_close(tsock_server *s);

#ifdef __cplusplus
}
#endif

#endif
