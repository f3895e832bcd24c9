#!/bin/bash
# SPDX-License-Identifier: MIT
# limits.sh - tsock-producer where something is missing or short: io_uring,
# memfds and their seals, pidfds, descriptors, address space, a cgroup's
# memory.  Each is one clear sentence and a non-zero exit, or works without.
. "$(dirname "$0")/producer.bash"

deny=$B/test/deny
q=("$producer" --quiet --no-cache "${set[@]}" "${small[@]}")
can_deny=1
"$deny" EPERM io_uring_setup true 2>"$work/err"
[ $? != 77 ] || can_deny=0

# served WHAT COMMAND...: two epochs reach a consumer.
served()
{
	local what=$1
	shift
	start "$@" --epochs 2
	timeout 90 "$seen" imagenet 7 0 >"$work/out" 2>&1 && ended
	result $? "$what" "$(cat "$work/log" "$work/out")"
	stop
}

# --- kernels and containers without something ---

if [ $can_deny = 1 ]; then
	loud=("$producer" --no-cache "${set[@]}" "${small[@]}")
	# ENOMEM: too little memory may be locked, before Linux 5.12.
	for error in EPERM ENOSYS ENOMEM; do
		served "it serves where io_uring is $error" \
			"$deny" $error io_uring_setup "${loud[@]}"
		grep -q 'files by pread (' "$work/log"
		result $? 'and says why it reads by pread' "$(cat "$work/log")"
	done
	fails 71 'io_uring' 'io_uring that was asked for and is not there' \
		"$deny" EPERM io_uring_setup "${q[@]}" --io uring
	fails 71 'io_uring.*ulimit -l' 'io_uring that may lock too little memory' \
		"$deny" ENOMEM io_uring_setup "${q[@]}" --io uring
	fails 71 'memfd' 'no memfds' "$deny" ENOSYS memfd_create "${q[@]}"
	fails 71 'seal' 'no seals' "$deny" EINVAL seals "${q[@]}"
	served 'it serves where there are no pidfds' \
		"$deny" ENOSYS pidfd_open,pidfd_send_signal "${loud[@]}"
else
	skip 'a kernel without io_uring, memfds, seals, pidfds' \
		"$(cat "$work/err")"
fi

# --- descriptors ---

# "${limited[@]}" -n 16 COMMAND...
limited=(bash -c 'ulimit "$1" "$2" && shift 2 && exec "$@"' -)
fails 71 '16 descriptors and needs [0-9]{2}' 'too few descriptors' \
	"${limited[@]}" -n 16 "${q[@]}"
fails 71 '128 descriptors and needs [0-9]{3}' \
	'too few descriptors for so many threads' \
	"${limited[@]}" -n 128 "${q[@]}" --threads 64
start bash -c 'ulimit -S -n 20 && exec "$@"' - "$producer" --no-cache \
	"${set[@]}" "${small[@]}" --threads 2
result $? 'a low soft limit is raised' "$(cat "$work/log")"
stop

# --- memory ---

fails 71 'memory|allocate' 'too little address space' \
	"${limited[@]}" -v 200000 "${q[@]}" --size 224 --ring 2048 --max-batch 512
fails 71 'memory' 'a ring larger than the machine' \
	"${q[@]}" --size 4096 --ring 100000

# A memory cgroup of its own, version 1 or 2; the folder's name, or nothing.
make_cgroup()
{
	local v1=/sys/fs/cgroup/memory v2=/sys/fs/cgroup name=tsock-test-$$
	if [ -f "$v1/memory.limit_in_bytes" ] &&
		mkdir "$v1/$name" 2>/dev/null; then
		echo "$v1/$name"
		echo "$1" >"$v1/$name/memory.limit_in_bytes" && return 0
	elif [ -f "$v2/cgroup.controllers" ] &&
		mkdir "$v2/$name" 2>/dev/null; then
		echo "$v2/$name"
		echo "$1" >"$v2/$name/memory.max" && return 0
	fi 2>/dev/null
	return 1
}

# The group's limit, of either version, and what it uses.
limit_file()
{
	ls "$cgroup/memory.limit_in_bytes" "$cgroup/memory.max" 2>/dev/null
}
used()
{
	cat "$cgroup/memory.usage_in_bytes" "$cgroup/memory.current" 2>/dev/null
}

# Memory of a ring that was there at the start, and is taken away before samples
# are: the limit is lowered to 24 MB above what is used.
runs_out()
{
	local rc
	start "${inside[@]}" "$producer" --no-cache "${set[@]}" --size 224 \
		--threads 1 --ring 400 --max-batch 64
	echo $(($(used) + 24000000)) >"$(limit_file)"
	timeout 90 "$seen" imagenet 64 0 >"$work/out" 2>&1
	ended
	rc=$?
	[ "$rc" = 1 ] && [ "$(grep -c ' error: ' "$work/log")" = 1 ] &&
		grep -qE "error: .*ring of field image \(.* of its 60\.2 MB are \
there\) needs 8\.9 MB of memory but .*by $cgroup.*--ring" "$work/log"
	result $? "a cgroup's memory that runs out as samples are made" \
		"exit code $rc" "$(cat "$work/log")"
	grep -q 'ring of field image (.* MB are there)' "$work/out"
	result $? 'and its consumer hears so' "$(cat "$work/out")"
}

if cgroup=$(make_cgroup 100000000) && [ -n "$cgroup" ]; then
	inside=(bash -c 'echo $$ >"$1" && shift && exec "$@"' -
		"$cgroup/cgroup.procs")
	fails 71 'memory' "a ring larger than the cgroup's memory" \
		"${inside[@]}" "${q[@]}" --size 224 --ring 2048 --max-batch 512
	served "it serves within the cgroup's memory" \
		"${inside[@]}" "$producer" --no-cache "${set[@]}" "${small[@]}"
	runs_out
	for _ in $(seq 50); do
		rmdir "$cgroup" 2>/dev/null && break
		sleep 0.1
	done
else
	[ -z "$cgroup" ] || rmdir "$cgroup" 2>/dev/null
	skip "a cgroup's memory" "no memory cgroup can be made here: it takes \
root and a writable /sys/fs/cgroup"
fi

finished
