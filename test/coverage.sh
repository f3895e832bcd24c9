#!/bin/bash
# SPDX-License-Identifier: MIT
# coverage.sh - which lines and branches of lib/ the tests run.
#
# Two builds of their own and gcov: all programs of test/unit, test/system and
# test/faults without CUDA (build-coverage/), and those of the GPU part with the
# simulated one (build-coverage-sim/).  What CUDA has no influence on is the same
# object in both, so its counts are those of all programs.  There is a line for
# each file, the sum, and that of the core of the protocol.
#
# A branch counts when it was taken at least once, by these rules:
# - Functions that are always inlined are compiled as functions
#   (-Dalways_inline=unused): gcov counts the branches of each copy, and of those
#   of a copy whose arguments are constants one alone can be taken.
#   lib/convert/x86/avx2.c has 36 branches, and its copies 136.
# - assert() is left out (-DNDEBUG): no test can make false what it states.  What
#   other processes or files say is never checked by it.
#
# Processes that end by _exit(), or that another one of the tests kills, write
# down what they ran before; those that are killed while they are stopped don't.
#
#   coverage.sh            all of it
#   coverage.sh FILE...    and what no test runs of these files: lines, and, with
#                          their numbers, those of which a branch isn't taken
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
host=build-coverage sim=build-coverage-sim
CORE='lib/(ring/(ring|geometry)|wire/msg|consumer/tail|serve/(membership.*'
CORE+='|offers|gate|production|handshake|readers.*|returners|record|messages'
CORE+='|jobs|grant))\.c'
work=$(mktemp -d "${TMPDIR:-/tmp}/coverage-XXXXXX") || exit 1
# The compiler leaves notes of what the Makefile tries out, too.
trap 'rm -rf "$work" "$top"/a--.gcno' EXIT

programs=() gpu_programs=()
for source in test/system/test_*.c test/faults/test_*.c; do
	programs+=("$host/${source%.c}")
done
for source in test/unit/test_gpu*.c test/gpu/test_*.c; do
	gpu_programs+=("$sim/${source%.c}")
done
# Processes of the tests are forked, and end in ways that gcov knows nothing of.
cat >"$work/ends.c" <<'EOT'
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

void __gcov_dump(void);
void __gcov_reset(void);
void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);

void __wrap__exit(int status)
{
	__gcov_dump();
	__real__exit(status);
}

static void write_down(int sig)
{
	(void)sig;
	__gcov_dump();
	__gcov_reset();
}

__attribute__((constructor)) static void prepare(void)
{
	struct sigaction a = { .sa_handler = write_down,
			       .sa_flags = SA_RESTART };

	sigaction(SIGRTMAX, &a, NULL);
}

int __wrap_kill(pid_t pid, int sig)
{
	/* Time to write. */
	if (sig == SIGKILL && pid > 0 && !__real_kill(pid, SIGRTMAX))
		usleep(20000);
	return __real_kill(pid, sig);
}
EOT
gcc -fPIC -c -o "$work/ends.o" "$work/ends.c" || exit 1
find $host $sim -name '*.gcda' -delete 2>/dev/null

flags='-O0 --coverage -fprofile-update=atomic -DNDEBUG -Dalways_inline=unused'
# build FOLDER CUDA TARGET...
build()
{
	make --no-print-directory -k -j"$(nproc)" B="$1" O=$host/obj CUDA="$2" \
		HARDEN= CFLAGS="$flags" \
		LDFLAGS="--coverage -Wl,--wrap=_exit,--wrap=kill $work/ends.o" \
		"${@:3}" >"$work/build" 2>&1 && return
	grep -E 'error|Error' "$work/build"
	exit 1
}

# run_one PROGRAM
run_one()
{
	local folder rc
	folder=$(mktemp -d "$work/run-XXXXXX") || return
	mkdir -m 700 "$folder/run" "$folder/tmp"
	TSOCK_DIR=$folder/run TMPDIR=$folder/tmp TSOCK_SEEDS=200 TSOCK_KILLS=20 \
		timeout 900 "$1" >"$folder/log" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || [ $rc = 77 ] ||
		printf '%s ended with %s:\n%s\n' "$1" $rc \
			"$(grep -v '^profiling:' "$folder/log" | tail -n 9)"
	rm -rf "$folder"
}

# run FOLDER PROGRAM...: as many at once as there are processors.
run()
{
	export B=$1 TSOCK_PRODUCER=$top/$1/bin/tsock-producer work
	export -f run_one
	printf '%s\n' "${@:2}" |
		xargs -P "$(nproc)" -I '{}' bash -c 'run_one "{}"'
}

build $host 0 producer unit-tests "${programs[@]}"
build $sim sim producer "${gpu_programs[@]}" \
	$sim/test/simcuda/libnccl_sim.so
run $host $host/test/unit/test_* "${programs[@]}"
export TSOCK_NCCL=$top/$sim/test/simcuda/libnccl_sim.so
export SIMCUDA_MODE=late SIMCUDA_SEED=1 FANOUT_MODE=late
run $sim "${gpu_programs[@]}"

cd "$work" || exit 1
# gcov looks for the sources from here.
ln -s "$top/lib" lib
find "$top/$host/obj/lib" "$top/$sim/obj/lib" -name '*.gcno' |
	while read -r notes; do
		gcov -b -p -s "$top" -o "$(dirname "$notes")" "$notes" \
			2>/dev/null
	done >summary
awk -v core="^'?(.*/)?$CORE" '
	/^File / { file = $2; gsub(/\047/, "", file) }
	/^Lines executed:/ { split($0, p, /[:% ]+/); lp = p[3]; ln = $NF }
	/^Taken at least once:/ { split($0, p, /[:% ]+/); tp = p[5]; tn = $NF }
	/^(No branches|No calls|Calls executed)/ {
		if ($0 ~ /^No branches/) { tp = 0; tn = 0; next }
		if (file !~ /(^|\/)lib\/.*\.c$/ || seen[file]++) next
		sub(/.*\/lib\//, "lib/", file)
		printf "%6.1f %% of %4d lines %6.1f %% of %4d branches  %s\n", \
			lp, ln, tp, tn, file
		l += lp * ln / 100; L += ln; t += tp * tn / 100; T += tn
		if (file ~ core) {
			cl += lp * ln / 100; CL += ln
			ct += tp * tn / 100; CT += tn
		}
	}
	END {
		printf "%6.1f %% of %d lines, %.1f %% of %d branches: lib/\n", \
			100 * l / L, L, 100 * t / T, T
		printf "%6.1f %% of %d lines, %.1f %% of %d branches: the core of the protocol\n", \
			100 * cl / CL, CL, 100 * ct / CT, CT
		printf "not run in it: %.0f lines, %.0f branches\n", \
			CL - cl, CT - ct
	}' summary
for file in "$@"; do
	echo "== $file"
	awk '/^branch .*(never executed|taken 0%)/ {
			if (told != at)
				print "branch of " at ":" code
			told = at
			next
		}
		/^(branch|call|function)/ { next }
		{
			split($0, part, ":")
			at = part[2] + 0
			code = substr($0, length(part[1] part[2]) + 3)
			sub(/^[ \t]+/, " ", code)
		}
		/^ *#####:/ { print "line " at ":" code; told = at }' \
		./*"${file//\//#}".gcov
done
