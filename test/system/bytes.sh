#!/bin/bash
# SPDX-License-Identifier: MIT
# bytes.sh - a stream's bytes are a function of the data set, the seed and the
# pipeline alone: the same for 1 and for 8 worker threads, for io_uring and for
# pread, through the page cache and past it, for any consumers, and for a stream
# begun anew from any position.
set -u
B=${B:-build}
producer=${TSOCK_PRODUCER:-$B/bin/tsock-producer}
sum=$B/test/streamsum
work=$(mktemp -d "${TMPDIR:-/tmp}/bytes-XXXXXX") || exit 1
export TSOCK_DIR=${TSOCK_DIR:-$work/run}
(umask 077 && mkdir -p "$TSOCK_DIR")
pid=
n=0
preload=
network=$(realpath "$B/test/preload/network.so")
# Address sanitizer wants to be loaded first.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT

result()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
	fi
}

# Sanitizers look at which thread does what, not at how many pixels.
case $B in
*thread* | *address*) size=64 ;;
*) size=224 ;;
esac

start()
{
	case " $* " in
	*' --size '*) ;;
	*) set -- --size "$size" "$@" ;;
	esac
	LD_PRELOAD=$preload "$producer" --dataset imagefolder \
		--root "$work/set/train" --name bytes \
		--preset train --seed 7 --ring 128 --max-batch 32 --cache-dir \
		"$work/cache" --quiet "$@" 2>"$work/log" &
	pid=$!
}

stop()
{
	kill "$pid"
	wait "$pid" 2>/dev/null
	pid=
}

"$B/bench/mkdata" "$work/set" --classes 5 --images 13 --val 1 --seed 3 \
	--min 60 --max 200 >/dev/null || exit 1
N=65
most=$((12 * N)) # what the references have

# reference NAME EPOCHS OPTIONS...: a stream as one consumer reads it.
reference()
{
	local out=$1 epochs=$2
	shift 2
	start "$@"
	"$sum" bytes 16 $((epochs * N)) >"$work/$out" || cat "$work/log"
	stop
}

# Every line of the first file stands in the second, and it isn't empty.
within()
{
	[ -s "$1" ] && [ -z "$(comm -23 <(sort "$1") <(sort "$2"))" ]
}

reference one 12 --threads 1
[ "$(wc -l <"$work/one")" -ge $most ]
result $? 'twelve epochs come from one worker thread'

reference eight 3 --threads 8
within "$work/eight" "$work/one"
result $? 'the same bytes from 8 worker threads'

reference pread 3 --threads 2 --io pread
within "$work/pread" "$work/one"
result $? 'the same bytes by pread'

reference direct 3 --threads 2 --direct
reference directpread 3 --threads 2 --direct --io pread
within "$work/direct" "$work/one" && within "$work/directpread" "$work/one"
result $? 'the same bytes past the page cache'

# As if the folders were on a network.
find "$work/set" -type f -exec "$B/test/pagecache" drop {} +
preload=$network
reference ahead 12 --threads 2
preload=
cmp -s <(sort "$work/ahead") <(sort "$work/one") &&
	[ "$(head -n $most "$work/ahead" | wc -l)" = $most ]
result $? 'the same bytes when files are read ahead'

# Readers of several habits at once: whatever each sees is in the reference.
start --threads 4
"$sum" bytes 7 $((2 * N)) >"$work/a" &
one=$!
"$sum" bytes 32 $((2 * N)) >"$work/b" &
two=$!
"$sum" bytes 5 40 now >"$work/c" &
three=$!
wait "$one" "$two" "$three"
stop
for k in a b c; do
	awk -v most=$most '$1 < most' "$work/$k" >"$work/$k.cut"
	within "$work/$k.cut" "$work/one"
	result $? "reader $k saw the same bytes"
done

# A stream begun anew somewhere else: leave, and come back after a jump.  An
# epoch of which less than the window was read would be begun again.
start --threads 2 --join-window 5
"$sum" bytes 16 10 >/dev/null
"$sum" bytes 16 10 >/dev/null
"$sum" bytes 16 $N >"$work/later"
stop
awk -v most=$most '$1 < most' "$work/later" >"$work/later.cut"
within "$work/later.cut" "$work/one" &&
	[ "$(head -n 1 "$work/later" | cut -d' ' -f1)" = $((2 * N)) ]
result $? 'the third epoch is the same when the stream jumped to it'

# Segments: the same places from any segment on.
reference whole 12 --threads 2 --segments 8
start --threads 2 --segments 8
"$sum" bytes 4 $((3 * N)) >/dev/null &
one=$!
for k in 1 2 3; do
	"$sum" bytes 9 $N segment >"$work/s$k"
done
kill "$one" 2>/dev/null
wait "$one" 2>/dev/null
stop
ok=0
for k in 1 2 3; do
	awk -v most=$most '$1 < most' "$work/s$k" >"$work/s$k.cut"
	[ ! -s "$work/s$k.cut" ] || within "$work/s$k.cut" "$work/whole" ||
		ok=1
	[ "$(head -n $N "$work/s$k" | cut -d' ' -f2 | sort -n | uniq | wc -l)" \
		= $N ] || ok=1
done
result $ok 'a segment joiner sees the same bytes, and each index once'

# Another seed is another stream.
reference other 3 --threads 2 --seed 8
[ -s "$work/other" ] && ! within "$work/other" "$work/one"
result $? 'another seed gives other bytes'

# Truncated files: good for some crops and bad for others.  What the threads
# have learnt of them so far, and in which order, changes nothing.
cp -r "$work/set" "$work/intact"
find "$work/set/train" -type f | sort | awk 'NR % 3 != 0' |
	while read -r file; do
		size=$(stat -c %s "$file")
		truncate -s $((size * (40 + size % 50) / 100)) "$file"
	done
reference cut 8 --threads 1
reference cut8 8 --threads 8
reference cutpread 8 --threads 3 --io pread
reference cutdirect 8 --threads 3 --direct
within "$work/cut8" "$work/cut" && within "$work/cutpread" "$work/cut" &&
	within "$work/cutdirect" "$work/cut" &&
	! within "$work/cut" "$work/one"
result $? 'the same bytes from truncated files, whatever the threads'
reference fastcut 6 --threads 1 --fast --size 32 --no-index
reference fastcut8 6 --threads 8 --fast --size 32
within "$work/fastcut8" "$work/fastcut"
result $? 'the same fast bytes from truncated files'
rm -r "$work/set"
mv "$work/intact" "$work/set"

# Pillow 12 resized tall crops in another order: some samples differ, not all.
reference new 3 --threads 2 --size 32
reference old 3 --threads 2 --size 32 --pillow 12
same=$(comm -12 <(sort "$work/new") <(sort "$work/old") | wc -l)
[ "$same" -gt 0 ] && [ "$same" -lt "$(wc -l <"$work/new")" ]
result $? 'an older Pillow has other pixels in some crops'

# However a file is decoded: from its bytes alone, by an index, with a cache and
# from packed images.
"$(dirname "$producer")/tsock-pack" --quiet --no-cache "$work/set/train" \
	"$work/packed" || exit 1
reference exactnoindex 4 --threads 2 --no-index
reference exactcache 4 --threads 2 --cache 64M
reference exactpack 4 --threads 2 --root "$work/packed"
reference exactpackdirect 4 --threads 2 --root "$work/packed" --direct
preload=$network
reference exactpackahead 4 --threads 2 --root "$work/packed"
reference exactcacheahead 4 --threads 2 --cache 64M
preload=
for k in noindex cache pack packdirect packahead cacheahead; do
	within "$work/exact$k" "$work/one"
	result $? "the same bytes by $k"
done

# Fast pixels are others, and the same in each of these ways.
reference fast 4 --threads 1 --size 32 --fast --no-index
reference fastindex 4 --threads 8 --size 32 --fast
reference fastcache 4 --threads 2 --size 32 --fast --cache 64M
reference fastpack 4 --threads 2 --size 32 --fast --root "$work/packed"
for k in index cache pack; do
	within "$work/fast$k" "$work/fast"
	result $? "the same fast bytes by $k"
done
[ -s "$work/fast" ] && ! within "$work/fast" "$work/new"
result $? 'fast bytes are not the exact ones'

echo "1..$n"
