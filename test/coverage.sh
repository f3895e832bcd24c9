#!/bin/bash
# SPDX-License-Identifier: MIT
# coverage.sh - which lines and branches of lib/ the tests run.
#
# A build of its own (build-coverage/), all programs of test/unit, test/system
# and test/faults, and gcov: a line for each file, the sum, and that of the core
# of the protocol.  A branch counts when it was taken at least once.  Processes
# that end by _exit(), or that another one of the tests kills, write down what
# they ran before; those that are killed while they are stopped don't.
#
#   coverage.sh            all of it
#   coverage.sh FILE...    and the lines of these files that no test runs
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
B=build-coverage
CORE='lib/(ring/(ring|geometry)|wire/msg|consumer/tail|serve/(membership.*'
CORE+='|offers|gate|production|handshake|readers.*|returners|record|messages'
CORE+='|jobs))\.c'
work=$(mktemp -d "${TMPDIR:-/tmp}/coverage-XXXXXX") || exit 1
# The compiler leaves notes of what the Makefile tries out, too.
trap 'rm -rf "$work" "$top"/a--.gcno' EXIT

programs=()
for source in test/system/test_*.c test/faults/test_*.c; do
	programs+=("$B/${source%.c}")
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
gcc -c -o "$work/ends.o" "$work/ends.c" || exit 1
find $B -name '*.gcda' -delete 2>/dev/null
make --no-print-directory -k -j"$(nproc)" B=$B CUDA=0 HARDEN= \
	CFLAGS='-O0 --coverage -fprofile-update=atomic' \
	LDFLAGS="--coverage -Wl,--wrap=_exit,--wrap=kill $work/ends.o" \
	producer unit-tests "${programs[@]}" >"$work/build" 2>&1 || {
	grep -E 'error|Error' "$work/build"
	exit 1
}
export B TSOCK_PRODUCER=$top/$B/bin/tsock-producer
for program in "$B"/test/unit/test_* "${programs[@]}"; do
	mkdir -m 700 "$work/run"
	TSOCK_DIR=$work/run TMPDIR=$work TSOCK_SEEDS=200 TSOCK_KILLS=20 \
		timeout 900 "$program" >"$work/log" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || [ $rc = 77 ] || echo "$program ended with $rc"
	rm -rf "$work/run"
done

cd "$work" || exit 1
# gcov looks for the sources from here.
ln -s "$top/lib" lib
find "$top/$B/obj/lib" -name '*.gcda' | while read -r data; do
	gcov -b -p -s "$top" -o "$(dirname "$data")" "$data" 2>/dev/null
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
	}' summary
for file in "$@"; do
	echo "== $file"
	grep -h '#####:' ./*"${file//\//#}".gcov | sed 's/^ *#####: *//'
done
