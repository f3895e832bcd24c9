#!/bin/bash
# run.sh - builds and runs every test, and ends in one line for all of them:
# N passed, N failed, N skipped.
#
#   run.sh              all suites, as `make check` does
#   run.sh SUITE...     some of them (sim-asan and sim-tsan only so): layers header unit asan tsan minimal
#                       sim circles sim-asan sim-tsan cuda clang system system-asan
#                       system-tsan python install format
#   run.sh soak         system tests again and again for SOAK_SECONDS
#   run.sh fuzz         every fuzzer for FUZZ_SECONDS
#
# Programs run $TEST_JOBS at a time (one per CPU), as programs.bash describes,
# each within TEST_TIMEOUT seconds.
set -u
cd "$(dirname "$0")/.." || exit 1
unset B SAN CUDA WERROR MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES GNUMAKEFLAGS
unset TSOCK_DIR XDG_RUNTIME_DIR

top=$PWD
jobs=$(nproc)
at_once=${TEST_JOBS:-$jobs}
limit=${TEST_TIMEOUT:-400}
logs=build/check
# shellcheck source=test/programs.bash
. test/programs.bash

# Tests that need sample files look here; most make their own.
if [ -z "${TSOCK_TEST_DATA:-}" ] && [ -d ../shared/data ]; then
	TSOCK_TEST_DATA=$(cd ../shared/data && pwd)
	export TSOCK_TEST_DATA
fi

# Short: the path of a unix socket has room for 107 characters.
scratch=$(mktemp -d /tmp/tsock-XXXXXX) || exit 1
cleanup()
{
	stop_programs
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# build WHAT ARGUMENTS...: as much as can be built.
build()
{
	local what=$1 log
	shift
	log=$logs/build-$(printf %s "$what" | tr -c 'A-Za-z0-9_.-' _).log
	if ! make -k -j"$jobs" --no-print-directory "$@" >"$log" 2>&1; then
		grep -E 'error|Error|warning:|undefined reference' "$log" |
			head -n 30 >"$log.short"
		fail "build: $what" "$log.short"
		return 1
	fi
}

# The names of the test programs of a folder: every test_*.c in it.
programs()
{
	local file
	for file in "test/$1"/test_*.c; do
		[ -f "$file" ] && basename "$file" .c
	done
}

# run_all KIND FOLDER BUILD: run test/FOLDER's programs from BUILD.
run_all()
{
	run_some "$1" "$2" "$3" '*'
}

# run_some KIND FOLDER BUILD PATTERN: those whose names match.
run_some()
{
	local kind=$1 folder=$2 b=$3 name reason
	export B=$b TSOCK_PRODUCER=$top/$b/bin/tsock-producer
	for name in $(programs "$folder"); do
		# shellcheck disable=SC2254 # a pattern it is
		case $name in
		$4) ;;
		*) continue ;;
		esac
		reason=
		[[ $kind != *tsan* && $kind != *thread* ]] || [ ! -f "test/$folder/tsan.skip" ] ||
			reason=$(sed -n "s/^${name}[[:space:]]\{1,\}//p" \
				"test/$folder/tsan.skip")
		if [ -n "$reason" ]; then
			skip "$kind: $folder/$name" "$reason"
		elif [ -x "$b/test/$folder/$name" ]; then
			run_program "$kind: $folder/$name" \
				"$b/test/$folder/$name"
		else
			fail "$kind: $folder/$name was not built"
		fi
	done
	unset B TSOCK_PRODUCER
}

# --------------------------------------------------------------------------
# Sanitizers

export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
# Without the last one every process sleeps for a second at its end.
export TSAN_OPTIONS=suppressions=$top/test/tsan.supp:die_after_fork=0
TSAN_OPTIONS+=:atexit_sleep_ms=50
leaks=1
set_asan()
{
	export ASAN_OPTIONS=detect_leaks=$leaks:allocator_may_return_null=1
}
set_asan

# Does the compiler have it, and does it run here?  Older runtimes don't work
# with all of the kernel's address randomisation, and leaks can't be looked
# for under a debugger.
sanitizer_works()
{
	local san=$1 probe=$scratch/probe
	prefix=()
	if ! echo 'int main(void) { return 0; }' | ${CC:-cc} \
		"-fsanitize=$san" -x c - -o "$probe" 2>/dev/null; then
		skip "-fsanitize=$san" "the compiler has no runtime for it"
		return 1
	fi
	"$probe" >/dev/null 2>&1 && return 0
	prefix=(setarch -R)
	"${prefix[@]}" "$probe" >/dev/null 2>&1 && return 0
	prefix=()
	leaks=0
	set_asan
	if "$probe" >/dev/null 2>&1; then
		skip "leak check" "can't run here"
		return 0
	fi
	skip "-fsanitize=$san" "its programs don't start on this kernel"
	return 1
}

sanitized()
{
	local kind=$1 san=$2 folder=$3 target=$4 b
	b=build-${san//,/-}
	sanitizer_works "$san" || return 0
	build "$san" "SAN=$san" "B=$b" producer "$target" "$b/bench/mkdata"
	run_all "$kind" "$folder" "$b"
	# The whole pipeline, with several worker threads.
	if [ "$folder" = system ]; then
		export B=$b TSOCK_PRODUCER=$top/$b/bin/tsock-producer
		run_program "$kind: system/bytes.sh" test/system/bytes.sh
		unset B TSOCK_PRODUCER
	fi
	prefix=()
}

# --------------------------------------------------------------------------
# Suites

suite_layers()
{
	title 'layers'
	run_program 'layers' test/layers.sh
	run_program 'layers finds what is planted' test/layers.sh --self-test
}

# The simulated build has the GPU part's files, too.
suite_circles()
{
	title 'circles'
	build 'everything' B=build WERROR=1 all tests
	build 'CUDA=sim' CUDA=sim B=build-sim WERROR=1 all tests
	run_program 'circles' test/circles.sh build build-sim
	run_program 'circles finds what is planted' test/circles.sh --self-test
}

header_compiles()
{
	local name=$1
	shift
	if printf '%s\n' '#include <tsock/tsock.h>' \
		'struct tsock_opts o = TSOCK_OPTS_INIT;' \
		'struct tsock_serve_opts s = TSOCK_SERVE_OPTS_INIT;' |
		"$@" -Iinclude -pedantic-errors -Wall -Wextra -Werror \
			-fsyntax-only - >"$logs/header.log" 2>&1; then
		pass 1 "$name"
	else
		fail "$name" "$logs/header.log"
	fi
}

suite_header()
{
	local cc cxx
	title 'tsock.h alone'
	for cc in gcc clang; do
		command -v $cc >/dev/null || continue
		header_compiles "$cc, C99" $cc -std=c99 -x c
		header_compiles "$cc, C11" $cc -std=c11 -x c
	done
	for cxx in g++ clang++; do
		command -v $cxx >/dev/null || continue
		header_compiles "$cxx, C++17" $cxx -std=c++17 -x c++
	done
}

suite_unit()
{
	title 'unit tests'
	build 'everything' B=build WERROR=1 all tests
	run_all plain unit build
}

suite_asan()
{
	title 'unit tests, address and undefined'
	sanitized asan address,undefined unit unit-tests
}

suite_tsan()
{
	title 'unit tests, thread'
	sanitized tsan thread unit unit-tests
}

suite_minimal()
{
	title 'without the optional parts'
	build 'CUDA=0 URING=0' CUDA=0 URING=0 B=build-minimal WERROR=1 \
		producer unit-tests
	run_all minimal unit build-minimal
}

# Of a CUDA runtime to what libtsock takes for granted; the simulated one is
# tried in every order of work.
conformance()
{
	local file name
	for file in test/simcuda/conformance*.c; do
		name=$(basename "$file" .c)
		if [ -x "$2/test/simcuda/$name" ]; then
			run_program "$1: $name" "$2/test/simcuda/$name"
		elif [[ $1 = sim* ]]; then
			fail "$1: $name was not built"
		fi
	done
}

# The GPU part on the simulated runtime.  SIM_MODES are MODE/SEED pairs of the
# order of work: eager, late, reverse and random; see test/simcuda/README.md.
# Unless they are given, the second one is for some programs alone: together
# they take minutes.
sim_everything()
{
	local kind=$1 b=$2 mode which='test_*'
	conformance "$kind" "$b"
	if [ -x "$b/test/gpu/test_kernels" ]; then
		run_program "$kind: gpu/test_kernels" "$b/test/gpu/test_kernels"
	else
		skip "$kind: gpu/test_kernels" 'there is no C++ compiler'
	fi
	for mode in ${SIM_MODES:-late/1 random/1}; do
		export SIMCUDA_MODE=${mode%/*} SIMCUDA_SEED=${mode#*/}
		export FANOUT_MODE=$SIMCUDA_MODE
		run_some "$kind, ${mode/\// }" unit "$b" 'test_gpu*'
		run_some "$kind, ${mode/\// }" gpu "$b" "$which"
		[ -n "${SIM_MODES:-}" ] || which='test_[cfmw]*'
	done
	unset SIMCUDA_MODE SIMCUDA_SEED FANOUT_MODE
}

suite_sim()
{
	title 'simulated GPUs'
	build 'CUDA=sim' CUDA=sim B=build-sim WERROR=1 all tests
	export TSOCK_NCCL=$top/build-sim/test/simcuda/libnccl_sim.so
	run_all sim unit build-sim
	sim_everything sim build-sim
	unset TSOCK_NCCL
}

sim_sanitized()
{
	local san=$1 b=build-sim-${1//,/-} limit=$((limit * 3))
	sanitizer_works "$san" || return 0
	build "CUDA=sim $san" CUDA=sim "SAN=$san" "B=$b" producer unit-tests \
		gpu-tests
	export TSOCK_NCCL=$top/$b/test/simcuda/libnccl_sim.so
	sim_everything "sim, ${san%%,*}" "$b"
	unset TSOCK_NCCL
	prefix=()
}

suite_sim_asan()
{
	title 'simulated GPUs, address and undefined'
	sim_sanitized address,undefined
}

suite_sim_tsan()
{
	title 'simulated GPUs, thread'
	sim_sanitized thread
}

suite_cuda()
{
	local why
	title 'the CUDA toolkit'
	why=$(make --no-print-directory CUDA=1 -n lib 2>&1 |
		sed -n 's/.*\*\*\* \(CUDA=1 but .*\);.*/\1/p')
	if [ -n "$why" ]; then
		skip 'CUDA=1' "$why"
		return
	fi
	# Where there is a toolkit, the plain build has found it too.
	build 'CUDA=1' CUDA=1 B=build WERROR=1 all tests || return
	pass 1 'builds by nvcc'
	run_program 'cuda: gpu/stores.sh' test/gpu/stores.sh
	if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
		run_all cuda gpu build
	else
		skip 'cuda: test/gpu' 'no GPU here'
	fi
	conformance cuda build
	# No driver is needed to say that there is none.
	run_program 'cuda: the producer starts' build/bin/tsock-producer --help
}

suite_clang()
{
	title 'clang, warnings are errors'
	if ! command -v clang >/dev/null; then
		skip clang 'not installed'
		return
	fi
	# With the simulation: clang sees the GPU part, and nvcc stays out of it.
	build clang CC=clang CXX=clang++ CUDA=sim B=build-clang WERROR=1 \
		all tests &&
		pass 1 'builds by clang'
}

suite_system()
{
	local file
	title 'system tests'
	build 'everything' B=build WERROR=1 all tests
	run_all plain system build
	export B=build TSOCK_PRODUCER=$top/build/bin/tsock-producer
	for file in test/system/*.sh; do
		[ -x "$file" ] || continue
		run_program "plain: system/$(basename "$file")" "$file"
	done
	unset B TSOCK_PRODUCER
}

suite_system_asan()
{
	title 'system tests, address and undefined'
	sanitized asan address,undefined system tests
}

suite_system_tsan()
{
	title 'system tests, thread'
	sanitized tsan thread system tests
}

# Installed once; what the network didn't give is tried again the next time.
fill_venv()
{
	local venv=build/venv log=$logs/venv.log pip
	[ -f $venv/filled ] && return 0
	command -v python3 >/dev/null || return 1
	say "      filling $venv (numpy pillow pytest torch torchvision)"
	python3 -m venv --clear $venv >"$log" 2>&1 || return 1
	pip=("$venv/bin/python" -m pip install --quiet --retries 2
		--disable-pip-version-check numpy pillow pytest)
	if timeout 1200 "${pip[@]}" torch torchvision >>"$log" 2>&1; then
		touch $venv/filled
		return 0
	fi
	timeout 600 "${pip[@]}" >>"$log" 2>&1 || return 1
	skip 'tests against torch and torchvision' \
		"pip can't install them: $(tail -n 1 "$log")"
}

suite_python()
{
	local folders=() folder file
	title 'Python'
	for folder in bindings/python/tests test/parity; do
		find $folder -name 'test_*.py' 2>/dev/null | grep -q . &&
			folders+=("$folder")
	done
	[ ${#folders[@]} -gt 0 ] || return 0
	build 'everything' B=build WERROR=1 all tests
	if ! fill_venv; then
		while IFS= read -r file; do
			skip "$file" "build/venv can't be filled: $(tail -n 1 \
				$logs/venv.log 2>/dev/null || echo no python3)"
		done < <(find "${folders[@]}" -name 'test_*.py')
		return 0
	fi
	export B=build TSOCK_PRODUCER=$top/build/bin/tsock-producer
	export PYTHONPATH=$top/bindings/python PYTHONDONTWRITEBYTECODE=1
	for folder in "${folders[@]}"; do
		junit=$logs/$(basename "$(dirname "$folder")")-tests.xml
		rm -f "$junit"
		limit=900 run_program "python: $folder" build/venv/bin/python \
			-m pytest -q -rs -p no:cacheprovider \
			-o faulthandler_timeout=100 --junitxml="$junit" "$folder"
	done
	unset B TSOCK_PRODUCER PYTHONPATH PYTHONDONTWRITEBYTECODE junit
}

suite_install()
{
	title 'installation'
	build 'everything' B=build WERROR=1 all
	run_program 'installed library and programs' test/installed.sh
	run_program 'installed as a user does' test/installed_root.sh
	run_program 'the same bytes from two folders' test/reproducible.sh
}

suite_format()
{
	local tool version file bad=0 files
	title 'layout'
	tool=$(command -v clang-format-14 || command -v clang-format)
	version=$("${tool:-false}" --version 2>/dev/null |
		sed -n 's/.*version \([0-9]*\).*/\1/p')
	if [ "$version" != 14 ]; then
		skip 'clang-format' \
			"the layout is version 14's, here is ${version:-none}"
		return
	fi
	mapfile -t files < <(find bench examples include lib producer test \
		-name '*.[ch]' -o -name '*.cpp' -o -name '*.cu')
	for file in "${files[@]}"; do
		"$tool" --dry-run -Werror "$file" >/dev/null 2>&1 && continue
		fail "layout of $file: run make format"
		bad=1
	done
	[ $bad = 1 ] || pass 1 "clang-format of ${#files[@]} files"
}

# --------------------------------------------------------------------------

soak()
{
	local end=$((SECONDS + ${SOAK_SECONDS:-600})) round=0
	build 'everything' B=build all tests
	while [ $SECONDS -lt $end ] && [ $failed = 0 ]; do
		round=$((round + 1))
		title "round $round"
		export TSOCK_TEST_SEED=$round
		suite_system
		suite_system_asan
		finish_programs
	done
}

fuzz()
{
	local b=build-fuzz source name corpus
	build fuzzers CC=clang SAN=fuzzer-no-link,address,undefined B=$b \
		fuzzers || return
	for source in test/fuzz/*.c; do
		[ -f "$source" ] || continue
		name=$(basename "$source" .c)
		corpus=$b/corpus/$name
		mkdir -p "$corpus"
		limit=$((${FUZZ_SECONDS:-60} + 60))
		run_program "fuzz: $name" "$b/test/fuzz/$name" \
			-max_total_time="${FUZZ_SECONDS:-60}" -timeout=30 -error_exitcode=1 \
			-artifact_prefix="$b/$name-" "$corpus"
	done
}

report()
{
	local line
	finish_programs
	if [ ${#skips[@]} -gt 0 ]; then
		say '== skipped'
		for line in "${skips[@]}"; do
			say "  $line"
		done
	fi
	if [ ${#failures[@]} -gt 0 ]; then
		say '== failed'
		for line in "${failures[@]}"; do
			say "  $line"
		done
	fi
	say "$passed passed, $failed failed, $skipped skipped"
	[ $failed = 0 ]
}

mkdir -p $logs
case ${1:-all} in
all)
	set -- layers header unit asan tsan minimal sim circles cuda clang system \
		system-asan system-tsan python install format
	;;
soak | fuzz)
	"$1"
	report
	exit
	;;
esac
for suite in "$@"; do
	if ! declare -F "suite_${suite//-/_}" >/dev/null; then
		say "run.sh: no suite $suite" >&2
		exit 2
	fi
done
for suite in "$@"; do
	"suite_${suite//-/_}"
done
report
