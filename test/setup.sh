#!/bin/sh
# SPDX-License-Identifier: MIT
# setup.sh - install what a build (build), the tests (check), the fuzzers (fuzz),
# the models (model), the tests for aarch64 (aarch64) or those of the scripts for
# Slurm (slurm) need and this machine lacks.
#
# Debian and Ubuntu: by apt-get, as root or with a sudo that asks nothing;
# else it prints the line to type.  Elsewhere it only says what is missing.
# Does nothing, without touching the network, when everything is there.
set -eu
LC_ALL=C
export LC_ALL

what=${1:-build}
build='gcc libc6-dev make pkg-config libzmq3-dev libjpeg-dev libpng-dev zlib1g-dev
	liburing-dev libxxhash-dev librandom123-dev libwebp-dev
	libtiff-dev libavif-dev libsndfile1-dev libsoxr-dev'
check='g++ clang clang-format libcmocka-dev python3 python3-venv shellcheck
	codespell doxygen'

case $what in
build) want=$build ;;
check) want="$build $check" ;;
fuzz) want="$build clang" ;;
model) want='gcc libc6-dev spin' ;;
aarch64) want="$build gcc-aarch64-linux-gnu qemu-user-static" ;;
slurm) want='slurmctld slurmd slurm-client munge iproute2 util-linux' ;;
*)
	echo "usage: test/setup.sh build|check|fuzz|model|aarch64|slurm" >&2
	exit 2
	;;
esac

# Where there is no apt-get: ask the tools themselves.  One line per thing
# that is missing.  A build without the libraries of some
# formats of images and audio works, too.
probe()
{
	if [ "$what" = model ]; then
		command -v spin >/dev/null || echo 'the model checker Spin'
		return
	fi
	if [ "$what" = slurm ]; then
		for tool in slurmctld slurmd srun munged unshare ip; do
			command -v $tool >/dev/null || echo "$tool"
		done
		return
	fi
	cc=$(command -v cc || command -v gcc || true)
	[ -n "$cc" ] || echo 'a C compiler'
	for tool in make pkg-config; do
		command -v $tool >/dev/null || echo "$tool"
	done
	for lib in libzmq libjpeg libpng zlib liburing libxxhash; do
		pkg-config --exists $lib 2>/dev/null ||
			echo "$lib with its headers"
	done
	if [ -n "$cc" ]; then
		echo '#include <Random123/philox.h>' |
			"$cc" -E -x c - >/dev/null 2>&1 ||
			echo 'Random123 (headers)'
	fi
	[ "$what" = build ] && return
	if [ "$what" = aarch64 ]; then
		command -v aarch64-linux-gnu-gcc >/dev/null ||
			echo 'gcc for aarch64-linux-gnu'
		command -v qemu-aarch64-static >/dev/null ||
			command -v qemu-aarch64 >/dev/null || echo qemu-aarch64
		return
	fi
	command -v clang >/dev/null || echo clang
	[ "$what" = fuzz ] && return
	command -v c++ >/dev/null || echo 'a C++ compiler'
	for tool in clang-format shellcheck codespell doxygen; do
		command -v $tool >/dev/null || echo "$tool"
	done
	pkg-config --exists cmocka 2>/dev/null || echo 'cmocka with its headers'
	python3 -c 'import venv, ensurepip' 2>/dev/null ||
		echo 'python3 (3.9 or newer) with venv'
}

is_installed()
{
	# Two packages provide it, by release.
	[ "$1" = pkg-config ] && command -v pkg-config >/dev/null && return 0
	case $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) in
	ii*) return 0 ;;
	esac
	return 1
}

# The compiler's libFuzzer and sanitizers are a package of their own since
# clang 14; older ones bring them along.
clang_runtime()
{
	major=$(clang --version 2>/dev/null |
		sed -n 's/.*clang version \([0-9]*\).*/\1/p')
	[ -n "$major" ] || return 0
	[ -n "$(apt-cache search --names-only \
		"^libclang-rt-$major-dev\$" 2>/dev/null)" ] || return 0
	echo "libclang-rt-$major-dev"
}

missing_packages()
{
	for package in "$@"; do
		is_installed "$package" || printf '%s ' "$package"
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo -n "$@"
	fi
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
	missing=$(probe)
	[ -n "$missing" ] || exit 0
	echo "setup.sh: not Debian or Ubuntu, so please install:" >&2
	echo "$missing" | sed 's/^/  /' >&2
	exit 1
fi

install_packages()
{
	# shellcheck disable=SC2086 # a list
	missing=$(missing_packages $1)
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
		# Perhaps the same things came by another way.
		[ -n "$(probe)" ] || return 0
		missing=${missing% }
		if command -v sudo >/dev/null; then
			how='' sudo='sudo '
		else
			how=', as root' sudo=
		fi
		{
			echo "setup.sh: packages are missing; please run$how:"
			echo "  ${sudo}apt-get update &&" \
				"${sudo}apt-get install -y $missing"
		} >&2
		exit 1
	fi
	echo "installing ${missing% }"
	log=$(mktemp)
	# shellcheck disable=SC2086 # a list
	if as_root apt-get update >"$log" 2>&1 &&
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install \
			-y --no-install-recommends $missing >>"$log" 2>&1; then
		rm -f "$log"
		return 0
	fi
	tail -n 20 "$log" >&2
	rm -f "$log"
	echo "setup.sh: apt-get could not install: $missing" >&2
	exit 1
}

install_packages "$want"
if [ "$what" = fuzz ]; then
	install_packages "$(clang_runtime)"
fi
