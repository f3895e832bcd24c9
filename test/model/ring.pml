/* SPDX-License-Identifier: MIT */
/*
 * ring.pml - the ring as lib/ring/README.md specifies it: the writer's gate,
 * publication, both wake-ups, joining, leaving and death, under x86's memory
 * model.  For Spin; run.sh says which variants there are.
 *
 * One producer makes M samples into C slots.  Reader 0 is there from the
 * beginning and takes two samples at a time, reader 1 joins whenever it likes,
 * takes one, and may die between any two steps.  Each process's stores go
 * through a buffer, from which they reach memory later, in order; a fence
 * waits until the buffer is empty.  There is no time limit: where the library
 * sleeps 100 ms at the most, a process here sleeps until it is woken, so a
 * lost wake-up is a deadlock, which Spin reports.
 *
 * Left out by a definition, for negative controls, each of which has to fail:
 *
 *   NO_PRODUCER_FENCE   between storing head and reading wants
 *   NO_READER_FENCE     between storing want and reading head
 *   NO_RELEASE_FENCE    between storing a tail and reading gate_want
 *   NO_GATE_FENCE       between storing gate_want and reading tails
 *   ONE_WOKEN           of those that want a head, only the last is woken
 *   WAKE_AFTER_HEAD     the reader reads head first, its wake word then
 *   ONE_SLOT_MORE       samples are made up to gate + C + 1
 *   HEAD_FIRST          a sample is published before it is made
 *   LATE_CLAIM          a reader's start protects nothing until it has mapped
 *   NO_REAP             nobody notices a death
 *   TAIL_FIRST          a batch is given back before its last use
 */
#define M 3
#define C 2
#define R 2
#define NONE 255
#define SPOILT 254

/* Memory; the buffers' entries name these. */
#define HEAD 0
#define GATE_WANT 1
#define TAIL(i) (2 + i)
#define WANT(i) (4 + i)
byte mem[6];
byte slot[C];

/* What the kernel keeps, at once visible to all. */
byte wake; /* one word for all readers, of which each has a bit */
bool asleep[R];
bool event;

/* What messages and the kernel tell the producer. */
bool member[R];
bool asks[R], gone[R];
byte start[R];

/* Stores on their way to memory: of the producer, then of each reader. */
chan buffer[3] = [3] of { byte, byte };

#define store(who, var, val) buffer[who] ! var, val
#define fence(who) empty(buffer[who])

active [3] proctype flush()
{
	byte var, val;
end:
	do
	:: atomic { buffer[_pid] ? var, val -> mem[var] = val }
	od
}

/* The lowest tail of the members; with none, what is made has no bound but
 * there is nobody to make it for. */
inline low(to)
{
	to = NONE;
	for (i : 0 .. R - 1) {
		if
		:: member[i] && mem[TAIL(i)] < to -> to = mem[TAIL(i)]
		:: else
		fi
	};
	i = 0
}

/* The control thread: joins are claims, the gone are members no more. */
inline serve_joins()
{
	atomic {
	for (i : 0 .. R - 1) {
		if
		:: asks[i] && !gone[i] ->
			asks[i] = false;
			start[i] = head;
#ifndef LATE_CLAIM
			/* The start counts as the tail from here on. */
			mem[TAIL(i)] = head;
			member[i] = true
#endif
		:: else
		fi;
#ifndef NO_REAP
		if
		:: gone[i] && member[i] -> member[i] = false
		:: else
		fi
#endif
	};
	i = 0
	}
}

/* One call wakes those whose bits are given, and no others. */
inline wake_due()
{
	if
	:: due[0] || due[1] ->
		wake++;
		atomic {
			for (i : 0 .. R - 1) {
				asleep[i] = asleep[i] && !due[i];
				due[i] = false
			};
			i = 0
		}
	:: else
	fi
}

inline publish()
{
	store(0, HEAD, head);
#ifndef NO_PRODUCER_FENCE
	fence(0);
#endif
	for (i : 0 .. R - 1) {
		want = mem[WANT(i)];
		if
		:: want && want <= head && want != woken[i] ->
			woken[i] = want;
#ifdef ONE_WOKEN
			due[0] = false;
#endif
			due[i] = true
		:: else
		fi
	};
	i = 0;
	want = 0;
	wake_due()
}

#ifdef ONE_SLOT_MORE
#define LIMIT (gate + C + 1)
#else
#define LIMIT (gate + C)
#endif

inline make()
{
#ifdef HEAD_FIRST
	head++;
	publish();
	slot[(head - 1) % C] = head - 1;
#else
	slot[head % C] = SPOILT;
	slot[head % C] = head;
	head++;
	publish();
#endif
	gate = 0
}

active proctype producer()
{
	byte head = 0, gate, want, i;
	byte woken[R];
	bool due[R];

	do
	:: head == M -> break
	:: else ->
		serve_joins();
		low(gate);
		if
		:: gate != NONE && head < LIMIT -> make()
		:: gate != NONE && head >= LIMIT ->
			store(0, GATE_WANT, gate);
#ifndef NO_GATE_FENCE
			fence(0);
#endif
			low(gate);
			if
			:: gate == NONE || head < LIMIT
			:: else ->
				/* The eventfd, a message or a pidfd. */
				atomic {
					event || asks[0] || asks[1] ||
#ifdef NO_REAP
					false
#else
					(gone[0] && member[0]) ||
					(gone[1] && member[1])
#endif
					-> event = false
				}
			fi;
			gate = 0
		:: gate == NONE ->
			/* Nothing is made for nobody. */
			if
			:: gone[0] && gone[1] -> break
			:: asks[0] || asks[1] || member[0] || member[1]
			fi
		fi
	od;
	/* Those that join now begin at the end. */
end:
	do
	:: atomic { asks[1] && !gone[1] ->
		asks[1] = false;
		start[1] = M;
		mem[TAIL(1)] = M;
		member[1] = true }
	:: atomic { asks[0] && !gone[0] ->
		asks[0] = false;
		start[0] = M;
		mem[TAIL(0)] = M;
		member[0] = true }
	od
}

inline await_head()
{
	store(1 + me, WANT(me), need);
#ifndef NO_READER_FENCE
	fence(1 + me);
#endif
	do
	::
#ifdef WAKE_AFTER_HEAD
		h = mem[HEAD];
		w = wake;
#else
		w = wake;
		h = mem[HEAD];
#endif
		if
		:: h >= need -> break
		:: else ->
			/* FUTEX_WAIT compares and sleeps in one step. */
			if
			:: atomic { wake == w -> asleep[me] = true };
			   !asleep[me]
			:: atomic { wake != w }
			fi
		fi
	od;
	h = 0;
	w = 0;
	store(1 + me, WANT(me), 0)
}

inline give_back()
{
	store(1 + me, TAIL(me), need);
#ifndef NO_RELEASE_FENCE
	fence(1 + me);
#endif
	g = mem[GATE_WANT];
	if
	:: tail <= g && g < need -> event = true
	:: else
	fi;
	g = 0;
	tail = need
}

inline use()
{
	for (s : pos .. need - 1) {
		assert(slot[s % C] == s)
	};
	s = 0
}

#define may_die if :: me == 1 -> goto dead :: true fi

proctype reader(byte me; byte batch)
{
	byte pos, need, tail, w, h, g, s;

	asks[me] = true;
	/* The reply: the descriptors and the start. */
	!asks[me];
	pos = start[me];
	tail = pos;
#ifdef LATE_CLAIM
	store(1 + me, TAIL(me), pos);
	fence(1 + me);
	member[me] = true;
#endif
	may_die;
	do
	:: pos >= M -> break
	:: else ->
		need = (pos + batch < M -> pos + batch : M);
		await_head();
		may_die;
		use();
#ifdef TAIL_FIRST
		give_back();
		use();
#else
		/* Still whole when it is given back. */
		use();
		give_back();
#endif
		pos = need;
		may_die
	od;
dead:
	/* What it has stored reaches memory all the same. */
	fence(1 + me);
	gone[me] = true
}

init
{
	atomic {
		mem[GATE_WANT] = NONE;
		run reader(0, 2);
		run reader(1, 1)
	}
}
