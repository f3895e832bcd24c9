#!/bin/bash
# run.sh - everything that needs a real GPU, unattended, in one table.
#
#   test/gpu/run.sh         build with CUDA, test, measure
#   test/gpu/run.sh build   only build: works without a GPU
#
# Exits with 0 if all passed, 77 (saying why) where there is no GPU, else 1.
# Needs gcc, make, the CUDA toolkit, libzmq, libjpeg, libpng, xxhash, Random123
# and cmocka; liburing if it is there.
#
#   CUDA_HOME  where the toolkit is (/usr/local/cuda, else /usr)
#   DEPS       a folder of .deb files with the rest of these, for a machine
#              where nothing can be installed: they are unpacked, not installed
#   LOGS       where every program's output goes (build-cuda/gpu-logs)
#   LIMIT      seconds for each program (300)
set -u
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
LC_ALL=C
export LC_ALL

b=build-cuda
if [ -z "${CUDA_HOME:-}" ]; then
	CUDA_HOME=/usr/local/cuda
	[ -e $CUDA_HOME/include/cuda.h ] || CUDA_HOME=/usr
fi
logs=${LOGS:-$b/gpu-logs}
limit=${LIMIT:-300}
rows=()
failed=0
scratch=$(mktemp -d /tmp/tsock-XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# --------------------------------------------------------------------------
# What was carried along

# Enough of pkg-config for our Makefile: the real one would ask for what the
# packages themselves were built with.
write_pkg_config()
{
	cat >"$1" <<SCRIPT
#!/bin/sh
root=$2
SCRIPT
	cat >>"$1" <<'SCRIPT'
lib=$root/usr/lib
multi=$(ls -d "$lib"/*-linux-gnu 2>/dev/null | head -n 1)
flags=
for arg; do
	case $arg in
	--*) what=$arg; continue ;;
	libzmq) header=zmq.h name=zmq ;;
	libjpeg) header=jpeglib.h name=jpeg ;;
	libpng) header=png.h name=png ;;
	libxxhash) header=xxhash.h name=xxhash ;;
	liburing) header=liburing.h name=uring ;;
	*) exit 1 ;;
	esac
	for dir in "$root/usr/include" /usr/include; do
		[ -e "$dir/$header" ] && break
		dir=
	done
	[ -n "$dir" ] || exit 1
	case $what in
	--cflags) flags="-I$root/usr/include" ;;
	--libs) flags="$flags -L${multi:-$lib} -l$name" ;;
	--modversion) flags=carried ;;
	esac
done
[ -z "$flags" ] || echo "$flags"
SCRIPT
	chmod +x "$1"
}

unpack()
{
	local deb root=$scratch/deps dir
	mkdir -p "$root/bin"
	for deb in "$DEPS"/*.deb; do
		dpkg -x "$deb" "$root" || return 1
	done
	write_pkg_config "$root/bin/pkg-config" "$root"
	export PATH=$root/bin:$PATH
	export CPATH=$root/usr/include${CPATH:+:$CPATH}
	for dir in "$root"/usr/include/*-linux-gnu; do
		[ ! -d "$dir" ] || CPATH=$CPATH:$dir
	done
	for dir in "$root"/usr/lib "$root"/usr/lib/*-linux-gnu \
		"$root"/lib/*-linux-gnu; do
		[ -d "$dir" ] || continue
		LD_LIBRARY_PATH=$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	done
	export LIBRARY_PATH=$LD_LIBRARY_PATH LD_LIBRARY_PATH
	# Where libraries find the libraries that they need, when linking.
	carried=(LDFLAGS="-Wl,-rpath-link,$LD_LIBRARY_PATH")
}

# --------------------------------------------------------------------------
# The table

# row WHAT RESULT SECONDS NOTE
row()
{
	rows+=("$(printf '%-34s %-5s %6s  %s' "$1" "$2" "$3" "$4")")
	echo "${rows[${#rows[@]} - 1]}"
	[ "$2" != FAIL ] || failed=$((failed + 1))
}

# measure NAME COMMAND...: one row, by the exit code and what TAP says.
measure()
{
	local name=$1 log start rc ok skipped note
	shift
	log=$logs/$(printf %s "$name" | tr -c 'A-Za-z0-9_.-' _).log
	rm -rf "$scratch/run" "$scratch/tmp"
	mkdir -m 700 "$scratch/run" "$scratch/tmp"
	start=$SECONDS
	TSOCK_DIR=$scratch/run TMPDIR=$scratch/tmp CMOCKA_MESSAGE_OUTPUT=tap \
		timeout -k 10 "$limit" "$@" >"$log" 2>&1 </dev/null
	rc=$?
	ok=$(grep -E '^ok [0-9]+ -' "$log" | sort -u | grep -c .)
	skipped=$(grep -cE '# SKIP' "$log")
	note="$ok cases"
	[ "$skipped" = 0 ] || note="$note, $skipped skipped"
	[ "$ok" != 0 ] || note=$(grep . "$log" | tail -n 1 | cut -c 1-70)
	case $rc in
	0) row "$name" ok $((SECONDS - start)) "$note" ;;
	77) row "$name" skip $((SECONDS - start)) "$note" ;;
	124 | 137) row "$name" FAIL $((SECONDS - start)) "over $limit s" ;;
	*) row "$name" FAIL $((SECONDS - start)) "exit code $rc, see $log" ;;
	esac
}

table()
{
	local line
	echo
	echo "commit     $(git rev-parse --short HEAD 2>/dev/null || echo none)"
	echo "when       $(date -u +%Y-%m-%d)"
	nvidia-smi --query-gpu=name,driver_version,memory.total \
		--format=csv,noheader 2>/dev/null | sed 's/^/GPU        /'
	echo "toolkit    $("$CUDA_HOME/bin/nvcc" --version 2>/dev/null |
		sed -n 's/.*release \([0-9.]*\).*/\1/p')"
	echo
	printf '%-34s %-5s %6s  %s\n' what result s note
	for line in "${rows[@]}"; do
		echo "$line"
	done
	[ ! -s "$logs/bench.txt" ] || cat "$logs/bench.txt"
	echo
	echo "$failed failed"
}

# --------------------------------------------------------------------------

there_is_a_gpu()
{
	nvidia-smi -L 2>/dev/null | grep -q '^GPU' && return 0
	[ -e /dev/nvidiactl ] || [ -e /dev/dxg ]
}

programs()
{
	local file
	for file in "$1"/$2; do
		[ -f "$file" ] && basename "$file" .c
	done
}

build()
{
	local start=$SECONDS
	if ! make -j"$(nproc)" CUDA=1 CUDA_HOME="$CUDA_HOME" B=$b all tests \
		"${carried[@]}" >"$logs/build.log" 2>&1; then
		row build FAIL $((SECONDS - start)) "see $logs/build.log"
		grep -E 'error|\*\*\*' "$logs/build.log" | head -n 20
		return 1
	fi
	row build ok $((SECONDS - start)) 'CUDA=1'
}

sanitizer()
{
	local tool name
	tool=$(PATH=$PATH:$CUDA_HOME/bin:$CUDA_HOME/compute-sanitizer \
		command -v compute-sanitizer)
	if [ -z "$tool" ]; then
		row compute-sanitizer skip 0 'it is not part of this toolkit'
		return
	fi
	for name in memcheck racecheck synccheck initcheck; do
		measure "$name: test_gpu_work" "$tool" --tool $name \
			--error-exitcode 1 "$b/test/unit/test_gpu_work"
	done
}

bench()
{
	if [ ! -f bench/gpu.c ]; then
		row 'bench gpu' skip 0 'there is none'
		return
	fi
	measure 'bench gpu' env B=$b JSON="$logs/bench.json" bench/run.sh gpu
	cp "$logs/bench_gpu.log" "$logs/bench.txt" 2>/dev/null
}

mkdir -p "$logs"
carried=()
if [ "${1:-}" != build ] && ! there_is_a_gpu; then
	echo 'no GPU here: no nvidia-smi that lists one, no /dev/nvidiactl'
	exit 77
fi
if [ -n "${DEPS:-}" ]; then
	unpack || exit 1
fi
build || {
	table
	exit 1
}
[ "${1:-}" != build ] || exit 0

export B=$b TSOCK_PRODUCER=$PWD/$b/bin/tsock-producer
measure 'what there is' "$TSOCK_PRODUCER" --devices
for name in $(programs test/simcuda 'conformance*.c'); do
	[ ! -x "$b/test/simcuda/$name" ] ||
		measure "runtime: $name" "$b/test/simcuda/$name"
done
for name in $(programs test/unit 'test_gpu*.c'); do
	measure "unit: $name" "$b/test/unit/$name"
done
for name in $(programs test/gpu 'test_*.c'); do
	measure "gpu: $name" "$b/test/gpu/$name"
done
sanitizer
bench
table
[ $failed = 0 ]
