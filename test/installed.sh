#!/bin/bash
# SPDX-License-Identifier: MIT
# installed.sh - what `make install` puts into a folder has to work from
# there: a program built by the installed .pc file alone, the producer, the
# Python package; and the library has to keep its promises to the linker.
set -eu
cd "$(dirname "$0")/.."
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cc=${CC:-cc}

problem()
{
	echo "installed.sh: $*" >&2
	exit 1
}

# into FOLDER [VARIABLE=VALUE...]: nothing is built by this (-o), for other
# programs run what was built, whatever make finds by now.
b=${B:-build}
into()
{
	env "${@:2}" make --no-print-directory -o lib -o producer B="$b" \
		DESTDIR="$1" prefix=/opt/ts libdir=/opt/ts/lib64 \
		PYTHONDIR=/opt/ts/python install >/dev/null
}

times()
{
	stat -c '%y %n' "$b"/lib/libtsock.* "$b"/bin/tsock-producer
}

[ -f "$b/obj/private" ] ||
	problem "nothing was built in $b: run make B=$b lib producer"
times >"$temp/built"
first=$temp/first
into "$first"

# With a toolkit in the environment that the build didn't have, or without the
# one that it had: the same files.
mkdir -p "$temp"/cuda/{bin,include,lib64}
echo '#define CUDA_VERSION 13000' >"$temp/cuda/include/cuda.h"
touch "$temp/cuda/lib64/libcudart_static.a"
printf '#!/bin/sh\nexit 0\n' >"$temp/cuda/bin/nvcc"
chmod +x "$temp/cuda/bin/nvcc"
for home in "$temp/cuda" "$temp/none"; do
	into "$temp/again" CUDA_HOME="$home"
	diff -r "$first" "$temp/again" ||
		problem "CUDA_HOME=$home: other files are installed"
	rm -rf "$temp/again"
done
times | diff "$temp/built" - || problem 'make install has built something'
PYTHON=/nowhere make --no-print-directory -o all B="$b" bench-serve 2>&1 |
	grep -q '/nowhere has no torch' ||
	problem "PYTHON in the environment doesn't reach the benchmarks"
# The installed tree can be moved as a whole.
dest=$temp/moved
mv "$first" "$dest"
lib=$dest/opt/ts/lib64
so=$lib/libtsock.so.0.1

export PKG_CONFIG_PATH=$lib/pkgconfig
version=$(pkg-config --modversion libtsock)
cat >"$temp/user.c" <<'C'
#include <stdio.h>
#include <string.h>
#include <tsock/tsock.h>

int main(int argc, char **argv)
{
	struct tsock_opts opts = TSOCK_OPTS_INIT;
	tsock *t;

	/* No batch size: an error that needs no producer. */
	if (tsock_open("nobody", &opts, &t) != TSOCK_EARG)
		return 1;
	return argc != 2 || strcmp(argv[1], tsock_version_string());
}
C
# shellcheck disable=SC2046 # flags
$cc -Wall -Werror -o "$temp/user" "$temp/user.c" \
	$(pkg-config --cflags --libs libtsock)
LD_LIBRARY_PATH=$lib "$temp/user" "$version" ||
	problem "a program with the shared library fails (version $version)"
# With libzmq as it is: its own static libraries aren't everywhere.
cuda=
[ ! -e /usr/local/cuda/lib64 ] || cuda=-L/usr/local/cuda/lib64
# shellcheck disable=SC2046,SC2086 # flags
$cc -o "$temp/static" "$temp/user.c" $(pkg-config --cflags libtsock) \
	"$lib/libtsock.a" $cuda \
	$(sed -n 's/^Libs.private: //p' "$lib/pkgconfig/libtsock.pc") \
	$(pkg-config --libs libzmq)
"$temp/static" "$version" || problem 'a program with the static library fails'

grep -q '^Requires.private: libzmq$' "$lib/pkgconfig/libtsock.pc" ||
	problem 'the .pc file does not name libzmq as a private requirement'
if grep -nE '(^|[^}A-Za-z])/[a-z]' "$lib/pkgconfig/libtsock.pc"; then
	problem 'the .pc file names a path of the machine that built it'
fi

# libtsock.so -> libtsock.so.0.1 -> libtsock.so.VERSION, and the soname.
links="$(readlink "$lib/libtsock.so") $(readlink "$so")"
[ "$links" = "libtsock.so.0.1 libtsock.so.$version" ] ||
	problem "the library's links are $links"
objdump -p "$so" | grep -q 'SONAME *libtsock.so.0.1$' ||
	problem 'the soname is not libtsock.so.0.1'
# A training process must never load a decoder.
if objdump -p "$so" | grep -E 'NEEDED.*(jpeg|png|uring)'; then
	problem 'the library pulls in a decoder or a reader'
fi

# Hardened.
for file in "$so" "$dest/opt/ts/bin/tsock-producer" \
	"$dest/opt/ts/bin/tsock-pack"; do
	readelf -d "$file" | grep -qE 'BIND_NOW|FLAGS.* NOW' ||
		problem "$file is not bound at its start (BIND_NOW)"
	readelf -W --dyn-syms "$file" | grep -q __stack_chk_fail ||
		problem "$file has no stack protector"
	readelf -W --dyn-syms "$file" | grep -q '_chk@' ||
		problem "$file was not built with _FORTIFY_SOURCE"
done

# Exported is what the headers declare, no less and no more.
cat include/tsock/*.h | tr '\n' ' ' | grep -oE 'TSOCK_API [^;]*;' |
	grep -oE '\<tsock_[a-z0-9_]+ *\(' | tr -d ' (' |
	sort -u >"$temp/declared"
nm -D --defined-only "$so" | awk '$2 != "A" { print $3 }' |
	sed 's/@.*//' | sort -u >"$temp/exported"
diff "$temp/declared" "$temp/exported" ||
	problem 'declared (<) and exported (>) differ'

"$dest/opt/ts/bin/tsock-producer" --version | grep -qF "$version" ||
	problem 'tsock-producer --version does not name the version'

if command -v python3 >/dev/null; then
	(cd "$temp" && LD_LIBRARY_PATH=$lib PYTHONPATH=$dest/opt/ts/python \
		PYTHONDONTWRITEBYTECODE=1 python3 -c 'import tsock') ||
		problem 'the installed Python package does not import'
fi
doc=$dest/opt/ts/share/doc/libtsock
for file in LICENSE THIRD_PARTY README.md examples/train.c examples/train.py; do
	[ -s "$doc/$file" ] || problem "no $file beside the documentation"
done
find "$dest" -path '*/man/*' -type f -empty | grep . &&
	problem 'an empty manual page'

make --no-print-directory B="${B:-build}" DESTDIR="$dest" prefix=/opt/ts \
	libdir=/opt/ts/lib64 PYTHONDIR=/opt/ts/python uninstall >/dev/null
find "$dest" ! -type d | grep . && problem 'uninstall left these behind'
exit 0
