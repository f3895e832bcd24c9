#!/bin/bash
# SPDX-License-Identifier: MIT
# lint.sh - what a tool finds in the sources must be nothing:
#
#   lint.sh shellcheck   every shell script
#   lint.sh codespell    every text
#   lint.sh analyzer     lib/ and producer/, after make CUDA=sim analyze
#
# lint.exceptions says what may stay, and why: the tool, a word, the reason.
# The word is the number of the rule, the word that codespell doubts, or
# FILE:CHECKER of the analyser.
set -u
cd "$(dirname "$0")/.." || exit 1
LC_ALL=C
export LC_ALL

excepted()
{
	awk -v tool="$1" '$1 == tool { print $2 }' test/lint.exceptions
}

# need_tool NAME VERSION: every version finds other things; these are Debian
# 12's, as for the layout.
need_tool()
{
	local version
	version=$("$1" --version 2>/dev/null | grep -oE -m 1 '[0-9]+\.[0-9.]+')
	[[ $version != "$2"* ]] || return 0
	echo "the sources are kept clean for $1 $2, here is ${version:-none}"
	exit 77
}

# Every file that git knows, else every file.
files()
{
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find . \( -name .git -o -name 'build*' \) -prune -o -type f -print
	fi | while IFS= read -r file; do
		[ ! -f "$file" ] || echo "$file"
	done
}

check_scripts()
{
	need_tool shellcheck 0.9
	files | xargs grep -lIE '^#!.*\<(ba)?sh( |$)' |
		xargs shellcheck -x -P SCRIPTDIR -f gcc \
			-e "$(excepted shellcheck | paste -sd ,)"
}

check_spelling()
{
	need_tool codespell 2.2
	files | grep -vE '^(\./)?(LICENSE|THIRD_PARTY|test/lint\.exceptions|test/fuzz/corpus/.*)$' |
		xargs codespell -L "$(excepted codespell | paste -sd ,)"
}

check_analysis()
{
	local found
	need_tool clang 14
	if [ ! -d build-sim/analyzed ]; then
		echo 'nothing analysed: make CUDA=sim analyze'
		return 1
	fi
	found=$(find build-sim/analyzed -name '*.log' | while IFS= read -r log; do
		source=${log#build-sim/analyzed/}
		[ ! -f "${source%.log}.c" ] || cat "$log"
	done | grep -E '(warning|error): ' | sort -u |
		awk -F: 'NR == FNR { known[$0]; next }
			{
				checker = $0
				sub(/.*\[/, "", checker)
				sub(/\]$/, "", checker)
			}
			!(($1 ":" checker) in known)' \
			<(excepted analyzer; echo) -)
	[ -z "$found" ] || echo "$found"
	[ -z "$found" ]
}

case ${1:-} in
shellcheck) check_scripts ;;
codespell) check_spelling ;;
analyzer) check_analysis ;;
*)
	echo "usage: test/lint.sh shellcheck|codespell|analyzer" >&2
	exit 2
	;;
esac
