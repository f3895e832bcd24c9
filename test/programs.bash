# SPDX-License-Identifier: MIT
# programs.bash - runs test programs, several at a time, and counts them.
#
# run_program starts a program as soon as one of $at_once places is free;
# what it came to is told in the order of the starts.  Whatever else is told
# (titles, builds, skips) waits for its turn too: pass, fail and skip may be
# called at any time.  finish_programs waits for all of them.
#
# A program passes with exit code 0, is skipped with 77 (its last line says
# why), else it failed.  Programs that speak TAP (cmocka) count by their test
# cases.  Each gets $limit seconds and a folder of its own for TSOCK_DIR and
# everything temporary; a process, a socket that somebody listens at, or a file
# that it leaves behind is a failure.  The CPU
# seconds of each, and of each build, are lines of $logs/cpu.

passed=0 failed=0 skipped=0
failures=() skips=()
prefix=()
runs=0
queue=()   # what is still to be told, in order: shell commands, quoted
running=() # numbers of the programs under way

# ---- telling ----

say()
{
	later tell_line "$*"
}

title()
{
	say "== $*"
}

pass()
{
	later tell_pass "$@"
}

# fail WHAT [LOG]: with the end of the log.
fail()
{
	later tell_fail "$@"
}

# skip WHAT WHY
skip()
{
	later tell_skip "$@"
}

later()
{
	queue+=("$(printf '%q ' "$@")")
	tell_what_is_due
}

tell_line()
{
	printf '%s\n' "$1"
}

tell_pass()
{
	passed=$((passed + $1))
	[ "$1" = 0 ] || printf '%5d ok    %s\n' "$1" "$2"
}

tell_fail()
{
	failed=$((failed + 1))
	failures+=("$1")
	printf '      FAIL  %s\n' "$1"
	[ -z "${2:-}" ] || tail -n 30 "$2" | sed 's/^/            | /'
}

tell_skip()
{
	skipped=$((skipped + 1))
	skips+=("$1: $2")
	printf '      skip  %s: %s\n' "$1" "$2"
}

# Everything up to the first program that hasn't ended.
tell_what_is_due()
{
	local number
	while [ ${#queue[@]} -gt 0 ]; do
		if [[ ${queue[0]} == 'tell_program '* ]]; then
			number=${queue[0]#tell_program }
			number=${number%% *}
			[ -f "$scratch/$number.rc" ] || return 0
		fi
		eval "${queue[0]}"
		queue=("${queue[@]:1}")
	done
}

# ---- counting ----

# Count the cases of a TAP log.  A child that exits prints its parent's
# buffered lines a second time, so equal lines are one.  A skipped case is "not
# ok" to cmocka 1.1.5, and "ok" to later ones.
count_tap()
{
	local name=$1 log=$2 cases=$scratch/cases ok reason case plan
	grep -E '^(not )?ok [0-9]+' "$log" | sort -u >"$cases"
	ok=$(grep -v ' # SKIP' "$cases" | grep -c '^ok')
	while IFS= read -r case; do
		tell_fail "$name: ${case#not ok * - }" "$log"
	done < <(grep -E '^not ok [0-9]+ -' "$cases")
	while IFS=$'\t' read -r case reason; do
		tell_skip "$name $case" "${reason:-no reason given}"
	done < <(awk '/^(not )?ok [0-9]+ # SKIP/ {
			sub(/^(not )?ok [0-9]+ # SKIP */, "")
			sub(/^\[ *SKIP *\] /, "", before)
			if (!seen[$0]++) print $0 "\t" before
		}
		{ before = /^(ok|not ok|#|1\.\.)/ ? "" : $0 }' "$log")
	tell_pass "$ok" "$name"
	plan=$(sed -n 's/^1\.\.\([0-9]*\)$/\1/p' "$log" | sort -n | tail -n 1)
	[ "$(wc -l <"$cases")" -ge "${plan:-0}" ]
}

# What a JUnit file of pytest says: a line per case that didn't pass, and the
# number of those that did.
count_junit()
{
	build/venv/bin/python - "$1" <<'PYTHON'
import sys
import xml.etree.ElementTree as tree

passed = 0
for case in tree.parse(sys.argv[1]).iter("testcase"):
    name = "%s %s" % (case.get("classname"), case.get("name"))
    skipped = case.find("skipped")
    broken = case.find("failure")
    broken = case.find("error") if broken is None else broken
    if broken is not None:
        # The message's end: of another program's output that says why.
        why = " ".join(broken.get("message", "").split())
        print("fail", name, why[-400:] or "no reason given", sep="\t")
    elif skipped is not None:
        why = " ".join(skipped.get("message", "").split())
        print("skip", name, why or "no reason given", sep="\t")
    else:
        passed += 1
print("pass", passed, "", sep="\t")
PYTHON
}

# tell_junit NAME FILE LOG
tell_junit()
{
	local what case why before=$failed
	while IFS=$'\t' read -r what case why; do
		case $what in
		fail) tell_fail "$1: $case: $why" ;;
		skip) tell_skip "$1: $case" "$why" ;;
		pass) tell_pass "$case" "$1" ;;
		esac
	done < <(count_junit "$2")
	[ "$failed" = "$before" ] || tail -n 60 "$3" | sed 's/^/            | /'
}

# tell_program NUMBER NAME LIMIT LOG [JUNIT]: what it came to.
tell_program()
{
	local name=$2 log=$4 rc took before=$failed what
	read -r rc took <"$scratch/$1.rc"
	[ "${took:-0}" -lt 5 ] || name+=" ($took s)"
	[ ! -e "$scratch/$1.left" ] ||
		tell_fail "$name: left processes behind" "$log"
	[ ! -e "$scratch/$1.more" ] ||
		tell_fail "$name: left more behind" "$scratch/$1.more"
	what="exit code $rc"
	[ "$rc" -lt 128 ] || what="signal $((rc - 128))"
	case $rc in
	124 | 137) what="took longer than $3 s, or was killed" ;;
	esac
	if [ -n "${5:-}" ] && [ -f "$5" ]; then
		tell_junit "$name" "$5" "$log"
		[ "$rc" = 0 ] || [ "$failed" -gt "$before" ] ||
			tell_fail "$name: $what" "$log"
	elif grep -qE '^1\.\.[0-9]+$' "$log"; then
		count_tap "$name" "$log" ||
			tell_fail "$name: stopped early ($what)" "$log"
		[ "$rc" = 0 ] || [ "$failed" -gt "$before" ] ||
			tell_fail "$name: $what" "$log"
	elif [ "$rc" = 0 ]; then
		tell_pass 1 "$name"
	elif [ "$rc" = 77 ]; then
		tell_skip "$name" "$(tail -n 1 "$log")"
	else
		tell_fail "$name: $what" "$log"
	fi
}

# ---- running ----

# Does a process of this group still run?  Orphans that nobody has waited for
# are dead: not every container's first process does.
group_lives()
{
	local stat line state pgrp
	kill -0 -- "-$1" 2>/dev/null || return 1
	for stat in /proc/[0-9]*/stat; do
		{ read -r line <"$stat"; } 2>/dev/null || continue
		read -r state _ pgrp _ <<<"${line##*) }"
		[ "$pgrp" = "$1" ] && [[ $state != [ZX] ]] && return 0
	done
	return 1
}

# left_behind FOLDER: processes, wherever they went, whose environment names it;
# sockets in it that are open; files beside those that a killed producer leaves;
# and shared memory with a name of ours that is newer than FOLDER/begun.  It may
# have been there before, and a folder of sockets may stand there at any time.
left_behind()
{
	local environ process
	while IFS= read -r environ; do
		process=${environ%/environ}
		printf 'process %s: %s\n' "${process#/proc/}" \
			"$(tr '\0' ' ' 2>/dev/null <"$process/cmdline")"
	done < <(grep -lsaF "$1/" /proc/[0-9]*/environ)
	grep -F "$1/" /proc/net/unix 2>/dev/null
	find "$1/run" -mindepth 1 ! -name '*.bus' ! -name '*.door' \
		! -name '*.lock' ! -name '*.log' ! -name '*.readers' 2>/dev/null
	find "${shared_memory:-/dev/shm}" -maxdepth 1 -type f -user "$(id -u)" \
		-name '*tsock*' -cnewer "$1/begun" 2>/dev/null
}

# what_stays FOLDER [TENTHS]: what is still left behind after 5 s.  A process
# that nobody waited for, as in a shell's <(...), may be just about to end.
what_stays()
{
	local left i
	for ((i = ${2:-50}; i > 0; i--)); do
		left=$(left_behind "$1")
		[ -n "$left" ] || return 0
		sleep 0.1
	done
	printf '%s\n' "$left"
}

# note_cpu WHAT: the CPU seconds of all that this shell has waited for.
note_cpu()
{
	local times=$scratch/times-$BASHPID
	times >"$times"
	awk -v what="$suite: $1" 'NR == 2 {
		for (i = 1; i <= 2; i++) {
			split($i, part, "m")
			sum += part[1] * 60 + part[2]
		}
		printf "%8.2f  %s\n", sum, what
	}' "$times" >>"$logs/cpu"
}

# one_program NUMBER NAME LOG COMMAND...: in a shell of its own.
one_program()
{
	local number=$1 name=$2 log=$3 temp=$scratch/$1 group rc begun=$SECONDS
	shift 3
	trap - EXIT
	mkdir -m 700 "$temp" "$temp/run" "$temp/tmp" "$temp/cache"
	touch "$temp/begun"
	TSOCK_DIR=$temp/run TMPDIR=$temp/tmp XDG_CACHE_HOME=$temp/cache \
		CMOCKA_MESSAGE_OUTPUT=tap \
		timeout -k 10 "$limit" "${prefix[@]}" "$@" \
		>"$log" 2>&1 </dev/null &
	group=$!
	# shellcheck disable=SC2064 # now
	trap "kill -9 -- -$group 2>/dev/null; exit 130" TERM INT HUP
	wait "$group"
	rc=$?
	# timeout leads a process group; processes still in it were left behind.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		group_lives "$group" || break
		sleep 0.1
	done
	if group_lives "$group"; then
		kill -9 -- "-$group" 2>/dev/null
		touch "$scratch/$number.left"
	fi
	what_stays "$temp" >"$scratch/$number.more"
	[ -s "$scratch/$number.more" ] || rm "$scratch/$number.more"
	rm -rf "$temp"
	note_cpu "$name"
	echo "$rc $((SECONDS - begun))" >"$scratch/$number.rc.new"
	mv "$scratch/$number.rc.new" "$scratch/$number.rc"
}

# Forget the programs that have ended.
reap()
{
	local still=() number
	for number in "${running[@]}"; do
		[ ! -f "$scratch/$number.rc" ] || continue
		kill -0 "$(cat "$scratch/$number.pid")" 2>/dev/null || {
			# Its shell was killed: nobody else would say so.
			[ -f "$scratch/$number.rc" ] ||
				echo 137 0 >"$scratch/$number.rc"
			continue
		}
		still+=("$number")
	done
	running=("${still[@]}")
	tell_what_is_due
}

# wait_for_places N: until fewer than N programs run.
wait_for_places()
{
	reap
	while [ ${#running[@]} -ge "$1" ]; do
		wait -n 2>/dev/null
		reap
	done
}

# run_program NAME COMMAND...; $junit names the file in which pytest counts.
run_program()
{
	local name=$1 log
	shift
	wait_for_places "$at_once"
	runs=$((runs + 1))
	log=$logs/$(printf %s "$name" | tr -c 'A-Za-z0-9_.-' _).log
	: >"$log"
	one_program $runs "$name" "$log" "$@" &
	echo $! >"$scratch/$runs.pid"
	running+=("$runs")
	later tell_program $runs "$name" "$limit" "$log" "${junit:-}"
}

finish_programs()
{
	wait_for_places 1
}

stop_programs()
{
	local number
	for number in "${running[@]}"; do
		kill "$(cat "$scratch/$number.pid")" 2>/dev/null
	done
	wait
}
