/* SPDX-License-Identifier: MIT */
/*
 * membership_person.h - the readers of membership_world.h: what they do, and
 * what they were promised.
 */
#ifndef TEST_LIB_MEMBERSHIP_PERSON_H
#define TEST_LIB_MEMBERSHIP_PERSON_H

#include "test/lib/membership_world.h"

/* A start is as early as was promised, and all samples from there are held. */
void person_join(struct person *q);

/*
 * The reader resumes the epoch that it broke off, where it was.  False: it
 * can't, for the stream has others.
 */
bool person_resume(struct person *q);

/* Its producer has died: it is no member of the next one's, and returns. */
void person_lose(struct person *q);
void person_return(struct person *q);
void person_give_up(struct person *q);

/* The next batch, if it is there; at an epoch's end it leaves or goes on. */
void person_read(struct person *q);

/* The batches taken so far are given back. */
void person_release(struct person *q);

/* The producer sees a tail; whoever may go on by it was to be woken. */
void person_refresh(struct person *q);

/* All batches are given back, the tail says so, and then it goes. */
void person_leave(struct person *q);
void person_die(struct person *q);
void person_die_all(unsigned view);

/*
 * Others have waited for it: it is detached, if it can be.  It sees that when
 * it is about to look at more samples: then it goes on where the stream is.
 */
void person_detach(struct person *q);
void person_go_on(struct person *q);

/* A tail that nothing was read for: that the stream goes on is all. */
void person_lie(struct person *q);

#endif
