# SPDX-License-Identifier: MIT
# builds.bash - the builds of run.sh, one make at a time: in front of the
# suite that needs one, or in the background while the suite before it runs.

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Without the last one every process sleeps for a second at its end.
export TSAN_OPTIONS=suppressions=$top/test/tsan.supp:die_after_fork=0
TSAN_OPTIONS+=:atexit_sleep_ms=50
builder=

# start_build NAME: as much as can be built.
start_build()
{
	[ ! -e "$scratch/build-$1" ] || return 0
	touch "$scratch/build-$1"
	# Two makes might build the same file.
	while [ -n "$builder" ] && kill -0 "$builder" 2>/dev/null; do
		sleep 0.1
		reap
	done
	(
		trap - EXIT
		# shellcheck disable=SC2086 # words
		nice make -k -j"$jobs" --no-print-directory ${builds[$1]} \
			>"$logs/build-$1.log" 2>&1 &
		# shellcheck disable=SC2064 # now
		trap "kill $!; exit 130" TERM INT HUP
		wait $!
		rc=$?
		note_cpu "build of $1"
		echo $rc >"$scratch/built-$1"
	) &
	builder=$!
}

stop_builds()
{
	[ -z "$builder" ] || kill "$builder" 2>/dev/null
}

# finish_build NAME: start it unless that was done, and wait for it.
finish_build()
{
	local log=$logs/build-$1.log
	start_build "$1"
	# What was built before leaves the build that is under way alone.
	if [ ! -s "$scratch/built-$1" ]; then
		while [ ! -s "$scratch/built-$1" ] &&
			kill -0 "$builder" 2>/dev/null; do
			sleep 0.1
			reap
		done
		builder=
	fi
	if [ "$(cat "$scratch/built-$1")" = 0 ]; then
		[ -s "$scratch/linked" ] || linked >"$scratch/linked"
		return 0
	fi
	grep -E 'error|Error|warning:|undefined reference' "$log" |
		head -n 30 >"$log.short"
	fail "build: $1" "$log.short"
	return 1
}

# What tests run or load from build, and when that was linked.
linked()
{
	stat -c '%n, %y' build/bin/* build/lib/* 2>/dev/null
}

# Programs of several suites are under way at once: what one of them links anew
# is missing for a moment, and others that start it then fail.
check_linked_once()
{
	[ -s "$scratch/linked" ] || return 0
	linked | diff "$scratch/linked" - >"$logs/linked.log" || fail \
		'a test has linked what other tests run' "$logs/linked.log"
}

# build_ahead SUITE: what it needs, if it can be used here.
build_ahead()
{
	local name build limit what title
	look_up "$1"
	[ "$build" != - ] || return 0
	(sanitizer_of "$build" >/dev/null) && start_build "$build"
}

# use_build NAME: build it, and have programs run from there.
use_build()
{
	local why
	sanitizer_of "$1" >"$scratch/why"
	case $? in
	1)
		skip "build: $1" "$(cat "$scratch/why")"
		return 1
		;;
	2) skip 'leak check' "can't run here" ;;
	esac
	finish_build "$1"
	B=${builds[$1]#B=}
	B=${B%%[[:space:]]*}
	export B TSOCK_PRODUCER=$top/$B/bin/tsock-producer
	[[ ${builds[$1]} != *CUDA=sim* ]] ||
		export TSOCK_NCCL=$top/$B/test/simcuda/libnccl_sim.so
}

# left_out NAME: the sources of tests that this build has no use for.
left_out()
{
	# shellcheck disable=SC2046 # words
	make -s --no-print-directory \
		$(grep -o '[A-Z]*=[^[:space:]]*' <<<"${builds[$1]}") left-out
}

leave_build()
{
	unset B TSOCK_PRODUCER TSOCK_NCCL
	prefix=()
}

# Does the compiler have the build's sanitizer, and does it run here?  Older
# runtimes don't work with all of the kernel's address randomisation, and leaks
# can't be looked for under a debugger: 2 says that only this doesn't work.
sanitizer_of()
{
	local san probe=$scratch/probe
	prefix=()
	san=$(grep -o 'SAN=[^[:space:]]*' <<<"${builds[$1]}") || return 0
	san=${san#SAN=}
	export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
	if ! echo 'int main(void) { return 0; }' | ${CC:-cc} \
		"-fsanitize=$san" -x c - -o "$probe" 2>/dev/null; then
		echo "the compiler has no runtime for -fsanitize=$san"
		return 1
	fi
	"$probe" >/dev/null 2>&1 && return 0
	prefix=(setarch -R)
	"${prefix[@]}" "$probe" >/dev/null 2>&1 && return 0
	prefix=()
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
	"$probe" >/dev/null 2>&1 && return 2
	echo "programs with -fsanitize=$san don't start on this kernel"
	return 1
}
