/* SPDX-License-Identifier: MIT */
/*
 * detach.pml - detaching readers from a ring with two halves, as
 * lib/serve/readers_slow.c does it, under x86's memory model.  For Spin; run.sh
 * says which variants there are.
 *
 * One producer makes M samples into a ring of two halves with C slots each, and
 * at any time may detach one of the first two readers, whether others wait for
 * it or not.  There are three, and each takes one sample at a time and may stand
 * still between any two steps: whatever it looks at has to stay as it is.
 * Sleeping, joining and dying are ring.pml's affair.  Here a reader is there from
 * the beginning, is never late to see a sample or that it was detached, and
 * leaves then, or at the end.
 *
 * Each process's stores go through a buffer, from which they reach memory
 * later, in order; a fence waits until the buffer is empty.
 *
 * Left out by a definition, for negative controls, each of which has to fail:
 *
 *   NO_ENTER_FENCE     between a reader's generation and its look at its row
 *   NO_ASIDE_FENCE     between the row's word and the look at the generation
 *   ROW_LAST           the row says so after the generation was read
 *   STANDS_FIRST       a reader looks at its row before it enters
 *   HEAD_BEFORE        a sample is published before its generation
 *   NUMBER_FIRST       the generation is told before its first sample
 *   NO_ABANDONED       the half of a detached reader is written into
 *   NO_UNDO            a reader that has just entered is detached all the same
 */
#define M 3
#define C 1
#define R 3
#define NONE 255
#define SPOILT 254

/* Memory; the buffers' entries name these. */
#define HEAD 0
#define GENERATION 1
#define SINCE(g) (2 + ((g) & 1))
#define TAIL(i) (4 + i)
#define ENTERED(i) (7 + i)
#define DETACHED(i) (10 + i)
byte mem[13];

/* The slots of both halves. */
byte slot[2 * C];
#define HALF(g) (((g) - 1) & 1)
#define SLOT(half, s) ((half) * C + (s) % C)

/* What the reader's message, or the kernel, tells the producer. */
bool gone[R];

/* Stores on their way to memory: of the producer, then of each reader. */
chan buffer[1 + R] = [3] of { byte, byte };

#define store(who, var, val) buffer[who] ! var, val
#define fence(who) empty(buffer[who])

active [1 + R] proctype flush()
{
	byte var, val;
end:
	do
	:: atomic { buffer[_pid] ? var, val -> mem[var] = val }
	od
}

/* ---- the producer ---- */

bool member[R], detached[R];
byte seen[R];      /* the generation that each is known to have entered */
byte looks_at[R];  /* the half of a detached one; NONE */
byte abandoned[2]; /* detached readers that may look at each half */
byte head, claimed, generation = 1, since;

inline low(to)
{
	atomic {
	to = NONE;
	if
	:: member[0] -> to = mem[TAIL(0)]
	:: else
	fi;
	if
	:: member[1] && mem[TAIL(1)] < to -> to = mem[TAIL(1)]
	:: else
	fi;
	if
	:: member[2] && mem[TAIL(2)] < to -> to = mem[TAIL(2)]
	:: else
	fi
	}
}

inline read_entered(i)
{
	atomic {
	if
	:: mem[ENTERED(i)] > seen[i] -> seen[i] = mem[ENTERED(i)]
	:: else
	fi
	}
}

/* Is the half free that a turn would go on in? */
inline other_half_is_free(yes)
{
	low(gate);
	yes = head >= since && gate >= since &&
#ifdef NO_ABANDONED
	      true
#else
	      !abandoned[HALF(generation + 1)]
#endif
}

inline tell_generation()
{
#ifdef NUMBER_FIRST
	store(0, GENERATION, generation);
	fence(0);
	store(0, SINCE(generation), since);
	fence(0);
#else
	store(0, SINCE(generation), since);
	fence(0);
	store(0, GENERATION, generation);
	fence(0);
#endif
}

inline set_aside(i)
{
#ifdef NO_ASIDE_FENCE
	store(0, DETACHED(i), 1)
#else
	/* An atomic operation. */
	atomic { fence(0) -> mem[DETACHED(i)] = 1 }
#endif
}

inline detach(i)
{
#ifndef ROW_LAST
	set_aside(i);
	was = seen[i];
	read_entered(i);
#else
	was = seen[i];
	read_entered(i);
	set_aside(i);
#endif
	if
#ifndef NO_UNDO
	:: was < generation && seen[i] == generation ->
		atomic { fence(0) -> mem[DETACHED(i)] = 0 }
	:: else ->
#else
	:: true ->
#endif
		atomic {
		if
		:: was == generation ->
			generation++;
			since = claimed;
			turned = true
		:: else
		fi;
		looks_at[i] = (was && was + 1 == generation -> HALF(was) : NONE);
		if
		:: looks_at[i] != NONE -> abandoned[looks_at[i]]++
		:: else
		fi;
		detached[i] = true;
		member[i] = false
		}
#ifndef HEAD_BEFORE
		if
		:: turned -> tell_generation(); turned = false
		:: else
		fi
#endif
	fi;
	was = 0
}

inline mind(i)
{
	if
	:: gone[i] && detached[i] ->
		atomic {
		if
		:: looks_at[i] != NONE -> abandoned[looks_at[i]]--
		:: else
		fi;
		detached[i] = false
		}
	:: gone[i] && member[i] -> member[i] = false
	:: member[i] && !gone[i] ->
		read_entered(i);
		if
		:: seen[i] < generation -> detach(i)
		:: seen[i] == generation ->
			other_half_is_free(free);
			if
			:: free -> detach(i)
			:: else
			fi;
			free = false;
			gate = 0
		fi
	:: else
	fi
}

active proctype producer()
{
	byte gate, was, half;
	bool free, turned;

	member[2];
	do
	:: head == M -> break
	:: true -> mind(0)
	:: true -> mind(1)
	:: head < M && claimed == head ->
		low(gate);
		if
		:: claimed < gate + C -> claimed++
		:: else
		fi;
		gate = 0
	:: claimed > head ->
		/* Samples of before the turn go where they were to go. */
		half = (head >= since -> HALF(generation)
				      : 1 - HALF(generation));
		slot[SLOT(half, head)] = SPOILT;
		slot[SLOT(half, head)] = head;
		half = 0;
		head++;
		store(0, HEAD, head)
#ifdef HEAD_BEFORE
		;
		if
		:: turned -> tell_generation(); turned = false
		:: else
		fi
#endif
	od;
	gate = 0
}

/* ---- the readers ---- */

inline enter()
{
	/* Again, until both are of one generation. */
	g = mem[GENERATION];
	do
	:: from = mem[SINCE(g)];
		again = mem[GENERATION];
		if
		:: again == g -> break
		:: else -> g = again
		fi
	od;
	again = 0;
	if
	:: g > 1 && pos + 1 <= from -> g--; from = 0
	:: else
	fi;
	if
	:: g != entered ->
		store(1 + me, ENTERED(me), g);
#ifndef NO_ENTER_FENCE
		fence(1 + me);
#endif
		entered = g;
		first = from
	:: else
	fi;
	g = 0;
	from = 0
}

#define IN_HALF (pos >= first -> HALF(entered) : 1 - HALF(entered))

proctype reader(byte me)
{
	byte pos, entered, first, g, again, from;

	do
	:: pos == M -> break
	:: pos < M && mem[DETACHED(me)] -> break
	:: pos < M && mem[HEAD] > pos ->
#ifdef STANDS_FIRST
		if
		:: mem[DETACHED(me)] -> break
		:: else
		fi;
#endif
		if
		:: mem[GENERATION] != entered -> enter()
		:: else
		fi;
#ifndef STANDS_FIRST
		if
		:: mem[DETACHED(me)] -> break
		:: else
		fi;
#endif
		assert(slot[SLOT(IN_HALF, pos)] == pos);
		/* Still whole when it is given back. */
		assert(slot[SLOT(IN_HALF, pos)] == pos);
		pos++;
		store(1 + me, TAIL(me), pos)
	od;
	fence(1 + me);
	gone[me] = true
}

init
{
	atomic {
		mem[GENERATION] = 1;
		looks_at[0] = NONE;
		looks_at[1] = NONE;
		member[0] = true;
		member[1] = true;
		member[2] = true;
		run reader(0);
		run reader(1);
		run reader(2)
	}
}
