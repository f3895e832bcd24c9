#!/bin/bash
# SPDX-License-Identifier: MIT
# circles.sh - fails where files call each other in circles, or folders of
# lib/ do.
#
#   circles.sh BUILD...      the objects of one or more builds (build)
#   circles.sh --self-test   plants circles; every one must be found
#
# nm says which symbols each object defines and needs.  Files that all reach
# each other are one circle; so are folders.  Present circles stand in
# layers.exceptions; a line there that isn't needed any more is a violation
# too, so the list only gets shorter.  A circle that only the GPU part has is
# seen in a build that has the GPU part.
set -u
LC_ALL=C
export LC_ALL
known=test/layers.exceptions

# The objects of a build whose source is still there.
objects()
{
	local object source
	while IFS= read -r object; do
		source=${object#"$1/obj/"}
		source=${source%.o}
		[ ! -f "$source.c" ] && [ ! -f "$source.cu" ] || echo "$object"
	done < <(find "$1/obj/lib" "$1/obj/producer" -name '*.o' 2>/dev/null)
}

# "A B" for each file A that needs a symbol which B defines.
calls()
{
	objects "$1" | xargs -r nm -gA | awk -v root="$1/obj/" '
	{
		file = substr($1, length(root) + 1)
		sub(/\.o:.*/, ".c", file)
		if ($(NF - 1) == "U") {
			user[++n] = file
			symbol[n] = $NF
		} else {
			home[$NF] = file
		}
	}
	END {
		for (i = 1; i <= n; i++)
			if (symbol[i] in home && home[symbol[i]] != user[i])
				print user[i], home[symbol[i]]
	}' | sort -u
}

# Files to the folders of lib/ that they are in.
between_folders()
{
	sed -En 's|^(lib/[^/]*)/[^ ]* (lib/[^/]*)/.*|\1 \2|p' | awk '$1 != $2' |
		sort -u
}

# From "A B" lines, each circle on a line: the files that reach each other.
# (tsort would tell some circles in several pieces.)
circles()
{
	awk '{ reaches[$1, $2]; node[$1]; node[$2] }
	END {
		for (via in node)
			for (a in node)
				if ((a, via) in reaches)
					for (b in node)
						if ((via, b) in reaches)
							reaches[a, b]
		for (a in node)
			for (b in node)
				if (((a, b) in reaches) && ((b, a) in reaches))
					print a, b
	}' | sort | awk '
	$1 in told { next }
	{
		if ($1 != first)
			line[++n] = first = $1
		if ($2 != first)
			line[n] = line[n] " " $2
		told[$2 != first ? $2 : ""]
	}
	END {
		for (i = 1; i <= n; i++)
			print line[i]
	}'
}

# The circles that are known today, in the order of names.
excepted()
{
	local files
	while read -r _ files; do
		echo "circle $(tr ' ' '\n' <<<"$files" | sort | paste -sd ' ')"
	done < <(grep '^circle ' $known 2>/dev/null)
}

complain()
{
	echo "$1"
	bad=$((bad + 1))
}

check()
{
	local build calls found='' line
	for build in "$@"; do
		calls=$(calls "$build")
		[ -n "$calls" ] || complain "no objects in $build"
		found+=$(circles <<<"$calls")$'\n'
		found+=$(between_folders <<<"$calls" | circles)$'\n'
	done
	found=$(sort -u <<<"$found" | sed -n 's/^./circle &/p')
	while IFS= read -r line; do
		grep -qxF "$line" <(excepted) || complain "$line"
	done < <(grep . <<<"$found")
	while IFS= read -r line; do
		grep -qxF "$line" <<<"$found" ||
			complain "layers.exceptions: not needed any more: $line"
	done < <(excepted)
	[ $bad = 0 ] || echo "circles.sh: $bad violations"
	[ $bad = 0 ]
}

# --------------------------------------------------------------------------

# source FILE NAME CALLS...: a file that defines NAME and calls the others.
source_of()
{
	local file=$1 name=$2 callee
	shift 2
	mkdir -p "${file%/*}" "build/obj/${file%/*}"
	{
		for callee in "$@"; do
			echo "void $callee(void);"
		done
		echo "void $name(void);"
		echo "void $name(void) {"
		for callee in "$@"; do
			echo "$callee();"
		done
		echo '}'
	} >"$file"
	${CC:-cc} -c -o "build/obj/${file%.c}.o" "$file"
}

# expect WHAT [LINE]: the check fails with this line, or passes without one.
expect()
{
	local out rc
	out=$("$self" --here build)
	rc=$?
	if [ $# = 1 ]; then
		[ $rc = 0 ] || complain "$1: does not pass: $out"
	elif [ $rc = 0 ] || ! grep -qxF "$2" <<<"$out"; then
		complain "$1: not found, but: $out"
	fi
}

self_test()
{
	temp=$(mktemp -d)
	trap 'rm -rf "$temp"' EXIT
	self=$(realpath "$0")
	cd "$temp" || exit 1
	mkdir test
	source_of lib/mem/a.c a b
	source_of lib/mem/b.c b c
	source_of lib/base/c.c c
	expect 'a clean tree'

	source_of lib/base/c.c c a
	expect 'a circle of three' 'circle lib/base/c.c lib/mem/a.c lib/mem/b.c'
	source_of lib/base/c.c c
	source_of lib/base/d.c d a
	expect 'a circle of folders' 'circle lib/base lib/mem'
	echo 'circle lib/mem lib/base' >$known
	expect 'a circle that is excepted'
	rm lib/base/d.c
	expect 'an object without its source' \
		'layers.exceptions: not needed any more: circle lib/base lib/mem'
	rm $known

	source_of producer/io/x.c x y
	source_of producer/io/y.c y x
	source_of producer/io/z.c z w x
	source_of producer/io/w.c w z
	expect 'the first of two' 'circle producer/io/x.c producer/io/y.c'
	expect 'the second of two' 'circle producer/io/w.c producer/io/z.c'
	[ $bad = 0 ]
}

bad=0
case ${1:-} in
--self-test) self_test ;;
--here) check "${@:2}" ;;
*) cd "$(dirname "$0")/.." && check "${@:-build}" ;;
esac
