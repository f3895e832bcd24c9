#!/bin/bash
# SPDX-License-Identifier: MIT
# oss-fuzz.sh - builds the fuzzers as OSS-Fuzz wants it: the build.sh of a
# project there is this one line,
#
#     exec "$SRC/libtsock/test/fuzz/oss-fuzz.sh"
#
# and its Dockerfile installs what test/setup.sh names.  OSS-Fuzz says by
# variables which compiler and engine are used: CC, CXX, CFLAGS, CXXFLAGS,
# LIB_FUZZING_ENGINE, WORK for what is built on the way, and OUT.  By hand:
#
#     OUT=/tmp/fuzzers WORK=/tmp/fuzzing test/fuzz/oss-fuzz.sh
#
# OUT gets each fuzzer, its seeds as NAME_seed_corpus.zip, and in lib/ the
# shared libraries that are loaded, since fuzzers run on machines without them.
set -eu
cd "$(dirname "$0")/../.."
: "${OUT:?where the fuzzers go}" "${WORK:?where they are built}"
: "${CC:=clang}" "${CXX:=clang++}"
: "${CFLAGS=-O1 -g -fsanitize=address,fuzzer-no-link}"
: "${CXXFLAGS=$CFLAGS}"
: "${LIB_FUZZING_ENGINE:=-fsanitize=fuzzer}"

mkdir -p "$OUT/lib" "$WORK"
# shellcheck disable=SC2016 # for the loader, and before it for make
make -j"$(nproc)" --no-print-directory B="$WORK/build" CUDA=0 HARDEN= SAN= \
	CC="$CC" CFLAGS="$CFLAGS" FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
	FUZZ_LINK="$CXX $CXXFLAGS -pthread" \
	LDFLAGS='-Wl,--disable-new-dtags,-rpath,\$$ORIGIN/lib' fuzzers

# zip_folder FOLDER FILE
zip_folder()
{
	if command -v zip >/dev/null; then
		zip -q -j -r "$2" "$1"
	else
		(cd "$1" && python3 -m zipfile -c "$2" ./*)
	fi
}

# The C library is everywhere, and of its kind.
libraries()
{
	ldd "$1" | awk '$3 ~ /^\// { print $3 }' |
		grep -vE '/(libc|libm|libdl|librt|libpthread|libresolv)\.so'
}

OUT=$(cd "$OUT" && pwd)
for program in "$WORK"/build/test/fuzz/fuzz_*; do
	name=$(basename "$program")
	cp "$program" "$OUT/$name"
	for library in $(libraries "$program"); do
		cp -n "$library" "$OUT/lib/" 2>/dev/null || true
	done
	seeds=$WORK/seeds/$name
	rm -rf "$seeds" "$OUT/${name}_seed_corpus.zip"
	mkdir -p "$seeds"
	cp "test/fuzz/corpus/$name/"* "$seeds"
	# Most make seeds of their own when they start.
	"$OUT/$name" -runs=0 "$seeds" >/dev/null 2>&1 ||
		echo "$name can't run here: its seeds are those of the sources"
	zip_folder "$seeds" "$OUT/${name}_seed_corpus.zip"
	[ -s "$OUT/${name}_seed_corpus.zip" ]
done
