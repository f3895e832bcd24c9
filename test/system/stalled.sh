#!/bin/bash
# SPDX-License-Identifier: MIT
# stalled.sh - nobody reads tsock-producer's standard error: a full pipe, a
# pager, a terminal stopped with Ctrl-S.  The stream goes on, and SIGTERM ends
# it.
. "$(dirname "$0")/producer.bash"

# Two epochs reach a consumer that comes and goes, so lines have to be logged.
goes_on()
{
	local _
	for _ in 1 2 3; do
		timeout 60 "$seen" imagenet 7 2 >"$work/out" 2>&1 || return
	done
}

# Wait until the producer listens.
listening()
{
	for _ in $(seq 600); do
		[ -S "$TSOCK_DIR/imagenet.door" ] && return 0
		kill -0 "$pid" 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}

# --- a pipe ---

mkfifo "$work/pipe"
exec 7<>"$work/pipe"
fill()
{
	dd if=/dev/zero "of=$work/pipe" bs=4096 oflag=nonblock 2>/dev/null
}
fill
"$producer" "${set[@]}" "${small[@]}" --no-cache 2>"$work/pipe" </dev/null &
pid=$!
listening
result $? 'a producer starts although its log is a full pipe'
goes_on
result $? 'consumers read, and join and leave' "$(cat "$work/out")"
stop_when_told()
{
	kill -TERM "$pid"
	ended
}
stop_when_told
result $? 'SIGTERM ends it' "exit code $rc"
stop

# The log goes on where somebody reads again.
fill
"$producer" "${set[@]}" "${small[@]}" --no-cache 2>"$work/pipe" </dev/null &
pid=$!
listening && goes_on
result $? 'another one starts behind a full pipe' "$(cat "$work/out")"
cat <&7 >"$work/log" &
reader=$!
for _ in $(seq 600); do
	grep -aq ' joins' "$work/log" && break
	sleep 0.1
done
grep -aq 'serving "imagenet"' "$work/log" && grep -aq ' joins' "$work/log"
result $? 'its lines come when the pipe is read' \
	"$(tr -d '\0' <"$work/log")"
stop_when_told
result $? 'and SIGTERM ends it, too' "exit code $rc"
stop
kill "$reader"
wait "$reader" 2>/dev/null
exec 7<&-

# --- a terminal ---

cat >"$work/terminal.py" <<'EOF'
"""terminal.py COMMAND...: on a terminal of its own, stopped with Ctrl-S as
soon as it has written; its process id on standard output."""
import os, pty, sys

pid, master = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(sys.argv[1], sys.argv[1:])
text = b""
while b"serving" not in text:
    text += os.read(master, 4096)
os.write(master, b"\x13")
print(pid, flush=True)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
EOF
if ! command -v python3 >/dev/null; then
	skip 'a stopped terminal' 'there is no python3 to make one'
elif ! python3 -c 'import pty; pty.openpty()' 2>/dev/null; then
	skip 'a stopped terminal' 'terminals are not to be had here'
else
	python3 "$work/terminal.py" "$producer" "${set[@]}" "${small[@]}" \
		--no-cache >"$work/pid" </dev/null &
	pid=$!
	for _ in $(seq 600); do
		[ -s "$work/pid" ] && break
		sleep 0.1
	done
	goes_on && sleep 1.5 && goes_on
	result $? 'the stream goes on when its terminal is stopped' \
		"$(cat "$work/out")"
	kill -TERM "$(cat "$work/pid")"
	ended
	result $? 'and SIGTERM ends it' "exit code $rc"
	stop
fi

finished
