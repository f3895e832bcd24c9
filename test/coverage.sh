#!/bin/bash
# SPDX-License-Identifier: MIT
# coverage.sh - which lines and branches of lib/ the unit and system tests run.
#
# A build of its own (build-coverage/), all programs of test/unit and
# test/system, and gcov: a line for each file, the sum, and that of the core of
# the protocol.  A branch counts when it was taken at least once.  Processes
# that are killed or end by _exit() write nothing down, so of what only they run
# nothing counts.
#
#   coverage.sh            all of it
#   coverage.sh FILE...    and the lines of these files that no test runs
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
B=build-coverage
CORE='lib/(ring/ring|ring/geometry|serve/membership.*|serve/offers|wire/msg|consumer/tail|serve/gate|serve/production)\.c'
work=$(mktemp -d "${TMPDIR:-/tmp}/coverage-XXXXXX") || exit 1
# The compiler leaves notes of what the Makefile tries out, too.
trap 'rm -rf "$work" "$top"/a--.gcno' EXIT

systems=()
for source in test/system/test_*.c; do
	systems+=("$B/${source%.c}")
done
find $B -name '*.gcda' -delete 2>/dev/null
make --no-print-directory -k -j"$(nproc)" B=$B CUDA=0 HARDEN= \
	CFLAGS='-O0 --coverage -fprofile-update=atomic' LDFLAGS=--coverage \
	producer unit-tests "${systems[@]}" >"$work/build" 2>&1 || {
	grep -E 'error|Error' "$work/build"
	exit 1
}
export B TSOCK_PRODUCER=$top/$B/bin/tsock-producer
for program in "$B"/test/unit/test_* "$B"/test/system/test_*; do
	mkdir -m 700 "$work/run"
	TSOCK_DIR=$work/run TMPDIR=$work TSOCK_SEEDS=200 TSOCK_KILLS=20 \
		timeout 300 "$program" >"$work/log" 2>&1 </dev/null
	rc=$?
	[ $rc = 0 ] || [ $rc = 77 ] || echo "$program ended with $rc"
	rm -rf "$work/run"
done

cd "$work" || exit 1
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
