#!/bin/bash
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

dest=$temp/dest
make --no-print-directory B="${B:-build}" DESTDIR="$dest" prefix=/opt/ts \
	libdir=/opt/ts/lib64 install >/dev/null
lib=$dest/opt/ts/lib64
so=$lib/libtsock.so.0

export PKG_CONFIG_PATH=$lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dest
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
# shellcheck disable=SC2046 # flags
$cc -o "$temp/static" "$temp/user.c" $(pkg-config --cflags libtsock) \
	"$lib/libtsock.a" $(PKG_CONFIG_SYSROOT_DIR='' pkg-config --static \
	--libs-only-l libtsock | sed 's/-ltsock//')
"$temp/static" "$version" || problem 'a program with the static library fails'

objdump -p "$so" | grep -q 'SONAME *libtsock.so.0$' ||
	problem 'the soname is not libtsock.so.0'
# A training process must never load a decoder.
if objdump -p "$so" | grep -E 'NEEDED.*(jpeg|png|uring)'; then
	problem 'the library pulls in a decoder or a reader'
fi

# Exported is what the header declares, no less and no more.
tr '\n' ' ' <include/tsock/tsock.h | grep -oE 'TSOCK_API [^;]*;' |
	grep -oE '\<tsock_[a-z0-9_]+ *\(' | tr -d ' (' |
	sort -u >"$temp/declared"
nm -D --defined-only "$so" | awk '$2 != "A" { print $3 }' |
	sed 's/@.*//' | sort -u >"$temp/exported"
diff "$temp/declared" "$temp/exported" ||
	problem 'declared (<) and exported (>) differ'

"$dest/opt/ts/bin/tsock-producer" --version | grep -qF "$version" ||
	problem 'tsock-producer --version does not name the version'

package=$dest/opt/ts/lib/python3/dist-packages
if [ -d "$package" ] && command -v python3 >/dev/null; then
	(cd "$temp" && LD_LIBRARY_PATH=$lib PYTHONPATH=$package \
		PYTHONDONTWRITEBYTECODE=1 python3 -c 'import tsock') ||
		problem 'the installed Python package does not import'
fi
find "$dest" -path '*/man/*' -type f -empty | grep . &&
	problem 'an empty manual page'
exit 0
