#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh - everything that needs a real GPU, unattended, in one table.
#
#   test/gpu/run.sh            build with CUDA (or take what is built), all parts
#   test/gpu/run.sh PART...    some parts, by name; each ends within 8 minutes
#   test/gpu/run.sh parts      their names, and what each is for
#   test/gpu/run.sh build      only build: works without a GPU
#   test/gpu/run.sh pack       build, and pack what another machine needs to run
#                              the parts without a toolkit, into
#                              build-cuda/gpu.tar.gz
#
# Where there is no nvcc the binaries in build-cuda are run as they are.
# Exits with 0 if all passed, 77 (saying why) where there is no GPU, else 1.
# Building needs gcc, make, the CUDA toolkit, libzmq, libjpeg, libpng, xxhash,
# Random123 and cmocka; liburing if it is there.
#
#   CUDA_HOME  where the toolkit is (/usr/local/cuda, else /usr)
#   DEPS       a folder of .deb files with the rest of these, for a machine
#              where nothing can be installed: they are unpacked, not installed
#   LOGS       where every program's output goes (build-cuda/gpu-logs)
#   LIMIT      seconds for each program (450)
#   PYTHON     an interpreter with torch (build/venv's, else python3)
#   B          the build (build-cuda; build-sim tries the parts on the
#              simulation, as far as that goes: GPU=sim)
set -u
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MFLAGS MAKELEVEL
LC_ALL=C
export LC_ALL

b=${B:-build-cuda}
unset B
if [ -z "${CUDA_HOME:-}" ]; then
	CUDA_HOME=/usr/local/cuda
	[ -e $CUDA_HOME/include/cuda.h ] || CUDA_HOME=/usr
fi
logs=${LOGS:-$b/gpu-logs}
limit=${LIMIT:-450}
python=${PYTHON:-}
[ -n "$python" ] || { python=build/venv/bin/python && [ -x "$python" ]; } ||
	python=python3
rows=()
failed=0
scratch=$(mktemp -d /tmp/tsock-XXXXXX) || exit 1
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM HUP

# shellcheck source=test/gpu/carried.bash
. test/gpu/carried.bash

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
	[ "${GPU:-}" != sim ] || return 0
	nvidia-smi -L 2>/dev/null | grep -q '^GPU' && return 0
	[ -e /dev/nvidiactl ] || [ -e /dev/dxg ]
}

gpus()
{
	if [ "${GPU:-}" = sim ]; then
		echo "${SIMCUDA_DEVICES:-4}"
	else
		nvidia-smi -L 2>/dev/null | grep -c '^GPU'
	fi
}

build()
{
	local start=$SECONDS
	if [ "${GPU:-}" = sim ]; then
		row build skip 0 "the simulation in $b as it is"
		return
	fi
	if [ ! -x "$CUDA_HOME/bin/nvcc" ]; then
		if [ -x "$b/bin/tsock-producer" ]; then
			row build skip 0 "no toolkit: what is in $b as it is"
			return
		fi
		row build FAIL 0 "no toolkit, and nothing in $b: see pack"
		return 1
	fi
	if ! make -j"$(nproc)" CUDA=1 CUDA_HOME="$CUDA_HOME" B="$b" all tests \
		"${carried[@]}" >"$logs/build.log" 2>&1; then
		row build FAIL $((SECONDS - start)) "see $logs/build.log"
		grep -E 'error|\*\*\*' "$logs/build.log" | head -n 20
		return 1
	fi
	row build ok $((SECONDS - start)) 'CUDA=1'
}

# --------------------------------------------------------------------------
# Parts.  Of each: what it is for, in a comment that `parts` prints.

#: what this machine has: driver, links, limits
part_machine()
{
	{
		nvidia-smi -q
		nvidia-smi topo -m
		ulimit -a
		lscpu
		cat /proc/meminfo /etc/os-release
	} >"$logs/machine.txt" 2>&1
	row machine ok 0 "$(gpus) GPUs, see $logs/machine.txt"
}

#: the producer's view of the devices, cold and warm
part_devices()
{
	measure 'devices, cold' "$TSOCK_PRODUCER" --devices
	measure 'devices, warm' "$TSOCK_PRODUCER" --devices
}

#: the rules of the runtime: where it differs the simulation is wrong
part_conformance()
{
	local name
	for name in conformance conformance_captures conformance_ipc \
		conformance_descriptors; do
		measure "runtime: $name" "$b/test/simcuda/$name"
	done
}

#: questions that documents leave open; the answers are in the log
part_probe()
{
	measure probe "$b/test/gpu/probe"
	grep -h ': ' "$logs/probe.log"
}

#: memory, streams, events, copies, conversions
part_unit()
{
	local name
	for name in test_gpu test_gpu_pin test_gpu_work test_gpu_errors \
		test_gpu_nccl; do
		measure "unit: $name" "$b/test/unit/$name"
	done
}

#: consumers of each kind: queued work, captures, forks, exits
part_consumer()
{
	measure 'gpu: test_consumer' "$b/test/gpu/test_consumer"
	measure 'gpu: test_captures' "$b/test/gpu/test_captures"
}

#: every way to a GPU, dtype and layout
part_ways()
{
	measure 'gpu: test_ways' "$b/test/gpu/test_ways"
	measure 'gpu: test_fields' "$b/test/gpu/test_fields"
	measure 'gpu: test_memory' "$b/test/gpu/test_memory"
}

#: several GPUs: peer copies and the real NCCL, where there are two
part_fanout()
{
	local name
	if [ "$(gpus)" -lt 2 ]; then
		row 'gpu: test_fanout' skip 0 'two GPUs are needed'
		return
	fi
	find_nccl
	edge fan
	grep -h '^# ' "$logs/edges__fan.log"
	# Counts and faults: of the simulation alone.
	for name in test_fanout test_fanout_uploads test_fanout_faults; do
		measure "gpu: $name" "$b/test/gpu/$name"
	done
	unset TSOCK_NCCL
}

# The system's NCCL, or the one that came with torch.
find_nccl()
{
	local file
	[ -z "${TSOCK_NCCL:-}" ] || return
	if [ "${GPU:-}" = sim ]; then
		export TSOCK_NCCL=$PWD/$b/test/simcuda/libnccl_sim.so
		return
	fi
	ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2' && return
	file=$("$python" -c 'import nvidia.nccl as n
print(list(n.__path__)[0] + "/lib/libnccl.so.2")' 2>/dev/null)
	[ ! -f "$file" ] || export TSOCK_NCCL=$file
}

#: PyTorch: values, writes, keeps, streams, graphs, forks, exits
part_torch()
{
	measure torch "$python" test/gpu/torch_gpu.py equal equal_zero_copy \
		writes keeps side_streams zero_copy_use graphs \
		capture_while_batches_die capture_while_shared_batches_die \
		expandable_segments workers_forked_later
}

#: PyTorch: processes that exit with batches pending
part_exits()
{
	measure 'torch: exits' "$python" test/gpu/torch_gpu.py exits
}

#: bandwidth of kernels and copies, hand-off latency, 1 to 8 consumers
part_speed()
{
	if [ ! -x "$b/bench/gpu" ]; then
		row 'bench gpu' skip 0 'it is not built'
		return
	fi
	measure 'bench gpu' env B="$b" JSON="$logs/bench.json" bench/run.sh gpu
	cp "$logs/bench_gpu.log" "$logs/bench.txt" 2>/dev/null
}

#: 1, 2, 4, 8 trainers on one GPU: stored, zero_copy, DataLoaders of their own
part_trainers()
{
	local k
	for k in ${TRAINERS:-1 2 4 8}; do
		measure "trainers: $k" "$python" test/gpu/torch_gpu.py \
			trainers "$k"
		grep -h ' trainers, ' "$logs/trainers__$k.log"
	done
}

edge()
{
	measure "edges: $1" env B="$b" SMALL="${SMALL:-}" test/gpu/edges.sh "$1"
}

#: a ring of 1.6 GB, one of 20,000 samples, no locked memory
part_large()
{
	edge large
	edge ring
	edge memlock
	[ ! -x "$b/test/gpu/probe" ] ||
		measure 'page-locking' "$b/test/gpu/probe" page-locking
}

#: kill -9 of readers and producers
part_kills()
{
	edge kills
}

#: whole epochs, with batches of all sizes, and streams that end
part_epochs()
{
	for_each_transport epochs once
}

#: a reader that joins, leaves, comes back, in every order
part_joining()
{
	for_each_transport joining
}

#: batches that are kept
part_keeping()
{
	for_each_transport keeping once
}

#: processes that die: several hundred contexts
part_deaths()
{
	for_each_transport deaths once
}

# for_each_transport NAME [once]: a long program by the transport of its
# readers, so that none takes too long; then what it has once.
for_each_transport()
{
	local transport
	for transport in host pinned staged staged_stored shared stored legacy \
		legacy_stored "${@:2}"; do
		measure "gpu: test_$1 $transport" env \
			TEST_TRANSPORT="$transport" "$b/test/gpu/test_$1"
	done
}

#: compute-sanitizer: memcheck and racecheck of work and of a consumer
part_sanitizer()
{
	local tool name
	tool=$(PATH=$PATH:$CUDA_HOME/bin:$CUDA_HOME/compute-sanitizer \
		command -v compute-sanitizer)
	if [ -z "$tool" ]; then
		row compute-sanitizer skip 0 'it is not here'
		return
	fi
	for name in memcheck racecheck synccheck initcheck; do
		measure "$name: test_gpu_work" "$tool" --tool $name \
			--error-exitcode 1 "$b/test/unit/test_gpu_work"
	done
	for name in memcheck racecheck; do
		measure "$name: a consumer" env \
			TEST_ONLY='several_streams_may_use_a_batch_stored' \
			"$tool" --tool $name --target-processes all \
			--error-exitcode 1 "$b/test/gpu/test_consumer"
	done
}

#: MPS: a producer and readers as clients; one is killed, the daemon ends
part_mps()
{
	edge mps
	grep -h '^# ' "$logs/edges__mps.log"
}

#: three readers, killed at random and checked, for SOAK seconds (400)
part_soak()
{
	edge soak
}

parts='machine devices conformance probe unit consumer ways fanout torch exits
speed trainers large kills epochs joining keeping deaths sanitizer mps soak'

list_parts()
{
	awk '/^#: / { what = substr($0, 4) }
		/^part_[a-z]*\(\)/ {
			name = substr($1, 6)
			sub(/\(.*/, "", name)
			printf "%-12s %s\n", name, what
		}' "$0"
}

# --------------------------------------------------------------------------

case ${1:-} in
parts | -h | --help)
	list_parts
	exit 0
	;;
build | pack) ;;
*)
	for part; do
		case " ${parts//$'\n'/ } " in
		*" $part "*) ;;
		*)
			echo "there is no part '$part': see $0 parts" >&2
			exit 2
			;;
		esac
	done
	;;
esac
mkdir -p "$logs"
rm -f "$logs/bench.txt"
carried=()
if [ "${1:-}" != build ] && [ "${1:-}" != pack ] && ! there_is_a_gpu; then
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
case ${1:-} in
build) exit 0 ;;
pack)
	pack
	exit
	;;
esac
export TSOCK_PRODUCER=$PWD/$b/bin/tsock-producer B=$b
if [ $# = 0 ]; then
	# shellcheck disable=SC2086 # a list
	set -- $parts
fi
for part; do
	"part_$part"
done
table
[ $failed = 0 ]
