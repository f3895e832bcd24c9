#!/bin/bash
# SPDX-License-Identifier: MIT
# edges.sh - the producer itself and readers on a GPU, where memory and lives
# end, for test/gpu/run.sh.
#
#   edges.sh large     1.6 GB of a ring, more than one page-locked chunk
#   edges.sh ring      20,000 samples of 224 x 224, and how long it takes
#   edges.sh memlock   nothing may be locked (ulimit -l 0)
#   edges.sh kills     kill -9: ROUNDS (50) readers, a tenth of it producers
#   edges.sh fan       two GPUs: peer copies, NCCL, each from host memory
#   edges.sh mps       the same three processes as clients of MPS
#   edges.sh soak      three readers that are killed and come again, SECONDS
#
# SMALL=1 makes rings and rounds small, for the simulation.  Prints TAP; exits
# with 77 where there is no GPU.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-build-cuda}
SMALL=${SMALL:-}
producer=$B/bin/tsock-producer
gpusum=$B/test/gpu/gpusum
work=$(mktemp -d "${TMPDIR:-/tmp}/edges-XXXXXX") || exit 1
export TSOCK_DIR=$work/run XDG_CACHE_HOME=$work/cache
mkdir -m 700 "$TSOCK_DIR"
n=0 failed=0 pid='' readers=()

cleanup()
{
	local p
	for p in $pid "${readers[@]}"; do
		kill -9 "$p" 2>/dev/null
	done
	[ -z "${mps:-}" ] || echo quit | nvidia-cuda-mps-control
	wait 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

# result CODE WHAT [FILE]: with its end if that went wrong.
result()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		failed=$((failed + 1))
		[ -z "${3:-}" ] || tail -n 15 "$3" | sed 's/^/# /'
		echo "not ok $n - $2"
	fi
}

# start OPTIONS...: a producer of "edge", of the same bytes in every epoch.
start()
{
	"$producer" --dataset imagefolder --root "$work/set/train" --name edge \
		--preset eval --no-cache "$@" >"$work/producer.log" 2>&1 &
	pid=$!
}

stop()
{
	kill -TERM "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	pid=
}

# same BATCH SAMPLES WAY DTYPE: does the GPU get what the host gets?
same()
{
	"$B/test/streamsum" edge "$1" "$2" epoch "$4" >"$work/host" \
		2>"$work/why" || return 1
	"$gpusum" edge "$1" "$2" 0 "$3" "$4" >"$work/gpu" 2>"$work/why" ||
		return 1
	# Each has its own epoch: sequence numbers differ.
	cut -d ' ' -f 2- "$work/host" | sort -u >"$work/host.sorted"
	cut -d ' ' -f 2- "$work/gpu" | sort -u >"$work/gpu.sorted"
	diff "$work/host.sorted" "$work/gpu.sorted" >"$work/why"
}

each_way()
{
	local way
	for way in stored shared staged legacy; do
		same 32 "$samples" $way f32
		result $? "$1, $way: the host's bytes" "$work/why"
	done
}

large()
{
	if [ -n "$SMALL" ]; then start --size 64; else start --size 512; fi
	each_way 'a large ring'
	stop
}

ring()
{
	local begun=$SECONDS
	if [ -n "$SMALL" ]; then
		start --size 32 --ring 5000
	else
		start --ring 20000
	fi
	same 32 32 stored u8
	result $? "a long ring: the host's bytes" "$work/why"
	echo "# the first batch after $((SECONDS - begun)) s"
	grep -i 'page-lock' "$work/producer.log" | sed 's/^/# /'
	stop
}

memlock()
{
	(
		ulimit -l 0 || exit 1
		start --size 64
		each_way 'nothing may be locked'
		stop
		exit "$failed"
	)
	failed=$?
	n=4
}

reader()
{
	"$gpusum" edge 16 100000000 0 "$1" f32 >/dev/null 2>"$2" &
	readers+=($!)
}

ways=(stored shared staged legacy)

kills()
{
	local i rounds=${ROUNDS:-${SMALL:+8}} victim
	rounds=${rounds:-50}
	start --size 64
	reader stored "$work/stays"
	for ((i = 0; i < rounds; i++)); do
		reader "${ways[i % 4]}" "$work/dies"
		victim=${readers[-1]}
		unset 'readers[-1]'
		sleep "$((RANDOM % 2)).$((RANDOM % 9 + 1))"
		kill -9 "$victim"
		wait "$victim" 2>/dev/null
	done
	kill -0 "${readers[0]}"
	result $? "a reader that stays goes on after $rounds kills" \
		"$work/stays"
	kill -9 "${readers[0]}"
	wait "${readers[0]}" 2>/dev/null
	readers=()
	each_way "after $rounds kills"
	stop
	for ((i = 0; i < (rounds + 9) / 10; i++)); do
		start --size 64
		reader "${ways[i % 4]}" "$work/left"
		sleep 2
		kill -9 "$pid"
		wait "$pid" 2>/dev/null
		timeout 60 tail --pid="${readers[0]}" -f /dev/null
		wait "${readers[0]}"
		[ $? = 1 ] && grep -q gpusum: "$work/left"
		result $? "a reader whose producer was killed says so" \
			"$work/left"
		readers=()
	done
	pid=
}

# both HOW: the readers of two GPUs at once, in each way.
both()
{
	local way one two
	for way in stored shared; do
		"$gpusum" edge 32 "$samples" 0 $way f32 >"$work/0" 2>"$work/why" &
		one=$!
		"$gpusum" edge 24 "$samples" 1 $way f32 >"$work/1" 2>>"$work/why" &
		two=$!
		wait $one && wait $two &&
			"$B/test/streamsum" edge 32 "$samples" epoch f32 \
				>"$work/host" 2>>"$work/why" &&
			for file in 0 1 host; do
				cut -d ' ' -f 2- "$work/$file" | sort -u \
					>"$work/$file.sorted"
			done &&
			diff "$work/host.sorted" "$work/0.sorted" >"$work/why" &&
			diff "$work/host.sorted" "$work/1.sorted" >"$work/why"
		result $? "--fanout $1, $way: both have the host's bytes" \
			"$work/why"
	done
}

fan()
{
	local how
	for how in host peer nccl auto; do
		start --size 64 --fanout $how
		both $how
		stop
		# What was said of GPUs and ways.
		grep -iE 'gpu|nccl|peer' "$work/producer.log" | sed 's/^/# /'
	done
}

mps()
{
	if ! command -v nvidia-cuda-mps-control >/dev/null; then
		echo 'no nvidia-cuda-mps-control here'
		exit 77
	fi
	export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
	mkdir "$work/mps"
	if ! nvidia-cuda-mps-control -d; then
		echo 'MPS does not start here'
		exit 77
	fi
	mps=1
	start --size 64
	reader stored "$work/one"
	reader shared "$work/two"
	each_way 'as clients of MPS'
	kill -9 "${readers[0]}"
	sleep 3
	echo "# after one client was killed: the producer $(kill -0 "$pid" \
		2>/dev/null && echo lives || echo is gone), the other reader" \
		"$(kill -0 "${readers[1]}" 2>/dev/null && echo lives ||
			echo is gone)"
	tail -n 2 "$work/two" "$work/producer.log" | sed 's/^/# /'
	env -u CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_PIPE_DIRECTORY=/nowhere \
		"$gpusum" edge 16 64 >"$work/outside" 2>&1
	echo "# one that is no client: exit code $?," \
		"$(tail -n 1 "$work/outside")"
	echo quit | nvidia-cuda-mps-control
	mps=
	sleep 3
	echo "# after the daemon's end: the producer $(kill -0 "$pid" \
		2>/dev/null && echo lives || echo is gone)"
	tail -n 2 "$work/producer.log" | sed 's/^/# /'
	stop
}

soak()
{
	local end=$((SECONDS + ${SOAK:-${SMALL:+20}})) i=0 at
	[ -n "${SOAK:-}${SMALL}" ] || end=$((SECONDS + 400))
	start --size 96
	for at in 0 1 2; do reader "${ways[at]}" "$work/soak"; done
	while [ $SECONDS -lt $end ]; do
		at=$((RANDOM % 3))
		kill -9 "${readers[at]}" 2>/dev/null
		wait "${readers[at]}" 2>/dev/null
		i=$((i + 1))
		"$gpusum" edge 16 100000000 0 "${ways[RANDOM % 4]}" f32 \
			>/dev/null 2>"$work/soak" &
		readers[at]=$!
		same $((RANDOM % 60 + 1)) "$samples" "${ways[i % 4]}" f32 || {
			result 1 "round $i: the host's bytes" "$work/why"
			break
		}
	done
	result 0 "$i rounds of kills and checks"
	stop
}

samples=96
for file in "$producer" "$gpusum" "$B/test/streamsum" "$B/bench/mkdata"; do
	[ -x "$file" ] || {
		echo "$file is not built"
		exit 1
	}
done
"$gpusum" none 1 0 || exit $?
[ "${1:-}" != fan ] || "$gpusum" none 1 0 1 || exit $?
"$B/bench/mkdata" "$work/set" --classes 4 --images 24 --val 1 --seed 5 \
	>/dev/null || exit 1
case ${1:-} in
large | ring | memlock | kills | fan | mps | soak) "$1" ;;
*)
	sed -n '3,15s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
echo "1..$n"
[ "$failed" = 0 ]
