#!/bin/bash
# SPDX-License-Identifier: MIT
# simd.sh - a build without AVX2 and AVX-512 gives the same bytes as one that
# has them.
#
#   simd.sh OTHER     OTHER was built with SIMD=0, $B without
set -u
cd "$(dirname "$0")/.." || exit 1
. test/system/producer.bash
other=$1
sum=$B/test/streamsum

# Has a program instructions of AVX, or of what came after it?
has_avx()
{
	objdump -d "$1" | grep -E '%[yz]mm|[[:space:]]v[a-z0-9]+ .*%xmm' \
		>"$work/avx"
	[ -s "$work/avx" ]
}

# stream BUILD DTYPE OPTIONS...: two epochs of 65 samples.
stream()
{
	local build=$1 dtype=$2
	shift 2
	"$build/bin/tsock-producer" --dataset imagefolder \
		--root "$work/set/train" --name simd --preset train --seed 7 \
		--ring 128 --max-batch 32 --cache-dir "$work/cache" --quiet \
		"$@" 2>"$work/log" &
	pid=$!
	"$sum" simd 16 130 epoch "$dtype" || cat "$work/log"
	stop
}

# both WHAT DTYPE OPTIONS...
both()
{
	local what=$1
	shift
	stream "$B" "$@" >"$work/with"
	stream "$other" "$@" >"$work/without"
	[ "$(wc -l <"$work/with")" -ge 130 ] &&
		cmp "$work/with" "$work/without"
	result $? "the same $what with and without AVX"
}

# Else there would be nothing to compare.
[ ! -x "$B/bin/tsock-producer" ] || has_avx "$B/bin/tsock-producer" || {
	echo 'this build has no AVX either: this is not x86-64, or SIMD is 0'
	exit 77
}
case ${CFLAGS:-} in
*-m*) echo 'CFLAGS asks for other instructions'; exit 77 ;;
esac
! has_avx "$other/bin/tsock-producer" && ! has_avx "$other/bin/tsock-pack"
result $? 'a build with SIMD=0 has no instruction of AVX'

"$B/bench/mkdata" "$work/set" --classes 5 --images 13 --val 1 --seed 3 \
	--min 60 --max 200 >/dev/null || exit 1
both 'bytes' u8 --threads 2
both 'float32' f32 --threads 2 --size 32
both 'float16' f16 --threads 2 --size 32
both 'fast bytes' u8 --threads 2 --size 32 --fast
for build in "$B" "$other"; do
	"$build/bin/tsock-pack" --quiet --no-cache "$work/set/train" \
		"$work/packed-$(basename "$build")" || exit 1
done
diff -r "$work/packed-$(basename "$B")" "$work/packed-$(basename "$other")"
result $? 'the same packs with and without AVX'
both 'bytes from a pack' u8 --threads 2 --root "$work/packed-$(basename "$B")"

finished
