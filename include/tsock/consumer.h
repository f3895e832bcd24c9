/* SPDX-License-Identifier: MIT */
/*
 * consumer.h - reading a stream: open, begin an epoch, take batches and give
 * them back.  tsock.h includes this header and states the rules that hold for
 * all functions.
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
 * Ranks: a job may consist of several processes that train one model together.
 * There are world of them, each with its own rank, counted from 0, and all with
 * the same job (random bytes that one of them makes, or a hash of something
 * that all know).  tsock_begin() waits until all ranks have called it; they
 * start at the same sample, and each reads a different part of the epoch:
 * batch_size samples out of every world * batch_size.  The remaining samples at
 * the end are cut into equal parts, which may overlap, so that all ranks have
 * the same number of batches and of samples, ceil(N / world); on an evaluation
 * stream (tsock_info.sequential) each sample comes once, and some ranks have
 * one sample less, unless all ranks ask for TSOCK_EVEN.  Every rank has to
 * leave and to begin epochs as the others do.
 *
 * A producer has at most 256 readers.  The ranks of a larger job, or of one on
 * several machines, read the streams of several producers, each of which makes
 * the part of its ranks (tsock_info.shard, tsock-producer --shard A-B/W): there
 * rank and world are those within the part, 0 to shard_ranks - 1 of
 * shard_ranks.  When each rank has taken a batch, all of them together have what
 * the ranks of one producer would have.  Such ranks have to begin the same
 * epochs: see tsock_begin_from().
 */
#define TSOCK_JOB 16 /* bytes */

/*
 * Epochs of a process: an epoch that a handle has read to its end isn't given
 * to the next handle of the same process again (in a job of ranks: of the same
 * rank), whatever epoch others read.  So the first tsock_begin() of a handle
 * begins where the handles closed by then have ended, or later.  Handles that
 * read at the same time are independent readers and may read the same epoch; a
 * forked child is independent, too, and has read nothing.  An epoch that was
 * left before its end doesn't count, and TSOCK_JOIN_NOW ignores these rules;
 * after tsock_resume() the samples behind its position count as not read.  A
 * producer that has begun the stream anew, with its first epoch, serves another
 * stream; with TSOCK_CONTINUE the stream is moved to where the process has
 * ended, if it is resumable, has the same name and identity, and nobody else
 * reads it.
 */

/*
 * When the producer of a resumable stream (tsock_info) is gone, killed or shut
 * down, tsock_next() and tsock_begin() wait for another producer of the same
 * name and identity, at most rejoin_ms from when its end was noticed (60 s by
 * TSOCK_OPTS_INIT; UINT32_MAX: without limit), and log once that they wait.
 * The samples that were published are read to their end first.  Then the handle
 * joins the new producer by itself and continues at the exact next sample;
 * batches that are held don't change.  ELOST: no producer came in time, or the
 * one that came serves another stream (the message says how they differ).
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
	uint32_t shard_ranks;  /* shards in the part, from shard on */
	uint32_t reserved;
	uint64_t whole_len;   /* samples per epoch of all parts together, each
				* once; 0: it isn't known */
	uint64_t start_epoch; /* it begins with this epoch, dealt anew ... */
	uint64_t start;       /* ... from this position on; 0: it doesn't */
};

typedef struct tsock tsock;
typedef struct tsock_batch tsock_batch;

/*
 * Connect to the stream called name, or at a path (a name with a '/': the
 * folder of the sockets and the stream's name).  Waits at most timeout_ms for a
 * producer and logs once what it waits for.  Opening holds nobody up: a
 * consumer becomes a reader at tsock_begin().
 * Fails with EARG, ENOPROD, EREFUSED (batch_size beyond the stream's maximum,
 * or beyond an epoch with TSOCK_DROP_LAST), EPROTO.
 */
TSOCK_API int tsock_open(const char *name, const struct tsock_opts *opts,
			 tsock **out);

/*
 * Set rank, world and job of tsock_opts after tsock_open(), for a program that
 * learns only then of its ranks, or that the stream is its rank's part already.
 * job may be NULL where world is 0 or 1.  To be called after tsock_open() or
 * tsock_leave(): not in an epoch, nor while one waits for the next producer.
 * Fails with EARG, and EREFUSED (the ranks' batches are larger than an epoch,
 * with TSOCK_DROP_LAST); then nothing has changed.
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
 * Everything that determines the stream's samples, as stated by its producer:
 * lines of "key=value", each with its newline; tsock-producer's begin with
 * "dataset=".  Two streams with equal identities serve equal samples in equal
 * order.  "" if the producer states nothing.  Lives until tsock_close(); NULL
 * only without a handle.
 */
TSOCK_API const char *tsock_identity(tsock *t);

/*
 * Where the identity has the line "grows=1", the data set's files may change
 * (tsock-producer --grows).  When they do, the stream ends after some epoch,
 * and its producer begins another stream of the same name, which continues the
 * numbers of the epochs.  At EENDED, or at ELOST from tsock_begin(), close the
 * handle and open the name again, until tsock_identity() has changed, or
 * tsock_get_info() says that the stream goes on (epochs is 0); where
 * tsock_open() fails with ENOPROD, the producer has ended instead.
 */

/*
 * Begin an epoch: join the stream, or continue with the next epoch.  An epoch
 * that was begun and not finished is left first.  Returns once the start is
 * fixed; the first sample may still have to be made.
 * A producer that was started again serves another stream, even under the same
 * name, unless the stream is resumable: then this fails with ELOST, and a new
 * handle is needed.
 * Fails with EENDED, ELOST, EREFUSED, ENOMEM, ESTREAM, EAGAIN when timeout_ms
 * (-1 waits for ever) passed while the producer was preparing: call again, or
 * tsock_leave(), since others may come to wait for a join that is under way.
 */
TSOCK_API int tsock_begin_timed(tsock *t, int timeout_ms);
TSOCK_API int tsock_begin(tsock *t);

/*
 * Begin that epoch or a later one, as tsock_begin_timed() does; if nothing was
 * taken of an epoch that was begun, and it is that one or a later one, nothing
 * changes.  For ranks of one job that read the streams of several producers,
 * each of which may be in another epoch: all ranks call tsock_begin(), exchange
 * tsock_epoch(), and call this with the largest of them, again and again until
 * all have the same.  What was begun can't be taken away meanwhile: a reader
 * keeps its epoch's start, whatever others do.  Where no other job reads the
 * stream, it moves to that epoch once all ranks that read it have asked.  Ranks
 * that ask for different epochs may begin different ones: one that began an
 * earlier epoch reads on from there, and the others wait for it.
 * Fails with EREFUSED where other jobs read the stream and it is more than two
 * epochs behind, and as tsock_begin_timed().
 */
TSOCK_API int tsock_begin_from(tsock *t, uint64_t epoch, int timeout_ms);

/*
 * After an epoch was left before its end (tsock_leave()): make it count as not
 * begun, so that the next tsock_begin() gives it again, from its first sample,
 * if that is still held, and a later epoch otherwise.  Without this call
 * tsock_begin() begins the next epoch.  Nothing happens where no epoch was left
 * before its end.  How often an epoch may be begun again is for the program to
 * decide: the loaders of the Python package call this for a loop that took one
 * batch, and for the first of several loops in a row that took more.
 */
TSOCK_API void tsock_rewind(tsock *t);

/*
 * Skip that many samples of the epoch that was begun, at most to its end,
 * without waiting for them, to reach the place where an interrupted job had
 * stopped.  In a resumable stream, a rank of several whose batches come from a
 * GPU's memory (VMM, LEGACY) can skip only whole batches, or to the end,
 * because its GPU has no other ranks' samples; for anything else it gets EARG
 * and needs tsock_resume().
 */
TSOCK_API int tsock_skip(tsock *t, uint64_t samples);

/*
 * The handle's position, for saving: the number of the first sample of its
 * epoch, and how many samples from there its job (all ranks together) has
 * taken; at an epoch's end, N.  Fails with EARG where no epoch was begun.
 */
TSOCK_API int tsock_position(tsock *t, uint64_t *start, uint64_t *samples);

/*
 * Begin an epoch at the position that another handle, perhaps in another
 * process, had reached and tsock_position() had returned; with N samples, at
 * the next epoch's start.  An epoch that was begun on this handle is left
 * first.  Where the ring holds that sample, or will come to it, everything else
 * is as in tsock_begin_timed(); if there is no other reader, the stream moves
 * to that sample, back or ahead, also in a producer that was started since.
 * All ranks of a job have to resume at the same sample.  Fails with EREFUSED
 * where others read the stream and it has gone past the sample (the message
 * says what can be done), ENOTSUP (the stream isn't resumable), EENDED, and as
 * tsock_begin_timed().
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
 * With data at hand this makes no system call, takes no lock and allocates
 * nothing, with two exceptions, both with TSOCK_WRITABLE.  Where all fields of
 * a batch are copied (below 64 KiB each), its samples are given back as soon as
 * it is taken, and a producer that sleeps until then is woken by one write, as
 * tsock_batch_release() does for other batches.  And batches that are kept so
 * long that the stream would have to wait are made private, which takes system
 * calls and, at worst, the time of copying them.
 * EHELD: the calling thread itself stands in the way.  Either it holds batches
 * of read-only memory, and must release some (for batches that other threads
 * hold this waits; for 10 s at most until another thread has released one of
 * this handle's batches for the first time).  Or the thread reads another
 * handle of the same stream, which must go on first, or, where the producer was
 * started again, has still to return by its own tsock_next(); the message names
 * both.  The handle doesn't change, and can be used again.  Batches in host
 * memory that are held when the producer is gone are in nobody's way: the
 * samples that it has published are read all the same, and then the stream is
 * lost (ELOST), or continues with the next producer.
 * EENDED: the stream has ended before this epoch.  A producer may decide while
 * it serves where its stream ends (tsock_serve_end_after()), and an epoch of
 * which it has made nothing by then doesn't exist.
 * Fails with EAGAIN, EEPOCH (tsock_begin() for the next epoch), EENDED, EHELD,
 * ELOST, ESTREAM, EARG (no epoch begun).
 */
TSOCK_API int tsock_next(tsock *t, int timeout_ms, tsock_batch **out);

/*
 * 1 while the producer is gone and no other one has been found; then
 * tsock_next() and tsock_begin_timed() that return EAGAIN are waiting for a
 * producer, and the program may start one.
 */
TSOCK_API int tsock_lost(tsock *t);

/*
 * For whom the handle waits, after tsock_next(), tsock_begin_timed() or
 * tsock_resume() returned EAGAIN: words that continue "waiting for ", such as
 * "process 4242 (train.py), which holds 1 batch (16 samples) and has given none
 * back for 31 s"; "" where it waits for nobody.  This asks the producer, for
 * timeout_ms at most; a text longer than buf is cut.  After ten seconds of
 * waiting a warning in the log says the same, and again each minute, without
 * this call.
 */
#define TSOCK_WAITS_FOR 256 /* bytes that are enough for any */
TSOCK_API int tsock_waits_for(tsock *t, int timeout_ms, char *buf, size_t size);

/*
 * How many samples this handle has missed since it was opened, because its
 * producer detached it (TSOCK_SLOW_DETACH) when others had to wait for it.
 * After that the next batch comes from further on in the epoch; or tsock_next()
 * returns EEPOCH if that epoch is over, EENDED if the stream is.  A warning in
 * the log names the samples.  Batches that were held at the time stay as they
 * are until they are given back.
 */
TSOCK_API uint64_t tsock_missed(const tsock *t);

/*
 * The producer's warnings to all readers: returns the oldest one that this
 * handle has received and not returned yet, or NULL; the text is valid until
 * the next call.  It was also logged.  When an epoch begins and when it ends,
 * the handle looks for new warnings and asks for them, for a tenth of a second;
 * this call asks for those that didn't come, for at most timeout_ms (-1 waits).
 * *kind, unless kind is NULL, is what the warning is about: enum
 * tsock_warning_kind.  tsock-producer warns of bad files: a class of which no
 * file can be read, or too many bad files in all.
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
 * versioned is 1, a DLManagedTensor when it is 0.  The tensor shares the
 * batch's bytes and keeps the batch alive: the batch is given back once it was
 * released and the deleter of every such tensor has run (in any thread, no lock
 * held).
 */
TSOCK_API int tsock_batch_dlpack(tsock_batch *b, unsigned i, int versioned,
				 void **out);

/*
 * Name a CUDA stream that uses the batch.  On a GPU, batch data are device
 * addresses, to be read by work that is queued after tsock_next() returned.  A
 * batch is given back once it was released and all work queued until then on
 * the streams named for it is done; no stream is ever synchronised for that.
 * Name every stream that uses the batch, NULL being CUDA's default stream; a
 * batch for which no stream was named is given back at its release, as on the
 * host.  A stream that is being captured can't be named (TSOCK_ENOTSUP):
 * convert outside the graph, into memory that the graph reads.
 *
 * A stream that was named must live until the batch is released (or, if it is
 * being captured then, until its capture has ended), because the release looks
 * at how far the stream has come.  Where the driver notices that a stream was
 * destroyed before, this call fails with TSOCK_EARG, and a release ends the
 * reader: tsock_next() says so, and nobody else gets those samples before all
 * work of this process on the GPU is done.  What happens if the driver doesn't
 * notice is undefined.
 */
TSOCK_API int tsock_batch_use(tsock_batch *b, void *stream);

/*
 * Write field i into dst, device memory of the caller's with room for [count,
 * shape...] of tsock_get_field(), as work queued in stream, which this call
 * also names as tsock_batch_use() does.  With TSOCK_GPU_STORED a batch holds
 * the samples as stored, shared by all consumers on that GPU, and this converts
 * images to this consumer's dtype, layout and normalisation; the memory at dst
 * is the caller's own to write into and to keep.  Without that flag, and for
 * other fields, this is a plain copy.  Once the call has returned, the batch
 * may be released; a stream that was named by this call alone may be destroyed
 * after that.
 */
TSOCK_API int tsock_batch_convert(tsock_batch *b, unsigned i, void *dst,
				  void *stream);

/* The one in use once an epoch was begun; AUTO before, and on the host. */
TSOCK_API int tsock_transport(tsock *t);

/*
 * Give a batch back.  This takes no lock and allocates nothing; it makes a
 * system call where a sleeping producer waits for just this batch, and, in a
 * handle with TSOCK_WRITABLE, one to see whether the batch was written into.
 * NULL is allowed.  Any thread.  Cannot fail.  The library remembers that a
 * batch was given back: a second release only logs an error, and other
 * functions treat that batch as NULL.
 */
TSOCK_API void tsock_batch_release(tsock_batch *b);

/* The stream's number of the epoch that was begun; UINT64_MAX before any. */
TSOCK_API uint64_t tsock_epoch(tsock *t);

/* Batches in an epoch of N samples: ceil(N/b), floor with TSOCK_DROP_LAST. */
TSOCK_API uint64_t tsock_epoch_batches(tsock *t);

/*
 * Stop reading, in the middle of an epoch or between two.  Batches that are
 * still held stay valid; without TSOCK_WRITABLE they continue to hold up the
 * stream until they are released.  Waits until the producer has confirmed it,
 * for a second at most: a producer that is stopped, or very busy, hears of it
 * later.
 */
TSOCK_API void tsock_leave(tsock *t);

/*
 * tsock_leave() for a program that can't wait a second: waits at most
 * timeout_ms (0 polls, -1 waits).  The handle reads no more, whatever this
 * returns: 0 where the producer has confirmed it, or there was nothing to
 * leave; EAGAIN where it hasn't yet.  Call it again to wait longer, or go on
 * without waiting: a later tsock_begin() takes its turn after it.
 * tsock_next(), where it leaves at an epoch's end, and tsock_begin_timed(),
 * where it leaves an epoch first, wait for the confirmation no longer than
 * their own timeout: call this after them to wait longer.
 */
TSOCK_API int tsock_leave_timed(tsock *t, int timeout_ms);

/* Leave, and close.  NULL is allowed.  Held batches stay valid as above. */
TSOCK_API void tsock_close(tsock *t);

#ifdef __cplusplus
}
#endif

#endif
