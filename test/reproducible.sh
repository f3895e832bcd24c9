#!/bin/bash
# SPDX-License-Identifier: MIT
# reproducible.sh - two folders give the same library and the same producer.
set -eu
cd "$(dirname "$0")/.."
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

for folder in one another-name; do
	mkdir "$temp/$folder"
	cp -a Makefile include lib producer "$temp/$folder/"
	CCACHE_DISABLE=1 make --no-print-directory -C "$temp/$folder" \
		-j"$(nproc)" CUDA=0 lib producer >"$temp/log" 2>&1 || {
		tail "$temp/log" >&2
		exit 1
	}
done
for file in lib/libtsock.so lib/libtsock.a bin/tsock-producer; do
	cmp "$temp/one/build/$file" "$temp/another-name/build/$file"
done
