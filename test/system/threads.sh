#!/bin/bash
# SPDX-License-Identifier: MIT
# threads.sh - each thread of the producer has a name that says what it does.
. "$(dirname "$0")/producer.bash"

names()
{
	cat /proc/"$pid"/task/*/comm 2>/dev/null | sort
}

# count NAME: how many threads are called so.
count()
{
	names | grep -cx "$1"
}

# await_count NAME N: a thread has its parent's name until it has named itself.
await_count()
{
	local _
	for _ in $(seq 900); do
		[ "$(count "$1")" = "$2" ] && return
		sleep 0.05
	done
	return 1
}

start "$producer" "${set[@]}" "${small[@]}" --name threads --threads 2
result $? 'the producer starts'
while read -r name wanted; do
	await_count "$name" "$wanted"
	result $? "$wanted of $name" "$(names)"
done <<-END
	tsock-producer 1
	tsock-worker 2
	tsock-control 1
	tsock-log 1
END
# ZeroMQ and the kernel's io_uring name theirs.
others=$(names | grep -vE '^(tsock-[a-z-]+|ZMQbg/.*|iou-.*)$')
[ -z "$others" ]
result $? 'no thread without a name' "$others"
# The producer waits for room, which comes when somebody reads.
timeout 60 "$seen" threads 4 1 >"$work/out" 2>&1
result $? 'a job reads' "$(tail -n 3 "$work/out")"
stop
finished
