/* SPDX-License-Identifier: MIT */
/*
 * consumer.h - reading a stream: open, begin an epoch, take batches and give
 * them back.  tsock.h includes this, and says what holds for all.
 */
#ifndef TSOCK_CONSUMER_H
#define TSOCK_CONSUMER_H

#include <stdint.h>

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

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
#define TSOCK_CONTINUE 32u  /* begin where this process ended: see below */

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

/*
 * Epochs of a process: one that a handle has read to its end isn't given to the
 * next handle of this process again (in a job of ranks: of the same rank),
 * whatever epoch others read.  So the first tsock_begin() of a handle begins
 * where the handles that are closed by then have ended, or later.  Handles that
 * read at the same time are readers of their own, and may read the same epoch;
 * so is a forked child, which has read nothing.  An epoch that was left before
 * its end doesn't count, nor does TSOCK_JOIN_NOW look at any of this; after
 * tsock_resume() what lies behind its position counts as not read.  A producer
 * that has begun the stream anew, with its first epoch, serves another one; with
 * TSOCK_CONTINUE it is taken to where the process has ended, if the stream is
 * resumable, has the same name and identity, and nobody else reads it.
 */

/*
 * When the producer is gone, killed or shut down, tsock_next() and
 * tsock_begin() of a resumable stream (tsock_info) wait for another one of the
 * same name and identity, at most rejoin_ms from when that was noticed (60 s by
 * TSOCK_OPTS_INIT; UINT32_MAX is without limit), and log that once.  What was
 * published is read to its end first.  Then the handle becomes a reader there
 * by itself and goes on at the exact next sample; batches that are held stay
 * what they are.  ELOST: none came in time, or it serves another stream (the
 * message says in what they differ).
 */

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
	uint32_t rejoin_ms;     /* wait for the next producer; 0: don't */
};
#define TSOCK_OPTS_INIT \
	{ \
		sizeof(struct tsock_opts), 0, 0, -1, 0, 0, 0, { 0, 0, 0 }, \
			{ 1, 1, 1 }, 0, 0, 0, 0, 0, 0, { 0 }, 60000 \
	}

struct tsock_info {
	uint32_t size;         /* set it to sizeof(struct tsock_info) */
	uint32_t nfields;      /* fields of a batch */
	uint64_t epoch_len;    /* N, samples per epoch of the stream */
	uint64_t dataset_len;  /* samples in the data set */
	uint64_t epochs;       /* after which the stream ends; 0 is never, or
				* the producer may say so later */
	uint32_t segments;     /* an epoch's segments */
	uint32_t max_batch;    /* largest batch_size */
	uint32_t capacity;     /* C, samples in a ring */
	uint32_t join_window;  /* W: late joiners still get the epoch */
	uint32_t nclasses;     /* names, see tsock_class_name() */
	uint32_t sequential;   /* 1: an evaluation stream */
	uint32_t producer_pid; /* in the producer's own pid namespace */
	uint32_t shard;        /* part of the data set that the stream is ... */
	uint32_t shards;       /* ... of so many; 0: it is all of it */
	uint32_t resumable;    /* 1: tsock_resume() can be used */
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
 * job may be NULL where world is 0 or 1.  Not in an epoch, also while it waits
 * for the next producer: after tsock_open() or tsock_leave().  Fails with EARG,
 * and EREFUSED (the ranks' batches are larger than an epoch, with
 * TSOCK_DROP_LAST); all stays as it was then.
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
 * Where the identity has the line "grows=1" the data set's files may change
 * (tsock-producer --grows).  Then the stream ends after some epoch, and its
 * producer begins another one of the same name, in which epochs are numbered
 * on.  At EENDED, or at ELOST from tsock_begin(), close the handle and open the
 * name again, until tsock_identity() is another one, or tsock_get_info() says
 * that the stream goes on (epochs 0); where tsock_open() fails with ENOPROD,
 * the producer has ended instead.
 */

/*
 * Begin an epoch: join the stream, or go on as a reader of the next epoch.
 * An epoch that was begun and not finished is left first.  Returns once the
 * start is fixed; its first sample may lie in the future.
 * A producer that was started again serves another stream, even under the same
 * name, unless the stream is resumable: that is ELOST, and a new handle is
 * needed.
 * Fails with EENDED, ELOST, EREFUSED, ENOMEM, ESTREAM, EAGAIN when timeout_ms
 * (-1 waits for ever) passed while the producer was preparing: call again, or
 * tsock_leave(), since others may come to wait for a join that is under way.
 */
TSOCK_API int tsock_begin_timed(tsock *t, int timeout_ms);
TSOCK_API int tsock_begin(tsock *t);

/*
 * For an epoch that was left before its end (tsock_leave()): it doesn't count
 * as begun, so that the next tsock_begin() gives it again, from its first
 * sample, if that is still held, and a later one otherwise.  Without this it
 * begins the next.  Nothing happens where no epoch was left so.  How often an
 * epoch may be begun again is the program's to decide: the loaders of the Python
 * package call this for a loop that took one batch, and for the first in a row
 * that took more.
 */
TSOCK_API void tsock_rewind(tsock *t);

/*
 * Go on so many samples further on in the epoch that was begun, at most to its
 * end, without waiting for them: to where a job that was interrupted had come.
 * A rank of several whose batches come from a GPU's memory (VMM, LEGACY) skips
 * whole batches, or to the end, if the stream is resumable: its GPU has no other
 * ranks' samples.  EARG for anything else, for which there is tsock_resume().
 */
TSOCK_API int tsock_skip(tsock *t, uint64_t samples);

/*
 * Where the handle has come to, to be saved: the number of the first sample of
 * its epoch, and how many samples from there its job (all ranks together) has
 * taken.  At an epoch's end these are all N.  Fails with EARG where no epoch
 * was begun.
 */
TSOCK_API int tsock_position(tsock *t, uint64_t *start, uint64_t *samples);

/*
 * Begin an epoch where another handle, perhaps in another process, had come to:
 * as tsock_position() said; with N samples, at the next epoch's start.  An
 * epoch that was begun here is left first.  Where the ring holds that sample,
 * or will come to it, it is as tsock_begin_timed() otherwise; and if there is
 * no other reader, the stream goes there, back or ahead, also in a producer
 * that was started since.  All ranks of a job have to go on at the same sample.
 * Fails with EREFUSED where others read the stream and it has gone past the
 * sample (the message says what can be done), ENOTSUP (the stream isn't
 * resumable), EENDED, and as tsock_begin_timed().
 */
TSOCK_API int tsock_resume(tsock *t, uint64_t start, uint64_t samples,
			   int timeout_ms);

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
 * stream, which must go on first, or, where the producer was started again, has
 * still to return by its own tsock_next(); the message names both.  The handle
 * stays as it is, and can be used again.  Batches in host memory that are held
 * when the producer is gone are in nobody's way: what it has published is taken
 * all the same, and then it is lost (ELOST), or the next one is gone on with.
 * EENDED: the stream has ended before this epoch.  Its producer may decide
 * while it serves where it ends (tsock_serve_end_after()), and an epoch of
 * which it has made nothing by then is none.
 * Fails with EAGAIN, EEPOCH (tsock_begin() for the next epoch), EENDED, EHELD,
 * ELOST, ESTREAM, EARG (no epoch begun).
 */
TSOCK_API int tsock_next(tsock *t, int timeout_ms, tsock_batch **out);

/*
 * 1 while the producer is gone and no other one has been found: what
 * tsock_next() and tsock_begin_timed() wait for, when they give EAGAIN.  A
 * program may start one.
 */
TSOCK_API int tsock_lost(tsock *t);

/*
 * For whom the handle waits, after tsock_next(), tsock_begin_timed() or
 * tsock_resume() gave EAGAIN: words that go on "waiting for ", such as "process
 * 4242 (train.py), which holds 1 batch (16 samples) and has given none back for
 * 31 s"; "" where nothing is waited for.  The producer is asked, for timeout_ms
 * at most; a longer text is cut.  After ten seconds of a wait a warning in the
 * log says the same, and again each minute: nobody has to ask.
 */
#define TSOCK_WAITS_FOR 256 /* bytes that are enough for any */
TSOCK_API int tsock_waits_for(tsock *t, int timeout_ms, char *buf, size_t size);

/*
 * How many samples this handle has missed since it was opened, because its
 * producer had detached it (TSOCK_SLOW_DETACH): others had to wait for it.
 * Then the next batch comes from further on in the epoch; or tsock_next() says
 * EEPOCH if that is over, EENDED if the stream is.  A warning in the log names
 * the samples.  What was in hand at the time stays as it is until it is given
 * back.
 */
TSOCK_API uint64_t tsock_missed(const tsock *t);

/*
 * What the producer has to say to all readers: the oldest warning that this
 * handle has heard and not returned yet, or NULL; the text is valid until the
 * next call.  The log has had it, too.  How many there are is seen when an
 * epoch begins and at its end, and those that are new are asked for, a tenth of
 * a second long; what didn't come is asked for here, at most timeout_ms (-1
 * waits).  *kind, unless kind is NULL, is what it is about: enum
 * tsock_warning_kind.  tsock-producer warns of bad files: a class of which
 * nothing can be read, or too many of all.
 */
TSOCK_API const char *tsock_warning(tsock *t, int timeout_ms, uint32_t *kind);

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
 * own to write into and to keep.  Without it, and for other fields, a plain
 * copy.  Once it has returned, the batch may be released; a stream that only
 * this has named may then be destroyed, too.
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
 * until they are released.  Waits until the producer has confirmed it, at most
 * a second: one that is stopped, or very busy, hears of it later.
 */
TSOCK_API void tsock_leave(tsock *t);

/*
 * tsock_leave() for a program that may not wait so long: at most timeout_ms (0
 * polls, -1 waits).  The handle reads no more, whatever this gives: 0 where the
 * producer has confirmed it, or there was nothing to leave; EAGAIN where it
 * hasn't yet.  Call it again to wait on, or go on without: a tsock_begin()
 * comes after it.  tsock_next(), where it leaves at an epoch's end, and
 * tsock_begin_timed(), where it leaves an epoch first, wait for that no longer
 * than their own timeout: call this after them to wait on.
 */
TSOCK_API int tsock_leave_timed(tsock *t, int timeout_ms);

/* Leave, and close.  NULL is allowed.  Held batches stay valid as above. */
TSOCK_API void tsock_close(tsock *t);

#ifdef __cplusplus
}
#endif

#endif
