#!/bin/bash
# demo.sh - one producer, two consumers, and proof that both saw everything.
#
# `make demo` runs it.  A producer decodes a folder of JPEG files into shared
# memory, once.  A consumer with batches of 48 joins, and two seconds later one
# with batches of 100.  Both count what they see, and hash every byte.
#
#   DEMO_ROOT=DIR     an ImageNet-style folder (DIR/train/CLASS/*.JPEG);
#                     without it, a small set of made-up images is used
#   DEMO_EPOCHS=N     epochs that each consumer reads (by the number of CPUs;
#                     with DEMO_ROOT 1)
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

# Put who says it before every line, and keep the lines.
label()
{
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$work/$1"
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
	# So that it takes about a quarter of a minute everywhere.
	cpus=$(nproc)
	epochs=${DEMO_EPOCHS:-$((cpus < 32 ? 1 + 2 * cpus : 64))}
else
	epochs=${DEMO_EPOCHS:-1}
fi

# --- the three processes ---

say "tsock-producer --dataset imagenet --root $root \
--join-window 1500"
"$producer" --dataset imagenet --root "$root" --cache "$work/cache" \
	--join-window 1500 > >(label producer "$c_p") 2>&1 &
producer_pid=$!
started+=("$producer_pid")
until [ -S "$TSOCK_DIR/imagenet.door" ]; do
	if ! kill -0 "$producer_pid" 2>/dev/null; then
		sleep 0.5
		exit 1
	fi
	sleep 0.1
done

# consume BATCH COLOUR: in the background.
consume()
{
	"$seen" imagenet "$1" "$epochs" > >(label "batch $1" "$2") 2>&1 &
	started+=("$!")
}

say "The first consumer joins: batches of 48, $epochs epoch(s)."
consume 48 "$c_a"
first=$!
sleep 2
say 'Two seconds later the second one: batches of 100.  As long as the first is
not more than the join window (1,500 samples) into an epoch, the second gets
this epoch from its first sample, out of memory, and catches up; else it begins
with the next.'
consume 100 "$c_b"
second=$!

# --- what it cost ---

# User and system time of a process so far, in clock ticks.
ticks()
{
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	# shellcheck disable=SC2086 # words are wanted
	set -- ${stat##*) }
	echo $((${12} + ${13}))
}

wait "$first"
code_first=$?
wait "$second"
code_second=$?
used=$(ticks "$producer_pid")
kill "$producer_pid"
wait "$producer_pid"
code_producer=$?
started=()
for name in producer 'batch 48' 'batch 100'; do
	for _ in $(seq 50); do
		[ -e "$work/$name.done" ] && break
		sleep 0.1
	done
done

# --- the proof ---

# "EPOCH CHECKSUM RATE" of every epoch that a consumer proved.
proofs()
{
	grep -v NOT "$work/batch $1" | sed -n \
		's/.* epoch \([0-9]*\): .*once; checksum \([^;]*\); \([0-9]*\) .*/\1 \2 \3/p' |
		sort
}
proofs 48 >"$work/a"
proofs 100 >"$work/b"
join -j 1 "$work/a" "$work/b" >"$work/both"
same=$(awk '$2 == $4' "$work/both" | wc -l)
other=$(awk '$2 != $4' "$work/both" | wc -l)
mean()
{
	awk '{ n++; s += 1 / $3 } END { printf "%.0f", n ? n / s : 0 }' "$1"
}
made=$(sed -n 's/.*made \([0-9,]*\) samples.*/\1/p' "$work/producer" | tr -d ,)

say 'Result'
printf '  batches of 48     %6s images/s, %s epochs, each sample exactly once\n' \
	"$(mean "$work/a")" "$(wc -l <"$work/a")"
printf '  batches of 100    %6s images/s, %s epochs, each sample exactly once\n' \
	"$(mean "$work/b")" "$(wc -l <"$work/b")"
printf '  the same bytes    in %s of %s epochs that both had\n' "$same" \
	"$((same + other))"
awk -v t="${used:-0}" -v hz="$(getconf CLK_TCK)" -v n="${made:-0}" 'BEGIN {
	if (n) printf "  producer          %.2f CPU seconds per 1,000 images made" \
		" (%d made, for both)\n", t / hz / n * 1000, n }'
if [ $code_first = 0 ] && [ $code_second = 0 ] && [ $code_producer = 0 ] &&
	[ "$other" = 0 ] && [ "$(wc -l <"$work/a")" = "$epochs" ] &&
	[ "$(wc -l <"$work/b")" = "$epochs" ]; then
	say 'Both consumers saw every sample of each of their epochs exactly once.'
else
	say "The proof failed (exit codes: producer $code_producer, consumers \
$code_first and $code_second)."
	exit 1
fi
