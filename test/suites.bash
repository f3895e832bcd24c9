# SPDX-License-Identifier: MIT
# suites.bash - the suites of run.sh that are more than a list of programs.
# B and TSOCK_PRODUCER name the build in use, and $build says which it is.

suite_layers()
{
	run_program 'layers' test/layers.sh
	run_program 'layers finds what is planted' test/layers.sh --self-test
	run_program 'what documents name is there' test/docs.sh
	run_program 'docs.sh finds what is planted' test/docs.sh --self-test
	run_program 'what planted faults edit is there' test/mutants.sh --check
	run_program 'mutants.sh finds what is planted' \
		test/mutants.sh --self-test
	if command -v python3 >/dev/null; then
		run_program 'what options.def gives is not stale' \
			producer/cli/generate.py --check
		run_program 'generate.py finds what is planted' \
			producer/cli/generate.py --self-test
	else
		skip 'what options.def gives is not stale' 'no python3'
	fi
}

# The simulated build has the GPU part's files, too.
suite_circles()
{
	finish_build sim
	run_program 'circles' test/circles.sh build build-sim
	run_program 'circles finds what is planted' test/circles.sh --self-test
}

# What the plain build gives, from one without vector instructions.
suite_scalar()
{
	finish_build scalar &&
		run_program 'the same bytes without AVX' test/simd.sh \
			build-scalar
}

# Cross-compiled and emulated; what qemu-user can't run is skipped.  The
# libraries that make asks for are those of another root.
suite_aarch64()
{
	local rc
	test/aarch64.sh >"$logs/aarch64.log" 2>&1
	rc=$?
	case $rc in
	0) ;;
	77)
		skip 'aarch64' "$(tail -n 1 "$logs/aarch64.log")"
		return
		;;
	*)
		fail 'aarch64: nothing to build with' "$logs/aarch64.log"
		return
		;;
	esac
	export PKG_CONFIG_SYSROOT_DIR=$top/build/aarch64/root
	export PKG_CONFIG_LIBDIR=$PKG_CONFIG_SYSROOT_DIR/usr/lib/aarch64-linux-gnu
	PKG_CONFIG_LIBDIR+=/pkgconfig:$PKG_CONFIG_SYSROOT_DIR/usr/share/pkgconfig
	if use_build aarch64; then
		prefix=("$top/test/aarch64.sh" run)
		run_tests aarch64 'unit/*'
		leave_build
		finish_build aarch64-scalar && B=build run_program \
			'aarch64: the same bytes' test/aarch64_bytes.sh \
			build-aarch64 build-aarch64-scalar
	fi
	unset PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_LIBDIR
}

# A program that includes tsock.h, and each of its parts alone.
header_compiles()
{
	local name=$1 header lone=''
	shift
	for header in include/tsock/*.h; do
		echo "#include <${header#include/}>" >"$logs/alone.h"
		"$@" -Iinclude -pedantic-errors -Wall -Wextra -Werror \
			-fsyntax-only - <"$logs/alone.h" \
			>"$logs/header.log" 2>&1 || lone+="$header "
	done
	if [ -n "$lone" ]; then
		echo "not to be included alone: $lone" >>"$logs/header.log"
		fail "$name" "$logs/header.log"
	elif printf '%s\n' '#include <tsock/tsock.h>' \
		'struct tsock_opts o = TSOCK_OPTS_INIT;' \
		'struct tsock_serve_opts s = TSOCK_SERVE_OPTS_INIT;' \
		'struct tsock_order_opts r = TSOCK_ORDER_OPTS_INIT;' \
		'struct tsock_rank_opts n = TSOCK_RANK_OPTS_INIT;' \
		'struct tsock_gpu_samples g = TSOCK_GPU_SAMPLES_INIT;' |
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

# What libtsock assumes of a CUDA runtime is checked; the simulated one is
# tried in every order of work.
conformance()
{
	local file name
	for file in test/simcuda/conformance*.c; do
		name=$(basename "$file" .c)
		if [ -x "$B/test/simcuda/$name" ]; then
			run_program "$1: $name" "$B/test/simcuda/$name"
		elif [[ $1 = sim* ]]; then
			fail "$1: $name was not built"
		fi
	done
}

# The GPU part on the simulated runtime.  SIM_MODES are MODE/SEED pairs of the
# order of work: eager, late, reverse and random; see test/simcuda/README.md.
# Unless they are given, the second one is for some programs alone: together
# they take minutes.
suite_simulation()
{
	local mode which='*'
	conformance "$build"
	if [ -x "$B/test/gpu/test_kernels" ]; then
		run_program "$build: gpu/test_kernels" "$B/test/gpu/test_kernels"
	else
		skip "$build: gpu/test_kernels" 'there is no C++ compiler'
	fi
	for mode in ${SIM_MODES:-late/1 random/1}; do
		export SIMCUDA_MODE=${mode%/*} SIMCUDA_SEED=${mode#*/}
		export FANOUT_MODE=$SIMCUDA_MODE
		run_tests "$build, ${mode/\// }" 'unit/gpu*'
		run_tests "$build, ${mode/\// }" "gpu/$which"
		[ -n "${SIM_MODES:-}" ] || which='[cfmw]*'
	done
	unset SIMCUDA_MODE SIMCUDA_SEED FANOUT_MODE
}

suite_cuda()
{
	local why
	why=$(make --no-print-directory CUDA=1 -n lib 2>&1 |
		sed -n 's/.*\*\*\* \(CUDA=1 but .*\);.*/\1/p')
	if [ -n "$why" ]; then
		skip 'CUDA=1' "$why"
		return
	fi
	# Where there is a toolkit, the plain build has found it too.
	finish_build cuda || return
	use_build cuda
	pass 1 'builds by nvcc'
	run_program 'cuda: gpu/stores.sh' test/gpu/stores.sh
	if [ -e /dev/nvidiactl ] || [ -e /dev/dxg ]; then
		run_tests cuda 'gpu/*'
	else
		skip 'cuda: test/gpu' 'no GPU here'
	fi
	conformance cuda
	# No driver is needed to say that there is none.
	run_program 'cuda: the producer starts' "$TSOCK_PRODUCER" --help
}

# With the simulation: clang sees the GPU part, and nvcc stays out of it.
suite_clang()
{
	if ! command -v clang >/dev/null; then
		skip clang 'not installed'
		return
	fi
	finish_build clang && pass 1 'builds by clang'
}

# run_pytest NAME VENV FOLDER: as several programs that share the files, so that
# what one waits for doesn't hold up the others.  Tests of parity wait for
# nothing, and each program imports torch and torchvision: 11 s of a CPU.
run_pytest()
{
	local files part parts=3
	[ "$3" != test/parity ] || parts=2
	for ((part = 0; part < parts; part++)); do
		mapfile -t files < <(find "$3" -name 'test_*.py' | sort |
			awk -v part=$part -v parts=$parts 'NR % parts == part')
		[ ${#files[@]} = 0 ] || run_pytest_files "$1" "$2" \
			"$3 ($((part + 1)) of $parts)" "${files[@]}"
	done
}

# run_pytest_files NAME VENV TITLE FILE...
run_pytest_files()
{
	# Bytecode is kept, and not in the checkout: hundreds of processes import
	# the package.  Threads of torch's would wait for one another most of the
	# time, since several programs share the CPUs.
	export PYTHONPATH=$top/bindings/python PYTHONPYCACHEPREFIX=$top/build/pycache
	export OMP_NUM_THREADS=1
	unset PYTHONDONTWRITEBYTECODE
	link_bytecode build/pycache
	junit=$logs/$(tr -c 'A-Za-z0-9\n' - <<<"$1-$3").xml
	rm -f "$junit"
	run_program "$1: $3" "$2/bin/python" -m pytest -q -rs \
		-p no:cacheprovider -o faulthandler_timeout=100 \
		--junitxml="$junit" "${@:4}"
	unset PYTHONPATH PYTHONPYCACHEPREFIX OMP_NUM_THREADS junit
}

suite_python()
{
	local folders=() folder file
	for folder in bindings/python/tests test/parity; do
		find $folder -name 'test_*.py' 2>/dev/null | grep -q . &&
			folders+=("$folder")
	done
	[ ${#folders[@]} -gt 0 ] || return 0
	if ! fill_venv; then
		while IFS= read -r file; do
			skip "$file" "build/venv can't be filled: $(tail -n 1 \
				$logs/venv.log 2>/dev/null || echo no python3)"
		done < <(find "${folders[@]}" -name 'test_*.py')
		return 0
	fi
	# That of the tests of loaders on a GPU.
	finish_build sim
	for folder in "${folders[@]}"; do
		run_pytest python build/venv "$folder"
	done
	if build/venv/bin/python -c 'import clang.cindex' 2>/dev/null; then
		run_program 'python: test/structs.py' \
			build/venv/bin/python test/structs.py
	else
		skip 'python: test/structs.py' 'no libclang for Python'
	fi
}

# fill_venv_beside VENV PACKAGES: what build/venv has, and more.
fill_venv_beside()
{
	local venv=build/$1 log=$logs/$1.log all=$2 site
	[ "$(cat $venv/filled 2>/dev/null)" != "$all" ] || return 0
	say "      filling $venv ($all)"
	build/venv/bin/python -m venv --clear $venv >"$log" 2>&1 || return 1
	site='import sysconfig; print(sysconfig.get_path("purelib"))'
	build/venv/bin/python -c "$site" \
		>"$($venv/bin/python -c "$site")/build-venv.pth" || return 1
	# shellcheck disable=SC2086 # a list
	pip_install 1200 $venv $all >>"$log" 2>&1 || return 1
	echo "$all" >$venv/filled
}

suite_slurm()
{
	if ! fill_venv; then
		fail "build/venv can't be filled" $logs/venv.log
		return
	fi
	run_program 'the scripts of examples/slurm' test/slurm/scripts.sh
}

# Every test of the Python package, those inside frameworks included.
suite_frameworks()
{
	if ! fill_venv; then
		fail "build/venv can't be filled" $logs/venv.log
	elif ! fill_venv_beside venv-frameworks "accelerate datasets jax[cpu] \
keras lightning timm torchmetrics transformers"; then
		fail "build/venv-frameworks can't be filled" \
			$logs/venv-frameworks.log
	else
		run_pytest frameworks build/venv-frameworks bindings/python/tests
	fi
}

# All tests of ranks on several nodes, of which `make check` has the short ones.
suite_nodes()
{
	if ! fill_venv; then
		fail "build/venv can't be filled" $logs/venv.log
		return
	fi
	export TSOCK_TEST_NODES=1
	run_pytest_files nodes build/venv 'ranks on several nodes' \
		bindings/python/tests/test_nodes*.py
	unset TSOCK_TEST_NODES
}

suite_ray()
{
	if ! fill_venv; then
		fail "build/venv can't be filled" $logs/venv.log
		return
	elif ! fill_venv_beside venv-ray 'ray[train,tune]==2.60.*'; then
		fail "build/venv-ray can't be filled" $logs/venv-ray.log
		return
	fi
	# Ray's threads and descriptors in the tests' process are its own.
	export TSOCK_TEST_RAY=1 TSOCK_TEST_AUDIT=0
	run_pytest_files ray build/venv-ray 'tsock.ray' \
		bindings/python/tests/test_ray.py
	unset TSOCK_TEST_RAY TSOCK_TEST_AUDIT
}

# What test/parity/test_draws.py does in `make check` with fewer draws.
suite_draws()
{
	if ! fill_venv; then
		fail "build/venv can't be filled" $logs/venv.log
		return
	fi
	export TSOCK_DRAWS=${TSOCK_DRAWS:-1000000}
	run_pytest_files draws build/venv "$TSOCK_DRAWS of each" \
		test/parity/test_draws.py
	unset TSOCK_DRAWS
}

suite_site()
{
	run_program 'the site, and its links' test/site.sh --self-test
}

suite_install()
{
	run_program 'installed library and programs' test/installed.sh
	run_program 'installed as a user does' test/installed_root.sh
	run_program 'the same bytes from two folders' test/reproducible.sh
}

suite_wheel()
{
	case $name in
	*-whole) run_program 'the wheel in a bare root' test/wheel.sh whole ;;
	*) run_program 'the wheel by itself' test/wheel.sh ;;
	esac
}

# What libFuzzer is given, by a main() of ours: seeds and inputs made of them.
suite_replay()
{
	local program name kept
	for program in "$B"/test/fuzz/replay_*; do
		case $program in
		*_session) export REPLAY_RUNS=200000 ;;
		*) export REPLAY_RUNS=5000 ;;
		esac
		name=$(basename "$program")
		kept=$top/test/fuzz/corpus/${name/replay/fuzz}
		# Seeds alone, where no input was kept.
		[ -d "$kept" ] || kept=
		run_program "$build: fuzz/$name" "$program" ${kept:+"$kept"}
	done
	unset REPLAY_RUNS
}

suite_lint()
{
	local tool
	for tool in shellcheck codespell analyzer; do
		run_program "lint: $tool" test/lint.sh $tool
	done
}

suite_format()
{
	local tool version file files
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
	if "$tool" --dry-run -Werror "${files[@]}" >/dev/null 2>&1; then
		pass 1 "clang-format of ${#files[@]} files"
		return
	fi
	for file in "${files[@]}"; do
		"$tool" --dry-run -Werror "$file" >/dev/null 2>&1 ||
			fail "layout of $file: run make format"
	done
}

# --------------------------------------------------------------------------

soak()
{
	local end=$((SECONDS + ${SOAK_SECONDS:-600})) round=0 limit=7200
	use_build plain || return
	for round in test/unit/test_*_random.c; do
		TSOCK_SEEDS=${SOAK_SEEDS:-1000000} run_program \
			"soak: $(basename "$round" .c)" "$B/${round%.c}"
	done
	leave_build
	round=0
	while [ $SECONDS -lt $end ] && [ $failed = 0 ]; do
		round=$((round + 1))
		title "round $round"
		export TSOCK_TEST_SEED=$round
		run_suite system system-asan
		run_suite system-asan
		finish_programs
	done
}

fuzz()
{
	local b=build-fuzz source name corpus limit
	finish_build fuzz || return
	for source in test/fuzz/*.c; do
		[ -f "$source" ] || continue
		name=$(basename "$source" .c)
		corpus=$b/corpus/$name
		mkdir -p "$corpus"
		limit=$((${FUZZ_SECONDS:-60} + 60))
		run_program "fuzz: $name" "$b/test/fuzz/$name" \
			-max_total_time="${FUZZ_SECONDS:-60}" -timeout=30 -error_exitcode=1 \
			-artifact_prefix="$b/$name-" "$corpus" \
			"test/fuzz/corpus/$name"
	done
}
