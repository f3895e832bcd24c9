#!/bin/bash
# SPDX-License-Identifier: MIT
# left_behind.sh - what a test program leaves behind is found: a process, a file
# and shared memory that stay; not a process that is just ending, nor what is
# another program's.
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

# Shared memory with a name, and what others have there: what is older, and a
# folder of sockets, as for a job of Slurm's.
shared_memory=$work/shm
mkdir -p "$work/5/run" "$shared_memory"
touch "$shared_memory/tsock-old" "$work/5/begun"
# A file system's clock ticks every few milliseconds.
while [ ! "$shared_memory/other" -nt "$work/5/begun" ]; do
	touch "$shared_memory/other"
done
mkdir "$shared_memory/somebody-tsock"
touch "$shared_memory/somebody-tsock/train.bus"
stays=$(what_stays "$work/5" 2)
[ -z "$stays" ] || broken "what others have in shared memory was taken for a program's: $stays"
touch "$shared_memory/tsock-new"
[ "$(what_stays "$work/5" 2)" = "$shared_memory/tsock-new" ] ||
	broken 'shared memory that stays was not found'
