#!/bin/bash
# SPDX-License-Identifier: MIT
# images.sh - tsock-producer on images that are large, slow or few bytes of
# much work: its memory stays within what it said, and the stream goes on.
. "$(dirname "$0")/producer.bash"

tree=$work/large
large=("$producer" --no-cache --dataset imagefolder --root "$tree" --name large
	--order sequential --size 32 --ring 64 --max-batch 16 --threads 8)

# copies N WIDTH HEIGHT COMPONENTS SCANS: a tree of so many alike, and a good
# small one.
copies()
{
	local i
	rm -rf "$tree"
	mkdir -p "$tree/a"
	"$B/test/largeimage" "${@:2}" >"$work/one.jpg" || exit 1
	for i in $(seq "$1"); do
		cp "$work/one.jpg" "$tree/a/$i.jpg"
	done
	cp "$(find "$work/set" -type f | sort | head -n 1)" "$tree/a/small.jpg"
}

# peak LIMIT WHAT: the producer's resident memory never was above that, in MB.
peak()
{
	local mb
	mb=$(awk '/^VmHWM:/ { print int($2 * 1.024 / 1000) }' \
		"/proc/$pid/status")
	[ -n "$mb" ] && [ "$mb" -le "$1" ]
	result $? "$2" "at most $1 MB were to be resident, $mb were" \
		"$(tail -n 5 "$work/log")"
}

# --- more workers than large images fit into memory ---

copies 8 6000 6000 1 2
start "${large[@]}" --image-memory 80M
timeout 120 "$seen" large 7 2 >"$work/out" 2>&1
result $? 'eight large images come one after the other' "$(cat "$work/out" \
	"$work/log")"
# 84 MB for them; 8 x (16 + 4) of the workers' own, of which little is used.
peak 260 'eight workers keep to --image-memory'
stop
grep -q 'bad file' "$work/log"
[ $? = 1 ]
result $? 'and no image is bad' "$(cat "$work/log")"

# --- one that doesn't fit alone ---

copies 3 13377 13377 1 2
start "${large[@]}" --memory 64M
timeout 120 "$seen" large 7 2 >"$work/out" 2>&1
grep -q 'epoch 1: 4 samples, 1 different of 4' "$work/out"
result $? 'an image larger than the memory for images is replaced' \
	"$(cat "$work/out" "$work/log")"
peak 150 'and takes none'
stop
grep -q 'bad file a/1.jpg: .* 36[0-9].[0-9] MB .*--image-memory is 67.1 MB' "$work/log"
result $? 'with both sizes in the log' "$(cat "$work/log")"

"${large[@]}" --dry-run --memory 64M >"$work/out" 2>&1
grep -q '^  images  *67.1 MB' "$work/out"
result $? '--dry-run says what images may take' "$(cat "$work/out")"
fails 71 '--image-memory is .* but .* of memory are available' \
	'more memory for images than there is' \
	"${large[@]}" --quiet --image-memory 1000T

finished
