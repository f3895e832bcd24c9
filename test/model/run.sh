#!/bin/bash
# SPDX-License-Identifier: MIT
# run.sh - has Spin search every state of the models in this folder, and of
# their negative controls: variants from which something necessary was left out,
# in each of which it has to find an error.
set -u
cd "$(dirname "$0")" || exit 1
work=$(mktemp -d "${TMPDIR:-/tmp}/model-XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# search MODEL [DEFINITION]: 0: no error, 1: an error, 2: the search wasn't
# complete; the verdict is in $work/out.
search()
{
	local model=$PWD/$1.pml
	rm -rf "$work/pan"* "$work/"*.trail
	(cd "$work" && spin -a ${2:+"-D$2"} "$model" >"$work/spin" 2>&1 &&
		${CC:-cc} -O2 -w -DSAFETY -DMEMLIM=4000 -o pan pan.c &&
		./pan -m20000 >"$work/out" 2>&1) || return 2
	grep -q 'errors: 0' "$work/out" || return 1
	grep -Eq 'out of memory|max search depth too small' "$work/out" &&
		return 2
	return 0
}

says()
{
	sed -n 's/^pan:[0-9]*: \(.*\) (at depth.*/\1/p' "$work/out" | head -n 1
}

if ! command -v spin >/dev/null; then
	echo 'spin is not installed: Debian and Ubuntu have a package spin'
	exit 77
fi
for file in *.pml; do
	model=${file%.pml}
	search "$model"
	case $? in
	0) printf 'ok    %s: %s states, no error\n' "$model" \
		"$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$work/out")" ;;
	1)
		echo "FAIL  $model: $(says)"
		(cd "$work" && ./pan -r -n | tail -n 40)
		bad=1
		;;
	*)
		echo "FAIL  $model: the search wasn't complete"
		cat "$work/spin" "$work/out" 2>/dev/null | tail -n 5
		bad=1
		;;
	esac
	while read -r control; do
		search "$model" "$control"
		if [ $? = 1 ]; then
			echo "ok    $model, $control: $(says)"
		else
			echo "FAIL  $model, $control: no error was found"
			bad=1
		fi
	done < <(sed -n 's/^ \*   \([A-Z][A-Z_]*\)  .*/\1/p' "$file")
done
exit $bad
