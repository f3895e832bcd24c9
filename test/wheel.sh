#!/bin/bash
# SPDX-License-Identifier: MIT
# wheel.sh - what `pip install .` installs works by itself: in a venv of its
# own, on a machine that has none of the libraries that are in the wheel, no
# headers and no compiler.
#
#   wheel.sh          the wheel that the build backend makes of this build,
#                     used where those libraries are hidden by an overlay
#   wheel.sh whole    pip itself, from the checkout and the source archive, and
#                     the wheel in a root that debootstrap has just made
set -eu
unset LIBTSOCK_PATH TSOCK_PRODUCER PYTHONPATH TSOCK_DIR XDG_RUNTIME_DIR
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# ---- where only the wheel is: a producer, and a job that reads it ----

use_it()
{
	local temp=$1 python=$1/venv/bin/python producer
	export TSOCK_DIR=$temp/sockets HOME=$temp/home
	mkdir -p "$HOME"
	cd "$HOME"
	if [ ! -e "$python" ]; then
		python3 -m venv "$temp/venv"
		"$python" -m pip install --quiet --no-index "$temp"/dist/*.whl
	fi
	"$temp/venv/bin/tsock-producer" --version
	"$temp/venv/bin/tsock-pack" --version
	"$python" -m tsock --dataset imagefolder --root "$temp/photos/train" \
		--name photos --size 32 --epochs 1 >producer.log 2>&1 &
	producer=$!
	"$python" - <<'PYTHON' || { cat producer.log; return 1; }
import os
import time
import tsock

assert os.sep + "_lib" + os.sep in tsock._ffi.path, tsock._ffi.path
own = dict(root="../photos/val", size=48, exit_when_idle=2)
for name, given in ("photos", {}), ("started", own):
    images = 0
    for batch, labels in tsock.DataLoader(name, 7, framework="numpy", **given):
        assert batch.shape[1:] == (3,) + (given.get("size", 32),) * 2
        images += len(labels)
    assert images == 40, images
while tsock.streams():  # until the one that was started has ended
    time.sleep(0.05)
PYTHON
	wait $producer
}

if [ "${1:-}" = inside ]; then
	use_it "$2"
	exit
fi

# ---- the wheel ----

cd "$(dirname "$0")/.."
top=$PWD
b=${B:-build}
temp=$(mktemp -d /tmp/tsock-wheel-XXXXXX)
trap 'rm -rf "$temp"' EXIT
mkdir "$temp/dist" "$temp/hidden" "$temp/sdist"

problem()
{
	echo "wheel.sh: $*" >&2
	exit 1
}

skip()
{
	echo "$*"
	exit 77
}

quietly()
{
	"$@" >"$temp/log" 2>&1
}

# What the backend needs, by its own list, and numpy for the trial.
tools=build/wheel-tools
fill_tools()
{
	local wanted
	wanted=$(sed -n 's/^requires = \[\(.*\)\]/\1/p' pyproject.toml |
		tr -d '",')
	[ "$(cat $tools/filled 2>/dev/null)" != "$wanted" ] || return 0
	# shellcheck disable=SC2086 # words
	python3 -m venv --clear $tools &&
		timeout 600 $tools/bin/python -m pip install --quiet \
			--retries 2 $wanted numpy &&
		echo "$wanted" >$tools/filled
}

source_tree()
{
	find . \( -name build -o -name 'build-*' -o -name .git \) -prune \
		-o -print | sort
}

nothing_left()
{
	source_tree >"$temp/after"
	diff "$temp/before" "$temp/after" ||
		problem "$1 left this in the source tree"
}

# backend TREE CALL: as pip calls it, which lets Python write bytecode.
backend()
{
	(cd "$1" && env -u PYTHONDONTWRITEBYTECODE \
		PYTHONPATH=bindings/python/backend \
		PATH="$top/$tools/bin:$PATH" "$top/$tools/bin/python" -c \
		"import tsock_build; tsock_build.$2" >"$temp/log" 2>&1)
}

# What is missing is a sentence, and no traceback.
refused()
{
	backend "$temp/sdist" "build_wheel('/nowhere')" &&
		problem "built without $1"
	if ! grep -qE "^tsock: the wheel can't be built.* lacks $1.*apt-get" \
		"$temp/log" || grep -q Traceback "$temp/log"; then
		problem "without $1: $(cat "$temp/log")"
	fi
}

check_archive()
{
	tar -C "$temp/sdist" --strip-components=1 -xf "$archive"
	quietly make -C "$temp/sdist" --no-print-directory CUDA=0 -n lib \
		producer || problem "source archive: $(tail -n 3 "$temp/log")"
	[ -z "$(find "$temp/sdist" -name '*.so*' -o -name '*.pyc')" ] ||
		problem 'the source archive holds what was built'
	CC=nothing-like-it refused 'a C compiler \(nothing-like-it\)'
	PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH='' \
		refused 'libzmq, libjpeg, .* with headers'
}

modules()
{
	(cd "$1" && find . -name '*.py' -o -name py.typed | sort)
}

# In a venv with numpy, which makes the batches.
install_wheel()
{
	local site
	python3 -m venv "$temp/venv"
	site=$("$temp/venv/bin/python" -c \
		'import sysconfig; print(sysconfig.get_path("purelib"))')
	quietly "$temp/venv/bin/python" -m pip install --no-index "$wheel" ||
		problem "pip install: $(tail -n 3 "$temp/log")"
	cp -r $tools/lib/python3*/site-packages/numpy* "$site/"
	own=$site/tsock/_lib
	diff <(modules bindings/python/tsock) <(modules "$site/tsock") ||
		problem 'the wheel has other modules than the source'
}

# For man, and for programs in C.
check_documents()
{
	local page
	for page in producer/*.1; do
		cmp "$page" "$temp/venv/share/man/man1/$(basename "$page")" ||
			problem "the wheel lacks $page"
	done
	diff -r include "$own/include" || problem 'the wheel has other headers'
}

# Nothing but these is taken from the system.
usual='linux-vdso|ld-linux-x86-64|lib(c|m|dl|rt|pthread|gcc_s|stdc\+\+|z)\.so'
check_needs()
{
	local file
	for file in libtsock.so.0.1 tsock-producer tsock-pack; do
		ldd "$own/$file" >"$temp/ldd"
		if grep -vE "^\s*(/\S*/)?($usual)|=> $own/" "$temp/ldd"; then
			problem "$file needs this of the system"
		fi
	done
	ldd "$own/libtsock.so.0.1" | grep "=> $own/" >"$temp/ldd"
	if grep -vE '/lib(zmq|sodium)-' "$temp/ldd"; then
		problem 'a training process loads more than ZeroMQ'
	fi
}

make_photos()
{
	"$b/bench/mkdata" "$temp/photos" --classes 2 --images 20 --val 20 \
		--min 64 --max 128 >/dev/null
}

# ---- here, with libraries, headers and compilers hidden ----

# shellcheck disable=SC2016 # expanded inside
hide='set -e
temp=$1 libs=$2
mount -t tmpfs tmpfs "$temp/hidden"
mkdir "$temp/hidden/u" "$temp/hidden/w"
mount -t overlay overlay "$libs" -o \
	"lowerdir=$libs,upperdir=$temp/hidden/u,workdir=$temp/hidden/w"
for name in zmq jpeg turbojpeg png webp webpdemux uring xxhash sodium pgm norm; do
	rm -f "$libs/lib$name"[0-9_.-]*
done
for folder in /usr/include /usr/local/include; do
	[ ! -d $folder ] || mount -t tmpfs tmpfs $folder
done'

hidden()
{
	local as=-m libs
	[ "$(id -u)" = 0 ] || as=-rm
	libs=$( { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null |
		sed -n 's|.*x86-64.* => \(/.*\)/libzmq\.so\.5$|\1|p' |
		head -n 1)
	[ -n "$libs" ] || skip 'libzmq.so.5 is not where the system has it'
	libs=$(realpath "$libs")
	quietly unshare $as sh -c "$hide" sh "$temp" "$libs" || skip \
		"a root of its own can't be had here: $(tail -n 1 "$temp/log")"
	# shellcheck disable=SC2016
	quietly unshare $as sh -c "$hide"'
		if ldd "$3/lib/libtsock.so.0.1" | grep "libzmq.*=> /"; then
			echo "nothing is hidden"
			exit 1
		fi
		exec "$4" inside "$1"' sh "$temp" "$libs" "$top/$b" \
		"$top/test/wheel.sh" || problem "where the system's libraries" \
		"are hidden: $(tail -n 20 "$temp/log")"
}

make_wheel()
{
	source_tree >"$temp/before"
	# Without TIFF and the like: other programs run what lies in $b.
	O=$b/obj backend . \
		"build_wheel('$temp/dist', {'build-dir': 'build-wheel'})" ||
		problem "build_wheel: $(tail -n 5 "$temp/log")"
	backend . "build_sdist('$temp')" ||
		problem "build_sdist: $(tail -n 5 "$temp/log")"
	archive=$(echo "$temp"/tsock-*.tar.gz)
	nothing_left 'the backend'
	wheel=$(echo "$temp"/dist/tsock-*.whl)
	[[ $wheel =~ /tsock-[0-9.]+-py3-none-manylinux_2_[0-9]+_x86_64\.whl$ ]] ||
		problem "the wheel is called $wheel"
}

# ---- from the checkout and the source archive, by pip ----

by_pip()
{
	local venv=$temp/pip what
	python3 -m venv "$venv"
	for what in . bindings/python "$archive"; do
		CUDA=0 quietly "$venv/bin/python" -m pip install \
			--force-reinstall "$what" ||
			problem "pip install $what: $(tail -n 5 "$temp/log")"
		(cd / && "$venv/bin/tsock-producer" --version) >"$temp/log" ||
			problem "pip install $what: no producer"
	done
	nothing_left pip
	rm -r "$temp/dist"
	CUDA=0 quietly "$venv/bin/python" -m pip wheel -w "$temp/dist" \
		--no-deps "$archive" ||
		problem "pip wheel: $(tail -n 5 "$temp/log")"
}

# ---- in a root that has nothing but Python ----

# shellcheck disable=SC2016 # expanded inside
enter='set -e
temp=$1 bare=$2
mount -t tmpfs tmpfs "$temp/hidden"
mkdir "$temp/hidden/u" "$temp/hidden/w" "$temp/hidden/root"
cd "$temp/hidden/root"
mount -t overlay overlay . -o \
	"lowerdir=$bare,upperdir=$temp/hidden/u,workdir=$temp/hidden/w"
cd "$temp/hidden/root"
mount --rbind /dev dev
mount -t proc proc proc
mkdir trial
cp -r "$temp/dist" "$temp/photos" "$3" trial
exec chroot . bash /trial/wheel.sh inside /trial'

in_bare_root()
{
	local release bare
	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	bare=$top/build/bare-$release
	if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
		skip 'a bare root needs debootstrap, and to be root'
	fi
	if [ ! -e "$bare/made" ]; then
		rm -rf "$bare"
		quietly debootstrap --variant=minbase \
			--include=python3,python3-venv "$release" "$bare" ||
			skip "no bare root: $(tail -n 1 "$temp/log")"
		touch "$bare/made"
	fi
	quietly $tools/bin/python -m pip download --quiet -d "$temp/dist" \
		--only-binary=:all: --platform manylinux_2_28_x86_64 \
		--platform manylinux2014_x86_64 --python-version "$(chroot \
			"$bare" python3 -c 'import sys
print("%d.%d" % sys.version_info[:2])')" numpy ||
		skip "no numpy: $(tail -n 1 "$temp/log")"
	quietly unshare -m sh -c "$enter" sh "$temp" "$bare" \
		"$top/test/wheel.sh" ||
		problem "in $bare: $(tail -n 20 "$temp/log")"
}

[ -f $tools/filled ] || echo "filling $tools"
quietly fill_tools ||
	skip "$tools can't be filled: $(tail -n 1 "$temp/log")"
make_photos
make_wheel
if [ "${1:-}" = whole ]; then
	by_pip
	in_bare_root
else
	check_archive
	install_wheel
	check_needs
	check_documents
	hidden
fi
