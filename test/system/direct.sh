#!/bin/bash
# SPDX-License-Identifier: MIT
# direct.sh - the page cache: with --direct an epoch leaves nothing of the files
# in it, without it everything, and from a network file system what comes next is
# there before it is read.
. "$(dirname "$0")/producer.bash"
cache=$B/test/pagecache

"$B/bench/mkdata" "$work/set" --classes 3 --images 8 --val 1 --seed 3 \
	--min 200 --max 400 >/dev/null || exit 1
"$(dirname "$producer")/tsock-pack" --quiet --no-cache "$work/set/train" \
	"$work/pack" >/dev/null || exit 1
mapfile -t images < <(find "$work/set/train" -type f)

# Whoever reads what is dropped finds out whether this file system is a cache.
"$cache" drop "${images[@]}"
read -r held all < <("$cache" count "${images[@]}")
if ! "$cache" direct "${images[@]}" 2>/dev/null || [ "$held" != 0 ]; then
	skip 'the page cache with --direct' \
		"the file system of $work has no O_DIRECT, or is a cache"
	finished
	exit
fi

# epoch ROOT OPTION...: two epochs of a data set, the scan of which is kept, so
# that a start looks at no file.
epoch()
{
	local root=$1
	shift
	"$producer" --dataset imagefolder --root "$root" --name direct \
		--ring 64 --max-batch 16 --threads 2 "$@" 2>"$work/log" &
	pid=$!
	"$B/test/streamsum" direct 8 48 >"$work/sums"
	stop
	sort "$work/sums"
}

# holds WHAT FILE...: what the cache holds after an epoch, in each way.
check()
{
	local what=$1 root=$2 past through held all
	shift 2
	through=$(epoch "$root")
	read -r held all < <("$cache" count "$@")
	[ "$held" = "$all" ] && [ "$all" -gt 0 ] && [ -n "$through" ]
	result $? "$what stay in the page cache" "$held of $all pages" \
		"$(cat "$work/log")"
	for io in uring pread; do
		if [ $io = uring ] && ! "$producer" --check-config --io uring \
			-d imagefolder -r "$root" >/dev/null 2>&1; then
			skip "$what with --direct --io uring" 'no io_uring here'
			continue
		fi
		"$cache" drop "$@"
		past=$(epoch "$root" --direct --io $io)
		read -r held all < <("$cache" count "$@")
		[ "$held" = 0 ] && [ "$past" = "$through" ] &&
			! grep -q 'page cache' "$work/log"
		result $? "with --direct --io $io $what don't" \
			"$held of $all pages" "$(cat "$work/log")"
	done
}

check 'images' "$work/set/train" "${images[@]}"
mapfile -t shards < <(find "$work/pack" -type f -size +200k)
check 'the samples of a pack' "$work/pack" "${shards[@]}"

# As if the folders were on a network.  A job reads two samples, and the ring and
# the worker have at most 16; half of the 120 are read ahead.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
"$B/bench/mkdata" "$work/wide" --classes 3 --images 40 --val 1 --seed 4 \
	--min 200 --max 400 >/dev/null || exit 1
mapfile -t images < <(find "$work/wide/train" -type f)
epoch "$work/wide/train" >/dev/null
"$cache" drop "${images[@]}"
LD_PRELOAD=$(realpath "$B/test/preload/network.so") "$producer" \
	--dataset imagefolder --root "$work/wide/train" --name direct --ring 8 \
	--max-batch 2 --threads 1 2>"$work/log" &
pid=$!
"$B/test/streamsum" direct 2 2 >/dev/null
for ((i = 0; i < 600; i++)); do
	read -r held all < <("$cache" count "${images[@]}")
	[ $((3 * held)) -le "$all" ] || break
	sleep 0.1
done
stop
[ $((3 * held)) -gt "$all" ] &&
	grep -q 'files are read ahead, up to' "$work/log" &&
	made=$(sed -n 's/.*made \([0-9]*\) samples.*/\1/p' "$work/log") &&
	[ "$made" -lt 20 ]
result $? 'on a network what comes next is in the page cache' \
	"$held of $all pages" "$(cat "$work/log")"
"$producer" --check-config -d imagefolder -r "$work/set/train" --direct \
	>"$work/out" 2>&1 && grep -q 'nothing is read ahead' "$work/out"
result $? '--check-config says that --direct reads nothing ahead'

finished
