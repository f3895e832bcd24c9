#!/bin/bash
# SPDX-License-Identifier: MIT
# share.sh - two producers share the CPUs while both have readers.
. "$(dirname "$0")/producer.bash"

[ -x "$seen" ] || {
	echo "$seen is missing: make examples" >&2
	exit 1
}

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
# The processes that have to live, and where each one's output is.
declare -A living=()
clean_up()
{
	kill -9 "${!living[@]}" 2>/dev/null
	stop
	rm -rf "$work"
}

# until_ COMMAND...: wait until it succeeds.  Fails at once when a process that
# has to live has ended, since what is waited for can't come then.
until_()
{
	local end=$((SECONDS + 60)) p
	while ! "$@"; do
		for p in "${!living[@]}"; do
			kill -0 "$p" 2>/dev/null && continue
			echo "process $p has ended: $(cat "${living[$p]}")" \
				>>"$work/list"
			return 1
		done
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# lists NAME THREADS: what --list says, by a pattern.
lists()
{
	"$producer" --list >"$work/list" 2>&1
	grep -Eq "^$1 .* $2( |\$)" "$work/list"
}

# threads NAME WANTED: until --list says so.
threads()
{
	until_ lists "$1" "$2"
}

# must CODE WHAT: as result; what follows makes no sense where it failed.
must()
{
	local rc=$1
	result "$rc" "$2" "$(cat "$work/list")" "$(cat "$work/one.log")"
	[ "$rc" = 0 ] && return
	finished
	exit 1
}

# begin NAME [OPTION...]: a producer, its pid is in $begun.
begin()
{
	"${serve[@]}" --name "$@" >"$work/$1.log" 2>&1 </dev/null &
	begun=$!
	living[$begun]=$work/$1.log
	until_ grep -qs 'serving "' "$work/$1.log" ||
		must 1 "the producer of $1 starts"
}

# reader NAME: reads for ever; its pid is in $begun.
reader()
{
	"$seen" "$1" 7 0 >"$work/$1.out" 2>&1 </dev/null &
	begun=$!
	living[$begun]=$work/$1.out
}

# end SIGNAL PID
end()
{
	unset "living[$2]"
	kill "$1" "$2" 2>/dev/null
	wait "$2" 2>/dev/null
}

: >"$work/list"
begin one --threads auto
one=$begun
threads one '[0-9]+/[0-9]+'
must $? '--list shows a producer'
if lists one 1/1; then
	skip 'sharing' "a quota of one CPU is nothing to share"
	end -TERM "$one"
	finished
	exit
fi
reader one
one_reader=$begun
threads one 2/2
must $? 'a producer alone has all CPUs'

begin two
two_pid=$begun
reader two
two_reader=$begun
threads one 1/2 && threads two 1/2
must $? 'two with readers have half each'
# The log says so after --list does.
until_ grep -q '1 of 2 threads work: 1 other stream with readers' \
	"$work/one.log"
must $? 'the log says so'

end -KILL "$two_reader"
threads one 2/2
must $? 'a stream without readers needs none'

reader two
two_reader=$begun
threads one 1/2
must $? 'a reader that comes has its part at once'

# Its reader may end with it.
unset "living[$two_reader]"
end -KILL "$two_pid"
threads one 2/2
rc=$?
end -KILL "$two_reader"
[ -e "$TSOCK_DIR/two.cpus" ] && [ "$rc" = 0 ]
must $? 'a producer that was killed has no part'

# A number is kept, and counts for the others.
begin three --threads 2
three=$begun
reader three
three_reader=$begun
threads one 1/2 && threads three 2/2
must $? 'a number of threads is kept'
unset "living[$three_reader]"
end -TERM "$three"
end -KILL "$three_reader"
[ ! -e "$TSOCK_DIR/three.cpus" ]
result $? 'a producer that ends removes its file' "$(ls "$TSOCK_DIR")"

# The file of this stream is made again where it was removed.
rm -f "$TSOCK_DIR/one.cpus"
threads one 2/2
must $? 'a file that was removed is made again'
unset "living[$one_reader]"
end -TERM "$one"
end -KILL "$one_reader"
finished
