#!/bin/bash
# SPDX-License-Identifier: MIT
# namespaces.sh - producer and consumers in process, network, IPC and mount
# namespaces of their own, as pods have them, and a full disk for the cache.
. "$(dirname "$0")/producer.bash"

serve=("$producer" --no-cache "${set[@]}" "${small[@]}")
apart=(unshare --user --map-root-user --pid --net --ipc --mount --fork --mount-proc
	--kill-child)
"${apart[@]}" true 2>"$work/err"
if [ $? != 0 ]; then
	skip 'namespaces' "none can be made here: $(head -n 1 "$work/err")"
	finished
	exit
fi

# readers N: until the stream has so many.
readers()
{
	for _ in $(seq 600); do
		"$producer" --list | grep -Eq "^imagenet .* 36 +$1( |$)" &&
			return 0
		sleep 0.1
	done
	return 1
}

# killed_there WHAT COMMAND...: a consumer that is killed is no reader any more.
killed_there()
{
	local what=$1 reader rc
	shift
	"$@" "$seen" imagenet 7 0 >"$work/out" 2>&1 &
	reader=$!
	readers 1
	result $? "$what is a reader" "$(cat "$work/log" "$work/out")"
	kill -9 "$reader"
	wait "$reader" 2>/dev/null
	readers 0
	rc=$?
	result $rc "$what is none once it was killed" "$("$producer" --list)"
}

# --- consumers that see other processes than the producer does ---

start "${serve[@]}"
"${apart[@]}" timeout 90 "$seen" imagenet 7 2 >"$work/out" 2>&1
[ $? = 0 ] && [ "$(grep -c 'exactly once' "$work/out")" = 2 ]
result $? 'a consumer in namespaces of its own reads two epochs' \
	"$(cat "$work/out")"
killed_there 'a consumer in namespaces of its own' "${apart[@]}"
stop

# --- a producer that doesn't see its consumers ---

start "${apart[@]}" "${serve[@]}"
timeout 90 "$seen" imagenet 7 2 >"$work/out" 2>&1
[ $? = 0 ] && [ "$(grep -c 'exactly once' "$work/out")" = 2 ]
result $? 'a producer in namespaces of its own serves' \
	"$(cat "$work/out" "$work/log")"
killed_there 'a consumer that this producer cannot see' env
"${apart[@]}" timeout 90 "$seen" imagenet 7 2 >"$work/out" 2>&1
[ $? = 0 ] && [ "$(grep -c 'exactly once' "$work/out")" = 2 ]
result $? 'and serves consumers in other ones' "$(cat "$work/out")"
# unshare waits for its child, whatever SIGTERM says.
kill -9 "$pid"
stop

# --- a full disk ---

mkdir "$work/full"
cat >"$work/on_full_disk" <<'END'
mount -t tmpfs -o size=4k none "$1" || exit 77
shift
exec "$@"
END
"${apart[@]}" bash "$work/on_full_disk" "$work/full" true 2>"$work/err"
if [ $? = 77 ]; then
	skip 'a full disk' "$(head -n 1 "$work/err")"
else
	mkdir -p "$work/wide/a"
	for i in $(seq 300); do
		ln "$(find "$work/set/train" -name '*.J*' | head -n 1)" \
			"$work/wide/a/a-rather-long-name-for-one-file-$i.JPEG"
	done
	"${apart[@]}" bash "$work/on_full_disk" "$work/full" bash -c '
		"$1" --cache-dir "$2" "${@:3}" && [ -z "$(ls -A "$2")" ]' - \
		"$producer" "$work/full" --dry-run -d imagefolder \
		-r "$work/wide" >"$work/out" 2>&1
	[ $? = 0 ] && grep -q 'no scan cache written to .*No space left' \
		"$work/out" && grep -q '^samples  *300 in 1 class' "$work/out"
	result $? 'a full disk costs the scan that is kept, and is told' \
		"$(cat "$work/out")"
fi

finished
