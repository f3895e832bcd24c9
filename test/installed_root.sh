#!/bin/bash
# SPDX-License-Identifier: MIT
# installed_root.sh - `make install` as a user types it, into /usr/local of a
# root of its own: without a variable that helps, programs compile, start and
# find each other, and `make uninstall` leaves nothing.
#
# The root is the machine's own, in a mount namespace in which /usr/local and
# /etc are overlaid: nothing that is written there reaches the machine.
set -eu
cd "$(dirname "$0")/.."

if [ -z "${INSIDE:-}" ]; then
	as=-m
	[ "$(id -u)" = 0 ] || as=-rm
	dir=$(mktemp -d)
	trap 'rm -rf "$dir"' EXIT
	# shellcheck disable=SC2016 # expanded inside
	overlay='mount -t tmpfs tmpfs "$1" &&
		mkdir "$1/u" "$1/uw" "$1/e" "$1/ew" "$1/home" &&
		mount -t overlay overlay /usr/local -o \
			"lowerdir=/usr/local,upperdir=$1/u,workdir=$1/uw" &&
		mount -t overlay overlay /etc -o \
			"lowerdir=/etc,upperdir=$1/e,workdir=$1/ew"'
	if ! said=$(unshare $as sh -c "$overlay" sh "$dir" 2>&1); then
		echo "a root of its own can't be had here: $said"
		exit 77
	fi
	# shellcheck disable=SC2016
	unshare $as sh -c "$overlay"' && exec env -i INSIDE=1 HOME="$1/home" \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		TMPDIR="$1/home" CC="$2" B="$3" "$4" "$1"' \
		sh "$dir" "${CC:-cc}" "${B:-build}" "$PWD/test/${0##*/}"
	exit
fi

top=$PWD
dir=$1
problem()
{
	echo "installed_root.sh: $*" >&2
	exit 1
}

# Nothing is built by this (-o): without the user's environment make may choose
# otherwise than the build did, and other programs run what lies in $B.
make --no-print-directory -o lib -o producer B="$B" CC="$CC" install \
	>"$dir/home/said" ||
	problem "make install failed: $(tail -n 3 "$dir/home/said")"
if grep -E 'not find|not look|left out' "$dir/home/said"; then
	problem 'make install says that something is left to do'
fi
"$top/$B/bench/mkdata" "$dir/home/photos" --classes 2 --images 20 --val 0 \
	--min 64 --max 128 >/dev/null

# From here on the checkout has nothing to do with it.
cd "$dir/home"
# Not found by luck: the loader looks where the library was put.
# shellcheck disable=SC2046 # flags
$CC -o seen /usr/local/share/doc/libtsock/examples/seen.c \
	$(pkg-config --cflags --libs libtsock) -lm
./seen >/dev/null 2>said || true
if grep -q 'shared lib' said; then
	problem "a program does not start: $(cat said)"
fi

tsock-producer --dataset imagefolder --root photos/train --name photos \
	--size 32 --epochs 1 >log 2>&1 &
producer=$!
# A consumer waits for its producer.
./seen photos 7 1 >seen.log 2>&1 || problem "a consumer failed: $(cat \
	seen.log log)"
wait $producer || problem "the producer failed: $(cat log)"
if [ -x /usr/bin/python3 ]; then
	/usr/bin/python3 -c 'import tsock; tsock.devices()' ||
		problem 'the system Python does not find the package'
fi

if command -v man >/dev/null; then
	man -w tsock-producer >/dev/null || problem 'man does not find its page'
fi

cd "$top"
make --no-print-directory B="$B" uninstall >/dev/null
if find "$dir/u" ! -type d ! -type c | grep .; then
	problem 'make uninstall left these in /usr/local'
fi
exit 0
