#!/bin/bash
# SPDX-License-Identifier: MIT
# reproducible.sh - two folders give the same library and the same producer:
# this one, whose objects are taken from OBJECTS (build/obj) as far as they are
# there, and a copy, in which every eighth source is compiled again.  What a
# folder's name gets into, an option keeps it out of for all sources alike; and
# the time gets into none, by -Wdate-time.
set -eu
cd "$(dirname "$0")/.."
objects=${1:-build/obj}
here=build/reproducible
temp=$(mktemp -d)
trap 'rm -rf "$temp" "$here"' EXIT

# make_in TARGET... [OPTION]...
make_in()
{
	CCACHE_DISABLE=1 make --no-print-directory -j"$(nproc)" CUDA=0 "$@" \
		>"$temp/log" 2>&1 || {
		tail "$temp/log" >&2
		exit 1
	}
}

rm -rf "$here"
make_in lib producer B="$here" O="$objects"
mkdir "$temp/another-name"
cp -a Makefile include lib producer "$temp/another-name/"
there=$temp/another-name/build
cp -a "$here" "$there"
find "$there" \( -name '*.a' -o -path '*/lib/libtsock*' -o -path '*/bin/*' \) \
	-delete
find "$there/obj" -name '*.o' | sort | awk 'NR % 8 == 0' | tee "$temp/again" |
	xargs rm
# The flags differ, by the folder's name; what was copied is newer than they are.
make_in build/obj/flags build/obj/simd -C "$temp/another-name" B=build
find "$there/obj" -name '*.o' -exec touch {} +
touch "$temp/copied"
make_in lib producer -C "$temp/another-name" B=build
[ "$(find "$there/obj" -name '*.o' -newer "$temp/copied" | sort)" = \
	"$(cat "$temp/again")" ] || {
	echo 'other objects were compiled than those that were removed' >&2
	exit 1
}
for file in lib/libtsock.so lib/libtsock.a bin/tsock-producer bin/tsock-pack; do
	cmp "$here/$file" "$there/$file"
done
