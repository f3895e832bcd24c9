#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh - builds and runs every test, and ends in one line for all of them:
# N passed, N failed, N skipped.
#
#   run.sh              the suites that `make check` runs
#   run.sh SUITE...     some of them, by name; run.sh list names all
#   run.sh soak         SOAK_SEEDS (a million) random schedules of each model,
#                       and system tests again and again for SOAK_SECONDS
#   run.sh fuzz         every fuzzer for FUZZ_SECONDS
#
# clang's analyser looks at ANALYZER_NODES states of a function: `make lint` at
# as many as clang does by itself, `make check` at fewer, in a sixth of that
# time.
#
# Programs run $TEST_JOBS at a time (twice as many as there are CPUs and two
# more, since most wait for something now and then), as programs.bash describes,
# each within the seconds of its suite or TEST_TIMEOUT.  While the programs of
# one suite run, the next one is built.
set -u
cd "$(dirname "$0")/.." || exit 1
unset B O SAN CUDA WERROR MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS
unset TSOCK_DIR XDG_RUNTIME_DIR

# A suite: its name, what is built for it, the seconds that each program has,
# what runs, and its title.  FOLDER/PATTERN are test programs, FOLDER/X.sh are
# scripts, and @X is the function X of suites.bash.  Those with a + run only
# when they are asked for.  Those with programs that take minutes come early:
# else one of them would run at the end, alone.
#
# Test programs: once:FOLDER/PATTERN are those that differ by a byte from
# all that ran before them: where an option leaves a program as it was, nothing
# new can be seen.  threads:FOLDER/PATTERN are those that can start a thread:
# in others is no race to be found.
suites='
layers       -        400  @layers                 layers
header       -        400  @header                 the public headers, each alone
unit         plain    400  unit/*                  unit tests
sim          sim      400  once:unit/*,@simulation simulated GPUs
python       plain    1800 @python                 Python
asan         asan     400  unit/*                  unit tests, ASan and UBSan
tsan         tsan     400  threads:unit/*          unit tests, TSan
minimal      minimal  400  once:unit/*             without the optional parts
sim-asan+    sim-asan 1200 @simulation             simulated GPU, ASan and UBSan
sim-tsan+    sim-tsan 1200 @simulation             simulated GPU, TSan
circles      plain    400  @circles                circles
scalar       plain    400  @scalar                 without AVX
slurm+       plain    900  @slurm                  the scripts for Slurm
aarch64+     plain    900  @aarch64                aarch64, emulated
cuda         -        400  @cuda                   the CUDA toolkit
clang        -        400  @clang                  clang, warnings are errors
system       plain    400  system/*,system/*.sh    system tests
system-asan  asan     400  system/*,system/bytes.sh system tests, ASan and UBSan
system-tsan  tsan     400  system/*,system/bytes.sh system tests, TSan
faults       plain    900  faults/*                calls that fail
replay       asan     400  @replay                 inputs of fuzzers, ASan and UBSan
faults-asan+ faults-asan 1800 faults/*                calls that fail, ASan and UBSan
frameworks+  all      3000 @frameworks             Python, inside frameworks
nodes+       plain    1800 @nodes                  ranks on several nodes, by torchrun
ray+         plain    1800 @ray                    tsock.ray, on two nodes of Ray
draws+       plain    7200 @draws                  a million draws of each recipe
lint         lint     400  @lint                   lint
site         plain    400  @site                   the documents as a site
install      plain    400  @install                installation
wheel        plain    400  @wheel                  the wheel
wheel-whole+ plain    3000 @wheel                  the wheel, by pip and in a bare root
format       -        400  @format                 layout
'

# What make is given for a build.
declare -A builds=(
	[all]='B=build WERROR=1 all'
	[plain]='B=build WERROR=1 all tests'
	[asan]='B=build-address-undefined SAN=address,undefined producer
		unit-tests system-tests replays
		build-address-undefined/bench/mkdata'
	[faults-asan]='B=build-address-undefined SAN=address,undefined producer
		fault-tests'
	[tsan]='B=build-thread SAN=thread producer unit-tests system-tests
		build-thread/bench/mkdata'
	[minimal]='B=build-minimal O=build/obj CUDA=0 URING=0 WEBP=0 TIFF=0 AVIF=0 SNDFILE=0 SOXR=0
		WERROR=1 producer unit-tests'
	[scalar]='B=build-scalar O=build/obj CUDA=0 SIMD=0 WERROR=1 producer'
	[aarch64]='B=build-aarch64 CUDA=0 WERROR=1 CC=build/aarch64/gcc
		AR=aarch64-linux-gnu-ar producer lib unit-tests
		build-aarch64/test/streamsum'
	[aarch64-scalar]='B=build-aarch64-scalar O=build-aarch64/obj CUDA=0
		SIMD=0 WERROR=1 CC=build/aarch64/gcc AR=aarch64-linux-gnu-ar
		producer build-aarch64-scalar/test/streamsum'
	[sim]='B=build-sim O=build/obj CUDA=sim WERROR=1 all tests'
	[sim-asan]='B=build-sim-address-undefined CUDA=sim
		SAN=address,undefined producer unit-tests gpu-tests'
	[sim-tsan]='B=build-sim-thread CUDA=sim SAN=thread producer unit-tests
		gpu-tests'
	[cuda]='B=build CUDA=1 WERROR=1 all tests'
	[lint]="B=build-sim O=build/obj CUDA=sim WERROR=1
		ANALYZER_NODES=${ANALYZER_NODES:-20000} analyze"
	[clang]='B=build-clang CC=clang CXX=clang++ CUDA=sim CFLAGS=-O0
		CXXFLAGS=-O0 WERROR=1 all test-objects'
	[fuzz]='B=build-fuzz CC=clang SAN=fuzzer-no-link,address,undefined CFLAGS=-O2
		fuzzers'
)

# The CPUs that this process may use: fewer than it sees where a container has
# a quota.
count_cpus()
{
	local cgroup=/sys/fs/cgroup n quota='' period=''
	n=$(nproc)
	if [ -r $cgroup/cpu.max ]; then
		read -r quota period <$cgroup/cpu.max
	elif [ -r $cgroup/cpu/cpu.cfs_quota_us ]; then
		read -r quota <$cgroup/cpu/cpu.cfs_quota_us
		read -r period <$cgroup/cpu/cpu.cfs_period_us
	fi
	if [[ $quota =~ ^[1-9][0-9]*$ && $period =~ ^[1-9][0-9]*$ ]] &&
		[ $((quota + period - 1)) -lt $((n * period)) ]; then
		n=$(((quota + period - 1) / period))
	fi
	echo "$n"
}

top=$PWD
jobs=$(count_cpus)
at_once=${TEST_JOBS:-$((2 * jobs + 2))}
logs=build/check
mkdir -p $logs
: >$logs/cpu

# Tests that need sample files look here; most make their own.
if [ -z "${TSOCK_TEST_DATA:-}" ] && [ -d ../shared/data ]; then
	TSOCK_TEST_DATA=$(cd ../shared/data && pwd)
	export TSOCK_TEST_DATA
fi

# Short: the path of a unix socket has room for 107 characters.
scratch=$(mktemp -d /tmp/tsock-XXXXXX) || exit 1
cleanup()
{
	stop_builds
	stop_venv
	stop_programs
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# shellcheck source=test/programs.bash
. test/programs.bash
# shellcheck source=test/builds.bash
. test/builds.bash
# shellcheck source=test/venv.bash
. test/venv.bash
# shellcheck source=test/suites.bash
. test/suites.bash

# Sets name, build, limit, what and title; name has no +.
look_up()
{
	read -r name build limit what title < <(grep -E "^${1}[+]? " <<<"$suites")
	name=${name%+}
	limit=${TEST_TIMEOUT:-$limit}
}

# The suite's programs, by its build; NEXT is built meanwhile.
run_suite()
{
	local name build limit what title item items next=${2:-} suite=$1
	look_up "$1"
	title "$title"
	[ "$build" = - ] || use_build "$build" || return 0
	[ -z "$next" ] || build_ahead "$next"
	IFS=, read -ra items <<<"$what"
	for item in "${items[@]}"; do
		case $item in
		@*) "suite_${item#@}" ;;
		*.sh) run_scripts "$item" ;;
		*) run_tests "$build" "$item" ;;
		esac
	done
	leave_build
}

# is_new PROGRAM: have its bytes not run yet?  A program that knows a variable
# by which builds are told apart is always new.
declare -A ran=()
is_new()
{
	local sum
	grep -qaE 'TSOCK_(PRODUCER|NCCL)' "$1" && return 0
	sum=$(sha256sum <"$1")
	[ -z "${ran[$sum]:-}" ] || return 1
	ran[$sum]=1
}

# May it start a thread?  Yes, where its symbols can't be read.
starts_threads()
{
	local symbols
	symbols=$(nm "$1" 2>/dev/null) || return 0
	[ -z "$symbols" ] || [[ $symbols == *pthread_create* ]]
}

# run_tests KIND [RULE:]FOLDER/PATTERN: those test programs, from the build in
# use, of which the rule leaves some out.
run_tests()
{
	local source name left_out rule='' which=$2 omitted=0
	if [[ $2 == *:* ]]; then
		rule=${2%%:*}
		which=${2#*:}
	fi
	left_out=$(left_out "${1%%,*}")
	for source in test/${which%/*}/test_${which#*/}.c; do
		[ -f "$source" ] || continue
		name=${source#test/}
		name=${name%.c}
		if [ -x "$B/test/$name" ]; then
			if { ! is_new "$B/test/$name" && [ "$rule" = once ]; } ||
				{ [ "$rule" = threads ] &&
				! starts_threads "$B/test/$name"; }; then
				omitted=$((omitted + 1))
				continue
			fi
			run_program "$1: $name" "$B/test/$name"
		elif grep -qxF "$source" <<<"$left_out"; then
			skip "$1: $name" "this build has no CUDA"
		else
			fail "$1: $name was not built"
		fi
	done
	case $omitted$rule in
	0*) ;;
	*once) say "      $omitted programs ran before, byte by byte" ;;
	*threads) say "      $omitted programs start no thread" ;;
	esac
}

run_scripts()
{
	local file
	for file in test/$1; do
		[ ! -x "$file" ] ||
			run_program "$build: ${file#test/}" "$file"
	done
}

report()
{
	finish_programs
	check_linked_once
	list_of skipped "${skips[@]}"
	list_of failed "${failures[@]}"
	say "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
}

list_of()
{
	local line
	[ $# -gt 1 ] || return 0
	say "== $1"
	for line in "${@:2}"; do
		say "  $line"
	done
}

case ${1:-all} in
all)
	# shellcheck disable=SC2046 # words
	set -- $(awk 'NF && $1 !~ /[+]$/ { print $1 }' <<<"$suites")
	;;
list)
	awk 'NF { print $1 }' <<<"$suites"
	exit
	;;
soak | fuzz)
	suite=$1
	"$1"
	report
	exit
	;;
esac
for suite in "$@"; do
	if ! grep -qE "^${suite}[+]? " <<<"$suites"; then
		say "run.sh: no suite $suite" >&2
		exit 2
	fi
	case $suite in python | frameworks | nodes | ray | draws) start_venv ;; esac
done
while [ $# -gt 0 ]; do
	run_suite "$@"
	shift
done
report
