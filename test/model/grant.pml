/* SPDX-License-Identifier: MIT */
/*
 * grant.pml - claims and commits of workers without the server's lock, and what
 * whoever takes the lock may rely on, as lib/serve/grant.c and production.c do
 * it.  For Spin; run.sh says which variants there are.
 *
 * Two workers make M samples for a ring of C slots, one sample at a time, and
 * one reader reads them.  A thread of the server takes the lock as often as
 * ROUNDS says, and may have the stream jump over the next sample.  Each step
 * reads or writes memory once, or is one atomic operation; that is x86's order
 * too, as each thread has an atomic operation between a store of its own and
 * the next load that matters.  There is no time limit: a thread that nobody
 * wakes sleeps for ever, which Spin reports, as it does if a
 * written sample isn't published.
 *
 * Left out by a definition, for negative controls, each of which has to fail:
 *
 *   NO_NUMBER          a grant looks like the one before
 *   FIRST_FIRST        a claim reads the grant's first sample, its word then
 *   OPEN_GRANT         the lock leaves the grant open
 *   NO_TURN            the lock doesn't wait for the worker that publishes
 *   NO_WAKE            who gives the turn up wakes nobody
 *   NO_MORE            who finds the turn taken leaves no word of it
 *   NO_LOOK            the turn is given up, and the word that was left with it
 *   MORE_LAST          the word is taken back after another look
 *   HELD_ALONE         the lock is given up, and the word that was left with it
 *   NO_LOCK_AT         who publishes the last sample tells nobody
 */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define M 4
#define C 2
#define NONE 255
#define SPOILT 254

/* The grant; its word is the first three. */
byte number, taken, count;
byte first;

/* The turn. */
#define HELD 1
#define BUSY 2
#define MORE 4
byte turn;
bool asleep; /* the one that has the mutex, until the turn changes */

bool mutex;
byte done, head, tail; /* done: a bit for each slot */
byte slot[C];

/* What the mutex protects; lock_at is read with the turn as well. */
byte claimed, lock_at = M, target;
bool jumping;
byte skipped = NONE; /* that sample is not made */
bool told;           /* the stream has ended */

/* For the assertions. */
byte made;   /* a bit for each sample that was claimed */
bool frozen; /* a thread has the lock, and relies on claimed and head */

/* ---- the grant ---- */

inline note_claim(s)
{
	assert(!(made & (1 << s)));
	assert(s < tail + C && s < M);
	made = made | (1 << s)
}

inline load_word()
{
	n = number;
	t = taken;
	c = count
}

/* got: the sample; or NONE. */
inline take()
{
	got = NONE;
#ifdef FIRST_FIRST
	got = first;
#endif
	atomic { load_word() };
	do
	:: t == c -> got = NONE; break
	:: t < c ->
#ifdef FIRST_FIRST
		got = got + t;
#else
		got = first + t;
#endif
		atomic {
		if
		:: number == n && taken == t && count == c ->
			assert(!frozen);
			note_claim(got);
			taken++;
			break
		:: else ->
			load_word();
#ifdef FIRST_FIRST
			got = first
#endif
		fi
		}
	od;
	n = 0;
	t = 0;
	c = 0
}

inline next_number()
{
#ifndef NO_NUMBER
	number++;
#endif
	taken = 0
}

/* ---- the head ---- */

/* With the turn.  moved: there is something new. */
inline advance()
{
	c = first + taken;
	/* What is set stays set, so this is as good as one look for each. */
	atomic {
	h = head;
	do
	:: h < c && (done & (1 << (h % C))) ->
		done = done & ~(1 << (h % C));
		h++
	:: else -> break
	od;
	moved = h != head;
	head = h;
	h = 0;
	c = 0
	}
}

/* ---- the lock ---- */

/* Wake the views and all that wait for a jump or the end; with the lock. */
inline tell()
{
	atomic {
	if
	:: jumping && head == claimed ->
		skipped = head;
		head = target;
		claimed = target;
		jumping = false
	:: else
	fi;
	told = told || head == M
	}
}

inline stop()
{
	atomic { old = turn; turn = turn | HELD };
#ifndef NO_TURN
	do
	:: old & BUSY ->
		/* FUTEX_WAIT compares and sleeps in one step. */
		if
		:: atomic { turn == old -> asleep = true };
		   !asleep
		:: atomic { turn != old }
		fi;
		old = turn
	:: else -> break
	od;
#endif
	old = 0;
	atomic {
		claimed = first + taken;
#ifndef OPEN_GRANT
		next_number();
		count = 0;
#endif
		frozen = true
	};
	first = claimed
}

/* same: nothing was published first. */
inline go_on()
{
	same = true;
	do
	::
		first = claimed;
		atomic {
		lock_at = (jumping -> claimed : M);
		c = (tail + C < M -> tail + C : M);
		c = (c > claimed && !jumping -> c - claimed : 0)
		};
		atomic {
		if
#ifdef HELD_ALONE
		:: true ->
#else
		:: turn == HELD ->
#endif
			turn = 0;
			frozen = false;
			break
		:: else
		fi
		};
		turn = turn & ~MORE;
		advance();
		if
		:: moved -> tell(); same = false
		:: else
		fi;
		moved = false
	od;
	atomic {
	if
	:: c -> next_number(); count = c
	:: else
	fi
	};
	c = 0
}

inline lock()
{
	atomic { !mutex -> mutex = true };
	stop()
}

inline unlock()
{
	go_on();
	same = false;
	mutex = false
}

/* ---- the workers ---- */

/* got: the sample; or NONE at the stream's end. */
inline claim_with_lock()
{
	lock();
	do
	:: claimed == M && !jumping -> got = NONE; break
	:: else ->
		if
		:: !jumping && claimed < tail + C ->
			atomic { got = claimed; note_claim(got); claimed++ };
			break
		:: else ->
			atomic { t = tail; n = skipped };
			go_on();
			if
			:: same ->
				mutex = false;
				/* Until it is told that there is room. */
				tail != t || skipped != n || told;
				atomic { !mutex -> mutex = true }
			:: else
			fi;
			same = false;
			t = 0;
			n = 0;
			stop()
		fi
	od;
	unlock()
}

inline claim()
{
	take();
	if
	:: got == NONE -> claim_with_lock()
	:: else
	fi
}

inline take_turn(mine)
{
	atomic {
	if
	:: turn & (HELD | BUSY) ->
		mine = false;
#ifndef NO_MORE
		turn = turn | MORE
#endif
	:: else -> mine = true; turn = turn | BUSY
	fi
	}
}

inline move_head()
{
	assert(!frozen);
	advance();
#ifndef NO_LOCK_AT
	tells = tells || (moved && head >= lock_at);
#endif
	moved = false;
	assert(!frozen)
}

#ifdef NO_LOOK
#define KEPT ~(BUSY | MORE)
#else
#define KEPT ~BUSY
#endif

inline publish()
{
	move_head();
	do
#ifndef NO_LOOK
	:: turn & MORE ->
#ifdef MORE_LAST
		move_head();
		turn = turn & ~MORE
#else
		turn = turn & ~MORE;
		move_head()
#endif
	:: atomic { !(turn & MORE) -> old = turn; turn = turn & KEPT };
		break
#else
	:: atomic { old = turn; turn = turn & KEPT };
		break
#endif
	od;
	if
#ifndef NO_WAKE
	:: old & HELD -> asleep = false
#endif
	:: else
	fi;
	old = 0
}

inline commit()
{
	take_turn(moved);
	if
	:: moved ->
		moved = false;
		publish();
		if
		:: tells ->
			lock();
			tell();
			unlock();
			tells = false
		:: else
		fi
	:: else
	fi
}

active [2] proctype worker()
{
	byte got, n, t, c, h, old;
	bool moved, same, tells;

	do
	::
		claim();
		if
		:: got == NONE -> break
		:: else
		fi;
		slot[got % C] = SPOILT;
		atomic {
			slot[got % C] = got;
			done = done | (1 << (got % C));
			got = 0
		};
		commit()
	od
}

/* ---- the others ---- */

active proctype server()
{
	byte round, c, h, old;
	bool moved, same;

	do
	:: round == ROUNDS -> break
	:: else ->
		round++;
		lock();
		if
		:: skipped == NONE && !jumping && claimed + 1 < M ->
			atomic {
				target = claimed + 1;
				jumping = true
			};
			tell()
		:: true
		fi;
		unlock()
	od;
	/* Waits until the stream has ended. */
	told
}

active proctype reader()
{
	do
	:: tail == M -> break
	:: atomic { tail < M && tail == skipped -> tail++ }
	:: atomic { tail < head && tail != skipped ->
		assert(slot[tail % C] == tail) };
		/* Still whole when it is given back. */
		atomic { assert(slot[tail % C] == tail); tail++ }
	od
}
