# SPDX-License-Identifier: MIT
# producer.bash - what the tests of tsock-producer's command line share.  To be
# sourced; prints TAP.
set -u
B=${B:-build}
producer=${TSOCK_PRODUCER:-$B/bin/tsock-producer}
seen=$B/examples/seen
work=$(mktemp -d "${TMPDIR:-/tmp}/producer-XXXXXX") || exit 1
export TSOCK_DIR=$work/run XDG_CACHE_HOME=$work/cache
mkdir -m 700 "$TSOCK_DIR"
n=0 failed=0 skipped=0 pid=
trap '[ "$BASHPID" != $$ ] || clean_up' EXIT
trap 'exit 130' INT TERM HUP

# Not by a child: one that a signal meets before it executes its program runs
# the traps of this script.
clean_up()
{
	stop
	rm -rf "$work"
}

ok()
{
	n=$((n + 1))
	echo "ok $n - $1"
}

# With what was printed, for whoever has to find out why.
not_ok()
{
	n=$((n + 1)) failed=$((failed + 1))
	echo "not ok $n - $1"
	shift
	for line in "$@"; do
		printf '%s\n' "$line" | sed 's/^/# /'
	done
}

# skip WHAT WHY
skip()
{
	n=$((n + 1)) skipped=$((skipped + 1))
	echo "$2"
	echo "not ok $n # SKIP $1"
}

# result CODE WHAT [MORE]
result()
{
	if [ "$1" = 0 ]; then
		ok "$2"
	else
		not_ok "$2" "${@:3}"
	fi
}

finished()
{
	echo "1..$n"
	echo "# $((n - failed - skipped)) passed, $failed failed," \
		"$skipped skipped"
	[ "$failed" = 0 ]
}

# await_listed NAME: until a producer of that name answers; what --list says
# then is in $work/out.  One that is quiet serves from then on.
await_listed()
{
	local _
	for _ in $(seq 900); do
		"$producer" --list >"$work/out"
		grep -q "^$1 " "$work/out" && return
		sleep 0.05
	done
}

# fails CODE PATTERN WHAT COMMAND...: one sentence on standard error, which
# fits the pattern, nothing on standard output, and that exit code.
fails()
{
	local want=$1 pattern=$2 what=$3 rc lines
	shift 3
	timeout 90 "$@" >"$work/out" 2>"$work/err" </dev/null
	rc=$?
	lines=$(wc -l <"$work/err")
	[ "$rc" = "$want" ] && [ "$lines" = 1 ] && [ ! -s "$work/out" ] &&
		grep -qE "^tsock-producer: .*($pattern)" "$work/err"
	result $? "$what" "exit code $rc, wanted $want" \
		"$(head -n 5 "$work/err")" "$(head -n 5 "$work/out")"
}

# start COMMAND...: a producer that has to be ready; its log is $work/log.
start()
{
	local i
	# Now, not when the background process gets to it: the last
	# producer's log says "serving", too.
	: >"$work/log"
	"$@" >"$work/log" 2>&1 </dev/null &
	pid=$!
	for i in $(seq 1800); do
		grep -q 'serving "' "$work/log" && return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	return 1
}

stop()
{
	[ -n "$pid" ] || return 0
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	rc=$?
	pid=
	return "$rc"
}

# Wait until a producer that was started ends by itself; its exit code.
ended()
{
	local i
	for i in $(seq 1800); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	kill -0 "$pid" 2>/dev/null && return 255
	wait "$pid"
	rc=$?
	pid=
	return "$rc"
}

"$B/bench/mkdata" "$work/set" --classes 3 --images 12 --val 4 --seed 5 \
	--min 60 --max 160 >/dev/null || exit 1
set=(--dataset imagenet --root "$work/set")
small=(--size 32 --ring 64 --max-batch 16)
