#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh - run one benchmark, or all:
# run.sh decode|entropy|pixels|packed|fast|read|order|claims|handoff|share|readers|scale|gpu|against|cores|model|start|scripts|serve|batch|recipes|formats|data|scan|nodes|all
# run.sh compare|jobs [PEER...], which all leaves out
#
# Builds nothing: `make bench` and `make bench-NAME` do, and call this.
#
#   B           where things were built (build)
#   BENCH_DATA  a folder with a folder of images per class; without it real
#               samples are used where they lie beside the checkout, else a
#               set is generated
#   JSON        append one JSON object per result to this file
#   QUICK       1: a short run, for checking that benchmarks work
set -eu
LC_ALL=C
export LC_ALL

here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
B=${B:-build}
PYTHONPATH=$here/bindings/python${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
beside=../shared/data/imagenet-sample/train
status=0

need()
{
	[ -x "$1" ] || {
		echo "bench/run.sh: $1 isn't there; run make first" >&2
		exit 1
	}
}

# python_with MODULE DEFAULT: sets python to an interpreter that has this module.
python_with()
{
	python=${PYTHON:-$2}
	"$python" -c "import $1" 2>/dev/null && return
	echo "skipped: $python has no $1; make check fills build/venv" >&2
	return 77
}

# Sets data to generated images: the same ones in every run.
generated()
{
	need "$B/bench/mkdata"
	data=$B/bench-data/train
	if [ ! -e "$B/bench-data/complete" ]; then
		rm -rf "$B/bench-data"
		"$B/bench/mkdata" "$B/bench-data" --classes 10 --images 640 \
			--val 10 --seed 1 >/dev/null
		: >"$B/bench-data/complete"
	fi
}

# Sets data to real images, if there are any.
real()
{
	if [ -n "${BENCH_DATA:-}" ]; then
		data=$BENCH_DATA
	elif [ -d "$beside" ]; then
		data=$beside
	else
		generated
	fi
}

# Run with a folder of its own for the streams' sockets.
streams()
{
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	TSOCK_DIR=$dir "$@"
}

bench()
{
	case $1 in
	decode)
		need "$B/bench/decode"
		real
		"$B/bench/decode" "$data"
		;;
	entropy)
		need "$B/bench/entropy"
		real
		"$B/bench/entropy" "$data"
		;;
	pixels)
		need "$B/bench/pixels"
		real
		"$B/bench/pixels" "$data"
		;;
	packed)
		need "$B/bench/packed"
		real
		"$B/bench/packed" "$data"
		;;
	fast)
		need "$B/bench/fast"
		real
		"$B/bench/fast" "$data"
		;;
	read)
		need "$B/bench/read"
		real
		"$B/bench/read" "$data"
		;;
	order)
		need "$B/bench/order"
		"$B/bench/order"
		;;
	claims)
		need "$B/bench/claims"
		streams "$B/bench/claims"
		;;
	handoff)
		need "$B/bench/handoff"
		streams "$B/bench/handoff"
		;;
	share)
		need "$B/bench/share"
		need "$B/bin/tsock-producer"
		generated
		streams "$B/bench/share" "$B/bin/tsock-producer" "$data"
		;;
	scan)
		need "$B/bench/scan"
		# In memory, if that is where files may be made.
		trees=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
		trap 'rm -rf "$trees"' EXIT
		TSOCK_LOG=warn "$B/bench/scan" "$trees"
		;;
	readers)
		need "$B/bench/readers"
		streams "$B/bench/readers"
		;;
	scale)
		need "$B/bench/scale"
		streams "$B/bench/scale"
		;;
	gpu)
		if [ ! -x "$B/bench/gpu" ]; then
			echo "skipped: $B was built without CUDA" >&2
			return 77
		fi
		streams "$B/bench/gpu"
		;;
	against | start | cores | scripts | nodes)
		need "$B/bin/tsock-producer"
		python_with torchvision build/venv/bin/python || return
		real
		if [ "$1" = scripts ]; then
			TSOCK_PRODUCER=$here/$B/bin/tsock-producer \
				"$python" bench/scripts.py "$data"
		else
			"$python" "bench/$1.py" "$B/bin/tsock-producer" "$data"
		fi
		;;
	model)
		need "$B/bin/tsock-producer"
		need "$B/bin/tsock-pack"
		need "$B/bench/claims"
		python_with numpy build/venv/bin/python || return
		real
		"$python" bench/model.py "$B/bin/tsock-producer" \
			"$B/bin/tsock-pack" "$B/bench/claims" "$data"
		;;
	compare | jobs)
		need "$B/bin/tsock-producer"
		venv=$here/build/venv-compare
		if ! [ -e "$venv/complete" ]; then
			echo "skipped: no build/venv-compare;" \
				"make bench-$1 fills it" >&2
			return 77
		fi
		name=$1
		shift
		[ "$name" = jobs ] || name=run
		real
		# Libraries that bench/compare/setup.sh unpacked.
		system=$(find "$venv/system" -name '*.so*' \
			-printf '%h\n' 2>/dev/null | sort -u | tr '\n' ':')
		LD_LIBRARY_PATH=$system${LD_LIBRARY_PATH:-} \
			"$venv/bin/python" "bench/compare/$name.py" \
			"$B/bin/tsock-producer" "$data" "$@"
		;;
	serve | batch)
		need "$B/lib/libtsock.so"
		python_with torch build/venv/bin/python || return
		streams "$python" "bench/$1.py"
		;;
	data)
		need "$B/bin/tsock-producer"
		need "$B/bench/windows"
		python_with torchvision build/venv/bin/python || return
		real
		streams "$python" bench/data.py "$B/bin/tsock-producer" \
			"$B/bench/windows" "$data"
		;;
	recipes | formats)
		need "$B/bench/recipes"
		# With more packages to compare with, if they were installed.
		python=build/venv/bin/python
		[ ! -e build/venv-compare/complete ] ||
			python=build/venv-compare/bin/python
		python_with torchvision "$python" || return
		real
		"$python" "bench/$1.py" "$B/bench/recipes" "$data"
		;;
	*)
		echo "usage: bench/run.sh" \
			"decode|entropy|pixels|packed|fast|read|order|claims|handoff|share|readers|scale|gpu|against|cores|model|start|scripts|serve|batch|recipes|formats|data|scan|nodes|all" \
			"or compare|jobs [PEER...]" >&2
		return 2
		;;
	esac
}

# In a subshell: what one benchmark sets or exits with is its own affair.
one()
{
	# Not "|| code=$?": that would switch -e off within.
	set +e
	(
		set -e
		bench "$@"
	)
	code=$?
	set -e
	case $code in
	0 | 77) ;;
	*)
		echo "bench/run.sh: $1 failed with status $code" >&2
		status=1
		;;
	esac
}

printf 'commit %s, %s CPUs of %s, kernel %s\n' \
	"$(git describe --always --dirty 2>/dev/null || echo unknown)" \
	"$(nproc)" \
	"$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
	"$(uname -r)"
awk -v cpus="$(nproc)" '$1 > 0.5 * cpus { print "note: load average " $1 \
	": others use this machine, expect noise" }' /proc/loadavg
case ${1:-all} in
all)
	for name in decode entropy pixels packed fast read order claims handoff share readers scale gpu \
		against cores model start scripts serve batch recipes formats data \
		scan nodes; do
		one $name
	done
	;;
*)
	one "$@"
	;;
esac
exit $status
