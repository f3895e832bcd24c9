/* SPDX-License-Identifier: MIT */
/*
 * jobs.h - jobs of several ranks, which begin together: a table, and no more.
 *
 * The first rank that asks begins the epoch: it becomes a reader at once, which
 * fixes the start, and the others begin there as well when they come.  Until the
 * last of them is a reader the start is kept, and the tails of those that are
 * count as if they stood there still.  A rank that wants another epoch meanwhile
 * waits.  One that doesn't come is waited for as long as another one reads; for
 * a minute, or ten seconds once a rank asks for the next epoch, if all have left
 * that had begun; and for ten seconds once it has asked.  If it comes then, it
 * begins there if the ring happens to hold it, else it is refused: it would wait
 * for ranks that have begun.
 *
 * Whatever epoch one rank gets, all get.  After a restart nobody but the ranks
 * knows which those are, so each says which epoch it has begun last, and none
 * begins before all have asked.  Those that are behind go first: they begin
 * where the others had begun, or are refused, and the others wait meanwhile.
 */
#ifndef TSI_SERVE_JOBS_H
#define TSI_SERVE_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/sequence.h"
#include "wire/msg.h"

#define TSI_JOBS 32
#define TSI_JOB_READERS 256 /* numbers that a reader may have */

struct tsi_job_rank {
	bool joined;      /* it has begun the job's epoch */
	bool had;         /* it has left it at its end */
	bool unbegun;     /* it has left it with nothing read */
	bool asks;        /* since it became that reader: it reads no more */
	bool absent;      /* it was waited for in vain */
	bool known;       /* after is */
	bool resumes;     /* it has said where it goes on */
	bool rewound;     /* it has begun the epoch from after on */
	int reader;       /* its number while it is one; else -1 */
	uint64_t after;   /* as it last asked: no start lies before it */
	uint64_t block;   /* of samples that the ranks read at a time */
	int64_t waits_ms; /* since when it asks for the next epoch; or 0 */
	int64_t asked_ms; /* when it last asked; 0: it hasn't */
	uint32_t pid;
	uint64_t born; /* that process; 0: it can't be told */
	uint8_t nonce[TSI_NONCE];
};

struct tsi_job {
	bool used;
	bool leaves;   /* its ranks do, between two epochs */
	bool restarts; /* its ranks know the stream from an earlier producer */
	bool ready;    /* a rank may begin */
	bool complete; /* all have asked */
	bool started;  /* one has joined, at start */
	bool settled;  /* all have */
	bool returned; /* one had, with the producer before */
	bool let_go;   /* ranks that haven't joined are waited for no longer */
	bool missed;   /* and others have begun another epoch since */
	uint8_t id[TSOCK_JOB];
	uint32_t world;
	uint64_t start;
	int64_t since_ms;   /* when the first rank asked */
	int64_t asked_ms;   /* when a rank last asked */
	int64_t left_ms;    /* since when no rank that has begun reads; or 0 */
	int64_t expires_ms; /* if it is complete */
	struct tsi_job_rank *rank; /* world of them */
};

/* A rank that was in an epoch when the producer before died. */
struct tsi_job_returner {
	bool used;
	bool leaves;
	uint32_t rank;
	uint8_t id[TSOCK_JOB];
	uint64_t epoch_end;
};

struct tsi_jobs {
	uint64_t epoch_len;
	int64_t until_ms; /* ranks may come that know the producer before */
	/* Jobs of which ranks are waited for: mostly none, and then nobody looks
	 * further. */
	unsigned waiting;
	struct tsi_job job[TSI_JOBS];
	struct tsi_job_returner returner[TSI_JOB_READERS]; /* by reader */
};

void tsi_jobs_init(struct tsi_jobs *t, uint64_t epoch_len);
void tsi_jobs_fini(struct tsi_jobs *t);

/* The producer before has died: for a minute no rank begins before all have
 * asked, of which some may know how far they have come. */
void tsi_jobs_restart(struct tsi_jobs *t, int64_t now_ms);

/*
 * A rank asks to join: 0 if it may begin, TSOCK_EAGAIN as long as it has to
 * wait for others.  Fails
 * with EREFUSED: ranks that don't fit together, too many of them or of jobs;
 * ENOMEM.
 */
int tsi_jobs_ask(struct tsi_jobs *t, const struct tsi_msg_join *j,
		 int64_t now_ms);

/* Does a rank ask by this nonce, and has still to join? */
bool tsi_jobs_asks(const struct tsi_jobs *t, const uint8_t *nonce);

/* The connection asks no longer. */
void tsi_jobs_withdraw(struct tsi_jobs *t, const uint8_t *nonce);

/*
 * A rank with an offer joins: *start is where the ranks before it began, or
 * *started is false.  TSOCK_EAGAIN: too late, all ranks have to ask again.
 */
int tsi_jobs_begin(const struct tsi_jobs *t, const struct tsi_msg_join *j,
		   bool *started, uint64_t *start);

/*
 * The rank becomes a reader.  Once it has been told, its job is forgotten if it
 * was the last rank; or it couldn't be told, and has still to join.
 */
void tsi_jobs_joined(struct tsi_jobs *t, const struct tsi_msg_join *j,
		     unsigned reader, uint64_t start);

void tsi_jobs_settle(struct tsi_jobs *t, unsigned reader);
void tsi_jobs_undo(struct tsi_jobs *t, unsigned reader);

/*
 * A rank is a reader again, after a restart, and not all ranks of its job were
 * when the producer before died: they begin where it had begun.
 */
void tsi_jobs_return(struct tsi_jobs *t, const struct tsi_msg_join *j,
		     unsigned reader, uint64_t start, int64_t now_ms);

/*
 * A rank is a reader again, after a restart, and none waits for others.  One
 * that has not begun that epoch was waited for no longer: it is refused.
 */
void tsi_jobs_returned(struct tsi_jobs *t, const struct tsi_msg_join *j,
		       unsigned reader);

#define TSI_MISSING 4 /* ranks that are named */

/* For whom does a rank wait: a reader, or one that asks by a nonce? */
struct tsi_job_missing {
	uint32_t rank[TSI_MISSING]; /* the first of them */
	uint32_t count, world;
	uint64_t epoch; /* that the missing ranks have not begun; ... */
	bool begun;     /* ... if another one has */
	uint32_t pid;   /* of one of them that asks, or reads; else 0 */
};
bool tsi_jobs_missing(struct tsi_jobs *t, int reader, const uint8_t *nonce,
		      struct tsi_job_missing *out);

/* Does this reader wait for other ranks, so that its tail doesn't count? */
bool tsi_jobs_wait(struct tsi_jobs *t, unsigned reader);

/* Has a rank of that job had an epoch that the asking one has to begin? */
bool tsi_jobs_had(const struct tsi_jobs *t, const struct tsi_msg_join *j);

/* The first sample that is kept for ranks of jobs whose others may have left;
 * TSI_NEVER: none is. */
uint64_t tsi_jobs_kept(const struct tsi_jobs *t);
/* Is any of that kept for another job than the one that asks? */
bool tsi_jobs_kept_for_others(const struct tsi_jobs *t,
			      const struct tsi_msg_join *j);

/* The reader is no more, and came to that tail. */
void tsi_jobs_left(struct tsi_jobs *t, unsigned reader, uint64_t tail);

/* Forget the jobs whose ranks don't come, and hold no start for them. */
void tsi_jobs_expire(struct tsi_jobs *t, int64_t now_ms);

#endif
