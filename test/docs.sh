#!/bin/bash
# SPDX-License-Identifier: MIT
# docs.sh - what the documents name must be there.
#
# In every .md file but CHANGELOG.md, which tells of what is gone:
#   files       `lib/ring/ring.c`, [a link](docs/inside/threads.md), a bare `ring.c`
#   functions   `tsi_ring_publish()`, `main()`; and a file of which a document
#               says "`f()` in `file`" declares or defines f
#   targets     `make check`, and lines of code that begin so
#   options     `--join-window`: tsock-producer's, but for other programs' below
#   variables   `TSOCK_DIR`, and what else is in capitals with an underscore
#
# README.md has at most 220 lines: what is longer has a page in docs/.
#
# And every source file names its licence in one of its first two lines.
#
# docs.sh [FOLDER] checks another tree; docs.sh --self-test plants one of each
# in a copy and fails if it isn't found.
# shellcheck disable=SC2016,SC2013 # backquotes are what is looked for
set -u
LC_ALL=C
export LC_ALL

here=$(cd "$(dirname "$0")/.." && pwd)
bad=0

# Options of tsock.run, docker, CUDA's containers, srun, python and test programs.
other_options=' --explain --serve --ipc --shm-size --pid --user --overlap --seed --self-test '

complain()
{
	echo "$1"
	bad=$((bad + 1))
}

# read_pieces DOC: into $pieces, the code in a line or a whole indented or fenced
# line, one piece a line.
read_pieces()
{
	{
		grep -o '`[^`]*`' "$1" | tr -d '`'
		sed -n '/^    /p' "$1"
	} >"$pieces"
}

# lacking LIST: the lines of stdin that are no line of the file LIST.
lacking()
{
	sort -u | comm -23 - "$1"
}

# Folders beside which a path in a document may be meant.
exists()
{
	local dir
	for dir in . "$2" lib producer include test; do
		[ ! -e "$dir/$1" ] || return 0
	done
	return 1
}

check_files()
{
	local doc=$1 dir path
	dir=$(dirname "$doc")
	for path in $(grep -o '](\([^)#:]*\)' "$doc" | cut -c3- | sort -u); do
		[ -e "$dir/$path" ] || complain "$doc: no file $path to link to"
	done
	for path in $(grep -oE \
		'(^|[ `(=])[A-Za-z0-9_][A-Za-z0-9_/-]*(\.[a-z]+|/)([^A-Za-z0-9_*]|$)' "$pieces" |
		grep -oE '[A-Za-z0-9_][A-Za-z0-9_/-]*(\.[a-z]+|/)' |
		grep -E '/|\.(c|h|cu|cpp|py|sh|txt|map|md)$' |
		grep -vE '^(build|build-sim|_lib)/' | sort -u); do
		case $path in
		*/*) exists "$path" "$dir" ;;
		*) [ -n "${named[$path]:-}" ] ;;
		esac || complain "$doc: no file $path"
	done
}

check_functions()
{
	local name
	for name in $(grep -oE '\b[A-Za-z_][A-Za-z0-9_]*\(\)' "$pieces" |
		tr -d '()' | lacking "$words"); do
		complain "$1: no function $name()"
	done
	for name in $(grep -oE '\b(tsi|tsock)_[a-z0-9_]+\b' "$pieces" |
		lacking "$words"); do
		complain "$1: nothing is called $name"
	done
}

# Files that a document in folder $2 means by $1.
meant()
{
	local dir
	for dir in . "$2" lib producer include test; do
		[ ! -f "$dir/$1" ] || echo "$dir/$1"
	done
	[[ $1 == */* ]] || grep -E "/$1\$" "$files"
}

# A line that doesn't begin with a blank, as a call does, or Python's def.
has_function()
{
	grep -qE "^([^[:space:]/*#].*[^A-Za-z0-9_])?$2\(|^[[:space:]]*(async )?(def|class) $2\b|^#define $2\(" \
		"$1"
}

# "`f()` in `file`", also where a line ends in between.
check_places()
{
	local place name path file found
	while IFS= read -r place; do
		name=${place#?} path=${place%?}
		name=${name%%()*} path=${path##*\`}
		found=
		while IFS= read -r file; do
			! has_function "$file" "${name##*.}" || found=1
		done < <(meant "$path" "$(dirname "$1")")
		[ -n "$found" ] || complain "$1: no function $name() in $path"
	done < <(tr -s '\n ' '  ' <"$1" | grep -oE \
		'`[A-Za-z_][A-Za-z0-9_.]*\(\)`,? (in|of) `[A-Za-z0-9_/.-]+\.(c|h|cu|py|sh)`' |
		sort -u)
}

check_targets()
{
	local target
	for target in $( (grep -oE '(^    |`)make( [A-Z]+=[^ `]+)* [a-z][a-z_.-]+' "$1" ||
		:) | sed 's/.* //' | sort -u); do
		grep -qE "^([a-z_. -]+ )?$target( [a-z_. -]+)?:" Makefile ||
			[[ $target == bench-* ]] ||
			complain "$1: no target $target"
	done
}

check_options()
{
	local option
	for option in $(grep -oE '`--[a-z][a-z-]+' "$1" | cut -c4- |
		lacking "$options"); do
		[[ $other_options == *" --$option "* ]] ||
			complain "$1: tsock-producer has no --$option"
	done
}

check_variables()
{
	local name
	for name in $(grep -oE '\b(TSOCK|TSI|LIBTSOCK)_[A-Z0-9_]+\b' "$pieces" |
		lacking "$words"); do
		complain "$1: nothing is called $name"
	done
}

check_length()
{
	local lines
	lines=$(wc -l <README.md)
	[ "$lines" -le 220 ] || complain "README.md: $lines lines, more than 220"
}

check_licences()
{
	local file
	while IFS= read -r file; do
		complain "${file#./}: no line SPDX-License-Identifier"
	done < <(grep -E '\.(c|h|cpp|cu|map|py|sh|bash)$|/Makefile$' "$files" |
		tee "$sources" | tr '\n' '\0' |
		xargs -0 grep -HnFm 1 'SPDX-License-Identifier: MIT' |
		awk -F: '$2 <= 2 { print $1 }' | sort | comm -13 - "$sources")
}

# All files, and all words of the sources; what is in quotes in the producer's,
# the sources by name, and the pieces of a document.
lists=$(mktemp -d) || exit 1
files=$lists/files words=$lists/words options=$lists/options
sources=$lists/sources pieces=$lists/pieces
declare -A named # the files' names without their folders
trap 'rm -rf "$lists"' EXIT

read_tree()
{
	local file
	find . \( -name '.?*' -o -name build -o -name 'build-*' \) -prune -o \
		-type f -print | sort >"$files"
	grep -E '\.(c|h|cu|cpp|py|sh|bash|map)$|/Makefile$' "$files" |
		grep -v '/test/docs.sh$' | tr '\n' '\0' |
		xargs -0 cat | grep -oE '[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$words"
	grep -rhoE '"[a-z][a-z-]*"' producer | tr -d '"' | sort -u >"$options"
	while IFS= read -r file; do
		named[${file##*/}]=1
	done <"$files"
}

check_tree()
{
	local doc
	read_tree
	check_length
	check_licences
	while IFS= read -r doc; do
		doc=${doc#./}
		read_pieces "$doc"
		check_files "$doc"
		check_functions "$doc"
		check_places "$doc"
		check_targets "$doc"
		check_options "$doc"
		check_variables "$doc"
	done < <(grep '\.md$' "$files" | grep -v '^\./CHANGELOG')
}

# Each line of README.md must be complained of so.
planted=(
	'no file lib/ring/nothing.c' 'See `lib/ring/nothing.c`.'
	'no file nothing.h' 'See `nothing.h`.'
	'no file docs/nothing.md to link to' '[x](docs/nothing.md)'
	'no function tsi_ring_nothing()' '`tsi_ring_nothing()`'
	'no function tsi_ring_read() in lib/ring/pin.c' '`tsi_ring_read()` in
`lib/ring/pin.c`'
	'no function tsi_ring_publish() in pin.c' '`tsi_ring_publish()` of `pin.c`'
	'nothing is called tsock_nothing' '`struct tsock_nothing`'
	'no target nothing' '    make CUDA=0 nothing'
	'tsock-producer has no --nothing' '`--nothing=3`'
	'nothing is called TSOCK_NOTHING' '`TSOCK_NOTHING=1`'
)

self_test()
{
	local copy said i
	copy=$(mktemp -d) || exit 1
	cp -r Makefile README.md lib producer include examples bench bindings \
		test "$copy"
	find "$copy" -name '*.md' ! -path "$copy/README.md" -delete
	for ((i = 1; i < ${#planted[@]}; i += 2)); do
		printf '\n%s\n' "${planted[i]}" >>"$copy/README.md"
	done
	yes '' | head -n 220 >>"$copy/README.md"
	sed -i 1d "$copy/lib/ring/ring.c"
	said=$(test/docs.sh "$copy")
	grep -q '^lib/ring/ring.c: no line SPDX' <<<"$said" ||
		complain 'not found: no line SPDX'
	grep -q '^README.md: [0-9]* lines, more than 220' <<<"$said" ||
		complain 'not found: lines of README.md'
	for ((i = 0; i < ${#planted[@]}; i += 2)); do
		grep -qxF "README.md: ${planted[i]}" <<<"$said" ||
			complain "not found: ${planted[i]}"
	done
	rm -rf "$copy"
}

case ${1:-} in
--self-test)
	cd "$here" || exit 1
	self_test
	;;
*)
	cd "${1:-$here}" || exit 1
	check_tree
	;;
esac
[ $bad = 0 ] || echo "docs.sh: $bad violations"
[ $bad = 0 ]
