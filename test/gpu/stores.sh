#!/bin/bash
# SPDX-License-Identifier: MIT
# stores.sh - do the kernels that write planes store four elements at once, and
# read all that they read before they store?  The compiler may split a wide
# store, or keep to the order that is written, and nothing but time shows it.
#
# Looks at what nvcc makes of kernels.cu (PTX, of compute_90): the loop of each
# such kernel.  Needs no GPU; exits with 77 where there is no nvcc.
set -u
cd "$(dirname "$0")/../.." || exit 1
home=${CUDA_HOME:-/usr/local/cuda}
nvcc=$home/bin/nvcc
[ -x "$nvcc" ] || nvcc=$(command -v nvcc) || {
	echo 'there is no nvcc here'
	exit 77
}
work=$(mktemp -d "${TMPDIR:-/tmp}/stores-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086 # a list
if ! "$nvcc" -std=c++17 -O3 --fmad=false -Iinclude -Ilib ${NVCCFLAGS:-} \
	-arch=compute_90 -ptx -o "$work/ptx" lib/convert/kernels.cu \
	2>"$work/why"; then
	tail -n 1 "$work/why"
	exit 77
fi
awk '
# The stores of single elements are those of the rest, a pixel for each lane:
# three.  After the first store no source is read before the next label.
function end(what) {
	if (!kernel)
		return
	good = one <= 3 && wide >= 3 && !late
	printf "%sok %d - %s: %d wide stores, %d of one element, %d reads after one\n",
		good ? "" : "not ", ++n, kernel, wide, one, late
	bad += !good
}
/\.entry .*3chwILi[24]E/ {
	end()
	kernel = $0
	sub(/.*3chw/, "chw", kernel)
	sub(/EEE.*/, "", kernel)
	one = wide = late = stored = 0
}
/\.entry/ && !/3chwILi[24]E/ { end(); kernel = "" }
/^\$L/ { stored = 0 }
/st\.global[.a-z0-9]*\.v[24]\./ { wide++; stored = 1; next }
/st\.global/ { one++ }
/ld\.global/ && stored { late++ }
END {
	end()
	print "1.." n
	exit bad || n != 4
}' "$work/ptx"
