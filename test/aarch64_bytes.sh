#!/bin/bash
# SPDX-License-Identifier: MIT
# aarch64_bytes.sh - builds for aarch64, emulated, give the bytes of this one.
#
#   aarch64_bytes.sh BUILD...   $B was built for this machine, BUILDs for aarch64
set -u
cd "$(dirname "$0")/.." || exit 1
. test/system/producer.bash

# use BUILD: what its programs are begun with.
use()
{
	build=$1
	emulator=()
	[ "$build" = "$B" ] || emulator=(build/aarch64/qemu)
}

# stream BUILD DTYPE OPTIONS...: two epochs of 65 samples.
stream()
{
	local build emulator dtype=$2
	use "$1"
	shift 2
	"${emulator[@]}" "$build/bin/tsock-producer" --dataset imagefolder \
		--root "$work/set/train" --name arm --preset train --seed 7 \
		--ring 128 --max-batch 32 --cache-dir "$work/cache" --quiet \
		--threads 2 "$@" 2>"$work/log" &
	pid=$!
	"${emulator[@]}" "$build/test/streamsum" arm 16 130 epoch "$dtype" ||
		cat "$work/log"
	stop
}

# all WHAT DTYPE OPTIONS...
all()
{
	local what=$1 other
	shift
	stream "$B" "$@" >"$work/here"
	for other in "${builds[@]}"; do
		stream "$other" "$@" >"$work/there"
		[ "$(wc -l <"$work/here")" -ge 130 ] &&
			cmp "$work/here" "$work/there"
		result $? "the same $what by $other"
	done
}

builds=("$@")
"$B/bench/mkdata" "$work/set" --classes 5 --images 13 --val 1 --seed 3 \
	--min 60 --max 200 >/dev/null || exit 1
all 'bytes' u8
all 'bytes without an index' u8 --no-index
all 'float32' f32 --size 32
all 'float16' f16 --size 32
all 'fast bytes' u8 --size 32 --fast
all 'bytes with a cache' u8 --size 32 --cache 64M
for other in "$B" "${builds[@]}"; do
	use "$other"
	"${emulator[@]}" "$build/bin/tsock-pack" --quiet --no-cache \
		"$work/set/train" "$work/packed-$(basename "$build")" || exit 1
done
packs=$work/packed-$(basename "$B")
for other in "${builds[@]}"; do
	diff -r "$packs" "$work/packed-$(basename "$other")"
	result $? "the same packs by $other"
done
all 'bytes from a pack' u8 --root "$packs"

# Files that end early, or are damaged: libjpeg decodes what is there.
find "$work/set/train" -type f | sort | awk 'NR % 3 != 0' |
	while read -r file; do
		size=$(stat -c %s "$file")
		truncate -s $((size * (40 + size % 50) / 100)) "$file"
	done
all 'bytes of truncated files' u8

finished
