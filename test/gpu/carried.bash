# SPDX-License-Identifier: MIT
# carried.bash - what run.sh packs for a machine without a toolkit, and what it
# finds there of the packages that were carried along.

# Programs and scripts, stripped; the libraries that they need are the other
# machine's, or DEPS.
pack()
{
	local at=$scratch/tsock file
	for file in "$b"/bin/tsock-producer "$b"/lib/libtsock.so* \
		"$b"/test/unit/test_gpu* "$b"/test/gpu/* "$b"/test/simcuda/* \
		"$b"/test/streamsum "$b"/bench/gpu "$b"/bench/mkdata; do
		[ -f "$file" ] || continue
		mkdir -p "$at/${file%/*}"
		cp -P "$file" "$at/$file"
		[ -L "$file" ] || strip "$at/$file" 2>/dev/null
	done
	mkdir -p "$at/bindings/python"
	cp -R bindings/python/tsock "$at/bindings/python/"
	cp -R --parents test/gpu bench/run.sh README.md LICENSE "$at/"
	tar -C "$scratch" -czf "$b/gpu.tar.gz" tsock || return 1
	row pack ok 0 "$b/gpu.tar.gz, $(du -h "$b/gpu.tar.gz" | cut -f 1)"
}

# Enough of pkg-config for our Makefile: the real one would ask for what the
# packages themselves were built with.
write_pkg_config()
{
	printf '%s\n' '#!/bin/sh' "root=$2" >"$1"
	cat >>"$1" <<'SCRIPT'
lib=$root/usr/lib
multi=$(ls -d "$lib"/*-linux-gnu 2>/dev/null | head -n 1)
flags=
for arg; do
	case $arg in
	--*) what=$arg; continue ;;
	libzmq) header=zmq.h name=zmq ;;
	libjpeg) header=jpeglib.h name=jpeg ;;
	libpng) header=png.h name=png ;;
	libxxhash) header=xxhash.h name=xxhash ;;
	liburing) header=liburing.h name=uring ;;
	*) exit 1 ;;
	esac
	for dir in "$root/usr/include" /usr/include; do
		[ -e "$dir/$header" ] && break
		dir=
	done
	[ -n "$dir" ] || exit 1
	case $what in
	--cflags) flags="-I$root/usr/include" ;;
	--libs) flags="$flags -L${multi:-$lib} -l$name" ;;
	--modversion) flags=carried ;;
	esac
done
[ -z "$flags" ] || echo "$flags"
SCRIPT
	chmod +x "$1"
}

unpack()
{
	local deb root=$scratch/deps dir
	mkdir -p "$root/bin"
	for deb in "$DEPS"/*.deb; do
		dpkg -x "$deb" "$root" || return 1
	done
	write_pkg_config "$root/bin/pkg-config" "$root"
	export PATH=$root/bin:$PATH
	export CPATH=$root/usr/include${CPATH:+:$CPATH}
	for dir in "$root"/usr/include/*-linux-gnu; do
		[ ! -d "$dir" ] || CPATH=$CPATH:$dir
	done
	for dir in "$root"/usr/lib "$root"/usr/lib/*-linux-gnu \
		"$root"/lib/*-linux-gnu; do
		[ -d "$dir" ] || continue
		LD_LIBRARY_PATH=$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	done
	export LIBRARY_PATH=$LD_LIBRARY_PATH LD_LIBRARY_PATH
	# Where libraries find the libraries that they need, when linking.
	carried=(LDFLAGS="-Wl,-rpath-link,$LD_LIBRARY_PATH")
}
