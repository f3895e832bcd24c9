#!/bin/sh
# SPDX-License-Identifier: MIT
# setup.sh - fill build/venv-compare with the loaders that run.py, jobs.py and
# ../recipes.py compare: setup.sh [PYTHON]
#
# From the package registries alone: PyPI by pip and, where there is apt-get,
# Debian's libraries for those peers that bring none (FFmpeg's for SPDL,
# libturbojpeg for PyTurboJPEG, OpenCV's with headers for FFCV, which pip
# compiles).  The latter are unpacked below the venv, so it takes no root and
# installs nothing.  What can't be had is left out: the reason is printed here,
# kept in build/venv-compare/setup.log, and run.py's list has a line for it.
#
# Does nothing, without touching the network, where it was through before.
set -u
LC_ALL=C
export LC_ALL

here=$(cd "$(dirname "$0")/../.." && pwd)
venv=$here/build/venv-compare
log=$venv/setup.log
python=$venv/bin/python

[ ! -e "$venv/complete" ] || exit 0
mkdir -p "$here/build"
[ -x "$python" ] || "${1:-python3}" -m venv "$venv" || exit 1
: >"$log"

# Several peers want another numpy or protobuf each; PyTorch stays as it is.
install()
{
	name=$1
	shift
	echo "installing $name"
	code=0
	"$python" -m pip install --disable-pip-version-check \
		--prefer-binary "$@" >"$venv/pip.log" 2>&1 || code=1
	[ $code = 0 ] ||
		echo "  left out: $(grep -i error "$venv/pip.log" | tail -n 1)"
	cat "$venv/pip.log" >>"$log"
	rm -f "$venv/pip.log"
	return $code
}

# Debian's packages and what they need, unpacked below the venv.
unpack()
{
	command -v apt-get >/dev/null && command -v dpkg >/dev/null || return 0
	echo "unpacking $*"
	mkdir -p "$venv/debs"
	(
		cd "$venv/debs" || exit 1
		apt-get install -s --no-install-recommends "$@" 2>&1 |
			sed -n 's/^Inst \([^ ]*\).*/\1/p' >list
		[ -s list ] || exit 0
		# shellcheck disable=SC2046 # a list
		apt-get download $(cat list)
		for deb in *.deb; do
			dpkg -x "$deb" "$venv/system"
		done
	) >>"$log" 2>&1
	rm -rf "$venv/debs"
}

if ! install torch torch torchvision numpy 'setuptools<82' pkgconfig; then
	echo "setup.sh: no PyTorch, see $log" >&2
	exit 1
fi
"$python" -m pip freeze 2>/dev/null | grep -E '^torch(vision)?==' \
	>"$venv/constraints.txt"
PIP_CONSTRAINT=$venv/constraints.txt
export PIP_CONSTRAINT
install dali nvidia-dali-cuda120
install opencv opencv-python-headless
install simplejpeg simplejpeg
install turbojpeg 'PyTurboJPEG<2'
install torchcodec torchcodec
install spdl spdl
install webdataset webdataset
install tensorsocket tensorsocket
install streaming mosaicml-streaming
install tensorflow tensorflow-cpu
# recipes.py's.
install timm timm
install albumentations albumentations
install kornia-rs kornia-rs
# ffmpeg brings FFmpeg's libraries in whatever version there is.
unpack ffmpeg libturbojpeg0-dev libopencv-dev
lib=$venv/system/usr/lib/$(uname -m)-linux-gnu
if [ -e "$lib/pkgconfig/opencv4.pc" ]; then
	PKG_CONFIG_SYSROOT_DIR=$venv/system
	PKG_CONFIG_PATH=$lib/pkgconfig
	LIBRARY_PATH=$lib
	# OpenCV's own needs lie in folders of their own.
	LD_LIBRARY_PATH=$(find "$venv/system" -name '*.so*' -printf '%h\n' |
		sort -u | tr '\n' ':')
	export PKG_CONFIG_SYSROOT_DIR PKG_CONFIG_PATH LIBRARY_PATH \
		LD_LIBRARY_PATH
fi
install ffcv --no-build-isolation ffcv
: >"$venv/complete"
