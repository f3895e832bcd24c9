#!/bin/bash
# SPDX-License-Identifier: MIT
# left_behind.sh - what a test program leaves behind is found: a process and a
# file that stay; not a process that is just ending, nor another program's.
set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=test/programs.bash
. test/programs.bash

work=$(mktemp -d) || exit 1
others=()
cleanup()
{
	kill "${others[@]}" 2>/dev/null
	wait
	rm -rf "$work"
}
trap cleanup EXIT

broken()
{
	echo "left_behind.sh: $1"
	exit 1
}

# run_in NUMBER SECONDS: a process that has this program's environment.
run_in()
{
	mkdir -p "$work/$1/run"
	TSOCK_DIR=$work/$1/run sleep "$2" &
}

run_in 37 1000
others+=($!)
run_in 3 1
[ -z "$(what_stays "$work/3" 600)" ] ||
	broken 'a process that ended, or another program, was left behind'
what_stays "$work/37" 2 | grep -q "^process ${others[0]}: sleep 1000" ||
	broken 'a process that stays was not found'
touch "$work/3/run/file"
stays=$(what_stays "$work/3" 2)
grep -qxF "$work/3/run/file" <<<"$stays" || broken "a file that stays was not found, but: $stays"
