#!/bin/bash
# SPDX-License-Identifier: MIT
# kubernetes.sh - the manifests in examples/kubernetes name options that the
# producer has, and the producer starts as they start it.
. "$(dirname "$0")/producer.bash"
manifests=$(dirname "$0")/../../examples/kubernetes

# arguments FILE: of the producer, with the test's data in place of /data.
arguments()
{
	sed -n 's/^ *- \(--[a-z].*\)/\1/p' "$1" |
		sed "s|=/data/imagenet|=$work/set|; s|--memory=.*|--memory=64M|"
}

for manifest in daemonset sidecar; do
	mapfile -t args < <(arguments "$manifests/$manifest.yaml")
	[ "${#args[@]}" = 4 ] && start "$producer" "${small[@]}" "${args[@]}"
	result $? "the producer starts as $manifest.yaml says" \
		"${args[*]}" "$(cat "$work/log")"
	# What the manifest's readiness probe runs, and which path it needs.
	probe=$(sed -n "s/.*\"sh\", \"-c\", \"\(.*\)\"\]/\1/p" \
		"$manifests/$manifest.yaml")
	PATH=$(dirname "$producer"):$PATH sh -c "${probe:-true}"
	result $? "it is ready by the probe of $manifest.yaml" "$probe"
	timeout 90 "$seen" imagenet 7 1 >"$work/out" 2>&1
	result $? 'and a job reads it' "$(cat "$work/out")"
	stop
done

# A folder of sockets inside one that all may write, as an emptyDir is.
mkdir -m 777 "$work/empty"
export TSOCK_DIR=$work/empty/run
start "$producer" "${set[@]}" "${small[@]}" &&
	[ "$(stat -c %a "$TSOCK_DIR")" = 700 ]
result $? 'the producer makes the folder of sockets itself' "$(cat "$work/log")"
stop
finished
