#!/bin/bash
# SPDX-License-Identifier: MIT
# demo.sh - two jobs that share a producer, the same two that don't, and proof
# that each saw everything.
#
# `make demo` runs it.  A producer decodes a folder of JPEG files into shared
# memory, once.  A consumer with batches of 48 joins, and two seconds later one
# with batches of 100.  Both count what they see, and hash every byte.  Then the
# same two read the same epochs again, each from a producer of its own.
#
#   DEMO_ROOT=DIR     an ImageNet-style folder (DIR/train/CLASS/*.JPEG);
#                     without it, a small set of made-up images is used
#   DEMO_EPOCHS=N     epochs that each consumer reads, 2 or more (by the
#                     number of CPUs; with DEMO_ROOT 2)
set -u
B=${B:-build}
producer=$B/bin/tsock-producer
seen=$B/examples/seen
work=$(mktemp -d "${TMPDIR:-/tmp}/tsock-demo-XXXXXX") || exit 1
export TSOCK_DIR=$work/run
mkdir -m 700 "$TSOCK_DIR"
started=()

cleanup()
{
	trap '' INT TERM HUP
	[ ${#started[@]} = 0 ] || kill "${started[@]}" 2>/dev/null
	[ ${#started[@]} = 0 ] || wait "${started[@]}" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

c_p='' c_a='' c_b='' c_0=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
	c_p=$'\033[36m' c_a=$'\033[32m' c_b=$'\033[33m' c_0=$'\033[0m'
fi

# What a line says, shorter: the label says who.
shorten()
{
	sed -uE 's/^tsock-producer: [-0-9]+ [:0-9]+ (info: )?//
		s/^[a-z0-9-]+, batches of [0-9]+: //
		s/: [0-9]+ samples, [0-9]+ different of ([0-9]+), each exactly/: each of \1 exactly/
		s/; checksum /, bytes /; s/; ([0-9]+) samples/, \1 samples/; s, samples/s$,/s,'
}

# Keep the lines, and show them with who says it before each.
label()
{
	tee "$work/$1" | shorten | stdbuf -oL fold -s -w 68 | while IFS= read -r line; do
		printf '%s%-9s|%s %s\n' "$2" "$1" "$c_0" "$line"
	done
	touch "$work/$1.done"
}

say()
{
	printf '\n%s\n' "$*"
}

# --- data ---

root=${DEMO_ROOT:-}
if [ -z "$root" ]; then
	root=$work/set
	say 'Making 1,500 JPEG files from a seed: 15 classes, several sizes and
samplings.'
	"$B/bench/mkdata" "$root" --classes 15 --images 100 --val 2 --seed 1 ||
		exit 1
	# Each half takes a few seconds everywhere.
	cpus=$(nproc)
	epochs=${DEMO_EPOCHS:-$((cpus < 4 ? 4 : cpus < 32 ? cpus + 1 : 32))}
else
	epochs=${DEMO_EPOCHS:-2}
fi
# The first is left out of the rates.
[ "$epochs" -ge 2 ] || epochs=2

# --- the processes ---

# produce NAME LABEL COLOUR OPTION...: start a producer, wait until it is there.
produce()
{
	local name=$1 label=$2 colour=$3
	shift 3
	"$producer" --dataset imagenet --root "$root" --cache-dir "$work/cache" \
		--name "$name" "$@" > >(label "$label" "$colour") 2>&1 &
	pid=$!
	started+=("$pid")
	until [ -S "$TSOCK_DIR/$name.door" ]; do
		if ! kill -0 "$pid" 2>/dev/null; then
			sleep 0.5
			exit 1
		fi
		sleep 0.1
	done
}

# consume NAME BATCH LABEL COLOUR: in the background.
consume()
{
	"$seen" "$1" "$2" "$epochs" > >(label "$3" "$4") 2>&1 &
	pid=$!
	started+=("$pid")
}

# User and system time of a process so far, in clock ticks.
ticks()
{
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	# shellcheck disable=SC2086 # words are wanted
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

failed=0

# end PID...: wait for consumers.
end()
{
	local one
	for one; do
		wait "$one" || failed=1
	done
}

# stop PID...: end producers.
stop()
{
	local one
	kill "$@"
	end "$@"
	started=()
}

say "tsock-producer --dataset imagenet --join-window 1500 \\
  --root $root"
produce imagenet producer "$c_p" --join-window 1500
shared=$pid
say "The first consumer joins: batches of 48, $epochs epochs."
consume imagenet 48 'batch 48' "$c_a"
first=$pid
# Not by the clock: it would be through on a fast machine.
until grep -q ' joins: batch size 48' "$work/producer"; do
	kill -0 "$first" 2>/dev/null || break
	sleep 0.02
done
say 'As soon as it reads, the second one: batches of 100.  As long as the first
is not more than the join window (1,500 samples) into an epoch, the second
gets this epoch from its first sample, out of memory, and catches up; else it
begins with the next.'
consume imagenet 100 'batch 100' "$c_b"
end "$first" "$pid"
used_shared=$(ticks "$shared")
stop "$shared"

say 'Now without sharing: the same two at the same time, each from a producer
of its own, as two jobs with two data loaders.'
produce own-48 'own 48' "$c_p"
own_a=$pid
produce own-100 'own 100' "$c_p"
own_b=$pid
consume own-48 48 'alone 48' "$c_a"
first=$pid
consume own-100 100 'alone 100' "$c_b"
end "$first" "$pid"
used_own=$(($(ticks "$own_a") + $(ticks "$own_b")))
stop "$own_a" "$own_b"
for name in producer 'batch 48' 'batch 100' 'alone 48' 'alone 100'; do
	for _ in $(seq 50); do
		[ -e "$work/$name.done" ] && break
		sleep 0.1
	done
done

# --- the proof ---

# "EPOCH CHECKSUM RATE" of every epoch that a consumer proved.
proofs()
{
	grep -v NOT "$work/$1" | sed -n \
		's/.* epoch \([0-9]*\): .*once; checksum \([^;]*\); \([0-9]*\) .*/\1 \2 \3/p' |
		sort
}
for name in 'batch 48' 'batch 100' 'alone 48' 'alone 100'; do
	proofs "$name" >"$work/$name.proofs"
	[ "$(wc -l <"$work/$name.proofs")" = "$epochs" ] || failed=1
done
# Whoever they come from, the bytes of an epoch are the same.
cat "$work"/*.proofs | awk '{ print $1, $2 }' | sort -u >"$work/sums"
[ "$(awk '{ print $1 }' "$work/sums" | uniq -d)" = '' ] || failed=1

# The mean of all epochs but the first: that began before all were there, or
# came in part out of memory.
mean()
{
	sort -n "$work/$1.proofs" | awk 'NR > 1 { n++; s += 1 / $3 }
		END { printf "%.0f", n ? n / s : 0 }'
}
# CPU seconds for N images for each of the two jobs.
each=$((epochs * $(sed -n 's/.*: \([0-9]*\) samples, .*once.*/\1/p' \
	"$work/batch 48" | head -n 1)))
cpu()
{
	awk -v t="$1" -v hz="$(getconf CLK_TCK)" -v n="$each" \
		'BEGIN { printf "%.2f", n ? t / hz / n * 1000 : 0 }'
}

say "Result, of $epochs epochs; images/s without the first"
printf '  %-32s %10s %10s\n' '' shared unshared
printf '  %-32s %10s %10s\n' 'batches of 48, images/s' \
	"$(mean 'batch 48')" "$(mean 'alone 48')"
printf '  %-32s %10s %10s\n' 'batches of 100, images/s' \
	"$(mean 'batch 100')" "$(mean 'alone 100')"
printf '  %-32s %10s %10s\n' 'CPU seconds to give 1,000 to both' \
	"$(cpu "$used_shared")" "$(cpu "$used_own")"
if [ "$failed" = 0 ]; then
	say 'All saw every sample of each of their epochs exactly once, and the same
bytes in the same epochs.'
else
	say 'The proof failed: see above.'
	exit 1
fi
