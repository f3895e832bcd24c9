#!/bin/bash
# SPDX-License-Identifier: MIT
# mounts.sh - a data set in a file system of FUSE, as those of object stores
# are: it is served as from a disk; while its process is stopped, a consumer is
# told which file is waited for; and when that process has ended, the stream
# ends with one sentence, and hangs nowhere.
. "$(dirname "$0")/producer.bash"

mnt=$work/mnt fuse=
mkdir "$mnt"

# mounted: the data set is there a second time, by a process of FUSE.
mounted()
{
	local _
	bindfs -f -o ro "$work/set" "$mnt" >"$work/fuse" 2>&1 &
	fuse=$!
	disown "$fuse"
	for _ in $(seq 200); do
		[ -d "$mnt/train" ] && return
		kill -0 "$fuse" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

unmount()
{
	[ -n "$fuse" ] || return 0
	kill -KILL "$fuse" 2>/dev/null
	umount -l "$mnt" 2>/dev/null || fusermount -uz "$mnt" 2>/dev/null
	fuse=
}
clean_up()
{
	stop
	unmount
	rm -rf "$work"
}

if ! command -v bindfs >/dev/null; then
	skip 'data in a file system of FUSE' \
		'there is no bindfs to make one: apt-get install bindfs'
	finished
	exit
fi
if ! mounted; then
	skip 'data in a file system of FUSE' \
		"none can be mounted here: $(head -n 1 "$work/fuse")"
	finished
	exit
fi

far=("$producer" --no-cache --dataset imagenet --root "$mnt" "${small[@]}")

start "$producer" --no-cache "${set[@]}" "${small[@]}"
timeout 60 "$seen" imagenet 7 2 >"$work/near" 2>&1
stop
start "${far[@]}"
timeout 60 "$seen" imagenet 7 2 >"$work/out" 2>&1
sums()
{
	grep -o 'epoch [01]: 36 samples, .*; checksum [0-9a-f]*' "$1"
}
[ "$(sums "$work/near" | wc -l)" = 2 ] &&
	[ "$(sums "$work/near")" = "$(sums "$work/out")" ]
result $? 'samples are those of the disk' "$(cat "$work/near" "$work/out")"

# Someone reads on, and the file system's process is stopped.
"$seen" imagenet 7 0 >"$work/out" 2>&1 &
reader=$!
for _ in $(seq 600); do
	grep -q 'epoch 2' "$work/out" && break
	sleep 0.05
done
kill -STOP "$fuse"
for _ in $(seq 600); do
	grep -q "waiting for $mnt/train/.* to be read" "$work/log" && break
	sleep 0.1
done
grep -q "waiting for $mnt/train/.* to be read" "$work/log"
result $? 'a file system that answers nothing is said to be waited for' \
	"$(tail -n 5 "$work/log")"

# It goes on, and then is gone.
kill -CONT "$fuse"
was=$(wc -l <"$work/out")
for _ in $(seq 600); do
	[ "$(wc -l <"$work/out")" -gt $((was + 1)) ] && break
	sleep 0.05
done
[ "$(wc -l <"$work/out")" -gt $((was + 1)) ]
result $? 'and the stream goes on once it answers' "$(tail -n 5 "$work/out")"
kill -KILL "$fuse"
ended
[ $? = 1 ] && [ "$(grep -c 'error: ' "$work/log")" = 1 ] &&
	grep -q "error: .* $mnt/train/.*: the file system .* is gone .*mount" \
		"$work/log"
result $? 'one that is gone ends the stream with a sentence' \
	"exit code $rc" "$(tail -n 5 "$work/log")"
wait "$reader"
result $((! $?)) 'and its reader' "$(tail -n 3 "$work/out")"
unmount
finished
