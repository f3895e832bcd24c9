#!/bin/bash
# SPDX-License-Identifier: MIT
# demo.sh - two jobs that share a producer, the same two that don't, and proof
# that each saw everything.
#
# `make demo` runs it.  It installs what a build needs and the machine lacks,
# and builds.  Then a producer decodes a folder of JPEG files into shared
# memory, once: a consumer with batches of 48 joins, and as soon as it reads,
# one with batches of 100.  Both count what they see, and hash every byte.  Then
# the same two read the same epochs again, each from a producer of its own.
#
# Each step is a line; on a terminal the line tells how far the step is.  What
# compilers, producers and consumers say is in $B/demo.log.
#
#   DEMO_ROOT=DIR     an ImageNet-style folder (DIR/train/CLASS/*.JPEG);
#                     without it, a small set of made-up images is used
#   DEMO_EPOCHS=N     epochs that each consumer reads, 2 or more (by the
#                     number of CPUs; with DEMO_ROOT 2)
set -u
B=${B:-build}
producer=$B/bin/tsock-producer
seen=$B/examples/seen
mkdir -p "$B" || exit 1
log=$B/demo.log
: >"$log" || exit 1
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
trap 'echo; exit 130' INT TERM HUP

# --- what is shown ---

tty='' bold='' dim='' plain=''
if [ -t 1 ]; then
	tty=1
	if [ -z "${NO_COLOR:-}" ]; then
		bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'
	fi
fi

# begin NAME TEXT: a step.
begin()
{
	step=$1 text=$2 since=$SECONDS
	echo "== $step: $text" >>"$log"
	[ -n "$tty" ] || { printf '%-9s %s' "$step" "$text" && return; }
	now ''
}

# now TEXT: how far the step is.
now()
{
	[ -n "$tty" ] || return 0
	printf '\r\033[K%s%-9s%s %s%s%s%s' "$bold" "$step" "$plain" "$text" \
		"$dim" "${1:+: $1}" "$plain"
}

# finish [TEXT]: the step is over.
finish()
{
	now ''
	printf '%s, %s s\n' "${1:+: $1}" $((SECONDS - since))
}

fail()
{
	printf '\n\n%s\nThe last lines of %s:\n' "$*" "$log"
	tail -n 20 "$log" | sed 's/^/  /'
	exit 1
}

# run COMMAND...: into the log, the last line of which is shown.
run()
{
	local pid
	"$@" >>"$log" 2>&1 </dev/null &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		now "$(tail -n 1 "$log" | tr -s ' ' | cut -c 1-30)"
		sleep 0.2
	done
	wait "$pid"
}

# label NAME: keep the lines, and log them with the name before each.
label()
{
	tee "$work/$1" | sed -u "s/^/$1 | /" >>"$log"
	touch "$work/$1.done"
}

# --- packages, build, data ---

begin packages 'what a build needs'
if ! test/setup.sh build >>"$log" 2>&1; then
	fail 'Packages are missing.'
fi
added=$(sed -n 's/^installing //p' "$log")
finish "${added:+installed $added}"

parallel=-j$(nproc)
# Who said "make -j4 demo" has chosen.
case ${MAKEFLAGS:-} in *jobserver*) parallel= ;; esac
begin build "library, producer and examples, in $B"
run "${MAKE:-make}" --no-print-directory ${parallel:+"$parallel"} B="$B" all ||
	fail 'The build failed.'
finish

root=${DEMO_ROOT:-}
if [ -z "$root" ]; then
	root=$work/set
	begin data '1,500 JPEG files in 15 classes, from a seed'
	run "$B/bench/mkdata" "$root" --classes 15 --images 100 --val 2 --seed 1 ||
		fail 'The images could not be made.'
	finish
	# Each half takes a few seconds everywhere.
	cpus=$(nproc)
	epochs=${DEMO_EPOCHS:-$((cpus < 4 ? 4 : cpus < 32 ? cpus + 1 : 32))}
else
	epochs=${DEMO_EPOCHS:-2}
fi
# The first is left out of the rates.
[ "$epochs" -ge 2 ] || epochs=2

# --- the processes ---

# produce NAME LABEL OPTION...: start a producer, wait until it is there.
produce()
{
	local name=$1 label=$2
	shift 2
	"$producer" --dataset imagenet --root "$root" --cache-dir "$work/cache" \
		--name "$name" "$@" > >(label "$label") 2>&1 &
	pid=$!
	started+=("$pid")
	until [ -S "$TSOCK_DIR/$name.door" ]; do
		if ! kill -0 "$pid" 2>/dev/null; then
			sleep 0.5
			fail 'The producer ended.'
		fi
		sleep 0.1
	done
}

# consume NAME BATCH LABEL: in the background.
consume()
{
	"$seen" "$1" "$2" "$epochs" > >(label "$3") 2>&1 &
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

# What a consumer said last: "epoch 2, 5,120/s".
progress()
{
	tail -n 1 "$work/$1" 2>/dev/null |
		sed -E -n 's,.*(epoch [0-9]+).* ([0-9]+) samples/s.*,\1 at \2/s,p'
}

# end LABEL PID...: wait for consumers, and show how far the labelled one is.
end()
{
	local label=$1 one
	shift
	for one; do
		while kill -0 "$one" 2>/dev/null; do
			now "$(progress "$label")"
			sleep 0.1
		done
		wait "$one" || failed=1
	done
}

# stop PID...: end producers.
stop()
{
	local one
	kill "$@"
	for one; do
		wait "$one" || failed=1
	done
	started=()
}

begin shared "two jobs, one producer, $epochs epochs"
produce imagenet producer --join-window 1500
shared=$pid
consume imagenet 48 'batch 48'
first=$pid
# Not by the clock: it would be through on a fast machine.
until grep -q ' joins: batch size 48' "$work/producer"; do
	kill -0 "$first" 2>/dev/null || break
	sleep 0.02
done
# As long as the first is not more than the join window (1,500 samples) into an
# epoch, this one gets the epoch from its first sample, out of memory, and
# catches up; else it begins with the next.
consume imagenet 100 'batch 100'
end 'batch 48' "$first" "$pid"
used_shared=$(ticks "$shared")
stop "$shared"
finish

begin unshared 'the same two jobs, a producer each'
produce own-48 'own 48'
own_a=$pid
produce own-100 'own 100'
own_b=$pid
consume own-48 48 'alone 48'
first=$pid
consume own-100 100 'alone 100'
end 'alone 48' "$first" "$pid"
used_own=$(($(ticks "$own_a") + $(ticks "$own_b")))
stop "$own_a" "$own_b"
finish
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

begin proof 'each sample once an epoch, the same bytes in both'
[ "$failed" = 0 ] || fail 'The proof failed.'
finish

printf '\n%s epochs of each; images/s without the first.  Log: %s\n\n' \
	"$epochs" "$log"
printf '  %-32s %10s %10s\n' '' shared unshared
printf '  %-32s %10s %10s\n' 'batches of 48, images/s' \
	"$(mean 'batch 48')" "$(mean 'alone 48')"
printf '  %-32s %10s %10s\n' 'batches of 100, images/s' \
	"$(mean 'batch 100')" "$(mean 'alone 100')"
printf '  %-32s %10s %10s\n' 'CPU seconds to give 1,000 to both' \
	"$(cpu "$used_shared")" "$(cpu "$used_own")"
