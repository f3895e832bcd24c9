#!/bin/bash
# SPDX-License-Identifier: MIT
# mutants.sh - plant the faults of test/*/*.mutants, one at a time, in a copy of
# the sources; the tests must find every one.  Faults lie beside the test that
# has to find them, in a file of its name: those of test/unit/test_ring.c in
# test/unit/test_ring.mutants.  A file of another name is left to all tests of
# the GPU part.  A fault is an edit of a line, or of several:
#
#   fault NAME             what is wrong then
#   in FILE [after TEXT]   where: the first place, after the first TEXT if given
#   - OLD                  a part of one line, which must be there
#   + NEW                  what comes in its place
#   by PROGRAM             another test that may find it: unit/test_membership,
#                          gpu/test_x, system/test_y, system/cli.sh
#
# Lines beginning with in, -, + and by may come again within one fault.
#
#   test/mutants.sh          all of them
#   test/mutants.sh TEXT     those with TEXT in their names
#   test/mutants.sh --check  build nothing: is each line that a fault edits, and
#                            each program that it names, still there?
#   test/mutants.sh --self-test
#                            does --check find what is planted?
#
# Needs no GPU: everything runs on the simulated runtime.  A fault is caught
# when a program fails, says nothing new for LIMIT seconds (60), or runs for ten
# times as long.  Exits with 0 if all were caught.  JOBS at a time (one per CPU,
# at most 4).  Never touches the sources themselves.
set -u
cd "$(dirname "$0")/.." || exit 1
unset B O SAN CUDA WERROR MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS
unset TSOCK_DIR XDG_RUNTIME_DIR CUDA_VISIBLE_DEVICES "${!SIMCUDA_@}"
LC_ALL=C
export LC_ALL

# program_of FILE: the program whose faults lie in it; nothing where that is no
# single one.
program_of()
{
	local program=${1#test/}
	program=${program%.mutants}
	case $program in
	gpu/all | /*) ;;
	*) echo "$program" ;;
	esac
}

# faults FILE...: all of them in one list, each with its first program.
faults()
{
	local file
	for file; do
		awk -v program="$(program_of "$file")" '{ print }
			/^fault / && program { print "by " program }' "$file"
	done
}

# check LIST...: a line for each fault that can't be planted; 1 if there are any.
# Edits of a fault are made in memory, one after the other, as edit() does.
check()
{
	awk '
	function stale(what) {
		print FILENAME ":" FNR ": fault " name ": " what
		bad = 1
	}
	function is_there(path,    line, rc) {
		rc = (getline line <path)
		close(path)
		return rc >= 0
	}
	function load(path,    line, n) {
		if (path in lines)
			return
		n = 0
		while ((getline line <path) > 0)
			text[path, ++n] = line
		close(path)
		lines[path] = n
	}
	function plant(path, after, old, new,    i, at, seen) {
		load(path)
		seen = after == ""
		for (i = 1; i <= lines[path]; i++) {
			seen = seen || index(text[path, i], after)
			if (!seen || !(at = index(text[path, i], old)))
				continue
			undo[++edits] = path SUBSEP i
			was[edits] = text[path, i]
			text[path, i] = substr(was[edits], 1, at - 1) new \
				substr(was[edits], at + length(old))
			return
		}
		stale(path (seen ? " has no longer: " old \
			: " has no longer the line to look after: " after))
	}
	function run_by(program) {
		if (program !~ /\.sh$/ && !is_there(program ".c") &&
		    !is_there(program ".cpp") || program ~ /\.sh$/ &&
		    !is_there(program))
			stale("there is no " program)
	}
	/^fault / {
		for (; edits; edits--)
			text[undo[edits]] = was[edits]
		name = substr($0, 7)
		if (named[name]++)
			stale("there are two of this name")
	}
	/^in / {
		file = substr($0, 4)
		after = ""
		if (i = index(file, " after ")) {
			after = substr(file, i + 7)
			file = substr(file, 1, i - 1)
		}
	}
	/^- / { old = substr($0, 3) }
	/^\+/ { plant(file, after, old, substr($0, 3)) }
	FNR == 1 && FILENAME ~ /\.mutants$/ && FILENAME !~ /gpu\/all\./ {
		run_by(substr(FILENAME, 1, length(FILENAME) - 8))
	}
	/^by / { run_by("test/" substr($0, 4)) }
	END { exit bad }' "$@"
}

# Each kind of what --check finds, and a fault of two edits in which there is
# nothing to find.
self_test()
{
	local found dir
	dir=$(mktemp -d /tmp/tsock-XXXXXX) || return
	printf '%s\n' 'fault beside a program that is gone' 'in LICENSE' \
		'- MIT' '+ x' >"$dir/test_gone.mutants"
	found=$(check /dev/stdin "$dir/test_gone.mutants" <<-'END'
		fault a line that is gone
		in LICENSE
		- no such words
		+ x
		fault a place that is gone
		in LICENSE after no such place
		- MIT License
		+ x
		fault a line that stands above the place
		in LICENSE after Permission is hereby
		- MIT License
		+ x
		fault a program that is gone
		in LICENSE
		- MIT License
		+ x
		by unit/test_that_is_gone
		fault twice
		in LICENSE
		- MIT License
		+ GNU License
		- GNU License
		+
		by system/cli.sh
		by unit/test_ring
		fault twice
		in LICENSE
		- MIT License
		+ x
		fault what an edit before has changed
		in LICENSE
		- MIT License
		+ GNU License
		- MIT License
		+ x
	END
	) && return 1
	rm -r "$dir"
	found=$(sed 's/^[^:]*:[0-9]*: fault //; s/:.*//' <<<"$found")
	[ "$found" = "a line that is gone
a place that is gone
a line that stands above the place
a program that is gone
twice
what an edit before has changed
beside a program that is gone" ] || {
		printf 'not as planted:\n%s\n' "$found"
		return 1
	}
}

case ${1:-} in
--check)
	check test/*/*.mutants
	exit
	;;
--self-test)
	self_test
	exit
	;;
esac
only=${1:-}
limit=${LIMIT:-60}
cpus=$(nproc)
jobs=${JOBS:-$((cpus < 4 ? cpus : 4))}
work=$PWD/build-mutants
scratch=$(mktemp -d /tmp/tsock-XXXXXX) || exit 1
pids=()
list=$scratch/list
faults test/*/*.mutants >"$list"

cleanup()
{
	local pid
	for pid in "${pids[@]}"; do
		kill "$pid" 2>/dev/null
	done
	wait
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# named_by NUMBER: the programs that a fault names.
named_by()
{
	awk -v want="$1" '/^fault / { n++ }
		n == want && /^by / { print "-", $2 }' "$list"
}

# suites NUMBER: what runs for a fault, in this order: environment, program.
# For number 0, everything that runs for any of those that are tried.
suites()
{
	local i
	if [ "$1" = 0 ]; then
		for ((i = 1; i <= total; i++)); do
			[[ $(name_of "$i") != *"$only"* ]] || suites "$i"
		done | awk '!seen[$0]++'
	elif named_by "$1" | grep -q .; then
		named_by "$1"
	else
		gpu_suites
	fi
}

gpu_suites()
{
	local t
	for t in test_gpu_work test_gpu test_gpu_pin test_gpu_errors \
		test_gpu_nccl; do
		echo "- unit/$t"
	done
	for t in "$work"/clean/test/gpu/test_*.c; do
		t=gpu/$(basename "$t" .c)
		echo "- $t"
	done
	echo "- unit/test_membership_views"
	for t in "$work"/clean/test/gpu/test_*.c; do
		t=gpu/$(basename "$t" .c)
		echo "SIMCUDA_MODE=late,SIMCUDA_LATE_MS=30 $t"
		echo "SIMCUDA_MODE=random,SIMCUDA_SEED=2 $t"
	done
}

# build TREE LOG JOBS TARGET...
build()
{
	local tree=$1 log=$2 jobs=$3
	shift 3
	make -C "$tree" -j"$jobs" CUDA=sim B=build "$@" >"$log" 2>&1
}

# targets PROGRAM: what make builds before it runs.
targets()
{
	case $1 in
	gpu/* | unit/test_gpu_nccl)
		echo "build/test/$1 build/test/simcuda/libnccl_sim.so"
		;;
	*.sh) echo "producer build/bench/mkdata build/examples/seen" ;;
	system/*) echo "build/test/$1 producer" ;;
	*) echo "build/test/$1" ;;
	esac
}

# first_failure LOG: the test case.
first_failure()
{
	sed -n 's/^\[  FAILED  \] \([a-z][a-z0-9_]*\)$/\1/p
		s/^not ok [0-9]* - //p' "$1" | head -n 1
}

# run TREE SCRATCH NUMBER: 0 if all pass that run for this fault; else says in
# SCRATCH/why what failed first.  A program is built when its turn comes: most
# faults are found by the first.  2: the fault does not compile.
run()
{
	local tree=$1 at=$2 env program rc pid end last failed path said size
	while read -r env program; do
		path=build/test/$program
		[[ $program != *.sh ]] || path=test/$program
		# shellcheck disable=SC2046 # a list
		build "$tree" "$at/log" 1 $(targets "$program") || {
			echo "does not compile: $(grep -m1 error: "$at/log")" \
				>"$at/why"
			return 2
		}
		rm -rf "$at/run"
		mkdir -m 700 "$at/run"
		[ "$env" != - ] || env=
		# A session of its own: all of it can be ended.
		# shellcheck disable=SC2086 # a list
		(cd "$tree" && exec setsid env ${env//,/ } \
			TSOCK_DIR="$at/run" TMPDIR="$at/run" B=build \
			TSOCK_NCCL="$tree/build/test/simcuda/libnccl_sim.so" \
			TSOCK_PRODUCER="$tree/build/bin/tsock-producer" \
			"$path") \
			>"$at/log" 2>&1 </dev/null &
		pid=$!
		last=$((SECONDS + 10 * limit))
		said=-1
		failed=
		while [ -z "$failed" ] && kill -0 $pid 2>/dev/null; do
			failed=$(first_failure "$at/log")
			# On a busy machine a long program takes minutes.
			size=$(stat -c %s "$at/log")
			[ "$size" = "$said" ] || end=$((SECONDS + limit))
			said=$size
			[ $SECONDS -lt $end ] && [ $SECONDS -lt $last ] ||
				failed=${failed:-hung}
			[ -n "$failed" ] || sleep 0.1
		done
		[ -z "$failed" ] || kill -9 -- -$pid 2>/dev/null
		wait $pid 2>/dev/null
		rc=$?
		kill -9 -- -$pid 2>/dev/null
		[ -n "$failed" ] || [ $rc = 0 ] || {
			failed=$(first_failure "$at/log")
			failed=${failed:-"ended with status $rc"}
		}
		[ -z "$failed" ] || {
			echo "${program#*/}: $failed" >"$at/why"
			return 1
		}
	done < <(suites "$3")
}

# --------------------------------------------------------------------------
# Planting

# edit FILE AFTER OLD NEW: one place, or fail.
edit()
{
	AFTER=$2 OLD=$3 NEW=$4 awk '
	BEGIN { after = ENVIRON["AFTER"]; old = ENVIRON["OLD"] }
	!seen && (after == "" || index($0, after)) { seen = 1 }
	seen && !done && (i = index($0, old)) {
		$0 = substr($0, 1, i - 1) ENVIRON["NEW"] \
			substr($0, i + length(old))
		done = 1
	}
	{ print }
	END { exit !done }' "$1" >"$1.new" && mv "$1.new" "$1"
}

# plant NUMBER TREE
plant()
{
	local n=0 line file='' after='' old='' rest
	while IFS= read -r line; do
		case $line in
		'fault '*) n=$((n + 1)) ;;
		esac
		[ $n = "$1" ] || continue
		case $line in
		'in '*)
			rest=${line#in }
			file=${rest%% after *}
			after=
			[ "$file" = "$rest" ] || after=${rest#* after }
			;;
		'- '*) old=${line#- } ;;
		+ | '+ '*)
			line=${line#+}
			edit "$2/$file" "$after" "$old" "${line# }" || {
				echo "$file has no longer: $old" >&2
				return 1
			}
			;;
		esac
	done <"$list"
}

name_of()
{
	sed -n 's/^fault //p' "$list" | sed -n "$1p"
}

# one NUMBER TREE SCRATCH: a line of the table, and a word for the score.
# Number 0 is no fault: all must pass then.
one()
{
	local name file result rc why=""
	[ "$1" = 0 ] || name=$(name_of "$1")
	if [ "$1" = 0 ]; then
		result=ok
		name="none: the sources as they are"
		run "$2" "$3" 0 || result=BROKEN why=$(cat "$3/why")
	elif ! plant "$1" "$2" 2>"$3/why"; then
		result=STALE
		why=$(cat "$3/why")
	else
		run "$2" "$3" "$1"
		rc=$?
		why=$(cat "$3/why" 2>/dev/null)
		case $rc in
		0) result=SURVIVED why="nothing" ;;
		2) result=STALE ;;
		*) result=caught ;;
		esac
	fi
	# Not with the old time: make has to see it.
	while IFS= read -r file; do
		cmp -s "$work/clean/$file" "$2/$file" ||
			cp "$work/clean/$file" "$2/$file"
	done < <(grep -o '^in [^ ]*' "$list" | cut -c4- | sort -u)
	cp "$3/log" "$work/logs/$1" 2>/dev/null
	printf '%-9s %-56s %s\n' "$result" "$name" "$why"
	echo $result >>"$scratch/results"
}

worker()
{
	local i at=$scratch/$1
	mkdir -m 700 "$at"
	for ((i = 0; i <= total; i++)); do
		[[ $i = 0 || $(name_of $i) == *"$only"* ]] || continue
		# Whoever makes the folder first takes it.
		mkdir "$scratch/taken-$i" 2>/dev/null || continue
		one $i "$work/$1" "$at"
	done
}

# --------------------------------------------------------------------------

total=$(grep -c '^fault ' "$list")
begun=$SECONDS
mkdir -p "$work/1"
# Others may edit the sources meanwhile.
rm -rf "$work/clean" "$work/logs"
mkdir "$work/clean" "$work/logs"
cp -a Makefile include lib producer examples test bench "$work/clean/"
# Only what differs, with a new time: a fault may have been built there last.
(cd "$work/clean" && find . -type f) | while IFS= read -r file; do
	cmp -s "$work/clean/$file" "$work/1/$file" && continue
	mkdir -p "$work/1/${file%/*}"
	cp "$work/clean/$file" "$work/1/$file"
done
(cd "$work/1" && find . -path ./build -prune -o -type f -print) |
	while IFS= read -r file; do
		[ -e "$work/clean/$file" ] || rm "$work/1/$file"
	done
programs=$(suites 0 | sed '/\.sh$/d; s/.* /build\/test\//' | sort -u |
	tr '\n' ' ')
programs+='build/test/simcuda/libnccl_sim.so build/bench/mkdata '
programs+=build/examples/seen
# shellcheck disable=SC2086 # a list
build "$work/1" "$scratch/log" "$jobs" producer $programs || {
	tail -n 20 "$scratch/log" >&2
	echo "test/mutants.sh: the sources don't compile" >&2
	exit 1
}
for ((j = 2; j <= jobs; j++)); do
	rm -rf "${work:?}/$j"
	cp -a "$work/1" "$work/$j"
done
printf '%-9s %-56s %s\n' result fault "found by"
for ((j = 1; j <= jobs; j++)); do
	worker $j &
	pids+=($!)
done
wait
caught=$(grep -c caught "$scratch/results")
tried=$(($(grep -c . "$scratch/results") - 1))
echo "$caught of $tried planted faults caught, in $((SECONDS - begun)) s"
[ "$tried" -gt 0 ] && [ "$caught" = "$tried" ] &&
	grep -q ok "$scratch/results"
