/* SPDX-License-Identifier: MIT */
/*
 * protocol.h - a model of what lies between a producer and its consumers,
 * for random schedules of lib/serve: messages that are lost, come twice or come
 * late, connections, tail pages, rings with views and halves, and a clock.
 *
 * The producer's side is the library's own: readers.c, readers_slow.c,
 * membership*.c, returners.c, record.c (with its file), jobs.c, offers.c,
 * messages.c, handshake.c, gate.c and production.c.  The program that is linked
 * with this model (test_protocol_random.c) stands for what these files call:
 * ZeroMQ, the descriptor socket, the rings, the kernel's knowledge of processes,
 * the clock.  A consumer (protocol_process.c, protocol_consumer.c,
 * protocol_reads.c) does what lib/consumer does, step by step.
 */
#ifndef TEST_LIB_PROTOCOL_H
#define TEST_LIB_PROTOCOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ring/layout.h"
#include "wire/fdpass.h"
#include "wire/msg.h"

#define PEOPLE 5
#define MOST_C 40
#define LETTERS 6 /* on their way to the producer, or back, of a consumer */
#define CALLS 64  /* the last connections to the descriptor socket */
#define NO_CALL UINT32_MAX
#define PAGES 64
#define RINGS 4 /* of this producer and of those before it */
#define VIEWS 3 /* the base, a view of it, and one that is made of that view */
#define ROWS 64 /* of a ring's header that are ever used */
#define DETACHED TSI_ROW_DETACHED
#define SPOILT UINT64_MAX
#define MOST_SEGMENTS 5
#define JOB_EPOCHS 8     /* by which the ranks of a job are never apart */
#define NO_FD 0x40000000 /* from there on: descriptors that are never open */
#define GRACE_MS 60000
#define SILENCE_MS 10000 /* after which a returner counts as gone */
#define STOOD_MS 1000 /* a producer that does nothing for longer was stopped */
#define SLOW_MS 400   /* that others wait for who is then detached */

/* A message, when it arrives; of a reply: its code and token. */
struct letter {
	int64_t due;
	uint16_t type;
	uint32_t serial;
	struct tsi_msg_join join; /* of a LEAVE: its nonce alone */
	int32_t code;
	bool alone; /* of a reply: nobody else needed the stream */
	uint8_t token[TSI_TOKEN];
};

struct mail {
	unsigned n;
	struct letter letter[LETTERS];
};

/* A connection: its consumer hangs up, its producer replies, or dies. */
struct call {
	uint32_t number;
	bool accepted, hung_up, cut, answered;
	bool alone; /* when it was answered: nobody else needed the stream */
	unsigned person;
	uint32_t pid;
	int64_t due; /* when the token arrives */
	uint8_t token[TSI_TOKEN];
	struct tsi_reply reply;
	unsigned page;
	uint32_t page_number;
};

struct page {
	bool used;
	uint32_t number; /* another one for each claim */
	uint64_t tail;
	uint64_t want;       /* the head that its reader waits for; or 0 */
	uint32_t generation; /* whose samples its reader may look at */
	bool left;           /* it says that it is a reader no more */
};

struct ring {
	uint64_t incarnation; /* of its producer */
	uint64_t head;
	uint32_t generation; /* as lib/ring/README.md has it */
	uint64_t since[2];
	bool spare;               /* there is memory for the second half */
	uint32_t readers;         /* number of the last one that came */
	uint32_t row[ROWS];       /* number of its reader, beside DETACHED */
	uint64_t slot[2][MOST_C]; /* the sample that is there; or SPOILT */
};

/* What a reader has of its producer. */
struct claim {
	uint8_t nonce[TSI_NONCE];
	uint64_t incarnation;
	unsigned page, ring, view;
	uint32_t page_number, row, reader;
	bool detached;       /* it has seen that it was */
	uint32_t generation; /* that it has entered; 0: none */
	uint64_t since;      /* its first sample, in the half of it */
	/* These two when it took what it has in hand: there that stays. */
	uint32_t taken_in;
	uint64_t taken_since;
	uint64_t start, tail;
	bool kept; /* it has been left, and what it looks at ends at upto */
	uint64_t upto;
};

enum phase {
	ABSENT,
	IDLE, /* a process that doesn't read */
	ASKS, /* JOIN was sent */
	CALLS_IN,
	READS,
	WAITS, /* for the next producer */
	LEAVES,
};

struct consumer {
	unsigned number;
	enum phase phase;
	uint32_t life, pid; /* 0: no process */
	uint32_t batch, join, rank, world, view;
	bool leaves; /* between two epochs */
	uint8_t job[TSOCK_JOB];
	int64_t stopped_until;
	/* What it knows of the stream, and wants of it. */
	uint64_t incarnation;
	bool returns;
	uint64_t position, end; /* first sample not taken; where its epoch ends,
				 * 0: none was begun */
	uint64_t goal, goal_end;
	/* What its job has saved for a process to come; saved_end 0: nothing.
	 * For a job of several ranks: in the first one. */
	uint64_t saved, saved_end;
	bool resumes;  /* goal is what was saved */
	bool detached; /* at goal: it goes on where the stream is */
	uint8_t nonce[TSI_NONCE], was[TSI_NONCE];
	/* By which it has taken itself off the record, of that producer, or of
	 * the one before where that one was about to begin. */
	uint8_t off[TSI_NONCE];
	uint64_t off_in;
	/* The join, or the leave, that is under way. */
	uint32_t serial;
	int64_t again_ms, since_ms;
	uint32_t call;
	struct claim claim;
	unsigned step; /* towards the next batch */
	uint32_t next; /* the generation that it is about to enter */
	uint64_t next_since;
	struct claim before; /* that it has left, if it is kept */
	/* What it may count on. */
	bool owed;  /* it reads, by the record of a producer that died */
	bool stale; /* the record may have a row of it that nobody takes up */
	uint64_t asked_in; /* the producer that knows that it has asked, ... */
	int64_t asked_ms;  /* ... when */
	unsigned epochs;   /* that it has come through */
	uint64_t begun;    /* of its job's epochs, by the rules */
	struct mail out, in;
};

struct machine {
	uint64_t seed, rng;
	int64_t now;
	bool fair; /* nothing is lost any more, and nobody dies */
	uint64_t n, c, w, loss;
	/* Jobs save where they are, and the epochs have segments; without that
	 * a seed's schedule is the one that it was before there were these. */
	bool saves;
	/* Slow readers are detached, there are views, readers take themselves
	 * off the record, and read on while the producer is at work.  Again
	 * without that schedules are what they were. */
	bool detaches;
	/* A producer sees the tails of its predecessor's readers, and their
	 * pages say which of them have left. */
	bool sees;
	/* The ranks of some jobs leave between two epochs. */
	bool parts;
	unsigned segments;
	uint64_t bounds[MOST_SEGMENTS + 1];
	int64_t idle_ms; /* when the hold was last of use */
	unsigned made;   /* the last page */
	uint32_t calls;
	bool listens; /* there is a producer, or one that begins; ... */
	bool up;
	uint64_t incarnation;
	int64_t began_ms;  /* ... since then, less the time that it stood */
	int64_t looked_ms; /* when it last did anything */
	unsigned nring;    /* the rings of now */
	uint64_t names;    /* nonces, so far */
	struct ring ring[RINGS][VIEWS];
	struct page page[PAGES];
	struct call call[CALLS];
	struct consumer who[PEOPLE];
	unsigned people;
	/* The job of several ranks: the first of the people, if ranks > 1. */
	unsigned ranks;
	uint64_t jobs;
	uint64_t job_start[JOB_EPOCHS]; /* of its last epochs by the rules */
	uint64_t job_epochs;            /* that some rank has begun so */
	uint32_t job_join;
	bool job_leaves;
	uint64_t job_goal, job_goal_end; /* as saved; end 0: by the rules */
	int64_t job_stopped_ms; /* how long its ranks have stood still */
	/* What happened, for a look at whether the schedules are any good. */
	uint64_t deaths, returned, refused, joined, taken;
	uint64_t resumed;   /* joins where an earlier process had come to */
	uint64_t segmented; /* joins in the middle of an epoch, at a segment */
	uint64_t detachments, turns;
	uint64_t outlived; /* detached readers whose producer died */
	uint64_t took_off; /* readers that took themselves off the record */
	uint64_t followed; /* epochs that a rank began where another one had */
	uint64_t parted;   /* jobs that ended since a rank came too late */
};

extern struct machine machine;

#define check(what) \
	do { \
		if (!(what)) { \
			print_error("%s (%s:%d, seed %llu)\n", #what, \
				    __FILE__, __LINE__, \
				    (unsigned long long)machine.seed); \
			fail(); \
		} \
	} while (0)

/* ---- protocol.c ---- */

/* A number below this one, by the machine's own dice. */
uint64_t machine_random(uint64_t below);

/* A message sets out.  On the way it may get lost, come twice or come late. */
void machine_post(struct mail *m, const struct letter *l);
/* The next one that has arrived; in the order in which they were sent. */
bool machine_fetch(struct mail *m, struct letter *l);

/* A call to the producer, by its number; NO_CALL: nobody listens. */
uint32_t machine_call(struct consumer *q, const uint8_t *token);

/* The slot of sample s, for one that knows of this generation. */
uint64_t *machine_slot(struct ring *r, uint32_t generation, uint64_t since,
		       uint64_t s);

/* ---- the program ---- */

/* Does the stream hold samples for readers that have still to return? */
bool machine_is_held(void);

/* A reader takes itself off the record; was it there? */
bool machine_take_off(const uint8_t *nonce);

/* ---- protocol_process.c ---- */

/* A process begins, at random or as a rank of a new job; it ends. */
void consumer_born(struct consumer *q);
void consumer_die(struct consumer *q);

/* Has it a process that has begun to read, or wants to? */
bool consumer_is_busy(const struct consumer *q);

/* ---- protocol_reads.c ---- */

/* Does its producer live? */
bool consumer_has_producer(const struct consumer *q);

/* The next batch, or the tail, or it leaves. */
void consumer_read(struct consumer *q);

/* What it has kept of the claim before is given back. */
void consumer_let_go(struct consumer *q);

/* The consumer has all that it wants, and says so. */
void consumer_leave(struct consumer *q);

/* ---- protocol_consumer.c ---- */

/* Nobody is to wait for it any more; false: the record hasn't got it. */
bool consumer_take_off(struct consumer *q, const uint8_t *nonce);

/* A message to its producer, about the claim of that nonce. */
void consumer_post(struct consumer *q, uint16_t type, const uint8_t *nonce);

/* The consumer asks to join, or waits for a producer. */
void consumer_ask(struct consumer *q);
void consumer_await_producer(struct consumer *q);

/* The producer has died: what does its record have of this reader? */
void consumer_loses_producer(struct consumer *q, bool recorded);

/* One thing that it does. */
void consumer_step(struct consumer *q);

#endif
