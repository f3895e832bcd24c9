/* SPDX-License-Identifier: MIT */
/*
 * wake.pml - which workers are woken when there are samples to claim, as
 * lib/serve/sync.c, gate.c and the claims of server.c do it.  For Spin; run.sh
 * says which variants there are.
 *
 * A reader frees M slots, one at a time; there are more workers than slots, and
 * so few are woken at a time that these have to wake the others.  None of M
 * samples is written before all of them are claimed, so nothing comes of it if a
 * worker sleeps while there is a slot for it.  The reader tells of a slot only if
 * what the workers state that they wait for is right; and that changes once, as
 * it does when somebody joins.  One worker may give up at any time, as its time
 * limit says.  At the end all workers have to hear of it.  Nobody is woken by
 * time: the server's ticks are left out, and Spin reports who sleeps for ever.
 *
 * Left out by a definition, for negative controls, each of which has to fail:
 *
 *   NO_CHAIN           who goes off wakes nobody for the samples that it leaves
 *   NO_WORD            who goes off doesn't state what those that sleep wait for
 *   NO_HEIR            who gives up doesn't mind those that sleep
 *   NO_ONE             nobody is woken where there is no sample
 *   NO_LOOK            the tails aren't read once more after the statement
 *   ENDS_ALONE         who finds the end tells nobody
 *   KEEPS_COMING       who was woken counts as on its way for ever
 */
#define M 3
#define W 4
#define EACH 1 /* samples for which one worker is woken */
#define FORK 1 /* workers that are woken at a time */

bool mutex;
bool asleep[W]; /* and nobody has woken it */
bool woken[W];
byte coming, enough; /* enough: of wake_workers() */
byte room, freed, claimed;
byte cause, stated = 99; /* what is waited for, and what is said of it */
bool event, ended;

inline lock()
{
	atomic { !mutex -> mutex = true }
}

inline unlock()
{
	mutex = false
}

inline refresh()
{
	atomic { room = room + freed; freed = 0 }
}

inline wake_one()
{
	if
	:: asleep[0] -> asleep[0] = false; woken[0] = true; coming++
	:: asleep[1] -> asleep[1] = false; woken[1] = true; coming++
	:: asleep[2] -> asleep[2] = false; woken[2] = true; coming++
	:: asleep[3] -> asleep[3] = false; woken[3] = true; coming++
	fi
}

#define SOME_SLEEP (asleep[0] || asleep[1] || asleep[2] || asleep[3])
#define WORK (room < EACH -> 1 : room / EACH)

inline wake_workers()
{
	atomic {
	enough = (WORK < coming + FORK -> WORK : coming + FORK);
	do
#ifdef NO_ONE
	:: SOME_SLEEP && room > 0 && coming < enough -> wake_one()
	:: else -> break
#else
	:: SOME_SLEEP && coming < enough -> wake_one()
	:: else -> break
#endif
	od;
	enough = 0
	}
}

inline wake_all()
{
	atomic {
	do
	:: SOME_SLEEP -> wake_one()
	:: else -> break
	od
	}
}

inline state()
{
	stated = cause;
#ifndef NO_LOOK
	refresh()
#endif
}

inline mind_sleepers()
{
	if
	:: SOME_SLEEP ->
#ifndef NO_WORD
		if
		:: room == 0 -> state()
		:: else
		fi;
#endif
#ifndef NO_CHAIN
		if
		:: room > 0 -> wake_workers()
		:: else
		fi
#endif
	:: else
	fi
}

/* The mutex is given up meanwhile. */
inline sleep()
{
	atomic { asleep[_pid] = true; mutex = false };
	if
	:: woken[_pid]
	:: _pid == 0 -> gives_up = true
	fi;
	lock();
	atomic {
	if
	:: woken[_pid] ->
#ifndef KEEPS_COMING
		coming--;
#endif
		woken[_pid] = false
	:: else -> asleep[_pid] = false
	fi
	}
}

active [W] proctype worker()
{
	bool got, gives_up;

	do
	::
		/* Without the lock: a grant. */
		atomic {
		got = room > 0 && !mutex;
		if
		:: got -> room--; claimed++
		:: else
		fi
		};
		if
		:: !got ->
			lock();
			do
			:: ended ->
#ifndef ENDS_ALONE
				wake_all();
#endif
				break
			:: else ->
				refresh();
				if
				:: room > 0 ->
					atomic { room--; claimed++; got = true };
					mind_sleepers();
					break
				:: else ->
					if
					:: gives_up ->
#ifndef NO_HEIR
						mind_sleepers();
#endif
						break
					:: else
					fi;
					state();
					if
					:: room == 0 -> sleep()
					:: else
					fi
				fi
			od;
			unlock()
		:: else
		fi;
		if
		:: got -> claimed == M; got = false
		:: else -> break
		fi
	od
}

active proctype reader()
{
	byte n;

	do
	:: n == M -> break
	:: else ->
		n++;
		freed++;
		if
		:: stated == cause -> event = true
		:: else
		fi
	od
}

/* The control thread. */
active proctype control()
{
end:	do
	:: event ->
		event = false;
		lock();
		refresh();
		wake_workers();
		unlock()
	od
}

active proctype other()
{
	/* Somebody joins. */
	lock();
	refresh();
	cause = 1;
	wake_workers();
	unlock();
	claimed == M;
	lock();
	ended = true;
	wake_workers();
	unlock()
}
