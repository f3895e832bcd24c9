#!/bin/bash
# SPDX-License-Identifier: MIT
# direct.sh - with --direct an epoch leaves nothing of the files in the page
# cache, without it everything.
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

finished
