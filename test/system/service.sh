#!/bin/bash
# SPDX-License-Identifier: MIT
# service.sh - tsock-producer as a service: what it tells a service manager,
# what --supervise does, and that readers go on with the next process.
. "$(dirname "$0")/producer.bash"

helper=$B/test
serve=("$producer" "${set[@]}" "${small[@]}" --threads 1)

# Wait until the command succeeds.
until_it()
{
	for _ in $(seq 1800); do
		"$@" 2>/dev/null >&2 && return 0
		sleep 0.05
	done
	return 1
}

# --- a service manager ---

# managed SOCKET COMMAND...: under a service manager; what the manager is told
# is in $work/said.
managed()
{
	# Now, not when the background process gets to it: the last one was
	# ready, too.
	: >"$work/said"
	"$helper/notified" "$1" env WATCHDOG_USEC=200000 "${@:2}" \
		>"$work/said" 2>"$work/log" </dev/null &
	pid=$!
}

managed "$work/notify" "${serve[@]}"
until_it grep -qx READY=1 "$work/said"
result $? 'a producer says when it is ready' "$(cat "$work/log")"
[ -S "$TSOCK_DIR/imagenet.door" ]
result $? 'consumers can connect then'
signs()
{
	[ "$(grep -cx WATCHDOG=1 "$work/said")" -ge 5 ]
}
until_it signs
result $? 'the watchdog gets signs of life'
kill -TERM "$pid"
ended
result $? 'SIGTERM ends it' "exit code $rc"
[ "$(grep -cx STOPPING=1 "$work/said")" = 1 ] &&
	[ "$(grep -cx READY=1 "$work/said")" = 1 ]
result $? 'it says once that it is ready, and once that it stops'

managed @tsock-$$ env WATCHDOG_PID=1 "${serve[@]}"
until_it grep -qx READY=1 "$work/said"
result $? 'the socket may be an abstract one'
kill -TERM "$pid"
ended
! grep -qx WATCHDOG=1 "$work/said"
result $? "the watchdog of another process isn't ours"

# --- a data set that grows, under a service manager ---

# Nobody reads: the stream ends as soon as a change is seen.
cp -r "$work/set" "$work/growing"
managed "$work/notify-growing" "$producer" --dataset imagenet \
	--root "$work/growing" "${small[@]}" --threads 1 --grows
until_it grep -qx READY=1 "$work/said"
file=$(find "$work/growing/train" -type f | head -n 1)
for i in 1 2; do
	cp "$file" "$work/new.JPEG"
	mv "$work/new.JPEG" "${file%/*}/new$i.JPEG"
	switched()
	{
		[ "$(grep -c 'the stream goes on with epoch' "$work/log")" = "$i" ]
	}
	until_it switched
	result $? "the files are others, $i" "$(cat "$work/log")"
done
before=$(grep -cx WATCHDOG=1 "$work/said")
still_alive()
{
	[ "$(grep -cx WATCHDOG=1 "$work/said")" -ge $((before + 5)) ]
}
until_it still_alive
result $? 'the watchdog gets signs of life from the next streams, too'
[ "$(grep -cx READY=1 "$work/said")" = 1 ] &&
	! grep -qx STOPPING=1 "$work/said" &&
	[ "$(grep -x 'STATUS=.*' "$work/said")" = STATUS=serving ]
result $? 'a service that was ready stays ready' \
	"$(sort "$work/said" | uniq -c)"
kill -TERM "$pid"
ended
result $? 'SIGTERM ends the last of the streams' "exit code $rc"
[ "$(grep -cx STOPPING=1 "$work/said")" = 1 ]
result $? 'and the service manager is told'

# --- supervised ---

# So many that a reader is busy for seconds.
samples=15000

start "${serve[@]}"
"$helper/streamsum" imagenet 7 "$samples" >"$work/want" 2>&1
result $? 'an undisturbed stream is read' "$(tail -n 3 "$work/want")"
stop

start "${serve[@]}" --supervise
result $? 'a supervised producer serves' "$(cat "$work/log")"
# The process that serves; the other one is its parent.
serving()
{
	grep -oE '^[0-9]+' "/proc/$pid/task/$pid/children"
}
"$helper/streamsum" imagenet 7 "$samples" >"$work/got" 2>"$work/err" &
reader=$!
killed=0
another()
{
	[ "$(serving)" != "$child" ] && serving
}
for pause in 0.1 0 0.05 0.3 0.02; do
	sleep $pause
	kill -0 $reader || break
	child=$(serving) || continue
	kill -KILL "$child" && killed=$((killed + 1))
	until_it another
done
wait $reader
result $? 'a reader outlives the processes that serve' "$(cat "$work/err")"
cmp -s "$work/want" "$work/got"
result $? 'and reads the very bytes of a stream that nobody disturbed' \
	"$(diff "$work/want" "$work/got" | head -n 4)"
# Five, unless the reader was through before this script came to the last ones.
[ "$killed" -ge 1 ] &&
	[ "$(grep -c 'was killed (Killed)' "$work/log")" = "$killed" ]
result $? 'each death is said' "$(cat "$work/log")"
child=$(serving)
kill -TERM "$pid"
ended
result $? 'SIGTERM ends the supervisor in good order' "exit code $rc"
! kill -0 "$child" 2>/dev/null
result $? 'and the process that serves'

start "${serve[@]}" --supervise
child=$(serving)
kill -KILL "$pid"
wait "$pid" 2>/dev/null
pid=
gone()
{
	! kill -0 "$child"
}
until_it gone
result $? 'without its supervisor it ends, too'
fails 66 'nowhere' 'an end that is no death is the end' "$producer" \
	--supervise --dataset imagenet --root "$work/nowhere"

# --- terminated, and started again ---

start "${serve[@]}"
"$helper/streamsum" imagenet 7 "$samples" >"$work/got" 2>"$work/err" &
reader=$!
for pause in 0.1 0.05 0.2; do
	sleep $pause
	kill -TERM "$pid"
	ended || echo "exit code $rc" >>"$work/err"
	start "${serve[@]}"
done
wait $reader
result $? 'a reader outlives producers that are told to end' \
	"$(cat "$work/err")"
cmp -s "$work/want" "$work/got" && [ ! -s "$work/err" ]
result $? 'each of which ends well; the bytes are the same'
stop

# --- the unit ---

unit=$work/tsock-producer@.service
sed "s|@bindir@|$(realpath "$(dirname "$producer")")|" \
	producer/tsock-producer@.service.in >"$unit"
if command -v systemd-analyze >/dev/null; then
	said=$(systemd-analyze verify --user --man=no "$unit" 2>&1)
	! grep -q 'tsock-producer@' <<<"$said"
	result $? 'systemd finds nothing wrong in the unit' "$said"
else
	skip 'systemd-analyze verify' 'systemd-analyze is not installed'
fi

finished
