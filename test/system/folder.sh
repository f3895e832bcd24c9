#!/bin/bash
# SPDX-License-Identifier: MIT
# folder.sh - which folder tsock-producer takes for its sockets: what it logs
# is what it binds and where it looks for a running one, and --dry-run and
# --check-config fail where a start would, with the same sentence.
. "$(dirname "$0")/producer.bash"

quick=("$producer" --no-cache "${set[@]}" "${small[@]}")
name=folder-test-$$
tmp=/tmp/tsock-$(id -u)
unset TSOCK_DIR

# serves_in FOLDER WHAT: it logs that folder, and its sockets are there.
serves_in()
{
	start "${quick[@]}" --name "$name"
	grep -qF "serving \"$name\" at $1" "$work/log" && [ -S "$1/$name.bus" ] &&
		[ -S "$1/$name.door" ]
	result $? "$2: it logs what it binds" "$(cat "$work/log")"
	await_listed "$name"
	grep -q "^$name " "$work/out"
	result $? "$2: --list shows it" "$(cat "$work/out")"
	for mode in --quiet --check-config --dry-run; do
		fails 69 "$pid" "$2: $mode knows that the name is taken" \
			"${quick[@]}" "$mode" --name "$name"
	done
	stop
	[ ! -e "$1/$name.door" ]
	result $? "$2: nothing is left"
}

mkdir -m 700 "$work/login"
XDG_RUNTIME_DIR=$work/login serves_in "$work/login/tsock" 'a login'
XDG_RUNTIME_DIR=$work/none serves_in "$tmp" 'a runtime folder that is gone'
XDG_RUNTIME_DIR=login serves_in "$tmp" 'a relative runtime folder'
if [ "$(id -u)" = 0 ]; then
	mkdir -m 700 "$work/theirs"
	chown 65534 "$work/theirs"
	XDG_RUNTIME_DIR=$work/theirs serves_in "$tmp" \
		"another user's runtime folder"
else
	skip "another user's runtime folder" 'not root'
fi

# same_sentence PATTERN WHAT: of a start, --check-config and --dry-run.
same_sentence()
{
	local mode first='' words same=0
	for mode in --quiet --check-config --dry-run; do
		fails 71 "$1" "$2: $mode says it" "${quick[@]}" "$mode"
		# But for the time of day.
		words=$(sed 's/ 20[0-9-]* [0-9:]* / /' "$work/err")
		[ "$mode" = --quiet ] && first=$words
		[ "$first" = "$words" ] || same=1
	done
	result $same "$2: in the same words" "$first" "$words"
}

mkdir -m 755 "$work/open"
TSOCK_DIR=$work/open same_sentence 'chmod 700' 'a folder open to others'
[ -z "$(ls -A "$work/open")" ]
result $? 'nothing was made in it'
touch "$work/file"
TSOCK_DIR=$work/file same_sentence "isn't a folder" 'a file'
TSOCK_DIR=$work/file/x same_sentence 'make the folder .*: Not a directory' \
	'a folder below a file'
TSOCK_DIR=$work/no/x same_sentence 'make the folder .*: No such file' \
	'a folder whose parent is missing'
ln -s "$work/nowhere" "$work/login/link"
TSOCK_DIR=$work/login/link same_sentence 'look at the folder' \
	'a link that leads nowhere'
if [ "$(id -u)" = 0 ]; then
	TSOCK_DIR=$work/theirs same_sentence 'belongs to uid 65534' \
		"another user's folder"
else
	mkdir -m 500 "$work/readonly"
	TSOCK_DIR=$work/readonly same_sentence 'open .*: Permission denied' \
		'a folder that is read only'
fi

TSOCK_DIR=$work/fresh "${quick[@]}" --dry-run >"$work/out" 2>&1 &&
	[ ! -e "$work/fresh" ]
result $? '--dry-run makes no folder' "$(cat "$work/out")"

finished
