#!/bin/bash
# SPDX-License-Identifier: MIT
# layers.sh - reads the #include lines and fails where a layer knows what it
# must not know.
#
#   lib/                        the public header and, of lib/, what stands
#                               before it: base, order, ragged, view, mem,
#                               ring, convert, stage, wire, then serve and
#                               consumer, which don't know each other
#   lib/serve/membership*       lib/base and the public header
#   producer/data, io, pixel    itself, lib/base and the public header; data
#                               lib/order, too
#   producer/resample, jpeg,    pixel too
#     png, webp, plain, tiff, gif,
#     avif
#   producer/audio              pixel too
#   producer/ops                pixel and resample too
#   producer/transforms         ops too
#   producer/recipe             transforms too
#   producer/packed             jpeg too
#   producer/image              all of these from pixel on
#   producer/run                data and io too: it serves as any program does
#   producer/cli                producer/run and lib/wire too
#   producer/pack               as producer/run, which it doesn't know
#   producer/main.c             producer/cli, lib/base and the public header
#   producer/pack.c             producer/pack too
#   examples, bindings          the public header
#   third-party headers         one file each, in all of lib/ and producer/
#   CUDA                        lib/mem/cuda/, lib/convert/gpu.c and kernels.cu,
#                               lib/stage/nccl.c; examples and benchmarks
#
#   pthread_create              lib/base/thread.c, in which signals are blocked
#
# Tests and benchmarks may look inside.  Also: no file may name a folder of
# one developer's machine; a file over 600 lines gets a warning.  What is not in
# this order yet stands in layers.exceptions; a line there that isn't needed any
# more is a violation too, so the list only gets shorter.  circles.sh looks for
# circles among the objects built.
#
# layers.sh [FOLDER] checks another tree; layers.sh --self-test plants every
# violation in a copy and fails if one isn't found.
set -u
LC_ALL=C
export LC_ALL

here=$(cd "$(dirname "$0")/.." && pwd)
folders=(include lib producer examples bindings bench test)
lib_order=(base order ragged view mem ring convert stage wire)
# From an image file's bytes to a sample's pixels.
rooms=(pixel resample ops transforms recipe jpeg packed png webp plain tiff gif avif raw image)
bad=0

complain()
{
	echo "$1"
	bad=$((bad + 1))
}

# The layer of a file of ours.
layer_of()
{
	case $1 in
	include/*) layer=include ;;
	lib/serve/membership*) layer=membership ;;
	lib/*/*)
		layer=${1#lib/}
		layer=${layer%%/*}
		;;
	producer/*/*)
		layer=${1#producer/}
		layer=${layer%%/*}
		;;
	*) layer=${1%%/*} ;;
	esac
}

# The file that #include "name" in file $1 means, in the compiler's order.
resolve()
{
	local dir
	for dir in "${1%/*}" include lib producer .; do
		if [ -f "$dir/$2" ]; then
			found=$dir/$2
			found=${found#./}
			case $found in
			*..*) found=$(realpath --relative-to=. "$found") ;;
			esac
			return 0
		fi
	done
	return 1
}

allowed()
{
	case $1 in
	include) echo include ;;
	membership) echo include base membership ;;
	serve) echo "include ${lib_order[*]} membership serve" ;;
	consumer) echo "include ${lib_order[*]} consumer" ;;
	data) echo include base order data ;;
	io | pixel) echo "include base $1" ;;
	resample | jpeg | png | webp | plain | tiff | gif | avif | raw | audio) echo "include base pixel $1" ;;
	ops) echo include base pixel resample ops ;;
	transforms) echo include base pixel resample ops transforms ;;
	recipe) echo include base pixel resample ops transforms recipe ;;
	packed) echo include base pixel jpeg packed ;;
	image) echo "include base ${rooms[*]}" ;;
	run) echo "include base data io audio ${rooms[*]} run" ;;
	cli) echo "include base wire data io audio ${rooms[*]} run cli" ;;
	pack) echo "include base data io audio ${rooms[*]} pack" ;;
	producer) echo include base cli pack producer ;;
	examples) echo include examples ;;
	bindings) echo include bindings ;;
	*) echo include "$(up_to "$1")" ;;
	esac
}

# The layers of lib/ up to this one.
up_to()
{
	local name
	for name in "${lib_order[@]}"; do
		echo "$name"
		[ "$name" != "$1" ] || return 0
	done | tr '\n' ' '
}

excepted()
{
	needed+="include $1 $2"$'\n'
	grep -qxF "include $1 $2" test/layers.exceptions 2>/dev/null
}

check_ours()
{
	local file name from to needed='' line
	while IFS=$'\t' read -r file name; do
		layer_of "$file"
		from=$layer
		case $from in
		test | bench) continue ;;
		esac
		if ! resolve "$file" "$name"; then
			complain "$file: \"$name\" is no file of this tree"
			continue
		fi
		layer_of "$found"
		to=$layer
		case " $(allowed "$from") " in
		*" $to "*) ;;
		*) excepted "$file" "$found" ||
			complain "$file: $from must not include $found ($to)" ;;
		esac
	done < <(grep -rHoE --include='*.[ch]' --include='*.cpp' \
		--include='*.cu' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"[^"]+"' \
		"${folders[@]}" 2>/dev/null |
		sed -E 's/^([^:]*):[^"]*"(.*)"$/\1\t\2/')
	while IFS= read -r line; do
		grep -qxF "$line" <<<"$needed" ||
			complain "layers.exceptions: not needed any more: $line"
	done < <(grep '^include ' test/layers.exceptions 2>/dev/null)
}

including()
{
	grep -rlE --include='*.[ch]' --include='*.cpp' --include='*.cu' \
		"^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$1[>\"]" \
		"${@:2}" 2>/dev/null | sort
}

check_theirs()
{
	local header files
	for header in zmq.h jpeglib.h png.h liburing.h 'Random123/.*' xxhash.h \
		sndfile.h soxr.h; do
		files=$(including "$header" lib producer | tr '\n' ' ')
		case $files in
		*' '?*) complain "$header is included by two files: $files" ;;
		esac
		files=$(including "$header" include examples bindings |
			tr '\n' ' ')
		[ -z "$files" ] || complain "$header is not for $files"
	done
	# What a training process loads has no decoder and no reader in it.
	for header in jpeglib.h png.h liburing.h sndfile.h soxr.h; do
		files=$(including "$header" lib)
		[ -z "$files" ] || complain "$files: lib/ must not know $header"
	done
}

check_cuda()
{
	local file
	for file in $(including 'cuda[A-Za-z0-9_]*\.h' include lib producer \
		bindings) $(including 'nccl\.h' "${folders[@]}"); do
		case $file in
		lib/mem/cuda/*.[ch] | lib/convert/kernels.cu) ;;
		lib/stage/nccl.c) ;;
		*) complain "$file must not name CUDA: use mem/gpu.h" ;;
		esac
	done
	# Tests of the runtime find the driver's functions by mem/cuda/entry.h.
	for file in $(including 'mem/cuda/.*\.h' include lib producer examples \
		bindings bench) $(including 'mem/cuda/call\.h' test); do
		case $file in
		lib/mem/cuda/*.[ch] | lib/convert/gpu.c | lib/stage/nccl.c) ;;
		*) complain "$file must not include a header of mem/cuda/" ;;
		esac
	done
}

all_files()
{
	if git rev-parse --git-dir >/dev/null 2>&1 &&
		[ "$(git rev-parse --show-toplevel)" = "$PWD" ]; then
		git ls-files -z --cached --others --exclude-standard
	else
		find . \( -name .git -o -name 'build*' \) -prune -o \
			-type f -print0
	fi
}

check_threads()
{
	local line
	while IFS= read -r line; do
		complain "$line: threads are started by base/thread.h"
	done < <(grep -rnE --include='*.[ch]' \
		'\<pthread_create\(|\<pthread_sigmask\(SIG_SETMASK' \
		lib producer 2>/dev/null | grep -v '^lib/base/thread[.]c:' |
		cut -d: -f1,2)
}

check_text()
{
	local line
	# The brackets keep this line from finding itself.
	while IFS= read -r line; do
		complain "$line: a folder of one machine"
	done < <(all_files | xargs -0 -r grep -nIoE \
		'(^|[^A-Za-z0-9_.$}-])/([w]ork|[f]arm|[r]oot)/[A-Za-z0-9._-]+|[.]library/|/tmp/[p]yvenv' \
		/dev/null 2>/dev/null)
	while read -r lines file; do
		echo "warning: $file has $lines lines; is it one job?"
	done < <(find "${folders[@]}" -name '*.[ch]' -exec wc -l {} + 2>/dev/null |
		awk '$1 > 600 && $2 != "total" { print $1, $2 }')
}

check()
{
	cd "$1" || exit 1
	check_ours
	check_theirs
	check_cuda
	check_threads
	check_text
	[ "$bad" = 0 ] || echo "layers.sh: $bad violations"
	[ "$bad" = 0 ]
}

# --------------------------------------------------------------------------

# Plant a line in a file of the copy, in x3.c, say, for x.c: each has one of
# its own.  A complaint that names the file has to say WHAT.
plant()
{
	local file=$1
	planted=$((planted + 1))
	[[ $file != */x.* ]] || file=${file%x.*}x$planted.${file##*.}
	[[ $file != */* ]] || mkdir -p "$copy/${file%/*}"
	printf '%s\n' "$2" >>"$copy/$file"
	wanted+="$file"$'\t'"$3"$'\t'"$2"$'\n'
}

# All at once: the check reads the whole tree each time.
all_are_found()
{
	local file what line
	if "$0" "$copy" >"$copy.out"; then
		complain 'nothing was found'
	fi
	while IFS=$'\t' read -r file what line; do
		grep -F -- "${file#test/}" "$copy.out" | grep -q -- "$what" ||
			complain "not found: '$line' in $file"
	done <<<"${wanted%$'\n'}"
}

self_test()
{
	local w=work f=farm planted=0 wanted=''
	temp=$(mktemp -d)
	trap 'rm -rf "$temp"' EXIT
	copy=$temp/tree
	mkdir "$copy" "$copy/include" "$copy/include/tsock"
	touch "$copy/include/tsock/tsock.h"
	for file in lib/base/err.h lib/order/order.h lib/ring/ring.h \
		lib/wire/zmq.c lib/mem/gpu.h lib/mem/cuda/call.h lib/stage/stage.h \
		lib/wire/msg.h lib/serve/server.h lib/consumer/reader.h \
		lib/serve/membership.h \
		producer/data/index.h producer/io/reader.h \
		producer/image/load.h producer/jpeg/jpeg.h producer/png/png.h \
		producer/packed/expand.h producer/transforms/op.h \
		producer/run/pool.h producer/cli/options.h; do
		mkdir -p "$copy/${file%/*}"
		echo '#include "tsock/tsock.h"' >"$copy/$file"
	done
	echo '#include <zmq.h>' >>"$copy/lib/wire/zmq.c"
	echo '#include "data/index.h"' >>"$copy/producer/run/pool.h"
	echo '#include "run/pool.h"' >>"$copy/producer/cli/options.h"
	echo '#include "wire/msg.h"' >>"$copy/producer/cli/options.h"
	echo '#include "cli/options.h"' >>"$copy/producer/main.c"
	"$0" "$copy" || complain 'a clean tree does not pass'

	plant lib/ring/x.c '#include "data/index.h"' 'ring must not'
	plant lib/ring/x.c '#include "../../producer/io/reader.h"' 'ring must not'
	plant lib/ring/x.c '# include "run/pool.h"' 'ring must not'
	plant lib/base/x.h '#include "ring/ring.h"' 'base must not'
	plant include/tsock/tsock.h '#include "base/err.h"' 'include must not'
	plant lib/base/x.h '#include "order/order.h"' 'base must not'
	plant lib/order/x.h '#include "mem/gpu.h"' 'order must not'
	plant lib/view/x.h '#include "mem/gpu.h"' 'view must not'
	plant lib/mem/x.c '#include "ring/ring.h"' 'mem must not'
	plant lib/ring/x.c '#include "stage/stage.h"' 'ring must not'
	plant lib/convert/x.c '#include "../stage/stage.h"' 'convert must not'
	plant lib/stage/x.h '#include "wire/msg.h"' 'stage must not'
	plant lib/wire/x.c '#include "serve/server.h"' 'wire must not'
	plant lib/serve/x.c '#include "consumer/reader.h"' 'serve must not'
	plant lib/consumer/x.c '#include "serve/server.h"' 'consumer must not'
	plant lib/consumer/x.c '#include "serve/membership.h"' 'consumer must not'
	plant lib/serve/membership.c '#include "ring/ring.h"' 'must not include lib/ring/'
	plant lib/serve/membership.c '#include "server.h"' 'must not include lib/serve/'
	plant test/layers.exceptions 'include lib/ring/x.c lib/wire/x.h' 'any more'
	plant producer/data/x.c '#include "io/reader.h"' 'data must not'
	plant producer/io/x.c '#include "ring/ring.h"' 'io must not'
	plant producer/image/x.c '#include "order/order.h"' 'image must not'
	plant producer/pixel/x.c '#include "image/load.h"' 'pixel must not'
	plant producer/jpeg/x.c '#include "image/load.h"' 'jpeg must not'
	plant producer/jpeg/x86/x.c '#include "packed/expand.h"' 'jpeg must not'
	plant producer/resample/x.c '#include "jpeg/jpeg.h"' 'resample must not'
	plant producer/png/x.c '#include "jpeg/jpeg.h"' 'png must not'
	plant producer/audio/x.c '#include "jpeg/jpeg.h"' 'audio must not'
	plant producer/ops/x.c '#include "transforms/op.h"' 'ops must not'
	plant producer/transforms/x.c '#include "image/load.h"' 'transforms must not'
	plant producer/recipe/x.c '#include "image/load.h"' 'recipe must not'
	plant producer/packed/x.c '#include "png/png.h"' 'packed must not'
	plant producer/run/x.c '#include "order/order.h"' 'run must not'
	plant producer/image/x.c '#include "run/pool.h"' 'image must not'
	plant producer/run/x.c '#include "cli/options.h"' 'run must not'
	plant producer/run/x.c '#include "wire/msg.h"' 'run must not'
	plant producer/cli/x.c '#include "serve/server.h"' 'cli must not'
	plant producer/main.c '#include "run/pool.h"' 'producer must not'
	plant examples/x.c '#include "base/err.h"' 'examples must not'
	plant examples/x.cpp '#include "../lib/ring/ring.h"' 'examples must not'
	plant examples/x.c '#include <zmq.h>' 'zmq.h is not for'
	plant bindings/x.c '#include "data/index.h"' 'bindings must not'
	plant lib/wire/x.c '#include <zmq.h>' 'zmq.h is included by two'
	plant lib/stage/x.c '#include <png.h>' 'must not know png.h'
	plant lib/stage/x.c '#include <cuda.h>' 'must not name CUDA'
	plant lib/mem/gpu.h '#include <cuda_runtime_api.h>' 'must not name CUDA'
	plant producer/run/x.c '# include <cuda_fp16.h>' 'must not name CUDA'
	plant bench/x.c '#include <nccl.h>' 'must not name CUDA'
	plant lib/stage/x.c '#include "mem/cuda/call.h"' 'header of mem/cuda'
	plant test/x.c '#include "mem/cuda/call.h"' 'header of mem/cuda'
	plant lib/stage/x.c '#include "gone.h"' 'no file of this tree'
	plant lib/wire/x.c 'pthread_create(&t, NULL, fn, NULL);' 'base/thread.h'
	plant README.md "see /$w/main" 'one machine'
	plant lib/x.sh "cd /$f/x" 'one machine'
	all_are_found
	[ "$bad" = 0 ]
}

case ${1:-} in
--self-test) self_test ;;
*) check "${1:-$here}" ;;
esac
