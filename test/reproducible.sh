#!/bin/bash
# SPDX-License-Identifier: MIT
# reproducible.sh - two folders give the same library and the same producer:
# this one, whose objects are taken from OBJECTS (build/obj) as far as they are
# there, and a copy, in which everything is compiled.
set -eu
cd "$(dirname "$0")/.."
objects=${1:-build/obj}
here=build/reproducible
temp=$(mktemp -d)
trap 'rm -rf "$temp" "$here"' EXIT

make_in()
{
	CCACHE_DISABLE=1 make --no-print-directory -j"$(nproc)" CUDA=0 "$@" \
		lib producer >"$temp/log" 2>&1 || {
		tail "$temp/log" >&2
		exit 1
	}
}

rm -rf "$here"
make_in B="$here" O="$objects"
mkdir "$temp/another-name"
cp -a Makefile include lib producer "$temp/another-name/"
make_in -C "$temp/another-name" B=build
for file in lib/libtsock.so lib/libtsock.a bin/tsock-producer bin/tsock-pack; do
	cmp "$here/$file" "$temp/another-name/build/$file"
done
