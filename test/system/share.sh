#!/bin/bash
# SPDX-License-Identifier: MIT
# share.sh - two producers share the CPUs while both have readers.
. "$(dirname "$0")/producer.bash"

# The first two CPUs that this test may use.
two=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
	awk -F- '{ for (c = $1; c <= ($2 == "" ? $1 : $2); c++) print c }' |
	head -n 2 | paste -sd,)
case $two in
*,*) ;;
*)
	skip 'sharing' "one CPU is nothing to share"
	finished
	exit
	;;
esac
serve=(taskset -c "$two" "$producer" --no-cache "${set[@]}" "${small[@]}")
pids=()
trap 'kill -9 "${pids[@]}" 2>/dev/null; stop; rm -rf "$work"' EXIT

# threads NAME WANTED: until --list says so.
threads()
{
	for _ in $(seq 300); do
		"$producer" --list >"$work/list" 2>&1
		grep -Eq "^$1 .* $2\$" "$work/list" && return 0
		sleep 0.1
	done
	return 1
}

# begin NAME [OPTION...]: a producer, its pid is in $begun.
begin()
{
	"${serve[@]}" --name "$@" >"$work/$1.log" 2>&1 </dev/null &
	begun=$!
	pids+=("$begun")
	for _ in $(seq 1800); do
		grep -q 'serving "' "$work/$1.log" && return 0
		kill -0 "$begun" 2>/dev/null || return 1
		sleep 0.05
	done
	return 1
}

# reader NAME: reads for ever; its pid is in $begun.
reader()
{
	"$seen" "$1" 7 0 >"$work/$1.out" 2>&1 &
	begun=$!
	pids+=("$begun")
}

end()
{
	kill "$1" "$2"
	wait "$2" 2>/dev/null
}

begin one --threads auto
one=$begun
reader one
threads one 2/2
result $? 'a producer alone has all CPUs' "$(cat "$work/list")"

begin two
two_pid=$begun
reader two
two_reader=$begun
threads one 1/2 && threads two 1/2
result $? 'two with readers have half each' "$(cat "$work/list")" \
	"$(cat "$work/one.log")"
grep -q '1 of 2 threads work: 1 other stream with readers' "$work/one.log"
result $? 'the log says so' "$(cat "$work/one.log")"

end -KILL "$two_reader"
threads one 2/2
result $? 'a stream without readers needs none' "$(cat "$work/list")"

reader two
threads one 1/2
result $? 'a reader that comes has its part at once' "$(cat "$work/list")"

end -KILL "$two_pid"
threads one 2/2
rc=$?
[ -e "$TSOCK_DIR/two.cpus" ] && [ "$rc" = 0 ]
result $? 'a producer that was killed has no part' "$(cat "$work/list")"

# A number is kept, and counts for the others.
begin three --threads 2
three=$begun
reader three
threads one 1/2 && threads three 2/2
result $? 'a number of threads is kept' "$(cat "$work/list")"
end -TERM "$three"
[ ! -e "$TSOCK_DIR/three.cpus" ]
result $? 'a producer that ends removes its file' "$(ls "$TSOCK_DIR")"

# The file of this stream is made again where it was removed.
rm -f "$TSOCK_DIR/one.cpus"
threads one 2/2
result $? 'a file that was removed is made again' "$(cat "$work/list")"
end -TERM "$one"
finished
